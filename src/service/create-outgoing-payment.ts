import { permits } from '../core/access.js'
import type { Amount } from '../core/amount.js'
import {
  type Budget,
  type BudgetPolicy,
  itemStatus,
  type PayingItem,
  payingItems,
  type SpentAmounts,
  totalSpent,
} from '../core/budget.js'
import { ok, type Refused, type Result, refused } from '../core/decision.js'
import type { ConditionsRefusal, GrantConditions, LimitsRefusal, Spending } from '../core/limits.js'
import { createOutgoingPayment, repeated } from '../core/outgoing-payment/create.js'
import type { OutgoingPayment, OutgoingPaymentPolicy } from '../core/outgoing-payment/record.js'
import { type Quote, type QuoteRefusal, usableQuote } from '../core/quote.js'
import type { JsonObject } from '../core/stored.js'
import type {
  ActiveToken,
  MayPay,
  MayPayAnswer,
  TokenRefusal,
  WalletAddresses,
} from '../ports/host.js'
import { isIdOf, newId } from '../protocol/credential.js'
import { canonicalJson } from '../protocol/json.js'
import { HostAnswerError } from '../util/errors.js'
import { hashText } from '../util/hash.js'
import {
  type AccountRefusal,
  activeAccount,
  loadEach,
  type ServiceContext,
  type SignedCall,
} from './context.js'
import { readHostAnswer, refusedByHost } from './host-answer.js'
import { grantListName, listsOf } from './lists.js'
import type { PricingRefused, QuoteOperations } from './quote.js'
import type { Replayed } from './replay.js'
import { ContentionError, ofDependency } from './store-guard.js'
import type { Decided, Read } from './write.js'

/** The payment to create: from a quote, or directly to an incoming payment, which is priced now. */
export type PaymentInput = {
  readonly walletAddress: string
  readonly metadata?: JsonObject
} & (
  | { readonly quoteId: string }
  | { readonly incomingPayment: string; readonly debitAmount: Amount }
)

/** The client instance that creates the payment, and its token. */
interface Spender {
  readonly client: string
  readonly token: ActiveToken
  /** Introspects the token again, because the grant may have changed when a commit lost a race. */
  renew(): Promise<Result<ActiveToken, Refused<TokenRefusal>>>
}

interface PaymentCreationPorts {
  /** Whether the grants are in the store of this commit, which then guards the version of the payment's grant. */
  readonly hasGrants: boolean
  readonly walletAddresses: WalletAddresses
  readonly quotes: QuoteOperations
  /** Decides for the host whether a payment may be created. Default: every payment. */
  readonly mayPay?: MayPay | undefined
}

/** A payment, and the amounts spent under the token in the windows that are open when its request arrives. */
export interface PaymentAnswer {
  readonly ok: true
  readonly payment: OutgoingPayment
  readonly spent: SpentAmounts
}

type PaymentCreationRefused =
  | Refused<AccountRefusal | QuoteRefusal | TokenRefusal | 'request_differs'>
  | Refused<LimitsRefusal | ConditionsRefusal>
  | Refused<PaymentRefusal>
  | PricingRefused

/** Creates an outgoing payment, or returns the one that an identical earlier request created. */
export type PaymentCreation = ReturnType<typeof createPaymentCreation>

/** The result of a write whose grant has changed since its token was introspected. */
const outdated = refused('token_unknown', 'the grant has changed')

/**
 * Returns the operation that creates an outgoing payment, or answers with the one that an identical earlier request
 * created. One commit contains the payment, its budget, its event, the replay record and the guard on the grant.
 *
 * A payment has the id of its quote, or an id derived from the client and the idempotency key. There is therefore at
 * most one payment, a repeat finds it, and no further record is needed.
 */
