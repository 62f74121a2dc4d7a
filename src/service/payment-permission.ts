import { type Refused, refused } from '../core/decision.js'
import type { OutgoingPayment } from '../core/outgoing-payment/record.js'
import { ok, type Result } from '../core/result.js'
import type { MayPay, PaymentRefusal, RequestedPayment } from '../ports/may-pay.js'
import { canonicalJson } from '../protocol/json.js'
import { hashText } from '../util/hash.js'
import { ofDependency } from './mechanism/dependency-failure.js'
import { readHostAnswer, wrongAnswer } from './mechanism/host-answer.js'
import type { Replayed } from './mechanism/transact.js'

/** The host's answer about a payment, or the error with which it failed to answer. */
export type Permission =
  | Result<undefined, Refused<PaymentRefusal['refusal']> | Replayed>
  | { readonly ok: false; readonly outcome: 'failed'; readonly error: unknown }

const reasons: Readonly<Record<PaymentRefusal['refusal'], string>> = {
  funds_insufficient: 'the account has insufficient funds',
  payment_not_allowed: 'the host does not allow the payment',
}

/** Asks the host whether a payment may be created. Never rejects, so that a retry does not hide a failing host. */
export async function permissionFor(mayPay: MayPay, payment: OutgoingPayment): Promise<Permission> {
  try {
    const requested = await requestedPayment(payment)
    return readAnswer(await ofDependency('mayPay', () => mayPay(requested)))
  } catch (error) {
    return { ok: false, outcome: 'failed', error }
  }
}

/** Copies the payment, so that the host cannot change what is created. */
async function requestedPayment(payment: OutgoingPayment): Promise<RequestedPayment> {
  const { id: outgoingPaymentId, walletAddress, client, grantId, receiver } = payment
  const { debitAmount, receiveAmount, metadata } = payment
  const requested = structuredClone({
    outgoingPaymentId,
    walletAddress,
    client,
    grantId,
    receiver,
    debitAmount,
    receiveAmount,
    ...(metadata && { metadata }),
  })
  // Two concurrent requests with one key can have different amounts. Holds by the payment's id would replace each
  // other, although either request may create the payment.
  return { holdId: await hashText(canonicalJson(requested)), ...requested }
}

function readAnswer(answer: unknown): Permission {
  const given = readHostAnswer('mayPay', answer)
  if (given.ok) return ok(undefined)
  const refusal = String(given.refusal)
  if (!isRefusal(refusal)) throw wrongAnswer('mayPay')
  return refused(refusal, given.reason ?? reasons[refusal])
}

function isRefusal(refusal: string): refusal is PaymentRefusal['refusal'] {
  return Object.hasOwn(reasons, refusal)
}
