import { permits } from '../core/access.js'
import type { Amount } from '../core/amount.js'
import { type Budget, budgetId, type Candidate, type SpentAmounts } from '../core/budget.js'
import type { JsonObject, Refused } from '../core/decision.js'
import { allowanceAt, type LimitsRefusal, type Spending } from '../core/limits.js'
import { createOutgoingPayment, type Repeat, repeated } from '../core/outgoing-payment/create.js'
import type { OutgoingPayment } from '../core/outgoing-payment/record.js'
import { type QuoteRefusal, usableQuote } from '../core/quote.js'
import { ok, type Result } from '../core/result.js'
import type { ActiveToken, Introspect, TokenRefusal } from '../ports/introspect.js'
import type { RecordChange } from '../ports/store.js'
import type { WalletAddresses } from '../ports/wallet-addresses.js'
import { newId } from '../protocol/credential.js'
import { hashText } from '../util/hash.js'
import { type AccountRefusal, activeAccount } from './account.js'
import type { Call, ServiceContext } from './mechanism/context.js'
import { changesOf } from './mechanism/events.js'
import { consumeNonce } from './mechanism/nonces.js'
import { listsOf } from './mechanism/pages.js'
import {
  type Attempt,
  type NonceGuard,
  type Replayed,
  transactSigned,
} from './mechanism/transact.js'
import type { OutgoingPayments, SpendingPolicy } from './outgoing-payment.js'
import type { PricingRefused, QuoteOperations } from './quote.js'

/** The payment to create: from a quote, or directly to an incoming payment, which is priced now. */
export type PaymentInput = {
  readonly walletAddress: string
  readonly metadata?: JsonObject
} & (
  | { readonly quoteId: string }
  | { readonly incomingPayment: string; readonly debitAmount: Amount }
)

/** The client instance that creates the payment, and its token. */
export interface Spender {
  readonly client: string
  readonly token: ActiveToken
  /** Introspects the token again, because the grant may have changed when a commit lost a race. */
  renew(): Promise<Result<ActiveToken, Refused<TokenRefusal>>>
}

/** A payment, and the total spent in its window, including this payment. */
export interface PaymentAnswer {
  readonly outcome: 'answered'
  readonly payment: OutgoingPayment
  /** Absent if the payment's budget has been removed. */
  readonly spent?: SpentAmounts
}

export type PaymentCreationRefused =
  | Refused<AccountRefusal | QuoteRefusal | LimitsRefusal | TokenRefusal | 'request_differs'>
  | PricingRefused

interface CreationDependencies {
  readonly introspect: Introspect
  readonly walletAddresses: WalletAddresses
  readonly quotes: QuoteOperations
  readonly payments: OutgoingPayments
}

/** The inputs of one creation, fixed before anything is loaded. */
interface Creation extends Call {
  readonly namespace: string
  readonly id: string
  readonly input: PaymentInput
  readonly repeat: Repeat
  readonly spender: Spender
  /** The price of a payment without a quote; absent with a quote, which contains it. */
  readonly price?: Spending
}

interface Loaded {
  readonly token: Result<ActiveToken, Refused<TokenRefusal>>
  readonly terms: Result<Spending, Refused<QuoteRefusal>>
  readonly candidates: readonly Candidate[]
  /** The payment that this request, or an earlier identical one, created. */
  readonly payment?: OutgoingPayment | undefined
}

/** A created payment, with its budget if the same commit wrote it. */
interface Created {
  readonly outcome: 'created'
  readonly payment: OutgoingPayment
  readonly budget?: Budget | undefined
}

type Decided = Created | PaymentCreationRefused

/**
 * Creates the operation that creates outgoing payments. One commit contains the payment, budget, event,
 * used signature and the guard on the grant.
 *
 * The id of a payment is that of its quote, or is derived from client instance and idempotency key. So
 * there is at most one payment, a repeat finds it, and no further record is needed.
 */
