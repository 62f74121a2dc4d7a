import { type PaymentResult, refusedCall } from '../../core/decision.js'
import { type IncomingPayment, retainTransferUntil } from '../../core/incoming-payment.js'
import { retained, type Stored } from '../../core/stored.js'
import type { IncomingPaymentRequest } from '../../protocol/incoming-payment.js'
import { canonicalJson } from '../../protocol/json.js'
import { hashText } from '../../util/hash.js'
import { newCall } from '../context.js'
import { loadOne, loadOwn } from '../load.js'
import { askMayReceive } from '../may-receive.js'
import { type CreationRefusal, newPayment } from './create.js'
import type { Dependencies } from './dependencies.js'
import { unknownPayment } from './unknown.js'

type CreatedOnce = PaymentResult<IncomingPayment, CreationRefusal | 'request_differs'>

/**
 * The record of an idempotency key of the host, which leads to its payment. The id of the payment is not derived from
 * the key: any client that knows the URL of a payment may read it, so the URL must be unguessable.
 */
interface UsedKey extends Stored {
  readonly paymentId: string
  readonly requestHash: string
}

/** Creates a payment for the host, or resolves to the one that an equal call with the same key created. */
export async function createOnce(
  deps: Dependencies,
  request: IncomingPaymentRequest,
  idempotencyKey: string,
): Promise<CreatedOnce> {
  const { context } = deps
  const call = newCall(context)
  const namespace = await context.namespace()
  // The ids of other replay records are hashes of texts that never begin with `host` and a space.
  const id = namespace + (await hashText(`host ${idempotencyKey}`))
  const key = { kind: 'replay', id } as const
  const requestHash = await hashText(canonicalJson({ ...request }))
  for (;;) {
    const used = await loadOne<UsedKey>(context.store, { kind: 'replay', id })
    if (used !== undefined) {
      if (used.requestHash !== requestHash) {
        const reason = 'this idempotency key was used for another payment'
        return { ok: false, refusal: 'request_differs', reason }
      }
      const payment = await loadOwn<IncomingPayment>(context, 'incoming-payment', used.paymentId)
      const changed = used.commandId === call.commandId
      return payment === undefined ? refusedCall(unknownPayment) : { ok: true, payment, changed }
    }
    const decision = await newPayment(deps, request, call)
    if (!decision.ok) return refusedCall(decision)
    const { record: payment, events } = decision
    const refusal = deps.mayReceive && (await askMayReceive(deps.mayReceive, payment))
    if (refusal !== undefined) return refusedCall(refusal)
    const { id: paymentId, commandId } = payment
    const next: UsedKey = {
      id,
      version: 1,
      commandId,
      // As long as the transfers of the payment: a repeat must not create a second payment.
      ...retained(retainTransferUntil(payment)),
      paymentId,
      requestHash,
    }
    const created = await context.run<CreatedOnce | undefined>({
      reads: [key, { kind: 'incoming-payment', id: paymentId }],
      assumed: { records: new Map() },
      decide(read) {
        if (read(key) !== undefined) return { result: undefined }
        const changes = [
          { kind: 'incoming-payment', next: payment, events },
          { kind: 'replay', next },
        ] as const
        return { changes, result: { ok: true, payment, changed: true } }
      },
    })
    if (created !== undefined) return created
  }
}
