import type { Amount } from '../../core/amount.js'
import { type PaymentResult, type Refused, refusedCall } from '../../core/decision.js'
import {
  closedTransfer,
  type TransferRecord,
  transferOf,
} from '../../core/incoming-payment/transfer.js'
import {
  decideIncomingPayment,
  type IncomingPayment,
  type ReceiveFunds,
  type ReceiveRefusal,
} from '../../core/incoming-payment.js'
import type { Instant } from '../../core/instant.js'
import type { Clock } from '../../ports/host.js'
import { isUuid } from '../../protocol/uuid.js'
import { newCall } from '../context.js'
import { loadRecords, readerOf } from '../load.js'
import { type ArrivalInReview, askMayReceive, type MayReceiveRefusal } from '../may-receive.js'
import type { Write } from '../write/write.js'
import type { ReceivingServer } from './receiving-server.js'
import { arrivalKeys, unknownPayment } from './transfer.js'

/** Funds that arrived for an incoming payment, as recorded in the host's ledger. */
export interface ReceivedFunds {
  /**
   * The host's id of this transfer: 1 to 1,024 characters, well-formed Unicode. Repeated reports of the same id count
   * once, and the event of the arrival has it.
   */
  readonly transferId: string
  /**
   * What arrived for the payee: positive, and in the asset of the wallet address. If the payee bears a fee of yours,
   * the amount before it: the incoming payment is complete when these amounts reach `incomingAmount`.
   */
  readonly amount: Amount
  /**
   * Whether to refuse an amount above what is left of `incomingAmount`, with `incoming_amount_exceeded`. Pass `true`
   * for funds that have not moved yet, such as between accounts of yours. Default `false`: what has arrived is counted,
   * also if the payment has then received more than it asked for.
   */
  readonly refuseExcess?: boolean
  /**
   * The last instant at which the transfer may be counted, such as the expiry of an Interledger packet. Later it is
   * closed, as by `close`, and refused with `transfer_closed`. The library compares its clock immediately before each
   * attempt to commit, also after it has waited for other calls or for `policy.mayReceive`: what remains is the time
   * that the store takes for one commit. Default: the transfer may be counted at any time.
   */
  readonly notAfter?: Instant
}

type ArrivalRefusal = ReceiveRefusal | MayReceiveRefusal

type ArrivalResult = PaymentResult<IncomingPayment, ArrivalRefusal> | ArrivalInReview

/** Counts funds that arrived for a payment, if the host allows it. Concurrent calls for one payment share commits. */
export async function receive(
  { context, mayReceive }: ReceivingServer,
  paymentId: string,
  { transferId, refuseExcess = false, ...funds }: ReceivedFunds,
): Promise<ArrivalResult> {
  const { now, commandId } = newCall(context)
  if (!isUuid(paymentId)) return refusedCall(unknownPayment)
  const keys = await arrivalKeys(context, paymentId, transferId)
  const ids = { commandId, recordId: keys.transferKey.id, transferId }
  const command = { type: 'receive', ...ids, refuseExcess, ...funds } as const
  const arrival = { keys, command, now, clock: context.clock }
  const write = arrivalWrite(arrival)
  if (mayReceive === undefined) return context.run(write)
  // The host is asked before the arrival joins others in a commit, so that a slow host delays only this arrival.
  const records = await loadRecords(context.store, write.reads)
  const { type, result } = write.decide(readerOf(records))
  if (type !== 'commit') return result
  if (!result.ok) return context.run(write)
  const { amount } = funds
  const arrived = { transferId, amount }
  const refusal = await askMayReceive(mayReceive, result.payment, arrived, context.clock)
  // Also after a refusal: a concurrent call that the host allowed may have counted the transfer.
  const decided = arrivalWrite({ ...arrival, refusal })
  return context.run({ ...decided, basis: { type: 'assumed', records } })
}

/** An arrival of funds, and the answer of the host if it does not allow it, or not yet. */
interface Arrival {
  readonly keys: Awaited<ReturnType<typeof arrivalKeys>>
  readonly command: Omit<ReceiveFunds, 'recorded' | 'decidedAt'>
  readonly now: Instant
  readonly clock: Clock
  readonly refusal?: Refused<MayReceiveRefusal> | ArrivalInReview | undefined
}

/** Returns the write that counts an arrival, unless the host refuses it, or closes its transfer if it is too late. */
function arrivalWrite({ keys, command, now, clock, refusal }: Arrival): Write<ArrivalResult> {
  const { paymentKey, transferKey, together } = keys
  return {
    reads: [paymentKey, transferKey],
    together,
    decide(read) {
      const payment = read<IncomingPayment>(paymentKey)
      if (payment === undefined) return { type: 'answer', result: refusedCall(unknownPayment) }
      const recorded = read<TransferRecord>(transferKey)
      // Only `notAfter` is compared with the time of the attempt. Every other refusal depends on the records and on
      // the time of the call, so that no attempt can be refused while an earlier one may still take effect.
      const decidedAt = clock.now()
      const decision = decideIncomingPayment<'receive'>(
        payment,
        { ...command, decidedAt, recorded },
        now,
      )
      if (!decision.ok) {
        const result = refusedCall(decision)
        const isLate = decision.refusal === 'transfer_closed' && recorded === undefined
        if (!isLate) return { type: 'answer', result }
        return {
          type: 'commit',
          changes: [{ kind: 'transfer', next: closedTransfer(payment, command) }],
          result,
        }
      }
      const { record } = decision
      if (decision.outcome === 'unchanged') {
        // A transfer of this command: its commit took effect, and the response of the store was lost.
        const changed = recorded?.commandId === command.commandId
        return { type: 'answer', result: { ok: true, payment: record, changed } }
      }
      if (refusal?.refusal === 'review_required') return { type: 'answer', result: refusal }
      if (refusal !== undefined) return { type: 'answer', result: refusedCall(refusal) }
      const changes = [
        { kind: 'incoming-payment', next: record, events: decision.events },
        { kind: 'transfer', next: transferOf(payment, command) },
      ] as const
      return { type: 'commit', changes, result: { ok: true, payment: record, changed: true } }
    },
  }
}
