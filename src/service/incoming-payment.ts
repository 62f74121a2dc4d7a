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
import { consumeNonce } from './mechanism/nonces.js'
import {
  type ListScope,
  listName,
  listsOf,
  type Page,
  type PageRequest,
  readPage,
} from './mechanism/pages.js'
import { commitNew, loadOwn } from './mechanism/records.js'
import { removeRetired, type SweptKind } from './mechanism/sweeps.js'
import {
  type Attempt,
  type NonceGuard,
  type Operation,
  type Replayed,
  transact,
  transactSigned,
} from './mechanism/transact.js'

/** Funds that arrived for an incoming payment, as recorded in the host's ledger. */
export interface ReceivedFunds {
  /** The id of the incoming payment; see `findByIlpAddress` and `idOf`. */
  readonly paymentId: string
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
  readonly outcome: 'answered'
  readonly payment: IncomingPayment
  readonly methods: readonly PaymentMethod[]
}

/** The result of a completion; `payment` is absent if the payment has been removed. */
export interface Completion {
  readonly outcome: 'answered'
  readonly payment?: IncomingPayment
}

export interface IncomingPaymentPorts {
  readonly walletAddresses: WalletAddresses
  readonly paymentMethods: PaymentMethods
}

export type IncomingPayments = ReturnType<typeof createIncomingPayments>

/** Creates the operations on incoming payments. */
export function createIncomingPayments(
  context: ServiceContext,
  { walletAddresses, paymentMethods }: IncomingPaymentPorts,
  policy: IncomingPaymentPolicy,
) {
  const { store, random } = context

  const load = (id: string) => loadOwn<IncomingPayment>(context, 'incoming-payment', id)

  async function list(scope: ListScope, page: PageRequest): Promise<Page<IncomingPayment>> {
    const wanted = listName(await context.namespace(), scope)
    return readPage(store, { kind: 'incoming-payment', list: wanted }, page)
  }

  async function create(
    request: IncomingPaymentRequest,
    client: string,
    call: Call,
    nonceGuard: NonceGuard | undefined,
  ): Promise<PayablePayment | Refused<PaymentRefusal> | Replayed> {
    const id = newId(await context.namespace(), random)
    const decision = await decideCreation(id, request, client, call)
    if (decision.outcome === 'refused')
      return consumeNonce(context, nonceGuard, decision, { refused: true })
    // Before the commit: if the payment methods are unavailable, no payment must be created.
    const result = await payable(decision.record, call.now)
    return commitNew(context, 'incoming-payment', decision, result, nonceGuard)
  }

  async function decideCreation(
    id: string,
    request: IncomingPaymentRequest,
    client: string,
    { now, commandId }: Call,
  ) {
    const { walletAddress } = request
    const found = await activeAccount(walletAddresses, walletAddress)
    if (!found.ok) return found
    const { assetCode, assetScale } = found.value
    const asset = { assetCode, assetScale }
    const lists = listsOf(await context.namespace(), walletAddress, client, now)
    const command = { ...request, commandId, id, client, asset, lists }
    return createIncomingPayment(command, now, policy)
  }

  /** Resolves to the payment with its payment methods: none if it no longer accepts funds. */
  async function payable(payment: IncomingPayment, now: Instant): Promise<PayablePayment> {
    const { id: paymentId, walletAddress, asset } = payment
    const methods = isOpen(payment, now)
      ? await paymentMethods.detailsOf({ paymentId, walletAddress, asset })
      : []
    return { outcome: 'answered', payment, methods }
  }

  async function receive(funds: ReceivedFunds): Promise<ReceiveResult> {
    const call = newCall(context)
    const transferId = await transferRecordId(await context.namespace(), funds.transferId)
    const reload = () => loadBoth(funds.paymentId, transferId)
    const { decision, transfer } = await transact<LoadedReceive, DecidedReceive>(context, {
      loaded: await reload(),
      reload,
      contended: `incoming-payment ${funds.paymentId}`,
      decide: (loaded) => decideReceive(context, loaded, funds, transferId, call),
    })
    if (!decision.ok) return { ok: false, refusal: decision.refusal, reason: decision.reason }
    // The transfer identifies a commit whose response was lost, even if the payment has changed since.
    const changed = decision.outcome === 'changed' || transfer?.commandId === call.commandId
    return { ok: true, payment: decision.record, changed }
  }

  /** Loads the transfer after the payment: a payment that refuses a transfer may already have counted it. */
  async function loadBoth(paymentId: string, transferId: string): Promise<LoadedReceive> {
    const payment = await load(paymentId)
    const transfer = (await store.load('transfer', transferId)) as Transfer | undefined
    // If it was counted between the two reads, the result must be the payment that includes it.
    return { payment: transfer === undefined ? payment : await load(paymentId), transfer }
  }

  /** Completes a loaded payment. A payment that is already complete is returned unchanged. */
  async function complete(
    payment: IncomingPayment,
    { now, commandId }: Call,
    nonceGuard: NonceGuard | undefined,
  ): Promise<Completion | Replayed> {
    const operation: Operation<IncomingPayment | undefined, Completion> = {
      loaded: payment,
      reload: () => load(payment.id),
      decide(loaded) {
        if (loaded === undefined) {
          return { changes: [], result: { outcome: 'answered' }, refused: true }
        }
        const decision = completeIncomingPayment(loaded, { type: 'complete', commandId }, now)
        const { outcome, record } = decision
        const changes =
          outcome === 'changed'
            ? changesOf(context, 'incoming-payment', record, decision.events)
            : []
        return { changes, result: { outcome: 'answered', payment: record }, refused: false }
      },
    }
    return transactSigned(context, operation, nonceGuard)
  }

  async function completeById(paymentId: string): Promise<CompleteResult> {
    const loaded = await load(paymentId)
    const completion = loaded && (await complete(loaded, newCall(context), undefined))
    return completion?.outcome === 'answered' && completion.payment !== undefined
      ? { ok: true, payment: completion.payment }
      : { ok: false, refusal: unknownPayment.refusal, reason: unknownPayment.reason }
  }

  /** Records the expiry of a payment. Resolves to false if it is already recorded, completed or removed. */
  async function expire(payment: IncomingPayment): Promise<boolean> {
    const { now, commandId } = newCall(context)
    return transact<IncomingPayment | undefined, boolean>(context, {
      loaded: payment,
      reload: () => load(payment.id),
      decide(loaded) {
        if (loaded === undefined) return { changes: [], result: false, refused: false }
        const decision = expireIncomingPayment(loaded, { type: 'expire', commandId }, now)
        if (decision.outcome !== 'changed') {
          return {
            changes: [],
            result: loaded.commandId === commandId,
            refused: decision.outcome === 'refused',
          }
        }
        const changes = changesOf(context, 'incoming-payment', decision.record, decision.events)
        return { changes, result: true, refused: false }
      },
    })
  }

  /** Records the expiry of due payments, and removes payments past their retention. */
  const swept: SweptKind = {
    kind: 'incoming-payment',
    async sweep(record, now) {
      const payment = record as IncomingPayment
      if (payment.completed || payment.expiryRecorded) {
        return removeRetired(context, 'incoming-payment', payment, now)
      }
      return (await expire(payment)) ? 'expired' : undefined
    },
  }

  return { load, list, create, payable, receive, complete, completeById, swept }
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
