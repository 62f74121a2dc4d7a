import { publicItem } from '../../core/access.js'
import { type Grant, isIssued } from '../../core/grant/record.js'
import {
  accessTokenClass,
  continuationTokenClass,
  formatCredential,
  formatPath,
} from '../../protocol/credential.js'
import type { AccessTokenBody, ContinueBody, SubjectBody } from '../../protocol/grant.js'
import type { GrantAnswer } from '../../service/grant.js'
import type { Call } from '../../service/mechanism/context.js'

/** The URLs from which the URIs in grant responses are built. */
export interface GrantUrls {
  /** The grant endpoint without a trailing slash; the base of continuation and token management URIs. */
  readonly baseUrl: string
  /** The URL of the host's consent page without a trailing slash. */
  readonly consentUrl: string
}

export function interactBody({ id, interaction }: Grant, { consentUrl }: GrantUrls) {
  if (interaction === undefined) return {}
  const redirect = `${consentUrl}/${formatPath(id, interaction.path)}`
  return { interact: { redirect, finish: interaction.nonce } }
}

/** Returns the access token, subject and continuation of a grant response (RFC 9635 section 3). */
export function grantBody(
  answer: GrantAnswer,
  continuationSecret: string,
  call: Call,
  urls: GrantUrls,
) {
  return {
    ...accessTokenBody(answer, call, urls),
    ...subjectBody(answer.grant),
    continue: continueBody(answer.grant, continuationSecret, urls),
  }
}

export function accessTokenBody(
  { grant: { id, token, granted = [] }, tokenSecret }: GrantAnswer,
  { now }: Call,
  { baseUrl }: GrantUrls,
): { access_token?: AccessTokenBody } {
  if (token === undefined || tokenSecret === undefined) return {}
  return {
    access_token: {
      value: formatCredential(accessTokenClass, { grantId: id, secret: tokenSecret }),
      manage: `${baseUrl}/token/${formatPath(id, token.manage)}`,
      expires_in: Math.max(0, Math.floor((token.expiresAt - now) / 1000)),
      access: granted.map(publicItem),
    },
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
  return isIssued(grant) ? body : { ...body, wait: Math.ceil(continuation.waitMs / 1000) }
}
