import { createRequire } from 'node:module'

interface Settings {
  readonly responses: object
  readonly errorTransformer?: unknown
}

type Validators = new (settings: Settings) => object

const require = createRequire(import.meta.url)
const ofClient = createRequire(require.resolve('@interledger/open-payments'))
const loaded = ofClient('openapi-response-validator') as { default: Validators }

const known = new Map<unknown, Map<string, object>>()

/** The published client compiles every schema of the specification again for each client: once is enough. */
loaded.default = new Proxy(loaded.default, {
  construct(create, [settings]: [Settings]) {
    const { errorTransformer, responses } = settings
    const own = known.get(errorTransformer) ?? new Map<string, object>()
    known.set(errorTransformer, own)
    const schemas = JSON.stringify(responses)
    const validator = own.get(schemas) ?? new create(settings)
    own.set(schemas, validator)
    return validator
  },
})
