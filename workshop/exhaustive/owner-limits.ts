import type { Budget } from '../../src/core/budget/record.js'
import type { Grant } from '../../src/core/grant/record.js'
import { decideGrant } from '../../src/core/grant.js'
import type { SpendingLimit } from '../../src/core/limits.js'
import {
  type CreateUnderGrant,
  createOutgoingPayment,
} from '../../src/core/outgoing-payment/create.js'
import {
  budgetIdsOf,
  type OutgoingPayment,
  releasedBudgets,
} from '../../src/core/outgoing-payment/record.js'
import { repeated } from '../../src/core/outgoing-payment/reservation.js'
import { decideOutgoingPayment } from '../../src/core/outgoing-payment.js'
import { accountLimits, ownerLimits } from '../../src/core/spending-limits.js'
import type { Stored } from '../../src/core/stored.js'
import { policy as grantPolicy } from './grant.js'
import type { Attempt, Machine, Operation, Process, World } from './processes.js'
import { remembered } from './search.js'

/** The decisions that the services make, of which a planted mistake replaces some. */
export const limitDecisions = {
  createOutgoingPayment: (
    command: CreateUnderGrant,
    now: number,
    policy: Parameters<typeof createOutgoingPayment>[2],
  ) => createOutgoingPayment(command, now, policy),
  releasedBudgets,
  /** Whether the commit of a payment fails if its grant is at another version. */
  guards: true,
}

export type LimitDecisions = typeof limitDecisions

/** Whose limits there are. Both payments are from one account, in the same minute or in two. */
export interface LimitSetting {
  readonly name: string
  /** The grants of the two payments. */
  readonly grants: readonly ['a', 'a' | 'b']
  /** The limits of the owner for grant a. */
  readonly owner: readonly SpendingLimit[]
  /** The same as an amendment sets them. */
  readonly amended?: readonly SpendingLimit[]
  /** The limits of the account. */
  readonly account: readonly SpendingLimit[]
}

/** An interval for limits. Its first two windows are those of the model. */
export const minutely = 'R/1970-01-01T00:00:00Z/PT1M'
const minuteMs = 60_000

export const usd = (value: number) => ({ value: `${value}`, assetCode: 'USD', assetScale: 2 })
const paid = 6
const wallet = 'https://wallet.example/alice'
const namespace = 'wallet01'
const paymentPolicy = { holdMs: 10 * minuteMs, retentionMs: minuteMs }
const lifetimes = { unusedLifetimeMs: 10 * minuteMs, accessTokenLifetimeMs: 10 * minuteMs }

const names = ['p', 'q'] as const
type Name = (typeof names)[number]
type GrantName = LimitSetting['grants'][number]

export type LimitOp = Operation &
  (
    | { readonly type: 'pay'; readonly name: Name; readonly grant: GrantName }
    | { readonly type: 'end'; readonly name: Name }
    | { readonly type: 'amend' }
  )

/** What an observer notes: the time, and the ids of the budgets that have to count each payment. */
export interface LimitFacts {
  readonly now: number
  readonly counting: Readonly<Partial<Record<Name, readonly string[]>>>
}

type LimitWorld = World<LimitOp, LimitFacts>

function newGrant(id: GrantName, limits: readonly SpendingLimit[]): Grant {
  return {
    id,
    version: 1,
    commandId: 'approved',
    createdAt: 0,
    client: { walletAddress: 'https://shop.example', kid: 'key', x: 'x', thumbprint: 'key' },
    requested: [],
    granted: [{ itemId: '1', type: 'outgoing-payment', actions: ['create'], identifier: wallet }],
    continuation: { path: 'c', tokenHash: 'c', waitMs: 0, acceptedAt: 0 },
    tokens: [{ hash: 'token', manage: 'm', issuedAt: 0, expiresAt: 10 * minuteMs }],
    ...(limits.length > 0 && { conditions: { limits } }),
  }
}

/** A limit with the id of its budget, which this model knows by itself. */
interface Counted {
  readonly limit: SpendingLimit
  readonly budgetId: string
}

/** All limits that count a payment under a grant at an instant. */
function limitsAt({ account }: LimitSetting, grant: Grant, now: number): readonly Counted[] {
  const start = Math.floor(now / minuteMs) * minuteMs
  const counted = (prefix: string) => (limit: SpendingLimit) => {
    const window = limit.interval === undefined ? 'life' : `${start}_${start + minuteMs}`
    return { limit, budgetId: `${namespace}${prefix}.${window}` }
  }
  const owner = grant.conditions?.limits ?? []
  return [...owner.map(counted(`${grant.id}.owner`)), ...account.map(counted('account.hash'))]
}

