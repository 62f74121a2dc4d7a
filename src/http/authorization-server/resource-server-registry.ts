import { type AccessType, accessActions } from '../../core/access.js'
import type { PublicJwk } from '../../ports/client-keys.js'
import { publishedJwk, screenJwk } from '../../protocol/http-signature/jwk.js'
import type { AskingResourceServer } from '../../protocol/introspection.js'
import { invalidOption } from '../../util/option-error.js'
import { requireKnown } from '../options.js'

/** A resource server in another process, which may ask about access tokens. */
export interface RegisteredResourceServer {
  /** The name that it goes by, such as its URL: 1 to 256 characters. */
  readonly id: string
  /** Public keys that it signs with: one, or two while they are being changed. */
  readonly keys: readonly PublicJwk[]
  /** Resource types that it serves; it hears of no others. Default: all. */
  readonly accessTypes?: readonly AccessType[]
}

/** Finds the resource server that a request names. */
export type ResourceServerRegistry = (
  named: AskingResourceServer,
) => RegisteredResourceServer | undefined

const option = 'resourceServers'
const idLengthMax = 256

/** Reads the resource servers of the options. Every id and every key is that of one alone. */
export function resourceServerRegistry(
  given: readonly RegisteredResourceServer[] = [],
): ResourceServerRegistry {
  if (!Array.isArray(given)) throw invalidOption(option, 'must be a list')
  const byId = new Map<string, RegisteredResourceServer>()
  const byKey = new Map<string, RegisteredResourceServer>()
  for (const [index, server] of given.entries()) {
    const where = `${option}.${index}`
    const registered = readResourceServer(where, server)
    const { id, keys } = registered
    if (byId.has(id)) throw invalidOption(`${where}.id`, 'is that of another resource server')
    byId.set(id, registered)
    for (const { x } of keys) {
      if (byKey.has(x)) throw invalidOption(`${where}.keys`, 'has a key that is there already')
      byKey.set(x, registered)
    }
  }
  return (named) => ('id' in named ? byId.get(named.id) : byKey.get(named.jwk.x))
}

function readResourceServer(
  where: string,
  given: RegisteredResourceServer,
): RegisteredResourceServer {
  if (typeof given !== 'object' || given === null) throw invalidOption(where, 'must be an object')
  const { id, keys, accessTypes, ...rest } = given
  requireKnown(where, rest, [])
  if (typeof id !== 'string' || id === '' || id.length > idLengthMax) {
    throw invalidOption(`${where}.id`, `must be a text of 1 to ${idLengthMax} characters`)
  }
  if (!Array.isArray(keys) || keys.length === 0) {
    throw invalidOption(`${where}.keys`, 'must be a list of at least one key')
  }
  const screened = keys.map((key: PublicJwk) => readKey(`${where}.keys`, key))
  if (new Set(screened.map(({ kid }) => kid)).size < screened.length) {
    throw invalidOption(`${where}.keys`, 'has a kid twice')
  }
  if (accessTypes === undefined) return { id, keys: screened }
  const known = Object.keys(accessActions)
  if (!Array.isArray(accessTypes) || !accessTypes.every((type) => known.includes(type))) {
    throw invalidOption(`${where}.accessTypes`, `must be a list of ${known.join(', ')}`)
  }
  return { id, keys: screened, accessTypes }
}

function readKey(where: string, key: PublicJwk): PublicJwk {
  if (typeof key !== 'object' || key === null) throw invalidOption(where, 'must hold keys')
  // A private key has no business here, even if only its public half were read.
  if ('d' in key) throw invalidOption(where, 'has a private key')
  const screened = screenJwk(publishedJwk(key))
  if ('problem' in screened)
    throw invalidOption(where, `has a key that will not do: ${screened.problem}`)
  return screened.jwk
}
