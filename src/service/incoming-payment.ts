import type { Amount } from '../core/amount.js'
import {
  type Arrival,
  type ArrivalDecision,
  decideArrivals,
  type LoadedArrivals,
} from '../core/arrivals.js'
import type { Refused } from '../core/decision.js'
import {
  completeIncomingPayment,
  expireIncomingPayment,
  type IncomingPayment,
  type IncomingPaymentPolicy,
  isOpen,
  type ReceiveRefusal,
  type Transfer,
} from '../core/incoming-payment.js'
import type { Instant } from '../core/instant.js'
import type { Stored } from '../core/stored.js'
import type { PaymentMethod, PaymentMethods } from '../ports/payment-methods.js'
import type { RecordChange } from '../ports/store.js'
import { isIdOf } from '../protocol/credential.js'
import type { IncomingPaymentRequest } from '../protocol/incoming-payment.js'
import { hashText } from '../util/hash.js'
import {
  type CreatedOnce,
  type CreationPorts,
  createOnce,
  decideCreation,
  type PaymentRefusal,
  unknownPayment,
} from './incoming-payment-creation.js'
import { combinedMaxOf } from './mechanism/combiner.js'
import { type Call, newCall, type ServiceContext } from './mechanism/context.js'
import { changesOf } from './mechanism/events.js'
import { loadAll } from './mechanism/load-all.js'
import type { SignedCall } from './mechanism/nonces.js'
import { createPaymentLists, openListName } from './mechanism/pages.js'
import { commitNew, loadOwn } from './mechanism/records.js'
import { removeRetired, type SweptKind } from './mechanism/sweeps.js'
import {
  type Attempt,
  type Operation,
  type Replayed,
  transact,
  transactSigned,
} from './mechanism/transact.js'
import { createOpenPaymentLimit, type OpenPaymentLimit } from './open-payment-limit.js'

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

export type CompleteIncomingPaymentResult =
  | { readonly ok: true; readonly payment: IncomingPayment }
  | { readonly ok: false; readonly refusal: 'payment_unknown'; readonly reason: string }

type CreationRefusal = PaymentRefusal | 'open_payments_exceeded'

/** The policy for incoming payments, and how many may be open per wallet address and client instance. */
export interface ReceivingPolicy extends IncomingPaymentPolicy {
  readonly openMax: number
}

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

export interface IncomingPaymentPorts extends Pick<CreationPorts, 'walletAddresses'> {
  readonly paymentMethods: PaymentMethods
}

export type IncomingPayments = ReturnType<typeof createIncomingPayments>

interface Dependencies extends IncomingPaymentPorts {
  readonly context: ServiceContext
  readonly policy: ReceivingPolicy
  readonly limit: OpenPaymentLimit
}