export function createPaymentCreation(
  context: ServiceContext,
  { hasGrants, walletAddresses, quotes, mayPay }: PaymentCreationPorts,
  limits: OutgoingPaymentPolicy & BudgetPolicy,
) {
  return async function create(
    input: PaymentInput,
    { client, token: introspected, renew }: Spender,
    call: SignedCall,
    idempotencyKey?: string,
  ): Promise<PaymentAnswer | PaymentCreationRefused | Replayed> {
    const { walletAddress, metadata } = input
    const { now, commandId, replay } = call
    const endsAt = context.pacing.elapsedMs() + context.storeTimeoutMs

    // 1. Identify the payment, and what makes another request a repeat of this one.
    const namespace = await context.namespace()
    const grantNamespace = await context.grantNamespace()
    const repeat = { client, requestHash: await hashText(canonicalJson(input)) }
    const isByQuote = 'quoteId' in input
    const id = isByQuote
      ? input.quoteId
      : idempotencyKey === undefined
        ? newId(namespace, now, context.random)
        : namespace + (await idOfKey(client, idempotencyKey))
    const paymentKey = { kind: 'outgoing-payment', id } as const
    const quoteKey = { kind: 'quote', id } as const
    // Another id belongs to no quote of this server, and a store need not accept it.
    const own = isIdOf(namespace, id) ? [paymentKey, ...(isByQuote ? [quoteKey] : [])] : []
    let price: Spending | undefined

    for (let token = introspected; ; ) {
      const { grantId, grantVersion, conditions } = token

      // 2. Read the quote, the payment and the budgets; and, before the host is asked, whether the request was used.
      const items = payingItems(token.access, { namespace: grantNamespace, grantId }, now)
      const budgetKeys = items.flatMap(({ open }) => (open ? [budgetKey(open)] : []))
      const reads = [...own, ...budgetKeys, ...(mayPay && replay ? [replay.key] : [])]
      const known = await loadEach(context.store, reads)
      const read: Read = ({ kind, id }) =>
        known[reads.findIndex((key) => key.kind === kind && key.id === id)] as never

      // 3. Look for the payment that an identical earlier request created.
      const earlierIn = (read: Read) => {
        const earlier = repeated(read(paymentKey), repeat)
        if (!earlier?.ok) return earlier
        return { ok: true, payment: earlier.value, spent: spentOf(items, read) } as const
      }
      const used = replay && read(replay.key)
      const isUsed = used !== undefined && used.commandId !== commandId
      const isRepeat = isUsed || earlierIn(read) !== undefined

      // 4. Price a payment without a quote. A quote contains its price, so only its account is checked.
      if (!isRepeat && isByQuote) {
        const account = await activeAccount(walletAddresses, walletAddress)
        if (!account.ok) return account
      } else if (!isRepeat && !isByQuote && price === undefined) {
        const { incomingPayment: receiver, debitAmount } = input
        const priced = await quotes.price({ walletAddress, receiver, debitAmount }, client)
        if (!priced.ok) return priced
        const { expiresAt = Number.POSITIVE_INFINITY, ...amounts } = priced.value
        if (!(expiresAt > now)) return refused('quote_expired', 'the price has already expired')
        price = { ...amounts, receiver }
      }

      const decide = (read: Read): Decided<PaymentAnswer | PaymentCreationRefused> => {
        const earlier = earlierIn(read)
        if (earlier !== undefined) return { result: earlier }
        const terms =
          price === undefined
            ? usableQuote(read<Quote>(quoteKey), { walletAddress, client }, now)
            : ok(price)
        if (!terms.ok) return { result: terms }
        const { receiver, receiverWalletAddress, debitAmount, receiveAmount } = terms.value
        const command = {
          ...repeat,
          commandId,
          id,
          namespace: grantNamespace,
          grantId,
          walletAddress,
          ...(isByQuote && { quoteId: id }),
          receiver,
          ...(receiverWalletAddress && { receiverWalletAddress }),
          debitAmount,
          receiveAmount,
          ...(metadata && { metadata }),
          ...(conditions && { conditions }),
          lists: [
            ...listsOf(namespace, walletAddress, client, now),
            { list: grantListName(namespace, { grantId }), at: now },
          ],
          candidates: items
            .filter(({ item }) => permits([item], 'outgoing-payment', 'create', walletAddress))
            .map(({ item, open }) => {
              const budget = open && read<Budget>(budgetKey(open))
              return budget === undefined ? { item } : { item, budget }
            }),
        }
        const decision = createOutgoingPayment(command, now, limits)
        if (!decision.ok) return { result: decision }
        const { record: payment, events, budget } = decision
        return {
          changes: [
            { kind: 'outgoing-payment', next: payment, events },
            { kind: 'budget', next: budget },
          ],
          result: { ok: true, payment, spent: spentOf(items, read, budget) },
        }
      }

      // 5. Ask the host before the payment joins others in a commit, so that a slow host delays only this request.
      let unasked: PaymentCreationRefused | undefined
      if (mayPay !== undefined && !isRepeat) {
        const { changes, result } = decide(read)
        if (changes !== undefined && result.ok) {
          const refusal = await refusalOf(mayPay, result.payment, conditions)
          if (refusal !== undefined) return refusal
        } else if (!result.ok) unasked = result
      }

      // 6. Write the payment and its budget, if the grant is as it was introspected: it may have been revoked since.
      const isGuarded = hasGrants && grantVersion !== undefined
      const answer = await call.commit<PaymentAnswer | PaymentCreationRefused>({
        reads,
        known,
        creates: own.slice(0, 1),
        together: `grant ${grantId}`,
        ...(isGuarded && {
          guard: { version: { kind: 'grant', id: grantId, version: grantVersion }, outdated },
        }),
        decide(read) {
          const decided = decide(read)
          // The budget may have room since, but the host was not asked: the payment remains refused.
          return unasked && decided.changes ? { result: unasked } : decided
        },
        // With an idempotency key, a byte-identical repeat is as harmless as any other.
        ...(idempotencyKey !== undefined && replay?.of === 'signature' && { repeated: earlierIn }),
      })
      if (answer !== outdated) return answer
      const renewed = await renew()
      if (!renewed.ok) return renewed
      if (context.pacing.elapsedMs() > endsAt) throw new ContentionError()
      token = renewed.value
    }
  }
}

