import type { Budget } from '../core/budget.js'
import { createTogether } from '../core/outgoing-payment/create-together.js'
import type { ActiveToken } from '../ports/introspect.js'
import type { RecordChange } from '../ports/store.js'
import { changeOf } from './mechanism/changes.js'
import { combinedMaxOf } from './mechanism/combiner.js'
import { changesOf } from './mechanism/events.js'
import { type Attempt, transact } from './mechanism/transact.js'
import {
  commandOf,
  commitPayment,
  contendedGrant,
  guardsOf,
  termsOf,
  withPermission,
} from './outgoing-payment-commit.js'
import { readForAll, spentWith } from './outgoing-payment-read.js'
import type {
  Created,
  Creation,
  CreationDependencies,
  Decided,
  Read,
} from './outgoing-payment-request.js'

/**
 * Returns the maximum number of payments that one commit creates. Each payment writes its record, three list entries,
 * an event and a nonce. All payments of a commit together write at most six budgets and guard one grant.
 */
export function paymentsMax(consumers = 1): number {
  return combinedMaxOf(consumers, { each: 5, once: 7, eventsOnce: 0 })
}

/**
 * Creates a payment, in one commit with others under the same grant that arrive while another commit under the grant is
 * in progress. Alone, each would need its own commit, and all but one would lose the race for the budget.
 */
export async function commitCombined(
  deps: CreationDependencies,
  creation: Creation,
): Promise<Decided> {
  const { combiner, eventConsumers } = deps.context
  if (combiner === undefined) return commitPayment(deps, creation)
  // Ask the host before other requests wait for this one, because they must not wait for the host.
  const asked = await withPermission(deps, creation)
  if (deps.mayPay !== undefined && asked.permission?.ok !== true) return commitPayment(deps, asked)
  const decided = await combiner.run<Creation, Decided | undefined>(
    contendedGrant(creation.spender.token),
    asked,
    (creations, waited) => decideAll(deps, creations, waited),
    paymentsMax(eventConsumers?.length),
  )
  return decided ?? commitPayment(deps, withoutRead(asked))
}

async function decideAll(
  deps: CreationDependencies,
  creations: readonly Creation[],
  waited: boolean,
): Promise<readonly (Decided | undefined)[]> {
  const [first, ...others] = creations
  if (first !== undefined && others.length === 0) {
    return [await commitPayment(deps, waited ? withoutRead(first) : first)]
  }
  const together = togetherOf(creations)
  const created = await commitTogether(deps, together)
  return creations.map((creation) => created.get(creation))
}

/** Drops what was read before the request waited, because it may be outdated. */
function withoutRead(creation: Creation): Creation {
  return { ...creation, read: undefined }
}

/**
 * Returns the requests that one commit can carry out: they guard the same version of the grant, and no two have the
 * same payment, nonce or signature.
 */
function togetherOf(creations: readonly Creation[]): readonly Creation[] {
  const versions = creations.map(({ spender }) => spender.token.grantVersion ?? 0)
  const latest = Math.max(...versions)
  const taken = new Set<string>()
  return creations.filter(({ id, call }, index) => {
    const names = [`payment ${id}`, `nonce ${call.replay.guard?.change.next.id ?? id}`]
    if (versions[index] !== latest || names.some((name) => taken.has(name))) return false
    for (const name of names) taken.add(name)
    return true
  })
}

/** A request with what was read for it. */
interface Member {
  readonly creation: Creation
  readonly read: Read
}

/** The results of the requests that a commit carried out. */
type Results = ReadonlyMap<Creation, Created>

/**
 * Creates the payments that can be created now, in one commit. A request that is refused or repeated, or whose nonce
 * has been used, has no result and changes nothing for the others: it is decided on its own, like one that came alone.
 */
async function commitTogether(
  deps: CreationDependencies,
  creations: readonly Creation[],
): Promise<Results> {
  const [first] = creations
  if (first === undefined) return new Map()
  const { token } = first.spender
  const reload = () => loadMembers(deps, creations, token)
  const created = await transact<readonly Member[], Results>(deps.context, {
    loaded: await reload(),
    reload,
    decide: (members) => decideTogether(deps, members, token),
    contended: contendedGrant(token),
  })
  for (const { call } of created.keys()) call.replay.consumed = true
  return created
}

/**
 * Reads everything with one call of `loadAll`. If the grant has changed, no request has a result: each token is
 * introspected again.
 */
async function loadMembers(
  deps: CreationDependencies,
  creations: readonly Creation[],
  token: ActiveToken,
): Promise<readonly Member[]> {
  const [grant] = guardsOf(deps, token)
  const all = creations.map((requested) => {
    return { requested, also: { payment: requested.id, nonce: true, grant } }
  })
  const reads = await readForAll(deps.context.store, all)
  return reads.flatMap((read, index): Member | readonly [] => {
    const creation = creations[index]
    const isCurrent = grant === undefined || read.grant?.version === grant.version
    return creation !== undefined && isCurrent ? { creation, read } : []
  })
}

function decideTogether(
  deps: CreationDependencies,
  members: readonly Member[],
  token: ActiveToken,
): Attempt<Results> {
  const { context } = deps
  const results = new Map<Creation, Created>()
  const changes: RecordChange[] = []
  // A payment that this request has already created: its commit took effect, and the response of the store was lost.
  for (const { creation, read } of members) {
    if (read.payment?.commandId !== creation.call.commandId) continue
    results.set(creation, { ok: true, payment: read.payment })
  }
  const budgets = new Map<string, RecordChange>()
  for (const { creation, read, payment, events, budget, spent } of fold(deps, members)) {
    const { replay } = creation.call
    const nonce = replay.consumed || replay.guard === undefined ? [] : [replay.guard.change]
    changes.push(...changesOf(context, 'outgoing-payment', undefined, payment, events), ...nonce)
    const stored = read.candidates.find((each) => each.budget?.id === budget.id)?.budget
    budgets.set(budget.id, changeOf('budget', stored, budget))
    results.set(creation, { ok: true, payment, spent })
  }
  changes.push(...budgets.values())
  const guards = changes.length === 0 ? [] : guardsOf(deps, token)
  return { changes, guards, result: results, refused: false }
}

/** Returns the payments that can be created one after another. */
function fold({ limits, mayPay }: CreationDependencies, members: readonly Member[]) {
  const possible = members.flatMap(({ creation, read }) => {
    const terms = termsOf(creation, read)
    if (mayPay !== undefined && !creation.permission?.ok) return []
    if (!terms.ok || read.payment !== undefined || read.consumed !== undefined) return []
    const { grantId } = creation.spender.token
    const spending = { terms: terms.value, grantId, candidates: read.candidates }
    const command = commandOf(creation, spending)
    return { creation, read, timed: { command, now: creation.call.now } }
  })
  const { decisions } = createTogether(
    possible.map(({ timed }) => timed),
    limits,
  )
  const charged = new Map<string, Budget>()
  return possible.flatMap(({ creation, read }, index) => {
    const decision = decisions[index]
    if (!decision?.ok) return []
    const { record: payment, events, budget } = decision
    charged.set(budget.id, budget)
    return { creation, read, payment, events, budget, spent: spentWith(read, charged) }
  })
}