const itemBudget = (grant: string) => `${namespace}${grant}.1.life`

const grantIn = ({ records }: LimitWorld, name: GrantName) => records[name] as Grant
const paymentIn = ({ records }: LimitWorld, name: Name) =>
  records[name] as OutgoingPayment | undefined

/**
 * Two payments from one account in two processes, repeats of their requests, the end of a payment with nothing sent, an
 * owner who amends the limits of a grant, and the beginning of the next window. A process loads the grant, then all
 * other records at once.
 */
export function ownerLimitsMachine(
  setting: LimitSetting,
  decisions: LimitDecisions = limitDecisions,
): Machine<LimitOp, LimitFacts> {
  const grants = { p: setting.grants[0], q: setting.grants[1] }
  const records = { a: newGrant('a', setting.owner), b: newGrant('b', []) }

  function starts(world: LimitWorld): LimitOp[] {
    const base = { id: `c:${world.serial}`, now: world.facts.now }
    const { amended } = setting
    const isAmended = grantIn(world, 'a').commandId !== 'approved'
    return [
      ...names.map((name): LimitOp => {
        return { ...base, label: `${name} is paid`, type: 'pay', name, grant: grants[name] }
      }),
      ...names
        .filter((name) => paymentIn(world, name)?.state === 'created')
        .map((name): LimitOp => ({ ...base, label: `${name} ends`, type: 'end', name })),
      ...(amended && !isAmended
        ? [{ ...base, label: 'the owner amends', type: 'amend' } as const]
        : []),
    ]
  }

  function nextLoad(op: LimitOp, seen: Process<LimitOp>['seen']) {
    switch (op.type) {
      case 'amend':
        return seen.length === 0 ? 'a' : undefined
      case 'pay': {
        if (seen.length === 0) return op.grant
        const limits = limitsAt(setting, seen[0] as Grant, op.now)
        const budgets = [itemBudget(op.grant), ...limits.map(({ budgetId }) => budgetId)]
        return seen.length === 1 ? [op.name, ...budgets] : undefined
      }
      case 'end': {
        if (seen.length === 0) return op.name
        return seen.length === 1 ? budgetIdsOf(seen[0] as OutgoingPayment) : undefined
      }
    }
  }

  function decide(op: LimitOp, seen: Process<LimitOp>['seen']): Attempt {
    const found = new Map(seen.flatMap((record) => (record ? [[record.id, record] as const] : [])))
    const budgetOf = (id: string) => found.get(id) as Budget | undefined
    switch (op.type) {
      case 'amend':
        return amending(op, seen[0] as Grant)
      case 'pay':
        return paying(op, seen[0] as Grant, found.get(op.name) as OutgoingPayment, budgetOf)
      case 'end':
        return ending(op, seen[0] as OutgoingPayment, budgetOf)
    }
  }

  function amending({ id: commandId, now }: LimitOp, grant: Grant): Attempt {
    const conditions = { limits: setting.amended ?? [] }
    const command = { type: 'amend', commandId, conditions } as const
    const decision = decideGrant<'amend'>(grant, command, now, { ...grantPolicy, ...lifetimes })
    return attemptOf(decision)
  }

  function paying(
    { id: commandId, name, now }: LimitOp & { readonly name: Name },
    grant: Grant,
    found: OutgoingPayment | undefined,
    budgetOf: (id: string) => Budget | undefined,
  ): Attempt {
    const client = 'https://shop.example'
    const earlier = repeated(found, { client, requestHash: name })
    if (earlier !== undefined) return { changes: [], result: earlier }
    const { conditions } = grant
    const account = { namespace, walletAddress: wallet, accountHash: 'hash' }
    const limits = [
      ...ownerLimits(conditions?.limits, { namespace, grantId: grant.id }, now),
      ...accountLimits(setting.account, account, now),
    ].map((limit) => {
      const budget = limit.open && budgetOf(limit.open.budgetId)
      return budget ? { ...limit, budget } : limit
    })
    const ofItem = budgetOf(itemBudget(grant.id))
    const command = {
      commandId,
      id: name,
      namespace,
      grantId: grant.id,
      walletAddress: wallet,
      client,
      requestHash: name,
      receiver: 'https://shop.example/1',
      debitAmount: usd(paid),
      receiveAmount: usd(paid),
      lists: [],
      candidates: (grant.granted ?? []).map((item) =>
        ofItem ? { item, budget: ofItem } : { item },
      ),
      limits,
      ...(conditions && { conditions }),
    }
    const decision = decisions.createOutgoingPayment(command, now, paymentPolicy)
    if (!decision.ok) return { changes: [], result: decision }
    const guards = decisions.guards ? [{ key: grant.id, version: grant.version }] : []
    return { ...attemptOf(decision, [decision.budget, ...decision.limitBudgets]), guards }
  }

  function ending(
    { id: commandId, now }: LimitOp,
    payment: OutgoingPayment,
    budgetOf: (id: string) => Budget | undefined,
  ): Attempt {
    const command = { type: 'cancel', commandId } as const
    const decision = decideOutgoingPayment<'cancel'>(payment, command, now, paymentPolicy)
    if (!decision.ok || decision.outcome === 'unchanged') return attemptOf(decision)
    return attemptOf(decision, decisions.releasedBudgets(payment, decision.record, budgetOf))
  }

  /** Notes which budgets have to count a new payment, and checks that their limits permit it. */
  function committed(before: LimitWorld, after: LimitWorld, op: LimitOp) {
    if (op.type !== 'pay') return { facts: before.facts }
    const grant = grantIn(before, op.grant)
    const limits = limitsAt(setting, grant, op.now)
    const budgetIds = [itemBudget(op.grant), ...limits.map(({ budgetId }) => budgetId)]
    const facts = { ...before.facts, counting: { ...before.facts.counting, [op.name]: budgetIds } }
    const isExceeded = ({ limit: { debitAmount, payments = names.length }, budgetId }: Counted) => {
      const count = countedIn({ ...after, facts }, budgetId)
      return count > payments || count * paid > Number(debitAmount?.value ?? Infinity)
    }
    const broken = limits.some(isExceeded) ? 'no payment exceeds the window of a limit' : undefined
    return { facts, broken }
  }

  function broken(world: LimitWorld): string | undefined {
    const expected = names.flatMap((name) => world.facts.counting[name] ?? [])
    const budgets = Object.values(world.records).filter((record) => record && 'spent' in record)
    const ids = new Set([...expected, ...budgets.map((budget) => budget?.id ?? '')])
    return [...ids].every((id) => {
      const { spent, payments } = (world.records[id] ?? {}) as Partial<Budget>
      const count = countedIn(world, id)
      const isOfItem = Object.values(grants).some((grant) => itemBudget(grant) === id)
      const isCounted = payments === (isOfItem ? undefined : count)
      return Number(spent?.debitAmount?.value) === count * paid && isCounted
    })
      ? undefined
      : 'each limit counts each of its payments once, until it ends'
  }

  return {
    name: `limits of owners, ${setting.name}`,
    begins: [{ label: 'an account', world: { records, processes: [], facts: start, serial: 1 } }],
    starts,
    target: (op) => (op.type === 'amend' ? 'a' : op.name),
    retriesDiffer: () => false,
    nextLoad,
    decide,
    committed,
    answered: ({ facts }) => ({ facts }),
    broken,
    passed(world) {
      const facts = { ...world.facts, now: minuteMs }
      return world.facts.now === 0
        ? { label: 'the next minute begins', world: { ...world, facts } }
        : undefined
    },
    visible: ({ records, facts }) => [
      ...Object.keys(records)
        .toSorted()
        .map((key) => textOf(records[key] as Stored)),
      JSON.stringify(facts),
    ],
    textOf,
    operationText: ({ id, label, now }) => `${id} ${label} ${now}`,
  }
}

