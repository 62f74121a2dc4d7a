import type { Amount } from '../core/amount.js'
import type { Refused } from '../core/decision.js'
import type { IncomingPayment } from '../core/incoming-payment.js'
import type { MayReceive, MayReceiveAnswer, MayReceiveQuery } from '../ports/host.js'
import { ofDependency } from './failed-dependency.js'
import { readHostAnswer, refusedByHost } from './host-answer.js'

/** Why the host refuses a creation or an arrival. */
export type MayReceiveRefusal = Extract<MayReceiveAnswer, { readonly ok: false }>['refusal']

const reasons: Readonly<Record<MayReceiveRefusal, string>> = {
  amount_too_large: 'the amount is too large for the host',
  payment_not_allowed: 'the host does not allow the payment',
}

/** Asks the host whether a payment may be created, or funds counted that arrived for it. */
export async function askMayReceive(
  mayReceive: MayReceive,
  {
    id: incomingPaymentId,
    walletAddress,
    client,
    incomingAmount,
    expiresAt,
    metadata,
  }: IncomingPayment,
  arrival?: { readonly transferId: string; readonly amount: Amount },
): Promise<Refused<MayReceiveRefusal> | undefined> {
  // A copy, so that the host cannot change what is stored.
  const query: MayReceiveQuery = structuredClone({
    ...(arrival ? { type: 'arrival', ...arrival } : { type: 'creation' }),
    incomingPaymentId,
    walletAddress,
    ...(client !== undefined && { client }),
    ...(incomingAmount !== undefined && { incomingAmount }),
    expiresAt,
    ...(metadata !== undefined && { metadata }),
  })
  const answer = await ofDependency('mayReceive', () => mayReceive(query))
  const given = readHostAnswer('mayReceive', answer)
  return given.ok ? undefined : refusedByHost('mayReceive', given, reasons)
}