export function createPaymentCreation(
  context: ServiceContext,
  { introspect, walletAddresses, quotes, payments }: CreationDependencies,
  policy: SpendingPolicy,
) {
  const { random } = context
  const limits = { ...policy.payments, ...policy.budgets }

  return async function create(
    input: PaymentInput,
    spender: Spender,
    call: Call,
    {
      nonceGuard,
      idempotencyKey,
    }: { readonly nonceGuard: NonceGuard | undefined; readonly idempotencyKey?: string },
  ): Promise<PaymentAnswer | PaymentCreationRefused | Replayed> {
    const { client } = spender
    const namespace = await context.namespace()
    const repeat = { client, requestHash: await hashText(JSON.stringify(input)) }
    const keyed = idempotencyKey && namespace + (await idOfKey(client, idempotencyKey))
    const earlier = keyed ? await madeBefore(keyed, repeat) : undefined
    // The key makes a repeat harmless, so an identical signature from the same second is not a replay.
    if (earlier !== undefined) return answerAgain(earlier, unlessSignature(nonceGuard))

    const priced = await priceOf(input)
    if (!priced.ok) {
      // A repeat still returns its payment after the account was closed.
      const made = 'quoteId' in input ? await madeBefore(input.quoteId, repeat) : undefined
      return made === undefined
        ? consumeNonce(context, nonceGuard, priced, { refused: true })
        : answerAgain(made, nonceGuard)
    }
    const id = 'quoteId' in input ? input.quoteId : keyed || newId(namespace, random)
    const price = priced.value
    const creation = { ...call, namespace, id, input, repeat, spender, ...(price && { price }) }
    const first = await load(creation, ok(spender.token))
    const attempt = decide(creation, first)
    const operation = {
      // A request that is refused now may have succeeded before, with its response lost.
      loaded: attempt.refused ? { ...first, payment: await payments.load(id) } : first,
      reload: () => reload(creation),
      decide: (loaded: Loaded) => (loaded === first ? attempt : decide(creation, loaded)),
      contended: `grant ${spender.token.grantId}`,
    }
    const decided = await transactSigned<Loaded, Decided>(context, operation, nonceGuard)
    if (decided.outcome === 'created') return answer(decided)
    // Concurrent identical requests share one payment through the idempotency key.
    const bytes =
      keyed && decided.refusal === 'replayed' && unlessSignature(nonceGuard) === undefined
    const made = bytes ? await madeBefore(keyed, repeat) : undefined
    return made === undefined ? decided : answerAgain(made, undefined)
  }

  /** Resolves to the payment with this id, if this request repeats the one that created it. */
  async function madeBefore(id: string, repeat: Repeat) {
    return repeated(await payments.load(id), repeat)
  }

  /** Prices a payment without a quote. A quote contains its price, so only its account is checked here. */
  async function priceOf(
    input: PaymentInput,
  ): Promise<Result<Spending | undefined, PricingRefused>> {
    const { walletAddress } = input
    if ('quoteId' in input) {
      const account = await activeAccount(walletAddresses, walletAddress)
      return account.ok ? ok(undefined) : account
    }
    const { incomingPayment: receiver, debitAmount } = input
    const priced = await quotes.price({ walletAddress, receiver, debitAmount })
    return priced.ok ? ok({ ...priced.value, receiver }) : priced
  }

  /** Loads the quote and the budgets concurrently, because neither depends on the other. */
  async function load(creation: Creation, token: Loaded['token']): Promise<Loaded> {
    const [terms, candidates] = await Promise.all([
      termsOf(creation),
      token.ok ? candidatesOf(creation, token.value) : [],
    ])
    return { token, terms, candidates }
  }

  /** Loads the payment last: an exhausted budget may have been spent on this payment. */
  async function reload(creation: Creation): Promise<Loaded> {
    const loaded = await load(creation, await creation.spender.renew())
    return { ...loaded, payment: await payments.load(creation.id) }
  }

  async function termsOf(creation: Creation): Promise<Result<Spending, Refused<QuoteRefusal>>> {
    const { price, id, input, spender, now } = creation
    if (price !== undefined) return ok(price)
    const use = { walletAddress: input.walletAddress, client: spender.client }
    return usableQuote(await quotes.load(id), use, now)
  }

  /** Loads the granted items for payments from the wallet address, with the budgets of their open windows. */
  function candidatesOf(
    { namespace, now, input }: Creation,
    { access, grantId }: ActiveToken,
  ): Promise<readonly Candidate[]> {
    const items = access.filter((item) =>
      permits([item], 'outgoing-payment', 'create', input.walletAddress),
    )
    return Promise.all(
      items.map(async (item) => {
        const allowance = allowanceAt(item, now)
        if (!allowance.ok) return { item }
        const id = budgetId({ namespace, grantId }, item, allowance.value)
        const budget = await payments.loadBudget(id)
        return budget === undefined ? { item } : { item, budget }
      }),
    )
  }

  function decide(creation: Creation, loaded: Loaded): Attempt<Decided> {
    const { token, terms, candidates, payment } = loaded
    const earlier = repeated(payment, creation.repeat)
    if (earlier !== undefined) {
      const result = earlier.ok
        ? ({ outcome: 'created', payment: earlier.value } as const)
        : earlier
      return { changes: [], result, refused: !earlier.ok }
    }
    if (!token.ok) return { changes: [], result: token, refused: true }
    if (!terms.ok) return { changes: [], result: terms, refused: true }
    const { receiver, debitAmount, receiveAmount } = terms.value
    const { now, commandId, id, namespace, repeat, input, spender } = creation
    const { walletAddress, metadata } = input
    const command = {
      commandId,
      id,
      namespace,
      grantId: token.value.grantId,
      walletAddress,
      ...repeat,
      ...('quoteId' in input && { quoteId: input.quoteId }),
      receiver,
      debitAmount,
      receiveAmount,
      ...(metadata && { metadata }),
      lists: listsOf(namespace, walletAddress, spender.client, now),
      candidates,
    }
    const decision = createOutgoingPayment(command, now, limits)
    if (decision.outcome === 'refused') return { changes: [], result: decision, refused: true }
    const { record, events, budget } = decision
    const changes = [
      ...changesOf(context, 'outgoing-payment', record, events),
      budgetChange(budget),
    ]
    const result = { outcome: 'created', payment: record, budget } as const
    return { changes, guards: guardsOf(token.value), result, refused: false }
  }

  /** Guards the version of the introspected grant, if the grant is in the store of this commit. */
  function guardsOf({ grantId, grantVersion }: ActiveToken) {
    if (grantVersion === undefined || introspect.store !== context.givenStore) return []
    return [{ kind: 'grant', id: grantId, version: grantVersion } as const]
  }

  async function answerAgain(
    earlier: Result<OutgoingPayment, Refused<'request_differs'>>,
    nonceGuard: NonceGuard | undefined,
  ): Promise<PaymentAnswer | PaymentCreationRefused | Replayed> {
    if (!earlier.ok) return consumeNonce(context, nonceGuard, earlier, { refused: true })
    const again = await answer({ outcome: 'created', payment: earlier.value })
    return consumeNonce(context, nonceGuard, again, { refused: false })
  }

  async function answer({ payment, budget }: Created): Promise<PaymentAnswer> {
    const { spent } = budget ?? (await payments.loadBudget(payment.budgetId)) ?? {}
    return { outcome: 'answered', payment, ...(spent && { spent }) }
  }
}

export type PaymentCreation = ReturnType<typeof createPaymentCreation>

function budgetChange(next: Budget): RecordChange {
  return { kind: 'budget', next, expectedVersion: next.version - 1 }
}

function unlessSignature(nonceGuard: NonceGuard | undefined): NonceGuard | undefined {
  return nonceGuard?.consumedByRefusal === true ? nonceGuard : undefined
}

/** Derives an id of the same length as random ids, so that clients cannot distinguish them. */
async function idOfKey(client: string, idempotencyKey: string): Promise<string> {
  return (await hashText(`${client} ${idempotencyKey}`)).slice(0, 22)
}
