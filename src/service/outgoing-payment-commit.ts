import { permits } from '../core/access.js'
import type { Amount } from '../core/amount.js'
import { type Budget, type BudgetPolicy, budgetId, type Candidate } from '../core/budget.js'
import type { JsonObject, Refused } from '../core/decision.js'
import { allowanceAt, type LimitsRefusal, type Spending } from '../core/limits.js'
import {
  type CreateOutgoingPayment,
  createOutgoingPayment,
  type Repeat,
  repeated,
} from '../core/outgoing-payment/create.js'
import type { OutgoingPayment, OutgoingPaymentPolicy } from '../core/outgoing-payment/record.js'
import { type QuoteRefusal, usableQuote } from '../core/quote.js'
import { ok, type Result } from '../core/result.js'
import type { ActiveToken, TokenRefusal } from '../ports/introspect.js'
import type { RecordChange, VersionGuard } from '../ports/store.js'
import type { WalletAddresses } from '../ports/wallet-addresses.js'
import { invalidOption } from '../util/option-error.js'
import type { AccountRefusal } from './account.js'
import type { ServiceContext } from './mechanism/context.js'
import { changesOf } from './mechanism/events.js'
import type { SignedCall } from './mechanism/nonces.js'
import { listsOf } from './mechanism/pages.js'
import {
  type Attempt,
  type Operation,
  type Replayed,
  transactSigned,
} from './mechanism/transact.js'
import type { OutgoingPayments } from './outgoing-payment.js'
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

export interface CreationPorts {
  /** Whether the records of grants whose version is known are in the store of this commit. */
  readonly guardsGrants: boolean
  readonly walletAddresses: WalletAddresses
  readonly quotes: QuoteOperations
  readonly payments: OutgoingPayments
}

/** What every step of a creation uses. */
export interface CreationDependencies extends CreationPorts {
  readonly context: ServiceContext
  readonly limits: OutgoingPaymentPolicy & BudgetPolicy
}

/** A request to create a payment, before anything is loaded. */
export interface Requested {
  readonly input: PaymentInput
  readonly spender: Spender
  readonly call: SignedCall
  readonly namespace: string
  readonly grantNamespace: string
  readonly repeat: Repeat
  /** The id that client instance and idempotency key determine, if the request has a key. */
  readonly keyedId?: string
}

