import type { Budget, BudgetCandidate } from '../core/budget.js'
import type { Refused } from '../core/decision.js'
import type { Spending } from '../core/limits.js'
import {
  type CreateOutgoingPayment,
  createOutgoingPayment,
  repeated,
} from '../core/outgoing-payment/create.js'
import { type QuoteRefusal, usableQuote } from '../core/quote.js'
import { ok, type Result } from '../core/result.js'
import type { ActiveToken, TokenRefusal } from '../ports/introspect.js'
import type { RecordChange, VersionGuard } from '../ports/store.js'
import { invalidOption } from '../util/option-error.js'
import { changeOf } from './mechanism/changes.js'
import { changesOf } from './mechanism/events.js'
import { grantListName, listsOf } from './mechanism/pages.js'
import { type Attempt, type Operation, replayed, transactSigned } from './mechanism/transact.js'
import { readFor, spentWith } from './outgoing-payment-read.js'
import type { Creation, CreationDependencies, Decided, Read } from './outgoing-payment-request.js'
import { type Permission, permissionFor } from './payment-permission.js'

interface Loaded extends Read {
  readonly token: Result<ActiveToken, Refused<TokenRefusal>>
  readonly terms: Result<Spending, Refused<QuoteRefusal>>
  /** Absent if the host need not be asked: the payment exists or is refused, or there is no `mayPay`. */
  readonly permission?: Permission
}

/** Loads, decides and commits; after a lost race it loads and decides again. */
export async function commitPayment(
  deps: CreationDependencies,
  creation: Creation,
): Promise<Decided> {
  const { spender, call } = creation
  const first = await loadFirst(deps, creation)
  const attempt = decide(deps, creation, first)
  const operation: Operation<Loaded, Decided> = {
    loaded: attempt.refused ? await withPayment(deps, creation, first) : first,
    reload: () => reload(deps, creation),
    decide: (loaded) => (loaded === first ? attempt : decide(deps, creation, loaded)),
    contended: contendedGrant(spender.token),
  }
  return transactSigned(deps.context, operation, call.replay)
}

/** Returns the name of the record for which the payments under a grant contend. */
export function contendedGrant({ grantId }: ActiveToken): string {
  return `grant ${grantId}`
}

/** Asks the host about a payment that would be created, before the commit, and keeps what was read for that. */
export async function withPermission(
  deps: CreationDependencies,
  creation: Creation,
): Promise<Creation> {
  if (deps.mayPay === undefined) return creation
  const { permission, ...read } = await loadFirst(deps, creation)
  return { ...creation, read, permission }
}

/**
 * With `mayPay`, looks for a repeat or replay first. Otherwise the host might hold funds for a payment that is never
 * created.
 */
async function loadFirst(deps: CreationDependencies, creation: Creation): Promise<Loaded> {
  const { id, spender, permission } = creation
  const asks = deps.mayPay !== undefined
  const also = asks ? { payment: id, nonce: true } : {}
  const read = creation.read ?? (await readFor(deps.context.store, creation, spender.token, also))
  const loaded = { ...read, token: ok(spender.token), terms: termsOf(creation, read) }
  if (permission !== undefined) return { ...loaded, permission }
  if (read.consumed === 'another') return { ...loaded, permission: replayed() }
  return askHost(deps, creation, loaded)
}

async function reload(deps: CreationDependencies, creation: Creation): Promise<Loaded> {
  const token = await creation.spender.renew()
  const active = token.ok ? token.value : undefined
  const [grant] = active === undefined ? [] : guardsOf(deps, active)
  const also = { payment: creation.id, grant }
  const read = await readFor(deps.context.store, creation, active, also)
  if (grant !== undefined && read.grant === undefined) {
    // A commit that guards a grant in another database can never succeed.
    throw invalidOption('guardsGrants', 'must be false: the grants are in another database')
  }
  const loaded = { ...read, token, terms: termsOf(creation, read) }
  const isRefused = decide(deps, creation, loaded).refused
  return askHost(deps, creation, isRefused ? await withPayment(deps, creation, loaded) : loaded)
}

/**
 * Looks for the payment after a refusal: an earlier request whose response was lost may have created it, and spent the
 * budget.
 */
async function withPayment(
  { payments }: CreationDependencies,
  { id }: Creation,
  loaded: Loaded,
): Promise<Loaded> {
  return { ...loaded, payment: await payments.load(id) }
}

/** Asks the host about a payment that would be created, and that the grant permits. */
async function askHost(
  deps: CreationDependencies,
  creation: Creation,
  loaded: Loaded,
): Promise<Loaded> {
  if (deps.mayPay === undefined) return loaded
  const { changes, result } = decide(deps, creation, loaded)
  if (!result.ok || changes.length === 0) return loaded
  return { ...loaded, permission: await permissionFor(deps.mayPay, result.payment) }
}

export function termsOf(
  { price, input, spender, call }: Creation,
  { quote }: Read,
): Result<Spending, Refused<QuoteRefusal>> {
  if (price !== undefined) return ok(price)
  const use = { walletAddress: input.walletAddress, client: spender.client }
  return usableQuote(quote, use, call.now)
}

function decide(deps: CreationDependencies, creation: Creation, loaded: Loaded): Attempt<Decided> {
  const { token, terms, candidates, payment, permission } = loaded
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
  if (permission?.ok === false) {
    if (permission.outcome === 'failed') throw permission.error
    return unchanged(permission)
  }
  const { record, events, budget } = decision
  return {
    changes: [
      ...changesOf(context, 'outgoing-payment', undefined, record, events),
      budgetChange(candidates, budget),
    ],
    guards: guardsOf(deps, token.value),
    result: {
      ok: true,
      payment: record,
      spent: spentWith(loaded, new Map([[budget.id, budget]])),
    },
    refused: false,
  }
}

function unchanged(result: Decided): Attempt<Decided> {
  return { changes: [], result, refused: !result.ok }
}

export function commandOf(
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
    lists: [
      ...listsOf(namespace, walletAddress, spender.client, call.now),
      { list: grantListName(namespace, { grantId }), at: call.now },
    ],
    candidates,
  }
}

interface SpendingUnderGrant extends Pick<CreateOutgoingPayment, 'grantId' | 'candidates'> {
  readonly terms: Spending
}

function budgetChange(candidates: readonly BudgetCandidate[], next: Budget): RecordChange {
  const charged = candidates.find(({ budget }) => budget?.id === next.id)
  return changeOf('budget', charged?.budget, next)
}

/** Guards the version of the introspected grant, so that a revoked grant cannot spend. */
export function guardsOf(
  { guardsGrants }: CreationDependencies,
  { grantId, grantVersion }: ActiveToken,
): readonly VersionGuard[] {
  if (grantVersion === undefined || !guardsGrants) return []
  return [{ kind: 'grant', id: grantId, version: grantVersion }]
}
