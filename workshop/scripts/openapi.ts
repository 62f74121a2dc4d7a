import { readFileSync } from 'node:fs'
import {
  getAuthServerOpenAPI,
  getResourceServerOpenAPI,
  getWalletAddressServerOpenAPI,
} from '@interledger/open-payments'
import {
  grantRoutes,
  introspectionRoutes,
  receivingRoutes,
  type ServerOperation,
  type ServerRoute,
  spendingRoutes,
  walletAddressRoutes,
} from '../../src/http/routes.js'
import { faults } from '../../test/support/faults.js'

type Members = Readonly<Record<string, unknown>>

/** What is taken from a document of an operation. */
interface Described {
  readonly operationId: string
  readonly responses: Readonly<Record<string, Members>>
  readonly [name: string]: unknown
}

const text = { type: 'string' }
const content = (schema: Members) => ({ 'application/json': { schema } })

/** The operations that are in no published document. */
const own: { readonly [Name in ServerOperation]?: Described } = {
  discover: {
    operationId: 'discover',
    summary: 'Says what the server supports (RFC 9635 section 9), or answers a CORS preflight',
    responses: {
      200: {
        description: 'What the server supports',
        content: content({
          type: 'object',
          properties: { grant_request_endpoint: text },
          required: ['grant_request_endpoint'],
        }),
      },
      204: { description: 'The answer to a CORS preflight' },
    },
  },
  introspectToken: {
    operationId: 'introspect-token',
    summary: 'Introspects a token (RFC 9767 section 3.3), for resource servers in other processes',
    responses: {
      200: {
        description: 'The token, or that it is not active',
        content: content({
          type: 'object',
          properties: {
            active: { type: 'boolean' },
            iss: text,
            exp: { type: 'integer' },
            access: { type: 'array', items: { type: 'object' } },
            key: { type: 'object' },
            grant: text,
          },
          required: ['active'],
        }),
      },
    },
  },
  preflight: {
    operationId: 'preflight',
    summary: 'Answers a CORS preflight',
    responses: { 204: { description: 'What pages of other origins may read' } },
  },
}

/**
 * Returns the OpenAPI document of what the library answers, with the paths of a wallet that `createWallet` creates with
 * its defaults: requests and successes as the published documents describe them, and each error that an operation
 * answers, by the table of faults that the tests cause.
 */
export async function openApi(): Promise<Members> {
  const { version } = JSON.parse(readFileSync('package.json', 'utf8'))
  const paths = {
    ...(await pathsOf('/auth', [...grantRoutes, ...introspectionRoutes], getAuthServerOpenAPI())),
    ...(await pathsOf('', [...receivingRoutes, ...spendingRoutes], getResourceServerOpenAPI())),
    ...(await pathsOf('', walletAddressRoutes, getWalletAddressServerOpenAPI())),
  }
  const description =
    'What a wallet of createWallet answers below its baseUrl, with the default paths. Requests and successes are ' +
    'those of Open Payments, the errors those of this library.'
  return {
    openapi: '3.1.0',
    info: { title: 'open-payments-server', version, description, license: { name: 'MIT' } },
    servers: [{ url: '{baseUrl}', variables: { baseUrl: { default: 'https://wallet.example' } } }],
    ...withComponents(paths),
  }
}

async function pathsOf(
  prefix: string,
  routes: readonly ServerRoute[],
  document: Promise<{ readonly paths: object }>,
) {
  const published = (await document).paths as Record<string, Record<string, Described>>
  const paths: Record<string, Members> = {}
  for (const { operation, method, path } of routes) {
    const verb = method.toLowerCase()
    const found = published[path.replace('{path}', '') || '/']?.[verb] ?? own[operation]
    if (found === undefined) throw new Error(`${operation} is in no document`)
    const at = prefix + path.replace('{path}', '/{path}')
    const names = [...at.matchAll(/\{(\w+)\}/g)].map(([, name]) => name)
    const parameters = names.map((name) => ({ name, in: 'path', required: true, schema: text }))
    paths[at] = { ...paths[at], [verb]: operationOf(operation, found, parameters) }
  }
  return paths
}

/** Takes over the successes, and describes each status of an error with its codes. */
function operationOf(operation: ServerOperation, found: Described, inPath: readonly Members[]) {
  const { operationId, summary, description, requestBody, responses } = found
  const parameters = (found['parameters'] ?? []) as readonly { readonly in: string }[]
  const query = parameters.filter((each) => each.in === 'query')
  const successes = Object.entries(responses).filter(([status]) => Number(status) < 300)
  const cells = faults.flatMap(({ at }) => at[operation] ?? [])
  const errors = [...new Set(cells.map((cell) => cell.slice(0, 3)))].map((status) => {
    const own = cells.filter((cell) => cell.startsWith(status))
    return [status, errorOf(own.map((cell) => cell.slice(4)))] as const
  })
  return {
    operationId,
    ...{ summary, description, requestBody },
    parameters: [...inPath, ...query],
    responses: {
      ...Object.fromEntries(successes),
      ...Object.fromEntries(errors),
    },
  }
}

function errorOf(codes: readonly string[]): Members {
  const known = [...new Set(codes)].toSorted()
  const error = {
    type: 'object',
    properties: {
      code: { type: 'string', enum: known },
      description: text,
      details: { type: 'object' },
    },
    required: ['code', 'description'],
  }
  const body = { type: 'object', properties: { error }, required: ['error'] }
  return { description: known.join(', '), content: content(body) }
}

/** Moves schemas that occur more than once to `components`, without examples. The published ones have no references. */
function withComponents(paths: Members): Members {
  const seen = new Map<string, { name: string; count: number }>()
  // A member with the name `type` is a schema itself.
  const isSchema = (value: object) =>
    ('type' in value && typeof value.type === 'string') || 'oneOf' in value || 'allOf' in value
  const keyOf = (value: object) => {
    const key = JSON.stringify(value)
    return isSchema(value) && key.length > 160 ? key : undefined
  }
  const bare: unknown = JSON.parse(
    JSON.stringify(paths, (name, value) => (/^examples?$/.test(name) ? undefined : value)),
  )
  function count(value: unknown, name: string): void {
    if (typeof value !== 'object' || value === null) return
    const key = keyOf(value)
    const found = key === undefined ? undefined : seen.get(key)
    if (found !== undefined) found.count += 1
    else if (key !== undefined) seen.set(key, { name, count: 1 })
    if (found === undefined) for (const [each, inner] of Object.entries(value)) count(inner, each)
  }
  count(bare, 'paths')
  const schemas: Record<string, unknown> = {}
  const names = new Map<string, string>()
  function referring(value: unknown, isInside = false): unknown {
    if (typeof value !== 'object' || value === null) return value
    if (Array.isArray(value)) return value.map((each) => referring(each))
    const key = isInside ? undefined : keyOf(value)
    const found = key === undefined ? undefined : seen.get(key)
    if (key !== undefined && found !== undefined && found.count > 1) {
      if (!names.has(key)) {
        const { title = found.name } = value as { readonly title?: string }
        const wanted = title.replace(/\W+/g, '-').toLowerCase()
        const taken = [...names.values()].filter((each) => each.replace(/\d+$/, '') === wanted)
        const name = taken.length === 0 ? wanted : `${wanted}${taken.length + 1}`
        names.set(key, name)
        schemas[name] = referring(value, true)
      }
      return { $ref: `#/components/schemas/${names.get(key)}` }
    }
    return Object.fromEntries(
      Object.entries(value).map(([each, inner]) => [each, referring(inner)]),
    )
  }
  return { paths: referring(bare), components: { schemas } }
}
