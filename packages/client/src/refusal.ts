import type { Amount, Instant } from 'open-payments-server'

/** Why a call has no result. Minor versions add members: give a `switch` a `default`. */
export type ClientRefusal =
  | CallRefusal
  | 'confirmation_required'
  | 'outcome_unknown'
  | 'receiver_closed'

/** The refusals that have no members of their own. Minor versions add members: give a `switch` a `default`. */
export type CallRefusal =
  /** The URL is none that may be requested: no https, a private address, another port. Nothing was sent. */
  | 'url_refused'
  /** The host has no address, or accepts no connection. Nothing was sent. */
  | 'unreachable'
  /** The server sent no complete response. */
  | 'no_response'
  /** The time limit ended the call. */
  | 'timed_out'
  /** The signal of the caller ended the call. */
  | 'aborted'
  /** So many receivers are being read that no other one is begun. Nothing was sent. */
  | 'busy'
  /** The server redirects, which is not followed. */
  | 'redirected'
  /** The response is too large, no JSON, or not what was asked for. */
  | 'response_invalid'
  /** The server does not accept the key or the signature of this client. */
  | 'client_refused'
  /** The server does not accept the token, or asks for one. */
  | 'unauthenticated'
  /** The grant, the owner or the wallet does not permit it. `answer` has the code and the details. */
  | 'forbidden'
  /** The server does not have it. */
  | 'not_found'
  /** The state of the resource, or an earlier request with the same key, excludes it. */
  | 'conflict'
  /** The server refuses the request for another reason, such as an invalid amount. */
  | 'request_refused'
  /** The signature has arrived before, more than once. Whatever the first request did is done. */
  | 'signature_used'
  /** The server asks to wait, for `retryAfterMs` if it says how long. */
  | 'rate_limited'
  /** The server cannot answer now. */
  | 'unavailable'
  /** The grant was continued earlier than its server permits. */
  | 'too_fast'
  /** The server wants the consent of an owner for access that needs none elsewhere. */
  | 'consent_required'
  /** The owner denied the grant, or it has ended. */
  | 'consent_denied'
  /** The redirect does not prove that it comes from the authorization server. */
  | 'finish_invalid'
  /** The incoming payment cannot be paid over Interledger. */
  | 'receiver_unpayable'

/** What a server said when it refused. */
export interface ErrorAnswer {
  readonly status: number
  /** At most 128 characters: a longer one is cut. */
  readonly code?: string
  /** At most 1,024 characters: a longer one is cut. */
  readonly description?: string
  /** As the server sent them: which member is wrong, or which limit is exceeded. Absent if they are very long. */
  readonly details?: unknown
}

/** What every refusal has. */
export interface Refusing<Refusal extends ClientRefusal> {
  readonly ok: false
  readonly refusal: Refusal
  /** For the operator: what happened, with the URL, on one line of at most 4,096 characters. */
  readonly reason: string
  /** For others: a constant text, which tells nothing about private networks. */
  readonly publicReason: string
  /** Whether the same call may succeed later. */
  readonly isTemporary: boolean
  /** Absent if the server did not answer. */
  readonly answer?: ErrorAnswer
  /** How long the server asks to wait, in milliseconds. */
  readonly retryAfterMs?: number
}

/** A call that has no result, and no effect that its caller must look after. */
export interface RefusedCall extends Refusing<CallRefusal> {}

/** How a request whose outcome is unknown may be made again without a second effect. */
export type Repeat = 'same_quote' | 'same_key' | 'never'

/**
 * A request that creates something was sent, and may have been carried out. `repeat` says how to find out: call again
 * with the same quote; call again with the same key, at a server that keeps keys, as open-payments-server does; or
 * never, because every further request would create another one.
 */
export interface UnknownOutcome extends Refusing<'outcome_unknown'> {
  readonly repeat: Repeat
}

/** The payment waits until the owner of the account confirms it. The same call then gets the payment. */
export interface ConfirmationRequired extends Refusing<'confirmation_required'> {
  /** The page on which the owner decides. */
  readonly url: string
  /** Until when the owner can decide. Absent if the wallet does not say. */
  readonly until?: Instant
}