/** A request with everything that is fixed before the first attempt. */
export interface Creation extends Requested {
  readonly id: string
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
export interface Created {
  readonly ok: true
  readonly payment: OutgoingPayment
  readonly budget?: Budget | undefined
}

export type Decided = Created | PaymentCreationRefused

export type PaymentCreationRefused =
  | Refused<AccountRefusal | QuoteRefusal | LimitsRefusal | TokenRefusal | 'request_differs'>
  | PricingRefused

/** Loads, decides and commits; after a lost race it loads and decides again. */
export async function commitPayment(
  deps: CreationDependencies,
  creation: Creation,
): Promise<Decided | Replayed> {
  const { id, spender, call } = creation
  const first = await load(deps, creation, ok(spender.token))
  const attempt = decide(deps, creation, first)
  const operation: Operation<Loaded, Decided> = {
    // A request that is refused now may have succeeded before, with its response lost.
    loaded: attempt.refused ? { ...first, payment: await deps.payments.load(id) } : first,
    reload: () => reload(deps, creation),
    decide: (loaded) => (loaded === first ? attempt : decide(deps, creation, loaded)),
    contended: `grant ${spender.token.grantId}`,
  }
  return transactSigned(deps.context, operation, call.replay)
}

/** Loads the quote and the budgets concurrently, because neither depends on the other. */
async function load(
  deps: CreationDependencies,
  creation: Creation,
  token: Loaded['token'],
): Promise<Loaded> {
  const [terms, candidates] = await Promise.all([
    termsOf(deps, creation),
    token.ok ? candidatesOf(deps, creation, token.value) : [],
  ])
  return { token, terms, candidates }
}

/** Loads the payment last: an exhausted budget may have been spent on this payment. */
async function reload(deps: CreationDependencies, creation: Creation): Promise<Loaded> {
  const token = await creation.spender.renew()
  if (token.ok) await requireGuarded(deps, token.value)
  const loaded = await load(deps, creation, token)
  return { ...loaded, payment: await deps.payments.load(creation.id) }
}

/** Fails a commit that can never succeed, because it guards a grant in another database. */
async function requireGuarded(deps: CreationDependencies, token: ActiveToken): Promise<void> {
  for (const { kind, id } of guardsOf(deps, token)) {
    if ((await deps.context.store.load(kind, id)) !== undefined) continue
    throw invalidOption('guardsGrants', 'must be false: the grants are in another database')
  }
}

async function termsOf(
  { quotes }: CreationDependencies,
  { price, id, input, spender, call }: Creation,
): Promise<Result<Spending, Refused<QuoteRefusal>>> {
  if (price !== undefined) return ok(price)
  const use = { walletAddress: input.walletAddress, client: spender.client }
  return usableQuote(await quotes.load(id), use, call.now)
}

/** Loads the granted items for payments from the wallet address, with the budgets of their open windows. */
function candidatesOf(
  { payments }: CreationDependencies,
  { grantNamespace: namespace, call, input }: Creation,
  { access, grantId }: ActiveToken,
): Promise<readonly Candidate[]> {
  const items = access.filter((item) =>
    permits([item], 'outgoing-payment', 'create', input.walletAddress),
  )
  return Promise.all(
    items.map(async (item) => {
      const allowance = allowanceAt(item, call.now)
      if (!allowance.ok) return { item }
      const id = budgetId({ namespace, grantId }, item, allowance.value)
      const budget = await payments.loadBudget(id)
      return budget === undefined ? { item } : { item, budget }
    }),
  )
}

function decide(deps: CreationDependencies, creation: Creation, loaded: Loaded): Attempt<Decided> {
  const { token, terms, candidates, payment } = loaded
  const earlier = repeated(payment, creation.repeat)
  if (earlier !== undefined) {
    return earlier.ok ? unchanged({ ok: true, payment: earlier.value }) : unchanged(earlier)
  }
  if (!token.ok) return unchanged(token)
  if (!terms.ok) return unchanged(terms)
  const { context, limits } = deps
  const spending = { terms: terms.value, grantId: token.value.grantId, candidates }
  const decision = createOutgoingPayment(commandOf(creation, spending), creation.call.now, limits)
  if (!decision.ok) return unchanged(decision)
  const { record, events, budget } = decision
  return {
    changes: [...changesOf(context, 'outgoing-payment', record, events), budgetChange(budget)],
    guards: guardsOf(deps, token.value),
    result: { ok: true, payment: record, budget },
    refused: false,
  }
}

function unchanged(result: Decided): Attempt<Decided> {
  return { changes: [], result, refused: !result.ok }
}

function commandOf(
  { id, namespace, grantNamespace, input, spender, repeat, call }: Creation,
  { terms, grantId, candidates }: SpendingUnderGrant,
): CreateOutgoingPayment {
  const { receiver, debitAmount, receiveAmount } = terms
  const { walletAddress, metadata } = input
  return {
    commandId: call.commandId,
    id,
    namespace: grantNamespace,
    grantId,
    walletAddress,
    ...repeat,
    ...('quoteId' in input && { quoteId: input.quoteId }),
    receiver,
    debitAmount,
    receiveAmount,
    ...(metadata && { metadata }),
    lists: listsOf(namespace, walletAddress, spender.client, call.now),
    candidates,
  }
}

interface SpendingUnderGrant extends Pick<CreateOutgoingPayment, 'grantId' | 'candidates'> {
  readonly terms: Spending
}

function budgetChange(next: Budget): RecordChange {
  return { kind: 'budget', next, expectedVersion: next.version - 1 }
}

/** Guards the version of the introspected grant, so that a revoked grant cannot spend. */
function guardsOf(
  { guardsGrants }: CreationDependencies,
  { grantId, grantVersion }: ActiveToken,
): readonly VersionGuard[] {
  if (grantVersion === undefined || !guardsGrants) return []
  return [{ kind: 'grant', id: grantId, version: grantVersion }]
}
