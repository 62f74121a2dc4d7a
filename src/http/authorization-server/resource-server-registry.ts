import { type AccessType, accessActions } from '../../core/access.js'
import type { PublicJwk } from '../../ports/host.js'
import { publishedJwk, screenJwk } from '../../protocol/http-signature/jwk.js'
import type { AskingResourceServer } from '../../protocol/introspection.js'
import { InvalidInputError, requireKnownOptions } from '../../util/input.js'

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

const option = 'resourceServers'
const idLengthMax = 256

/** Validates the registered resource servers. Each id and each key must belong to only one of them. */
export function resourceServerRegistry(
  given: readonly RegisteredResourceServer[] = [],
): ResourceServerRegistry {
  if (!Array.isArray(given)) throw new InvalidInputError(option, 'must be an array')
  const byId = new Map<string, RegisteredResourceServer>()
  const byKey = new Map<string, RegisteredResourceServer>()
  for (const [index, server] of given.entries()) {
    const where = `${option}.${index}`
    const registered = readResourceServer(where, server)
    const { id, keys } = registered
    if (byId.has(id)) throw new InvalidInputError(`${where}.id`, 'must be unique')
    byId.set(id, registered)
    for (const { x } of keys) {
      if (byKey.has(x)) throw new InvalidInputError(`${where}.keys`, 'contains a duplicate key')
      byKey.set(x, registered)
    }
  }
  return (named) => ('id' in named ? byId.get(named.id) : byKey.get(named.jwk.x))
}

function readResourceServer(
  where: string,
  given: RegisteredResourceServer,
): RegisteredResourceServer {
  requireKnownOptions(where, given, { id: true, keys: true, accessTypes: true })
  const { id, keys, accessTypes } = given
  if (typeof id !== 'string' || id === '' || id.length > idLengthMax) {
    throw new InvalidInputError(`${where}.id`, `must be a string of 1 to ${idLengthMax} characters`)
  }
  if (!Array.isArray(keys) || keys.length === 0) {
    throw new InvalidInputError(`${where}.keys`, 'must be an array of at least one key')
  }
  const screened = keys.map((key: PublicJwk) => readKey(`${where}.keys`, key))
  if (new Set(screened.map(({ kid }) => kid)).size < screened.length) {
    throw new InvalidInputError(`${where}.keys`, 'contains a duplicate kid')
  }
  if (accessTypes === undefined) return { id, keys: screened }
  const known = Object.keys(accessActions)
  if (!Array.isArray(accessTypes) || !accessTypes.every((type) => known.includes(type))) {
    throw new InvalidInputError(`${where}.accessTypes`, `must be an array of ${known.join(', ')}`)
  }
  return { id, keys: screened, accessTypes }
}

function readKey(where: string, key: PublicJwk): PublicJwk {
  if (typeof key !== 'object' || key === null) throw new InvalidInputError(where, 'must be JWKs')
  // A private key in the options is a mistake, even though only its public part would be used.
  if ('d' in key) throw new InvalidInputError(where, 'must not contain a private key')
  const screened = screenJwk(publishedJwk(key))
  if (!screened.ok) {
    throw new InvalidInputError(where, `contains an unusable key, which ${screened.problem}`)
  }
  return screened.value
}
