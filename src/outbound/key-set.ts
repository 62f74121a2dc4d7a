import type { Json } from '../core/json.js'
import type { PublicJwk } from '../ports/client-keys.js'
import { isSoundKey, readPublicJwk } from '../protocol/http-signature/jwk.js'
import { isObject, parseJson } from '../protocol/json.js'
import type { FetchedDocument } from './guarded-fetch.js'

/** The usable keys that a client instance publishes: at most 20, and of each only `kid` and `x`. */
export type KeySet = readonly PublicJwk[]

const keysMax = 20

/**
 * Reads the response from `{walletAddress}/jwks.json`. With 404 or 410 the key set is empty.
 *
 * @throws {Error} for any other status and for an invalid document. They say nothing about the keys: a proxy, an
 * expired login or a maintenance page can produce them.
 */
export function readKeySet({ status, contentType, body }: FetchedDocument): KeySet {
  if (status === 404 || status === 410) return []
  if (status !== 200) throw new Error(`the response for the key set has status ${status}`)
  if (!/^application\/(?:[\w.-]+\+)?json[\t ]*(?:;|$)/i.test(contentType)) {
    throw new Error('the key set is not JSON')
  }
  const document = parseJson(body)
  const keys = isObject(document) ? document['keys'] : undefined
  if (!Array.isArray(keys)) throw new Error('the key set has no keys')
  if (keys.length > keysMax) throw new Error(`the key set has more than ${keysMax} keys`)
  return usableKeys(keys)
}

/** Omits keys that share their `kid` with another key, because the `kid` is ambiguous. */
function usableKeys(keys: readonly Json[]): KeySet {
  const kids = keys.map((key) => (isObject(key) ? key['kid'] : undefined))
  return keys.flatMap((key) => {
    const read = readPublicJwk(key)
    if (!read.ok) return []
    return kids.filter((kid) => kid === read.value.kid).length === 1 ? [read.value] : []
  })
}

/** Finds a key by its `kid`. Only this key is screened completely, so a large set costs no more than a small one. */
export function keyOf(keys: KeySet, kid: string): PublicJwk | undefined {
  const key = keys.find((candidate) => candidate.kid === kid)
  return key !== undefined && isSoundKey(key) ? key : undefined
}
