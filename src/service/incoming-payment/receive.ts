import type { Amount } from '../../core/amount.js'
import { type PaymentResult, type Refused, refusedCall } from '../../core/decision.js'
import {
  decideIncomingPayment,
  type IncomingPayment,
  type ReceiveFunds,
  type ReceiveRefusal,
  type Transfer,
  transferOf,
} from '../../core/incoming-payment.js'
import type { Instant } from '../../core/instant.js'
import { isUuid } from '../../protocol/uuid.js'
import { hashText } from '../../util/hash.js'
import { newCall } from '../context.js'
import { loadRecords, readerOf } from '../load.js'
import { askMayReceive, type MayReceiveRefusal } from '../may-receive.js'
import type { Write } from '../write/write.js'
import type { Dependencies } from './dependencies.js'
import { unknownPayment } from './unknown.js'

/** Funds that arrived for an incoming payment, as recorded in the host's ledger. */
export interface ReceivedFunds {
  /** The host's id of this transfer, well-formed Unicode. Repeated reports of the same id count once. */
  readonly transferId: string
  readonly amount: Amount
  /**
   * Whether to refuse an amount above what is left of `incomingAmount`, with `incoming_amount_exceeded`. Pass `true`
   * for funds that have not moved yet, such as between accounts of yours. Default `false`: what has arrived is counted,
   * also if the payment has then received more than it asked for.
   */
  readonly refuseExcess?: boolean
}

/** Why funds that arrived are not counted. */
type ArrivalRefusal = ReceiveRefusal | MayReceiveRefusal

type ArrivalResult = PaymentResult<IncomingPayment, ArrivalRefusal>

/** Counts funds that arrived for a payment, if the host allows it. Concurrent calls for one payment share commits. */
export async function receive(
  { context, mayReceive }: Dependencies,
  paymentId: string,
  { transferId, amount, refuseExcess = false }: ReceivedFunds,
): Promise<ArrivalResult> {
  const { now, commandId } = newCall(context)
  if (!isUuid(paymentId)) return refusedCall(unknownPayment)
  const namespace = await context.namespace()
  const id = namespace + (await hashText(`${namespace} ${transferId}`))
  const command = { type: 'receive', commandId, transferId: id, amount, refuseExcess } as const
  const arrival = { paymentId, command, now }
  const write = arrivalWrite(arrival)
  if (mayReceive === undefined) return context.run(write)
  // The host is asked before the arrival joins others in a commit, so that a slow host delays only this arrival.
  const records = await loadRecords(context.store, write.reads)
  const { changes, result } = write.decide(readerOf(records))
  if (changes === undefined || !result.ok) return result
  const refusal = await askMayReceive(mayReceive, result.payment, { transferId, amount })
  // Also after a refusal: a concurrent call that the host allowed may have counted the transfer.
  const decided = arrivalWrite({ ...arrival, refusal })
  return context.run({ ...decided, assumed: { records, hostAskedSince: true } })
}

/** An arrival of funds, and the refusal of the host if it does not allow it. */
interface Arrival {
  readonly paymentId: string
  readonly command: Omit<ReceiveFunds, 'counted'>
  readonly now: Instant
  readonly refusal?: Refused<MayReceiveRefusal> | undefined
}

/** Returns the write that counts an arrival, unless the host refuses it. */
function arrivalWrite({ paymentId, command, now, refusal }: Arrival): Write<ArrivalResult> {
  const paymentKey = { kind: 'incoming-payment', id: paymentId } as const
  const transferKey = { kind: 'transfer', id: command.transferId } as const
  return {
    reads: [paymentKey, transferKey],
    together: `incoming-payment ${paymentId}`,
    decide(read) {
      const payment = read<IncomingPayment>(paymentKey)
      if (payment === undefined) return { result: refusedCall(unknownPayment) }
      const counted = read<Transfer>(transferKey)
      const decision = decideIncomingPayment<'receive'>(payment, { ...command, counted }, now)
      if (!decision.ok) return { result: refusedCall(decision) }
      const { record } = decision
      if (decision.outcome === 'unchanged') {
        // A transfer of this command: its commit took effect, and the response of the store was lost.
        const changed = counted?.commandId === command.commandId
        return { result: { ok: true, payment: record, changed } }
      }
      if (refusal !== undefined) return { result: refusedCall(refusal) }
      const changes = [
        { kind: 'incoming-payment', next: record, events: decision.events },
        { kind: 'transfer', next: transferOf(payment, command) },
      ] as const
      return { changes, result: { ok: true, payment: record, changed: true } }
    },
  }
}
