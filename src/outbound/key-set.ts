import type { Json } from '../core/decision.js'
import type { PublicJwk } from '../ports/client-keys.js'
import { screenJwk } from '../protocol/http-signature/jwk.js'
import { isObject, parseJson } from '../protocol/json.js'
import { type FetchedDocument, fetchRefusal } from './guarded-fetch.js'

/** The keys that a client instance publishes. `find` screens the key that it returns. */
export interface KeySet {
  find(kid: string): PublicJwk | undefined
}

const keysMax = 20

export const emptyKeySet: KeySet = { find: () => undefined }

/**
 * Reads the response from `{walletAddress}/jwks.json`. With 404 or 410 the key set is empty.
 *
 * @throws {FetchRefusedError} for an invalid response; another error for a status that may be temporary.
 */
export function readKeySet({ status, contentType, body }: FetchedDocument): KeySet {
  if (status === 404 || status === 410) return emptyKeySet
  if (status >= 500 || status === 429)
    throw new Error(`the response for the key set has status ${status}`)
  if (status !== 200) throw fetchRefusal(`the response for the key set has status ${status}`)
  if (!/^application\/(?:[\w.-]+\+)?json[\t ]*(?:;|$)/i.test(contentType)) {
    throw fetchRefusal('the key set is not JSON')
  }
  const document = parseJson(body)
  const keys = isObject(document) ? document['keys'] : undefined
  if (!Array.isArray(keys)) throw fetchRefusal('the key set has no keys')
  if (keys.length > keysMax) throw fetchRefusal(`the key set has more than ${keysMax} keys`)
  return keys.length === 0 ? emptyKeySet : keySet(keys)
}

function keySet(keys: readonly Json[]): KeySet {
  return {
    find(kid) {
      const [only, ...others] = keys.filter((key) => isObject(key) && key['kid'] === kid)
      // Ambiguous: two keys share this `kid`.
      if (only === undefined || others.length > 0) return undefined
      const screened = screenJwk(only)
      return screened.ok ? screened.value : undefined
    },
  }
}
