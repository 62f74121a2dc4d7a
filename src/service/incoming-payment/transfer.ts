import type { Amount } from '../../core/amount.js'
import { type HostResult, hasChanged, refused, refusedCall } from '../../core/decision.js'
import {
  closeTransfer,
  isCounted,
  type TransferRecord,
} from '../../core/incoming-payment/transfer.js'
import type { IncomingPayment } from '../../core/incoming-payment.js'
import { isUuid } from '../../protocol/uuid.js'
import { hashText } from '../../util/hash.js'
import { newCall, type ServiceContext } from '../context.js'

export const unknownPayment = refused('payment_unknown', 'the incoming payment does not exist')

/** Whether a transfer was counted. It never changes. */
export type TransferOutcome =
  | {
      readonly counted: true
      /** The payment that it was counted for. */
      readonly paymentId: string
      /** What it added to `receivedAmount`, in the asset of the wallet address. */
      readonly amount: Amount
    }
  | {
      /** It was not counted, and never will be: `receive` refuses it with `transfer_closed`. */
      readonly counted: false
    }

type Closing = HostResult<TransferOutcome, 'payment_unknown'>

/** Returns the keys of a payment and of a transfer for it, and the name of the writes that share commits. */
export async function arrivalKeys(
  { namespace }: Pick<ServiceContext, 'namespace'>,
  paymentId: string,
  transferId: string,
) {
  const own = await namespace()
  return {
    paymentKey: { kind: 'incoming-payment', id: paymentId },
    transferKey: { kind: 'transfer', id: own + (await hashText(`${own} ${transferId}`)) },
    together: `incoming-payment ${paymentId}`,
  } as const
}

/** Resolves to whether a transfer was counted, and writes that it never will be if it was not. */
export async function close(
  context: ServiceContext,
  transferId: string,
  paymentId: string,
): Promise<Closing> {
  const { now, commandId } = newCall(context)
  if (!isUuid(paymentId)) return refusedCall(unknownPayment)
  const { paymentKey, transferKey, together } = await arrivalKeys(context, paymentId, transferId)
  return context.run<Closing>({
    reads: [paymentKey, transferKey],
    together,
    decide(read) {
      const recorded = read<TransferRecord>(transferKey)
      const command = { commandId, recordId: transferKey.id, recorded }
      const decision = closeTransfer(read<IncomingPayment>(paymentKey), command, now)
      if (!decision.ok) return { type: 'answer', result: refusedCall(decision) }
      const { record } = decision
      const result = {
        ok: true,
        ...outcomeOf(record),
        changed: hasChanged(decision, commandId),
      } as const
      if (decision.outcome === 'unchanged') return { type: 'answer', result }
      return { type: 'commit', changes: [{ kind: 'transfer', next: record }], result }
    },
  })
}

function outcomeOf(record: TransferRecord): TransferOutcome {
  if (!isCounted(record)) return { counted: false }
  const { paymentId, amount } = record
  return { counted: true, paymentId, amount }
}
