import { itemsOf, publicItem } from '../../core/access.js'
import type { Grant } from '../../core/grant/record.js'
import {
  accessTokenClass,
  continuationTokenClass,
  formatCredential,
  formatPath,
} from '../../protocol/credential.js'
import type { AccessTokenBody, ContinueBody, SubjectBody } from '../../protocol/grant.js'
import type { Call } from '../../service/context.js'
import type { GrantRequested } from '../../service/grant/request.js'
import type { GrantAnswer, SecretToken } from '../../service/grant/tokens.js'

/** The URLs from which the URIs in grant responses are built. */
export interface GrantUrls {
  /** The grant endpoint without a trailing slash; the base of continuation and token management URIs. */
  readonly baseUrl: string
  /** The URL of the host's consent page without a trailing slash. */
  readonly consentUrl: string
}

export function interactBody(
  { grant, interactionSecret }: GrantRequested,
  { consentUrl }: GrantUrls,
) {
  if (grant.interaction === undefined) return {}
  const redirect = `${consentUrl}/${formatPath(grant.id, interactionSecret)}`
  return { interact: { redirect, finish: grant.interaction.nonce } }
}

/** Returns the access tokens, subject and continuation of a grant response (RFC 9635 section 3). */
export function grantBody(
  answer: GrantAnswer,
  continuationSecret: string,
  call: Call,
  urls: GrantUrls,
) {
  return {
    ...accessTokensBody(answer, call, urls),
    ...subjectBody(answer.grant),
    continue: continueBody(answer.grant, continuationSecret, urls),
  }
}

/**
 * Returns an object for a request for a single token, and an array for a request for a set, even of one token (RFC 9635
 * section 3.2.2).
 */
function accessTokensBody(
  { grant, tokens }: GrantAnswer,
  call: Call,
  urls: GrantUrls,
): { access_token?: AccessTokenBody | readonly AccessTokenBody[] } {
  const bodies = tokens.map((token) => tokenBody(grant, token, call, urls))
  const [first] = bodies
  if (first === undefined) return {}
  return { access_token: first.label === undefined ? first : bodies }
}

/** Returns the response to a rotation, which contains one token (RFC 9635 section 6.1). */
export function accessTokenBody(
  { grant, tokens }: GrantAnswer,
  call: Call,
  urls: GrantUrls,
): { access_token?: AccessTokenBody } {
  const [token] = tokens
  return token === undefined ? {} : { access_token: tokenBody(grant, token, call, urls) }
}

function tokenBody(
  { id, granted = [] }: Grant,
  { label, secret, manage, expiresAt }: SecretToken,
  { now }: Call,
  { baseUrl }: GrantUrls,
): AccessTokenBody {
  return {
    ...(label !== undefined && { label }),
    value: formatCredential(accessTokenClass, { grantId: id, secret }),
    manage: `${baseUrl}/token/${formatPath(id, manage)}`,
    expires_in: Math.max(0, Math.floor((expiresAt - now) / 1000)),
    access: itemsOf(granted, label).map(publicItem),
  }
}

function subjectBody({ subject }: Grant): { subject?: SubjectBody } {
  return subject === undefined ? {} : { subject: { sub_ids: [subject] } }
}

/** Returns `continue` (RFC 9635 section 3.1), with `wait` only until the access token is issued. */
function continueBody(grant: Grant, secret: string, { baseUrl }: GrantUrls): ContinueBody {
  const { id, continuation } = grant
  const value = formatCredential(continuationTokenClass, { grantId: id, secret })
  const uri = `${baseUrl}/continue/${formatPath(id, continuation.path)}`
  const body = { access_token: { value }, uri }
  return grant.issuedAt !== undefined
    ? body
    : { ...body, wait: Math.ceil(continuation.waitMs / 1000) }
}
