import type { Amount } from '../core/amount.js'
import {
  hasChanged,
  type PaymentResult,
  type Refused,
  refused,
  refusedCall,
} from '../core/decision.js'
import {
  acceptsFunds,
  type CreateRefusal,
  createIncomingPayment,
  decideIncomingPayment,
  type IncomingPayment,
  type IncomingPaymentPolicy,
  type ReceiveFunds,
  type ReceiveRefusal,
  retainTransferUntil,
  type Transfer,
  transferOf,
} from '../core/incoming-payment.js'
import type { Instant } from '../core/instant.js'
import { retained, type Stored } from '../core/stored.js'
import type {
  IlpPaymentMethod,
  MayReceive,
  MayReceiveAnswer,
  MayReceiveQuery,
  PaymentMethods,
  WalletAddresses,
} from '../ports/host.js'
import { isIdOf, newId } from '../protocol/credential.js'
import type { IncomingPaymentRequest } from '../protocol/incoming-payment.js'
import { canonicalJson } from '../protocol/json.js'
import { hashText } from '../util/hash.js'
import { type AccountRefusal, activeAccount } from './accounts.js'
import { type Call, newCall, type ServiceContext } from './context.js'
import { ofDependency } from './failed-dependency.js'
import { readHostAnswer, refusedByHost } from './host-answer.js'
import { createPaymentLists, listsOf } from './lists.js'
import { loadOne, loadOwn, loadRecords, readerOf, recordsOf } from './load.js'
import type { Replayed, SignedCall } from './signed-call.js'
import { ifRetired, type SweptKind } from './sweep.js'
import { creationWrite, type Write } from './write/write.js'

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

/** Why the host refuses a creation or an arrival. */
export type MayReceiveRefusal = Extract<MayReceiveAnswer, { readonly ok: false }>['refusal']

/** Why an incoming payment is not created. */
export type CreationRefusal = CreateRefusal | AccountRefusal | MayReceiveRefusal

/** Why funds that arrived are not counted. */
type ArrivalRefusal = ReceiveRefusal | MayReceiveRefusal

/** A payment with its payment methods: none if it no longer accepts funds. */
export interface PayablePayment {
  readonly ok: true
  readonly payment: IncomingPayment
  readonly methods: readonly IlpPaymentMethod[]
}

type CreatedOnce = PaymentResult<IncomingPayment, CreationRefusal | 'request_differs'>

interface IncomingPaymentPorts {
  readonly walletAddresses: WalletAddresses
  readonly paymentMethods: PaymentMethods
  /** Decides for the host whether a payment may be created, and an arrival counted. Default: all of them. */
  readonly mayReceive?: MayReceive | undefined
}

export type IncomingPayments = ReturnType<typeof createIncomingPayments>

interface Dependencies extends IncomingPaymentPorts {
  readonly context: ServiceContext
  readonly policy: IncomingPaymentPolicy
}

const unknownPayment = refused('payment_unknown', 'the incoming payment does not exist')

/** Creates the operations on incoming payments. */
export function createIncomingPayments(
  context: ServiceContext,
  ports: IncomingPaymentPorts,
  policy: IncomingPaymentPolicy,
) {
  const deps = { ...ports, context, policy }
  return {
    load: (id: string) => loadOwn<IncomingPayment>(context, 'incoming-payment', id),
    ...createPaymentLists<IncomingPayment>(context, 'incoming-payment'),
    create: (request: IncomingPaymentRequest, client: string, call: SignedCall) =>
      create(deps, request, client, call),
    createOnce: (request: IncomingPaymentRequest, idempotencyKey: string) =>
      createOnce(deps, request, idempotencyKey),
    payable: (payment: IncomingPayment, now: Instant) => payable(deps, payment, now),
    receive: (paymentId: string, funds: ReceivedFunds) => receive(deps, paymentId, funds),
    complete: (payment: IncomingPayment, call: SignedCall) =>
      call.run(completionWrite(payment, call)),
    completeById: (id: string) => completeById(context, id),
    swept: sweptPayments(context),
  }
}

/** Creates a payment for a client. */
async function create(
  deps: Dependencies,
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
    // A request whose nonce was used is refused by the commit, and the host is not asked about it.
    const { key } = call.replay ?? {}
    const used = key && (await loadOne(context.store, key))
    const refusal = used ? undefined : await refusalOf(mayReceive, decision.record)
    if (refusal !== undefined) return refusal
  }
  return call.run<PayablePayment>(creationWrite('incoming-payment', decision, result))
}

/** Decides a creation. Without a client, the host creates the payment. */
async function newPayment(
  { context, walletAddresses, policy }: Dependencies,
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
    id: newId(namespace, now, context.random),
    asset: { assetCode, assetScale },
    lists: listsOf(namespace, walletAddress, client, now),
    ...(client !== undefined && { client }),
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
  const methods = acceptsFunds(payment, now)
    ? await paymentMethods.detailsOf({ paymentId, walletAddress, asset })
    : []
  return { ok: true, payment, methods }
}