/** The incoming payment takes no more money. */
export interface ClosedReceiver extends Refusing<'receiver_closed'> {
  /** What it has received in all, in the receiver's asset. */
  readonly receivedAmount: Amount
}

/** A call without a result. */
export type Refused = RefusedCall | UnknownOutcome | ConfirmationRequired | ClosedReceiver

const unreadable = 'its server cannot be reached, or does not let this wallet read it'
const unusable = 'its server did not respond as the protocol says'

interface Facts {
  readonly publicReason: string
  readonly isTemporary: boolean
}

const lasting = (publicReason: string): Facts => ({ publicReason, isTemporary: false })
const temporary = (publicReason: string): Facts => ({ publicReason, isTemporary: true })

const factsOf: Readonly<Record<ClientRefusal, Facts>> = {
  url_refused: lasting(unreadable),
  unreachable: temporary(unreadable),
  no_response: temporary(unreadable),
  timed_out: temporary(unreadable),
  aborted: temporary(unreadable),
  busy: temporary(unreadable),
  redirected: lasting(unreadable),
  response_invalid: lasting(unusable),
  client_refused: lasting(unreadable),
  unauthenticated: lasting(unreadable),
  forbidden: lasting(unreadable),
  not_found: lasting('it does not exist'),
  conflict: lasting('its state does not permit this'),
  request_refused: lasting('its server refuses the request'),
  signature_used: temporary(unreadable),
  rate_limited: temporary(unreadable),
  unavailable: temporary(unreadable),
  too_fast: temporary('its server asks to wait'),
  consent_required: lasting(unreadable),
  consent_denied: lasting('the owner did not give consent'),
  finish_invalid: lasting('the redirect does not come from the authorization server'),
  receiver_unpayable: lasting('the receiver cannot be paid over Interledger'),
  confirmation_required: lasting('the owner must confirm the payment'),
  outcome_unknown: lasting('whether its server has done it is not known'),
  receiver_closed: lasting('the incoming payment takes no more money'),
}

/** All refusals. */
export const clientRefusals = Object.keys(factsOf) as readonly ClientRefusal[]

/** What a refusal has besides its constant members. */
export type More = Partial<
  Pick<RefusedCall, 'answer' | 'retryAfterMs' | 'publicReason' | 'isTemporary'>
>

const reasonLengthMax = 4_096
/** Characters that end a line of a log, or change what a terminal shows. */
const unprintable = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]+/gu

/** Shortens a text, which may be of a server. */
export function cut(text: string, lengthMax: number): string {
  return text.length > lengthMax ? `${text.slice(0, lengthMax - 1).toWellFormed()}…` : text
}

function refusing<Refusal extends ClientRefusal>(refusal: Refusal, reason: string, more: More) {
  const short = cut(reason, reasonLengthMax).replace(unprintable, ' ')
  return { ok: false, refusal, reason: short, ...factsOf[refusal], ...more } as const
}

export function refused(refusal: CallRefusal, reason: string, more: More = {}): RefusedCall {
  return refusing(refusal, reason, more)
}

export function outcomeUnknown(repeat: Repeat, reason: string, more: More = {}): UnknownOutcome {
  return { ...refusing('outcome_unknown', reason, more), repeat }
}

export function confirmationRequired(
  { url, until }: Pick<ConfirmationRequired, 'url' | 'until'>,
  reason: string,
  more: More,
): ConfirmationRequired {
  const page = until === undefined ? { url } : { url, until }
  return { ...refusing('confirmation_required', reason, more), ...page }
}

export function receiverClosed(publicReason: string, receivedAmount: Amount): ClosedReceiver {
  return { ...refusing('receiver_closed', publicReason, { publicReason }), receivedAmount }
}

/** The refusal to send a token to another server than the one that it is for. */
export function notAt(url: string, server: string): RefusedCall {
  return refused('url_refused', `${url} is not at ${server}`)
}