/** Creates the operations on incoming payments. */
export function createIncomingPayments(
  context: ServiceContext,
  ports: IncomingPaymentPorts,
  policy: ReceivingPolicy,
) {
  const limit = createOpenPaymentLimit(context.store, policy.openMax)
  const deps = { ...ports, context, policy, limit }
  return {
    load: (id: string) => loadPayment(context, id),
    ...createPaymentLists<IncomingPayment>(context, 'incoming-payment'),
    create: (request: IncomingPaymentRequest, client: string, call: SignedCall) =>
      create(deps, request, client, call),
    createOnce: (request: IncomingPaymentRequest, idempotencyKey: string): Promise<CreatedOnce> =>
      createOnce(deps, request, idempotencyKey),
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
): Promise<PayablePayment | Refused<CreationRefusal> | Replayed> {
  const { context } = deps
  const decision = await decideCreation(deps, request, call, client)
  if (!decision.ok) return decision
  const { walletAddress } = decision.record
  const openList = openListName(await context.namespace(), { walletAddress, client })
  return deps.limit.within<PayablePayment | Refused<CreationRefusal> | Replayed>(
    openList,
    call.now,
    async () => {
      // Before the commit: if the payment methods are unavailable, no payment must be created.
      const result = await payable(deps, decision.record, call.now)
      return commitNew<PayablePayment>(context, 'incoming-payment', decision, result, call)
    },
  )
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
  const { now: at, commandId } = newCall(context)
  const transferId = await transferRecordId(await context.namespace(), funds.transferId)
  const arrival = { commandId, transferId, amount: funds.amount, at }
  const { decision, changed } = await counted(context, paymentId, arrival)
  return decision.ok
    ? { ok: true, payment: decision.record, changed }
    : { ok: false, refusal: decision.refusal, reason: decision.reason }
}

/**
 * Returns the maximum number of arrivals that one commit counts. Each arrival writes a transfer and an event. In
 * addition, the commit writes the payment, removes a list entry, and writes the event of completion.
 */
export function arrivalsMax(consumers = 1): number {
  return combinedMaxOf(consumers, { each: 1, once: 2, eventsOnce: 1 })
}

/** Counts an arrival, in one commit with others that arrive while another commit of the payment is in progress. */
async function counted(
  context: ServiceContext,
  paymentId: string,
  arrival: Arrival,
): Promise<CountedArrival> {
  const countAll = (arrivals: readonly Arrival[]) => countArrivals(context, paymentId, arrivals)
  const { combiner, eventConsumers } = context
  if (combiner !== undefined) {
    const most = arrivalsMax(eventConsumers?.length)
    return combiner.run(`incoming-payment ${paymentId}`, arrival, countAll, most)
  }
  const [alone = { decision: unknownPayment, changed: false }] = await countAll([arrival])
  return alone
}

/** Counts arrivals for one payment in one commit. Resolves to a result for each of them. */
async function countArrivals(
  context: ServiceContext,
  paymentId: string,
  arrivals: readonly Arrival[],
): Promise<readonly CountedArrival[]> {
  const [first] = arrivals
  const commandId =
    first !== undefined && arrivals.length === 1 ? first.commandId : newCall(context).commandId
  const reload = () => loadArrivals(context, paymentId, arrivals, commandId)
  return transact<LoadedArrivals | undefined, readonly CountedArrival[]>(context, {
    loaded: await reload(),
    reload,
    decide: (loaded) => decideCounting(context, loaded, arrivals, commandId),
  })
}

/**
 * Loads the payment and the transfers together. If the records are not from one instant, the payment may include a
 * transfer that was not found. The decision on that arrival is then a refusal or `unchanged`, so the transfers are
 * loaded again.
 */
async function loadArrivals(
  context: ServiceContext,
  paymentId: string,
  arrivals: readonly Arrival[],
  commandId: string,
): Promise<LoadedArrivals | undefined> {
  const { store, namespace } = context
  if (!isIdOf(await namespace(), paymentId)) return undefined
  const keys = arrivals.map(({ transferId: id }) => ({ kind: 'transfer', id }) as const)
  const [payment, ...together] = await loadAll(store, [
    { kind: 'incoming-payment', id: paymentId },
    ...keys,
  ])
  if (payment === undefined) return undefined
  const loaded = loadedArrivals(payment, together)
  const { decisions } = decideArrivals(loaded, arrivals, commandId)
  if (decisions.every(({ outcome }) => outcome === 'changed')) return loaded
  const later = loadedArrivals(payment, await loadAll(store, keys))
  if (later.transfers.every((transfer) => transfer === undefined)) return later
  // If one was counted between the two reads, its result must be the payment that includes it.
  return { ...later, including: await loadPayment(context, paymentId) }
}

function loadedArrivals(
  payment: Stored,
  transfers: readonly (Stored | undefined)[],
): LoadedArrivals {
  return {
    payment: payment as IncomingPayment,
    transfers: transfers as readonly (Transfer | undefined)[],
  }
}

function decideCounting(
  context: ServiceContext,
  loaded: LoadedArrivals | undefined,
  arrivals: readonly Arrival[],
  commandId: string,
): Attempt<readonly CountedArrival[]> {
  if (loaded === undefined) {
    const result = arrivals.map(() => ({ decision: unknownPayment, changed: false }))
    return { changes: [], result, refused: true }
  }
  const { decisions, next, events, counted } = decideArrivals(loaded, arrivals, commandId)
  const result = decisions.map((decision, index) => {
    // The transfer identifies a commit whose response was lost, even if the payment has changed since.
    const isOwn = loaded.transfers[index]?.commandId === arrivals[index]?.commandId
    return { decision, changed: decision.outcome === 'changed' || (decision.ok && isOwn) }
  })
  if (next === undefined) return { changes: [], result, refused: decisions.every(({ ok }) => !ok) }
  const transfers = counted.map((transfer): RecordChange => {
    return { kind: 'transfer', next: transfer, expectedVersion: 0 }
  })
  const changes = [
    ...changesOf(context, 'incoming-payment', loaded.payment, next, events),
    ...transfers,
  ]
  return { changes, result, refused: false }
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
        outcome === 'changed'
          ? changesOf(context, 'incoming-payment', loaded, record, decision.events)
          : []
      return { changes, result: { ok: true, payment: record }, refused: false }
    },
  }
}

async function completeById(
  context: ServiceContext,
  id: string,
): Promise<CompleteIncomingPaymentResult> {
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
      const { record, events } = decision
      const changes = changesOf(context, 'incoming-payment', loaded, record, events)
      return { changes, result: true, refused: false }
    },
  }
}

interface CountedArrival {
  readonly decision: ArrivalDecision | typeof unknownPayment
  /** Whether this command counted the funds. */
  readonly changed: boolean
}

async function transferRecordId(namespace: string, transferId: string): Promise<string> {
  return namespace + (await hashText(`${namespace} ${transferId}`))
}
