import { hasChanged, type PaymentResult, type Refused, refusedCall } from '../core/decision.js'
import {
  type Cancellation,
  decideIncomingPayment,
  type IncomingPayment,
  type IncomingPaymentCommand,
  type IncomingPaymentPolicy,
  type IncomingPaymentRefusals,
} from '../core/incoming-payment.js'
import type { Instant } from '../core/instant.js'
import type { IncomingPaymentRequest } from '../protocol/incoming-payment.js'
import { type Call, newCall, type ServiceContext } from './context.js'
import { create, payable } from './incoming-payment/create.js'
import { createOnce } from './incoming-payment/create-once.js'
import { type ReceivedFunds, receive } from './incoming-payment/receive.js'
import type { IncomingPaymentPorts } from './incoming-payment/receiving-server.js'
import { close, unknownPayment } from './incoming-payment/transfer.js'
import { createPaymentLists } from './lists.js'
import { loadPublic, recordsOf } from './load.js'
import type { SignedCall } from './signed-call.js'
import { ifRetired, type SweptKind } from './sweep.js'
import type { Write } from './write/write.js'

export type IncomingPayments = ReturnType<typeof createIncomingPayments>

export function createIncomingPayments(
  context: ServiceContext,
  ports: IncomingPaymentPorts,
  policy: IncomingPaymentPolicy,
) {
  const deps = { ...ports, context, policy }
  return {
    load: (id: string) => loadPublic<IncomingPayment>(context.store, 'incoming-payment', id),
    ...createPaymentLists<IncomingPayment>(context, 'incoming-payment'),
    create: (request: IncomingPaymentRequest, client: string, call: SignedCall) =>
      create(deps, request, client, call),
    createOnce: (request: IncomingPaymentRequest, idempotencyKey: string) =>
      createOnce(deps, request, idempotencyKey),
    payable: (payment: IncomingPayment, now: Instant) => payable(deps, payment, now),
    receive: (paymentId: string, funds: ReceivedFunds) => receive(deps, paymentId, funds),
    close: (transferId: string, paymentId: string) => close(context, transferId, paymentId),
    complete: (payment: IncomingPayment, call: SignedCall) =>
      call.run(endWrite<'complete'>(payment, call, { type: 'complete' })),
    completeById: (id: string) => endById<'complete'>(context, id, { type: 'complete' }),
    cancel: (id: string, cancellation: Cancellation) =>
      endById<'cancel'>(context, id, { type: 'cancel', ...cancellation }),
    swept: sweptPayments(context),
  }
}

/** How a payment ends before its expiry. */
type End = 'complete' | 'cancel'
type EndCommand<Type extends End> = Extract<IncomingPaymentCommand, { readonly type: Type }>

/** Returns the write that ends a loaded payment. One that has ended in this way stays unchanged. */
function endWrite<Type extends End>(
  loaded: IncomingPayment,
  { now, commandId }: Call,
  end: Omit<EndCommand<Type>, 'commandId'>,
): Write<
  | (PaymentResult<IncomingPayment> & { readonly ok: true })
  | typeof unknownPayment
  | Refused<IncomingPaymentRefusals[Type]>
> {
  const key = { kind: 'incoming-payment', id: loaded.id } as const
  const command = { ...end, commandId } as EndCommand<Type>
  return {
    reads: [key],
    basis: { type: 'loaded', records: recordsOf('incoming-payment', loaded) },
    decide(read) {
      const payment = read<IncomingPayment>(key)
      if (payment === undefined) return { type: 'answer', result: unknownPayment }
      const decision = decideIncomingPayment<Type>(payment, command, now)
      if (!decision.ok) return { type: 'answer', result: decision }
      const { record: next } = decision
      const changed = hasChanged(decision, commandId)
      const result = { ok: true, payment: next, changed } as const
      if (decision.outcome === 'unchanged') return { type: 'answer', result }
      return { type: 'commit', changes: [{ ...key, next, events: decision.events }], result }
    },
  }
}

async function endById<Type extends End>(
  context: ServiceContext,
  id: string,
  end: Omit<EndCommand<Type>, 'commandId'>,
): Promise<PaymentResult<IncomingPayment, IncomingPaymentRefusals[Type]>> {
  const payment = await loadPublic<IncomingPayment>(context.store, 'incoming-payment', id)
  if (payment === undefined) return refusedCall(unknownPayment)
  const ended = await context.run(endWrite<Type>(payment, newCall(context), end))
  return ended.ok ? ended : refusedCall<IncomingPaymentRefusals[Type] | 'payment_unknown'>(ended)
}

/** Records the expiry of due payments, and removes payments past their retention. */
function sweptPayments(context: ServiceContext): SweptKind {
  return {
    kind: 'incoming-payment',
    async sweep(record, now) {
      const payment = record as IncomingPayment
      return payment.completed || payment.expiryRecorded
        ? ifRetired(payment, now)
        : recordExpiry(context, payment)
    },
  }
}

/** Records the expiry of a payment, unless it is already recorded, or the payment was completed or removed. */
function recordExpiry(
  context: ServiceContext,
  due: IncomingPayment,
): Promise<'expired' | undefined> {
  const { now, commandId } = newCall(context)
  const key = { kind: 'incoming-payment', id: due.id } as const
  return context.run<'expired' | undefined>({
    reads: [key],
    basis: { type: 'loaded', records: recordsOf('incoming-payment', due) },
    decide(read) {
      const payment = read<IncomingPayment>(key)
      if (payment === undefined) return { type: 'answer', result: undefined }
      if (payment.commandId === commandId) return { type: 'answer', result: 'expired' }
      const decision = decideIncomingPayment<'expire'>(payment, { type: 'expire', commandId }, now)
      if (decision.outcome !== 'changed') return { type: 'answer', result: undefined }
      const { record: next, events } = decision
      return { type: 'commit', changes: [{ ...key, next, events }], result: 'expired' }
    },
  })
}