/** Derives an id of the same length as random ids, so that clients cannot distinguish them. */
async function idOfKey(client: string, idempotencyKey: string): Promise<string> {
  return (await hashText(`${client} ${idempotencyKey}`)).slice(0, 28)
}

function budgetKey({ budgetId: id }: { readonly budgetId: string }) {
  return { kind: 'budget', id } as const
}

/** Returns what payments have spent in the open windows, with the budget that a new payment has charged. */
function spentOf(items: readonly PayingItem[], read: Read, charged?: Budget): SpentAmounts {
  const spent = items.map((item) => {
    const budget = item.open && read<Budget>(budgetKey(item.open))
    return itemStatus(item, item.open?.budgetId === charged?.id ? charged : budget).spent
  })
  return totalSpent(spent)
}

type PaymentRefusal = Extract<MayPayAnswer, { readonly ok: false }>['refusal']

const reasons: Readonly<Record<PaymentRefusal, string>> = {
  funds_insufficient: 'the account has insufficient funds',
  payment_not_allowed: 'the host does not allow the payment',
}

/** Asks the host whether a payment may be created. */
async function refusalOf(
  mayPay: MayPay,
  payment: OutgoingPayment,
  conditions: GrantConditions | undefined,
): Promise<Refused<PaymentRefusal> | undefined> {
  const { id: outgoingPaymentId, walletAddress, client, grantId, receiver } = payment
  const { receiverWalletAddress, debitAmount, receiveAmount, metadata } = payment
  // A copy, so that the host cannot change what is created.
  const requested = structuredClone({
    outgoingPaymentId,
    walletAddress,
    client,
    grantId,
    receiver,
    ...(receiverWalletAddress && { receiverWalletAddress }),
    debitAmount,
    receiveAmount,
    ...(metadata && { metadata }),
  })
  // Two concurrent requests with one key can have different amounts. Holds by the payment's id would replace each
  // other, although either request may create the payment.
  const holdId = `hold-${await hashText(canonicalJson(requested))}` as const
  const answer = await ofDependency('mayPay', () =>
    mayPay({ holdId, ...requested, ...(conditions && structuredClone({ conditions })) }),
  )
  const given = readHostAnswer('mayPay', answer)
  if (given.ok) {
    const { held } = answer as { readonly held?: unknown }
    if (held === holdId || held === 'nothing') return undefined
    throw new HostAnswerError('mayPay', "its held must be the holdId of the payment, or 'nothing'")
  }
  return refusedByHost('mayPay', given, reasons)
}
