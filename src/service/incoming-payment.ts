import type { Amount } from '../core/amount.js'
import { type Decision, type Instant, type Refused, refused } from '../core/decision.js'
import {
  type CreateRefusal,
  completeIncomingPayment,
  createIncomingPayment,
  decideIncomingPayment,
  expireIncomingPayment,
  type IncomingPayment,
  type IncomingPaymentEvent,
  type IncomingPaymentPolicy,
  isOpen,
  type ReceiveRefusal,
  retainTransferUntil,
  type Transfer,
} from '../core/incoming-payment.js'
import type { PaymentMethod, PaymentMethods } from '../ports/payment-methods.js'
import type { RecordChange } from '../ports/store.js'
import type { WalletAddresses } from '../ports/wallet-addresses.js'
import { newId } from '../protocol/credential.js'
import type { IncomingPaymentRequest } from '../protocol/incoming-payment.js'
import { hashText } from '../util/hash.js'
import { type AccountRefusal, activeAccount } from './account.js'
import { type Call, newCall, type ServiceContext } from './mechanism/context.js'
import { changesOf } from './mechanism/events.js'
import type { SignedCall } from './mechanism/nonces.js'
import { createPaymentLists, listsOf } from './mechanism/pages.js'
import { commitNew, loadOwn } from './mechanism/records.js'
import { removeRetired, type SweptKind } from './mechanism/sweeps.js'
import {
  type Attempt,
  type Operation,
  type Replayed,
  transact,
  transactSigned,
} from './mechanism/transact.js'

/** Funds that arrived for an incoming payment, as recorded in the host's ledger. */
export interface ReceivedFunds {
  /** The host's id of this transfer. Repeated reports of the same id count once. */
  readonly transferId: string
  readonly amount: Amount
}

export type ReceiveResult =
  | {
      readonly ok: true
      readonly payment: IncomingPayment
      /**
       * True if this call counted the funds: credit the account. False if an earlier call with the same
       * `transferId` counted them: do not credit the account again.
       */
      readonly changed: boolean
    }
  | {
      readonly ok: false
      readonly refusal: ReceiveRefusal | 'payment_unknown'
      readonly reason: string
    }

export type CompleteResult =
  | { readonly ok: true; readonly payment: IncomingPayment }
  | { readonly ok: false; readonly refusal: 'payment_unknown'; readonly reason: string }

type PaymentRefusal = CreateRefusal | AccountRefusal

/** A payment with its payment methods: none if it no longer accepts funds. */
export interface PayablePayment {
  readonly ok: true
  readonly payment: IncomingPayment
  readonly methods: readonly PaymentMethod[]
}

/** The result of a completion; `payment` is absent if the payment has been removed. */
export interface Completion {
  readonly ok: true
  readonly payment?: IncomingPayment
}

export interface IncomingPaymentPorts {
  readonly walletAddresses: WalletAddresses
  readonly paymentMethods: PaymentMethods
}

export type IncomingPayments = ReturnType<typeof createIncomingPayments>

interface Dependencies extends IncomingPaymentPorts {
  readonly context: ServiceContext
  readonly policy: IncomingPaymentPolicy
}

/** Creates the operations on incoming payments. */
export function createIncomingPayments(
  context: ServiceContext,
  ports: IncomingPaymentPorts,
  policy: IncomingPaymentPolicy,
) {
  const deps = { ...ports, context, policy }
  return {
    load: (id: string) => loadPayment(context, id),
    ...createPaymentLists<IncomingPayment>(context, 'incoming-payment'),
    create: (request: IncomingPaymentRequest, client: string, call: SignedCall) =>
      create(deps, request, client, call),
    payable: (payment: IncomingPayment, now: Instant) => payable(deps, payment, now),
    receive: (paymentId: string, funds: ReceivedFunds) => receive(context, paymentId, funds),
    complete: (payment: IncomingPayment, call: SignedCall) =>
      transactSigned(context, completion(context, payment, call), call.replay),
    completeById: (id: string) => completeById(context, id),
    swept: sweptPayments(context),
  }
}

function loadPayment(context: ServiceContext, id: string): Promise<IncomingPayment | undefined> {
  return loadOwn(context, 'incoming-payment', id)
}

async function create(
  deps: Dependencies,
  request: IncomingPaymentRequest,
  client: string,
  call: SignedCall,
): Promise<PayablePayment | Refused<PaymentRefusal> | Replayed> {
  const { context } = deps
  const decision = await decideCreation(deps, request, client, call)
  if (!decision.ok) return decision
  // Before the commit: if the payment methods are unavailable, no payment must be created.
  const result = await payable(deps, decision.record, call.now)
  return commitNew(context, 'incoming-payment', decision, result, call)
}

async function decideCreation(
  { context, walletAddresses, policy }: Dependencies,
  request: IncomingPaymentRequest,
  client: string,
  { now, commandId }: Call,
) {
  const { walletAddress } = request
  const found = await activeAccount(walletAddresses, walletAddress)
  if (!found.ok) return found
  const { assetCode, assetScale } = found.value
  const namespace = await context.namespace()
  const command = {
    ...request,
    commandId,
    id: newId(namespace, context.random),
    client,
    asset: { assetCode, assetScale },
    lists: listsOf(namespace, walletAddress, client, now),
  }
  return createIncomingPayment(command, now, policy)
}

/** Resolves to the payment with its payment methods: none if it no longer accepts funds. */
async function payable(
  { paymentMethods }: Dependencies,
  payment: IncomingPayment,
  now: Instant,
): Promise<PayablePayment> {
  const { id: paymentId, walletAddress, asset } = payment
  const methods = isOpen(payment, now)
    ? await paymentMethods.detailsOf({ paymentId, walletAddress, asset })
    : []
  return { ok: true, payment, methods }
}

