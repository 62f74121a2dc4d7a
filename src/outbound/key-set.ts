import { ok, type Problem, type Result } from '../core/decision.js'
import type { Json } from '../core/stored.js'
import type { FetchedDocument } from '../network/index.js'
import type { PublicJwk } from '../ports/host.js'
import {
  kidLengthMax,
  publishedJwk,
  readPublicJwk,
  screenJwk,
} from '../protocol/http-signature/jwk.js'
import { isObject, jsonBasedType, parseJson } from '../protocol/json.js'

/** The keys that a client publishes: of each only `kid`, and `x` or why it cannot be used. */
export type KeySet = readonly ListedKey[]

type ListedKey = PublicJwk | { readonly kid: string; readonly problem: string }

/**
 * Why there is no key set:
 *
 * - `busy`: the request was not sent, because too many are in progress.
 * - `refused`: the URL or the response breaks a rule of the fetch.
 * - `unreachable`: no URL of this host can be read.
 * - `failed`: this URL cannot be read.
 * - `invalid`: the response is not a key set, and the client must change it. The problem quotes nothing from the
 *   response.
 */
export interface KeySetFailure extends Problem {
  readonly kind: 'busy' | 'refused' | 'unreachable' | 'failed' | 'invalid'
}

/** Enough for a document of 64 KiB with keys of six or seven members. */
const keySetValuesMax = 5_000

/**
 * Reads the response from `{walletAddress}/jwks.json`. With 404 or 410 the key set is empty. Any other status and an
 * invalid document say nothing about the keys: a proxy, an expired login or a maintenance page can produce them.
 */
export function readKeySet({
  status,
  contentType,
  body,
}: FetchedDocument): Result<KeySet, KeySetFailure> {
  if (status === 404 || status === 410) return ok([])
  if (status >= 500 || status === 408 || status === 429) {
    return {
      ok: false,
      kind: 'failed',
      problem: `the response for the key set has status ${status}`,
    }
  }
  if (status >= 300 && status < 400) return invalid('the key set must not be a redirect')
  if (status !== 200) return invalid('the response for the key set must have status 200')
  if (!jsonBasedType.test(contentType)) {
    return invalid('the key set must have the content type application/json')
  }
  const document = parseJson(body, keySetValuesMax)
  if (document === undefined) return invalid('the key set must be JSON in UTF-8')
  const keys = isObject(document) ? document['keys'] : undefined
  if (!Array.isArray(keys)) return invalid('the key set must be an object with an array keys')
  return ok(listed(keys))
}

/** Keys that share their `kid` cannot be used, because it is ambiguous. */
function listed(keys: readonly Json[]): KeySet {
  const byKid = new Map<string, ListedKey>()
  for (const key of keys) {
    const kid = isObject(key) ? key['kid'] : undefined
    if (typeof kid !== 'string' || kid.length > kidLengthMax) continue
    const read = readPublicJwk(key)
    const one = read.ok ? read.value : { kid, problem: `the key ${read.problem}` }
    byKid.set(kid, byKid.has(kid) ? { kid, problem: 'several keys have this kid' } : one)
  }
  return [...byKid.values()]
}

function invalid(problem: string): KeySetFailure {
  return { ok: false, kind: 'invalid', problem }
}

/**
 * Finds a key by its `kid`. Only this key is screened completely, so a large set costs no more than a small one.
 * Returns `undefined` if the set has none, and a problem if it cannot be used.
 */
export function keyIn(keys: KeySet, kid: string): Result<PublicJwk, Problem> | undefined {
  const found = keys.find((key) => key.kid === kid)
  if (found === undefined) return undefined
  if (!('x' in found)) return { ok: false, problem: found.problem }
  const screened = screenJwk(publishedJwk(found))
  return screened.ok ? screened : { ok: false, problem: `the key ${screened.problem}` }
}
