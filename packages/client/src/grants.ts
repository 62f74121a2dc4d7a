import type { AccessItem } from 'open-payments-server'
import { bodyOf, hasOriginOf, rotationBody } from './bodies.js'
import type { Context } from './context.js'
import { type Call, ended, hasTimeFor, pause } from './deadline.js'
import { invalid } from './exchange.js'
import {
  type GrantState,
  grantOf,
  type IssuedGrant,
  type PendingGrant,
  serversOf,
  stateIn,
} from './grant.js'
import type { Outgoing } from './message.js'
import { type Refused, refused } from './refusal.js'
import { type Address, addressFrom } from './wallet-address.js'

/** A grant to request from the owner of an account. */
export interface GrantRequest {
  /** The wallet address whose authorization server is asked, or the result of `addressOf`. */
  readonly walletAddress: string | Address
  readonly access: readonly AccessItem[]
  /**
   * How the owner takes part: the browser returns to `finishUri`, or the client asks for the decision. Default:
   * not at all, so that only access without consent is granted.
   */
  readonly interact?: { readonly finishUri: string } | 'poll'
}

export async function requestGrantAt(
  context: Context,
  call: Call,
  { walletAddress, access, interact }: GrantRequest,
): Promise<GrantState> {
  const address = await addressFrom(context, call, walletAddress)
  if (!address.ok) return address
  const { authServer } = address.value
  const uri = typeof interact === 'object' ? interact.finishUri : undefined
  const clientNonce = uri === undefined ? undefined : context.newNonce()
  const finish =
    uri === undefined ? {} : { finish: { method: 'redirect', uri, nonce: clientNonce } }
  const body = {
    access_token: { access },
    client: context.client,
    ...(interact !== undefined && { interact: { start: ['redirect'], ...finish } }),
  }
  const request: Outgoing = { method: 'POST', url: authServer, body }
  const sent = await context.exchange(call, request)
  if (!sent.ok) return sent
  const before = { servers: serversOf(address.value), clientNonce }
  const state = stateIn(sent.answer, request, before, context.clock.now())
  const isUnasked = state.ok && state.status === 'pending' && interact === undefined
  return isUnasked ? refused('consent_required', `${authServer} requires consent`) : state
}

const deniedCodes: readonly string[] = ['request_denied', 'user_denied']

/** Waits until the server permits the continuation, if the call has time for that, and continues the grant. */
export async function continueGrantWith(
  context: Context,
  call: Call,
  pending: PendingGrant,
  interactRef: string | undefined,
): Promise<GrantState> {
  const { authServer, continuation, continueAt } = pending
  const { uri: url, token } = continuation
  const body = interactRef === undefined ? {} : { body: { interact_ref: interactRef } }
  const request: Outgoing = { method: 'POST', url, token, ...body }
  const isPolled = interactRef === undefined && pending.finish !== undefined
  // The owner's return is news, so it is told at once: most servers then need no wait.
  let waitMs = interactRef === undefined ? Math.max(continueAt - context.clock.now(), 0) : 0
  for (;;) {
    if (!hasTimeFor(call, waitMs)) {
      const more = { retryAfterMs: waitMs }
      return refused(
        'too_fast',
        `${authServer} asks to wait ${waitMs} ms between continuations`,
        more,
      )
    }
    try {
      if (waitMs > 0) await pause(call, waitMs)
    } catch {
      return ended(call, 'the grant was continued')
    }
    const sent = await context.exchange(call, request)
    if (sent.ok) {
      const before = { servers: serversOf(pending), pending }
      return stateIn(sent.answer, request, before, context.clock.now())
    }
    if (sent.refusal !== 'too_fast') return deniedBy(sent, isPolled)
    // A server that asks for no wait would otherwise be asked again without one.
    waitMs = Math.max(sent.retryAfterMs ?? continueAt - context.clock.now(), 1_000)
  }
}

function deniedBy(refusal: Refused, isPolled: boolean): Refused {
  const { answer, reason } = refusal
  const isDenied =
    answer !== undefined && deniedCodes.includes(answer.code ?? '') && answer.status < 500
  if (!isDenied) return refusal
  // Servers say the same of a decision that only the redirect tells, before and after it.
  return refused(isPolled ? 'request_refused' : 'consent_denied', reason, { answer })
}

/** The result of a call that ends something. */
export type Ended = { readonly ok: true } | Refused

/** Resolves to success for a grant that has ended before, too. */
export async function cancelGrantAt(
  { exchange }: Context,
  call: Call,
  { continuation }: Pick<IssuedGrant, 'continuation'>,
): Promise<Ended> {
  if (continuation === undefined) return refused('not_found', 'the grant cannot be continued')
  const { uri: url, token } = continuation
  return endedBy(await exchange(call, { method: 'DELETE', url, token }))
}

export async function revokeTokenAt(
  { exchange }: Context,
  call: Call,
  { manage: url, token }: IssuedGrant,
): Promise<Ended> {
  return endedBy(await exchange(call, { method: 'DELETE', url, token }))
}

/** Of a continuation token, and, in Rafiki, of an access token. */
const goneCodes: readonly string[] = ['invalid_continuation', 'invalid_client']

function endedBy(sent: { readonly ok: true } | Refused): Ended {
  if (sent.ok) return { ok: true }
  const { answer } = sent
  const isGone =
    sent.refusal === 'not_found' ||
    (sent.refusal === 'unauthenticated' && goneCodes.includes(answer?.code ?? ''))
  return isGone ? { ok: true } : sent
}

/** The result of `rotateToken`. */
export type RotatedToken = { readonly ok: true; readonly grant: IssuedGrant } | Refused

export async function rotateTokenAt(
  { exchange, clock }: Context,
  call: Call,
  grant: IssuedGrant,
): Promise<RotatedToken> {
  const { authServer, manage: url, token, continuation } = grant
  const request: Outgoing = { method: 'POST', url, token }
  const read = await bodyOf(rotationBody, request, exchange(call, request))
  if (!read.ok) return read
  const { access_token: next } = read.value
  if (!hasOriginOf(next.manage, authServer)) return invalid(request, 'with a URL of another server')
  const rotated = grantOf(serversOf(grant), next, continuation, clock.now())
  const access = rotated.access.length === 0 ? grant.access : rotated.access
  return { ok: true, grant: { ...rotated, access } }
}
