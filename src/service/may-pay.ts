import type { Refused } from '../core/decision.js'
import type { Instant } from '../core/instant.js'
import type { GrantConditions } from '../core/limits.js'
import { requesterOf } from '../core/outgoing-payment/authority.js'
import { confirmationMaxMs } from '../core/outgoing-payment/confirmation.js'
import type { ReservedPayment } from '../core/outgoing-payment/record.js'
import type {
  ConfirmationRequired,
  HostCall,
  MayPay,
  MayPayAnswer,
  RequestedPayment,
} from '../ports/host.js'
import { confirmationSchema } from '../protocol/host-answers.js'
import { parseWith } from '../protocol/schema.js'
import { HostAnswerError } from '../util/errors.js'
import { given } from '../util/given.js'
import { askHost } from './ask-host.js'
import type { ServiceContext } from './context.js'
import { readHostAnswer, refusedByHost } from './host-answer.js'

type MayPayRefusal = Exclude<
  Extract<MayPayAnswer, { readonly ok: false }>['refusal'],
  'confirmation_required'
>

const reasons: Readonly<Record<MayPayRefusal, string>> = {
  funds_insufficient: 'the account has insufficient funds',
  payment_not_allowed: 'the host does not allow the payment',
}

/** The host refuses a payment, or demands that its owner confirms it. */
export type MayPayRefused = Refused<MayPayRefusal> | ConfirmationRequired

/** Asks the host whether a payment may be created, and waits until the end of its time. */
export async function askMayPay(
  { clock }: ServiceContext,
  mayPay: MayPay,
  payment: ReservedPayment,
  conditions: GrantConditions | undefined,
  isPreview?: true,
): Promise<MayPayRefused | undefined> {
  const { id: outgoingPaymentId, walletAddress, receiver } = payment
  const { receiverWalletAddress, debitAmount, receiveAmount, metadata, data, askUntil } = payment
  const requested: RequestedPayment = {
    outgoingPaymentId,
    walletAddress,
    ...requesterOf(payment),
    receiver,
    ...(receiverWalletAddress !== undefined && { receiverWalletAddress }),
    debitAmount,
    receiveAmount,
    ...given({ metadata, data, conditions, isPreview }),
    ...(payment.confirmation?.given !== undefined && { isConfirmed: true }),
  }
  // A copy, so that the host cannot change what is created.
  const ask = (call: HostCall) => mayPay(structuredClone(requested), call)
  const leftMs = Math.max(0, askUntil - clock.now())
  const answer = await askHost('mayPay', leftMs, ask)
  const required = readConfirmation(answer, payment, clock.now())
  if (required !== undefined) return required
  const allowed = readHostAnswer('mayPay', answer)
  return allowed.ok ? undefined : refusedByHost('mayPay', allowed, reasons)
}

/**
 * Reads the answer that the owner must confirm a payment. Returns `undefined` for any other answer.
 *
 * @throws {HostAnswerError} for an invalid URL or time, and if the owner has confirmed the payment.
 */
function readConfirmation(
  answer: unknown,
  { confirmation }: ReservedPayment,
  now: Instant,
): ConfirmationRequired | undefined {
  const { ok, refusal }: Readonly<Record<string, unknown>> = Object(answer)
  if (ok !== false || refusal !== 'confirmation_required') return undefined
  const read = parseWith(confirmationSchema, answer)
  if (!read.ok) throw new HostAnswerError('mayPay', `${read.path} ${read.problem}`)
  const { url, until } = read.value
  if (confirmation?.given) {
    throw new HostAnswerError('mayPay', 'the owner has already confirmed the payment')
  }
  if (until <= now || until > now + confirmationMaxMs) {
    throw new HostAnswerError('mayPay', 'until must be in the next 24 hours')
  }
  return { ok, refusal, url, until }
}
