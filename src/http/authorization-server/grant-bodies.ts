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

/** Where client instances and resource owners are sent. */
export interface GrantUrls {
  /** The grant endpoint without a trailing slash: what continuation and management URIs begin with. */
  readonly baseUrl: string
  /** The host's consent page without a trailing slash. */
  readonly consentUrl: string
}

export function interactBody({ id, interaction }: Grant, { consentUrl }: GrantUrls) {
  if (interaction === undefined) return {}
  const redirect = `${consentUrl}/${formatPath(id, interaction.path)}`
  return { interact: { redirect, finish: interaction.nonce } }
}

/** What the client instance was granted, and how to continue. */
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

/** Sent with every answer; `wait` only while there is something to wait for. */
function continueBody(grant: Grant, secret: string, { baseUrl }: GrantUrls): ContinueBody {
  const { id, continuation } = grant
  const value = formatCredential(continuationTokenClass, { grantId: id, secret })
  const uri = `${baseUrl}/continue/${formatPath(id, continuation.path)}`
  const body = { access_token: { value }, uri }
  return isIssued(grant) ? body : { ...body, wait: Math.ceil(continuation.waitMs / 1000) }
}
