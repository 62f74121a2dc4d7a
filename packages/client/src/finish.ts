import { interactionHash } from '../../../src/protocol/finish.js'
import type { PendingGrant } from './grant.js'
import { type Refused, refused } from './refusal.js'

/** The result of `verifyFinish`. */
export type VerifiedFinish = { readonly ok: true; readonly interactRef: string } | Refused

/**
 * Verifies that the browser of the owner returns from the authorization server (RFC 9635 section 4.2.3). A return
 * without a hash is `consent_denied` if it says so. It proves nothing, since anybody can send it: show it, but keep the
 * pending grant for a return with a hash.
 *
 * @param query of the URL to which the browser has returned.
 *
 * @example
 * ```ts
 * import { type PendingGrant, verifyFinish } from 'open-payments-client'
 *
 * export async function returned(url: URL, pending: PendingGrant) {
 *   const finish = await verifyFinish(pending, url.searchParams)
 *   return finish.ok ? finish.interactRef : finish.publicReason
 * }
 * ```
 */
export async function verifyFinish(
  { authServer, finish }: Pick<PendingGrant, 'authServer' | 'finish'>,
  query: URLSearchParams,
): Promise<VerifiedFinish> {
  const [hash, interactRef] = [query.get('hash'), query.get('interact_ref')]
  if (finish === undefined) return refused('finish_invalid', 'the grant has no finish')
  if (hash === null || interactRef === null) {
    const result = query.get('result')
    return result !== null && /reject|den/.test(result)
      ? refused('consent_denied', `the browser returned with the result ${result.slice(0, 100)}`)
      : refused('finish_invalid', 'the browser returned without hash or interact_ref')
  }
  const input = { ...finish, interactRef, grantEndpoint: authServer }
  const expected = await interactionHash(input, 'sha-256', 'base64url')
  // The RFC says base64url. Deployed servers send standard base64, whose + is a space in a query.
  const given = hash
    .replace(/[ +]/g, '-')
    .replaceAll('/', '_')
    .replace(/={0,2}$/, '')
  return given === expected
    ? { ok: true, interactRef }
    : refused('finish_invalid', `the hash is not one of ${authServer}`)
}