const start: LimitFacts = { now: 0, counting: {} }

function attemptOf(
  decision:
    | { readonly ok: true; readonly outcome: string; readonly record: Stored }
    | { readonly ok: false },
  also: readonly Stored[] = [],
): Attempt {
  if (!decision.ok || decision.outcome === 'unchanged') return { changes: [], result: decision }
  const changes = [decision.record, ...also].map((next) => ({ key: next.id, next }))
  return { changes, result: decision }
}

/** The number of payments that a budget has to count: those that have not ended, since none has sent anything. */
function countedIn(world: LimitWorld, budgetId: string): number {
  return names.filter(
    (name) =>
      world.facts.counting[name]?.includes(budgetId) && paymentIn(world, name)?.state === 'created',
  ).length
}

/** What decisions read of a record. */
const textOf = remembered((record: Stored): string => {
  const { id, version, commandId, state, createdAt, limitBudgetIds, spent, payments, conditions } =
    record as Partial<Grant & OutgoingPayment & Omit<Budget, keyof Stored>> & Stored
  const ofBudget = spent && [spent.debitAmount?.value, payments]
  const command = spent ? undefined : commandId
  return JSON.stringify([
    id,
    version,
    command,
    state,
    createdAt,
    limitBudgetIds,
    ofBudget,
    conditions,
  ])
})