async function receive(
  context: ServiceContext,
  paymentId: string,
  funds: ReceivedFunds,
): Promise<ReceiveResult> {
  const call = newCall(context)
  const transferId = await transferRecordId(await context.namespace(), funds.transferId)
  const reload = () => loadBoth(context, paymentId, transferId)
  const { decision, transfer } = await transact<LoadedReceive, DecidedReceive>(context, {
    loaded: await reload(),
    reload,
    contended: `incoming-payment ${paymentId}`,
    decide: (loaded) => decideReceive(context, loaded, funds, transferId, call),
  })
  if (!decision.ok) return { ok: false, refusal: decision.refusal, reason: decision.reason }
  // The transfer identifies a commit whose response was lost, even if the payment has changed since.
  const changed = decision.outcome === 'changed' || transfer?.commandId === call.commandId
  return { ok: true, payment: decision.record, changed }
}

/** Loads the transfer after the payment: a payment that refuses a transfer may already have counted it. */
async function loadBoth(
  context: ServiceContext,
  paymentId: string,
  transferId: string,
): Promise<LoadedReceive> {
  const payment = await loadPayment(context, paymentId)
  const transfer = (await context.store.load('transfer', transferId)) as Transfer | undefined
  // If it was counted between the two reads, the result must be the payment that includes it.
  if (transfer === undefined) return { payment, transfer }
  return { payment: await loadPayment(context, paymentId), transfer }
}

/** Completes a loaded payment. A payment that is already complete is returned unchanged. */
function completion(
  context: ServiceContext,
  payment: IncomingPayment,
  { now, commandId }: Call,
): Operation<IncomingPayment | undefined, Completion> {
  return {
    loaded: payment,
    reload: () => loadPayment(context, payment.id),
    decide(loaded) {
      if (loaded === undefined) {
        return { changes: [], result: { ok: true }, refused: true }
      }
      const decision = completeIncomingPayment(loaded, { type: 'complete', commandId }, now)
      const { outcome, record } = decision
      const changes =
        outcome === 'changed' ? changesOf(context, 'incoming-payment', record, decision.events) : []
      return { changes, result: { ok: true, payment: record }, refused: false }
    },
  }
}

async function completeById(context: ServiceContext, id: string): Promise<CompleteResult> {
  const loaded = await loadPayment(context, id)
  const call = newCall(context)
  const completed = loaded && (await transact(context, completion(context, loaded, call)))
  return completed?.payment === undefined
    ? { ok: false, refusal: unknownPayment.refusal, reason: unknownPayment.reason }
    : { ok: true, payment: completed.payment }
}

/** Records the expiry of due payments, and removes payments past their retention. */
function sweptPayments(context: ServiceContext): SweptKind {
  return {
    kind: 'incoming-payment',
    async sweep(record, now) {
      const payment = record as IncomingPayment
      if (payment.completed || payment.expiryRecorded) {
        return removeRetired(context, 'incoming-payment', payment, now)
      }
      return (await transact(context, expiry(context, payment))) ? 'expired' : undefined
    },
  }
}

/** Records the expiry of a payment. The result is false if it is already recorded, completed or removed. */
function expiry(
  context: ServiceContext,
  payment: IncomingPayment,
): Operation<IncomingPayment | undefined, boolean> {
  const { now, commandId } = newCall(context)
  return {
    loaded: payment,
    reload: () => loadPayment(context, payment.id),
    decide(loaded) {
      if (loaded === undefined) return { changes: [], result: false, refused: false }
      const decision = expireIncomingPayment(loaded, { type: 'expire', commandId }, now)
      if (decision.outcome !== 'changed') {
        const result = loaded.commandId === commandId
        return { changes: [], result, refused: !decision.ok }
      }
      const changes = changesOf(context, 'incoming-payment', decision.record, decision.events)
      return { changes, result: true, refused: false }
    },
  }
}

interface LoadedReceive {
  readonly payment: IncomingPayment | undefined
  readonly transfer: Transfer | undefined
}

interface DecidedReceive {
  readonly decision: Decision<
    IncomingPayment,
    IncomingPaymentEvent,
    ReceiveRefusal | 'payment_unknown'
  >
  /** The transfer, loaded after the payment. */
  readonly transfer: Transfer | undefined
}

const unknownPayment = refused('payment_unknown', 'the incoming payment does not exist')

function decideReceive(
  context: ServiceContext,
  { payment, transfer }: LoadedReceive,
  { amount }: ReceivedFunds,
  transferId: string,
  { now, commandId }: Call,
): Attempt<DecidedReceive> {
  const command = { type: 'receive', commandId, amount } as const
  const decision =
    payment === undefined ? unknownPayment : decideIncomingPayment(payment, transfer, command, now)
  const result = { decision, transfer }
  if (payment === undefined || decision.outcome !== 'changed') {
    return { changes: [], result, refused: !decision.ok }
  }
  const { value, assetCode, assetScale } = amount
  const retainUntil = retainTransferUntil(payment)
  const counted: Transfer = {
    id: transferId,
    version: 1,
    commandId,
    dueAt: retainUntil,
    retainUntil,
    paymentId: payment.id,
    amount: { value, assetCode, assetScale },
  }
  const changes: RecordChange[] = [
    ...changesOf(context, 'incoming-payment', decision.record, decision.events),
    { kind: 'transfer', next: counted, expectedVersion: 0 },
  ]
  return { changes, result, refused: false }
}

async function transferRecordId(namespace: string, transferId: string): Promise<string> {
  return namespace + (await hashText(`${namespace} ${transferId}`))
}
