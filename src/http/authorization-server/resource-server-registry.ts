import * as v from 'valibot'
import { type AccessType, accessActions } from '../../core/access.js'
import type { PublicJwk } from '../../ports/host.js'
import { publishedJwk, screenJwk } from '../../protocol/http-signature/jwk.js'
import type { AskingResourceServer } from '../../protocol/introspection.js'
import { listOf, type Members, oneOf, optionsOf, textOfAtMost } from '../../util/input.js'

/** A resource server in another process that may introspect access tokens. */
export interface RegisteredResourceServer {
  /** The identifier that it sends as `resource_server`, such as its URL: 1 to 256 characters. */
  readonly id: string
  /** The public keys that it signs with: usually one, and two during a key change. */
  readonly keys: readonly PublicJwk[]
  /** The access types that it serves. Introspection returns no others. Default: all. */
  readonly accessTypes?: readonly AccessType[]
}

/** Returns the registered resource server that a request identifies by id or key, or `undefined`. */
export type ResourceServerRegistry = (
  named: AskingResourceServer,
) => RegisteredResourceServer | undefined

const idLengthMax = 256

const publicKey = v.pipe(
  v.custom<PublicJwk>((key) => typeof key === 'object' && key !== null, 'must be a JWK'),
  // A private key in the options is a mistake, even though only its public part would be used.
  v.check((key) => !('d' in key), 'must not contain a private key'),
  v.rawTransform(({ dataset, addIssue, NEVER }) => {
    const screened = screenJwk(publishedJwk(dataset.value))
    if (screened.ok) return screened.value
    addIssue({ message: `is an unusable key, which ${screened.problem}` })
    return NEVER
  }),
)

const registeredServer = optionsOf({
  id: textOfAtMost(idLengthMax),
  keys: v.pipe(
    listOf(publicKey),
    v.minLength(1, 'must be an array of at least one key'),
    v.check((keys) => areDistinct(keys.map(({ kid }) => kid)), 'contains a duplicate kid'),
    v.check((keys) => areDistinct(keys.map(({ x }) => x)), 'contains a duplicate key'),
  ),
  accessTypes: v.optional(listOf(oneOf(...(Object.keys(accessActions) as AccessType[])))),
} satisfies Members<RegisteredResourceServer>)

/** The registered resource servers. Each id and each key must belong to only one of them. */
export const resourceServersOption = v.pipe(
  listOf(registeredServer),
  v.check((servers) => areDistinct(servers.map(({ id }) => id)), 'must have different ids'),
  v.check(
    (servers) => areDistinct(servers.flatMap(({ keys }) => keys.map(({ x }) => x))),
    'contains a duplicate key',
  ),
)

function areDistinct(names: readonly string[]): boolean {
  return new Set(names).size === names.length
}

export function resourceServerRegistry(
  servers: readonly RegisteredResourceServer[] = [],
): ResourceServerRegistry {
  const byId = new Map(servers.map((server) => [server.id, server]))
  const byKey = new Map(servers.flatMap((server) => server.keys.map(({ x }) => [x, server])))
  return (named) => ('id' in named ? byId.get(named.id) : byKey.get(named.jwk.x))
}