/**
 * The record of an idempotency key of the host, which leads to its payment. The id of the payment is not derived from
 * the key: any client that knows the URL of a payment may read it, so the URL must be unguessable.
 */
interface UsedKey extends Stored {
  readonly paymentId: string
  readonly requestHash: string
}

/** Creates a payment for the host, or resolves to the one that an equal call with the same key created. */
async function createOnce(
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
    const refusal = deps.mayReceive && (await refusalOf(deps.mayReceive, payment))
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

/** Counts funds that arrived for a payment, if the host allows it. Concurrent calls for one payment share commits. */
async function receive(
  { context, mayReceive }: Dependencies,
  paymentId: string,
  { transferId, amount, refuseExcess = false }: ReceivedFunds,
): Promise<ArrivalResult> {
  const { now, commandId } = newCall(context)
  const namespace = await context.namespace()
  if (!isIdOf(namespace, paymentId)) return refusedCall(unknownPayment)
  const id = namespace + (await hashText(`${namespace} ${transferId}`))
  const command = { type: 'receive', commandId, transferId: id, amount, refuseExcess } as const
  const arrival = arrivalWrite(paymentId, command, now)
  if (mayReceive === undefined) return context.run(arrival)
  // The host is asked before the arrival joins others in a commit, so that a slow host delays only this arrival.
  const records = await loadRecords(context.store, arrival.reads)
  const { changes, result } = arrival.decide(readerOf(records))
  if (changes === undefined || !result.ok) return result
  const refusal = await refusalOf(mayReceive, result.payment, { transferId, amount })
  // Also after a refusal: a concurrent call that the host allowed may have counted the transfer.
  const decided = refusal ? arrivalWrite(paymentId, command, now, refusal) : arrival
  return context.run({ ...decided, assumed: { records, hostAskedSince: true } })
}

/** Returns the write that counts an arrival, unless the host refuses it. */
function arrivalWrite(
  paymentId: string,
  command: Omit<ReceiveFunds, 'counted'>,
  now: Instant,
  refusal?: Refused<MayReceiveRefusal>,
): Write<ArrivalResult> {
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

type ArrivalResult = PaymentResult<IncomingPayment, ArrivalRefusal>

const reasons: Readonly<Record<MayReceiveRefusal, string>> = {
  amount_too_large: 'the amount is too large for the host',
  payment_not_allowed: 'the host does not allow the payment',
}

/** Asks the host whether a payment may be created, or funds counted that arrived for it. */
async function refusalOf(
  mayReceive: MayReceive,
  {
    id: incomingPaymentId,
    walletAddress,
    client,
    incomingAmount,
    expiresAt,
    metadata,
  }: IncomingPayment,
  arrival?: ReceivedFunds,
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

/** Returns the write that completes a loaded payment. A payment that is already complete stays unchanged. */
function completionWrite(
  loaded: IncomingPayment,
  { now, commandId }: Call,
): Write<(PaymentResult<IncomingPayment> & { readonly ok: true }) | typeof unknownPayment> {
  const key = { kind: 'incoming-payment', id: loaded.id } as const
  return {
    reads: [key],
    assumed: { records: recordsOf('incoming-payment', loaded) },
    decide(read) {
      const payment = read<IncomingPayment>(key)
      if (payment === undefined) return { result: unknownPayment }
      const decision = decideIncomingPayment<'complete'>(
        payment,
        { type: 'complete', commandId },
        now,
      )
      const { record: next } = decision
      const changed = hasChanged(decision, commandId)
      const result = { ok: true, payment: next, changed } as const
      if (decision.outcome === 'unchanged') return { result }
      return { changes: [{ ...key, next, events: decision.events }], result }
    },
  }
}

async function completeById(
  context: ServiceContext,
  id: string,
): Promise<PaymentResult<IncomingPayment>> {
  const payment = await loadOwn<IncomingPayment>(context, 'incoming-payment', id)
  if (payment === undefined) return refusedCall(unknownPayment)
  const completed = await context.run(completionWrite(payment, newCall(context)))
  return completed.ok ? completed : refusedCall(completed)
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
    assumed: { records: recordsOf('incoming-payment', due) },
    decide(read) {
      const payment = read<IncomingPayment>(key)
      if (payment === undefined) return { result: undefined }
      if (payment.commandId === commandId) return { result: 'expired' }
      const decision = decideIncomingPayment<'expire'>(payment, { type: 'expire', commandId }, now)
      if (decision.outcome !== 'changed') return { result: undefined }
      const { record: next, events } = decision
      return { changes: [{ ...key, next, events }], result: 'expired' }
    },
  })
}
