import type { Refused } from '../../core/decision.js'
import {
  acceptsFunds,
  type CreateRefusal,
  createIncomingPayment,
  type IncomingPayment,
} from '../../core/incoming-payment.js'
import type { Instant } from '../../core/instant.js'
import type { IlpPaymentMethod } from '../../ports/host.js'
import type { IncomingPaymentRequest } from '../../protocol/incoming-payment.js'
import { newUuid } from '../../protocol/uuid.js'
import { type AccountRefusal, activeAccount } from '../accounts.js'
import type { Call } from '../context.js'
import { listsOf } from '../lists.js'
import { loadOne } from '../load.js'
import { askMayCreate, type MayReceiveRefusal } from '../may-receive.js'
import type { Replayed, SignedCall } from '../signed-call.js'
import { creationWrite } from '../write/write.js'
import type { ReceivingServer } from './receiving-server.js'

/** Why an incoming payment is not created. Minor versions add members: give a `switch` a `default`. */
export type CreationRefusal = CreateRefusal | AccountRefusal | MayReceiveRefusal

/** A payment with its payment methods: none if it no longer accepts funds. */
export interface PayablePayment {
  readonly ok: true
  readonly payment: IncomingPayment
  readonly methods: readonly IlpPaymentMethod[]
}

/** Creates a payment for a client. */
export async function create(
  deps: ReceivingServer,
  request: IncomingPaymentRequest,
  client: string,
  call: SignedCall,
): Promise<PayablePayment | Refused<CreationRefusal> | Replayed> {
  const decision = await newPayment(deps, request, call, client)
  if (!decision.ok) return decision
  // Before the commit: if the payment methods are unavailable, no payment must be created.
  const result = await payable(deps, decision.record, call.now)
  const { context, mayReceive } = deps
  if (mayReceive !== undefined) {
    // The commit refuses a request whose nonce or signature was used, so the host is not asked about it.
    const { key } = call.replay ?? {}
    const used = key && (await loadOne(context.store, key))
    const refusal = used ? undefined : await askMayCreate(mayReceive, decision.record)
    if (refusal !== undefined) return refusal
  }
  return call.run<PayablePayment>(creationWrite('incoming-payment', decision, result))
}

/** Resolves to the payment with its payment methods: none if it no longer accepts funds. */
export async function payable(
  { paymentMethods }: ReceivingServer,
  payment: IncomingPayment,
  now: Instant,
): Promise<PayablePayment> {
  const { id: paymentId, walletAddress, asset } = payment
  const methods = acceptsFunds(payment, now)
    ? await paymentMethods.detailsOf({ paymentId, walletAddress, asset })
    : []
  return { ok: true, payment, methods }
}

/** Decides a creation. Without a client, the host creates the payment. */
export async function newPayment(
  { context, walletAddresses, policy }: ReceivingServer,
  request: IncomingPaymentRequest,
  { now, commandId }: Call,
  client?: string,
) {
  const account = await activeAccount(walletAddresses, request.walletAddress)
  if (!account.ok) return account
  const { assetCode, assetScale } = account.value
  const namespace = await context.namespace()
  const { walletAddress, ...asked } = request
  const command = {
    walletAddress,
    ...asked,
    commandId,
    id: newUuid(now, context.random),
    asset: { assetCode, assetScale },
    lists: listsOf(namespace, walletAddress, client, now),
    ...(client !== undefined && { client }),
  }
  return createIncomingPayment(command, now, policy)
}
