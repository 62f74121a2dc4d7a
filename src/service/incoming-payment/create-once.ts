import { type PaymentResult, refusedCall } from '../../core/decision.js'
import { retainTransferUntil } from '../../core/incoming-payment/transfer.js'
import type { IncomingPayment } from '../../core/incoming-payment.js'
import { retained } from '../../core/stored.js'
import type { IncomingPaymentRequest } from '../../protocol/incoming-payment.js'
import { canonicalJson } from '../../protocol/json.js'
import { shortHashText } from '../../util/hash.js'
import { newCall } from '../context.js'
import { loadOne } from '../load.js'
import { askMayCreate } from '../may-receive.js'
import { type HostKey, nextUsedKey, otherThan, usedKeyId } from '../used-key.js'
import { nothingExists } from '../write/write.js'
import { type CreationRefusal, newPayment } from './create.js'
import type { ReceivingServer } from './receiving-server.js'
import { unknownPayment } from './transfer.js'

type CreatedOnce = PaymentResult<IncomingPayment, CreationRefusal | 'request_differs'>

/** Creates a payment for the host, or resolves to the one that an equal call with the same key created. */
export async function createOnce(
  deps: ReceivingServer,
  request: IncomingPaymentRequest,
  idempotencyKey: string,
): Promise<CreatedOnce> {
  const { context } = deps
  const call = newCall(context)
  const namespace = await context.namespace()
  const id = await usedKeyId(namespace, idempotencyKey, 'host')
  const key = { kind: 'replay', id } as const
  const requestHash = await shortHashText(canonicalJson({ ...request }))
  for (;;) {
    const used = await loadOne<HostKey>(context.store, { kind: 'replay', id })
    if (used !== undefined) {
      const differs = otherThan(used, { requestHash })
      if (differs !== undefined) return refusedCall(differs)
      const payment = await loadOne<IncomingPayment>(context.store, {
        kind: 'incoming-payment',
        id: used.resultId,
      })
      const changed = used.commandId === call.commandId
      return payment === undefined ? refusedCall(unknownPayment) : { ok: true, payment, changed }
    }
    const decision = await newPayment(deps, request, call)
    if (!decision.ok) return refusedCall(decision)
    const { record: payment, events } = decision
    const refusal = deps.mayReceive && (await askMayCreate(deps.mayReceive, payment))
    if (refusal !== undefined) return refusedCall(refusal)
    const { id: resultId, commandId } = payment
    const next: HostKey = {
      ...nextUsedKey(id, undefined, { resultId, commandId }),
      // As long as the transfers of the payment: a repeat must not create a second payment.
      ...retained(retainTransferUntil(payment)),
      requestHash,
    }
    const created = await context.run<CreatedOnce | undefined>({
      reads: [key, { kind: 'incoming-payment', id: resultId }],
      basis: nothingExists,
      decide(read) {
        if (read(key) !== undefined) return { type: 'answer', result: undefined }
        const changes = [
          { kind: 'incoming-payment', next: payment, events },
          { kind: 'replay', next },
        ] as const
        return { type: 'commit', changes, result: { ok: true, payment, changed: true } }
      },
    })
    if (created !== undefined) return created
  }
}
