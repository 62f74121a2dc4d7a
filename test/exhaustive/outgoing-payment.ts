import type { GrantedItem } from '../../src/core/access.js'
import { grantedItems } from '../../src/core/access.js'
import { type Budget, budgetId, release } from '../../src/core/budget.js'
import { unchanged } from '../../src/core/decision.js'
import type { Instant } from '../../src/core/instant.js'
import { allowanceAt } from '../../src/core/limits.js'
import { createOutgoingPayment, repeated } from '../../src/core/outgoing-payment/create.js'
import { heldBy, type OutgoingPayment } from '../../src/core/outgoing-payment/record.js'
import {
  decideOutgoingPayment,
  type OutgoingPaymentCommand,
  type OutgoingPaymentRefusals,
} from '../../src/core/outgoing-payment.js'
import type { Stored } from '../../src/core/stored.js'
import { startOfTests } from '../support/clock.js'
import { deepFreeze } from '../support/frozen.js'
import { alice } from '../support/grants.js'
import { usd } from '../support/incoming-payments.js'
import type { Attempt, Change, Machine, Noted, Operation, Process, World } from './processes.js'

const tick = 1_000

const policy = { holdMs: tick, retentionMs: 100 * tick }

/** The hold of a payment ends at the second instant; so does the first window of an interval. */
const instants: readonly Instant[] = [0, 1, 2].map((ticks) => startOfTests + ticks * tick)

type PaymentId = 'payment 1' | 'payment 2' | 'payment 3'

type HostCommand = OutgoingPaymentCommand['type']

interface OutgoingOp extends Operation {
  readonly type: 'create' | 'revoke' | HostCommand
  readonly on: PaymentId
  /** The debit amount of a creation, or the total sent of a report. */
  readonly value?: string
  readonly final?: true
  /** The client instance and the content of the request. */
  readonly request?: string
  /** Whether the same request had created its payment before this one began. */
  readonly known?: boolean
}

interface OutgoingFacts {
  readonly at: number
  readonly revoked: boolean
  /** The payments that a process was told to send. */
  readonly claimed: readonly PaymentId[]
}

type OutgoingWorld = World<OutgoingOp, OutgoingFacts>

/** What the library decides with. A test replaces a part to plant a mistake. */
export interface OutgoingDecisions {
  readonly create: typeof createOutgoingPayment
  readonly decide: (
    ...args: Parameters<typeof decideOutgoingPayment<keyof OutgoingPaymentRefusals>>
  ) => ReturnType<typeof decideOutgoingPayment<keyof OutgoingPaymentRefusals>>
  readonly release: typeof release
  /** Whether a creation guards the grant, as it must. */
  readonly guards: boolean
}

export const outgoingDecisions: OutgoingDecisions = {
  create: createOutgoingPayment,
  decide: decideOutgoingPayment,
  release,
  guards: true,
}

export interface OutgoingSetting {
  readonly name: string
  readonly limit: bigint
  /** The payments that clients create, and their debit amounts. */
  readonly payments: readonly (readonly [PaymentId, string])[]
  /** The number of windows of one tick; without it, the limit holds for the life of the grant. */
  readonly windows?: number
}

/** Payments under one limit, the clients that create them, the host that sends them, and the owner who revokes. */
export function outgoingMachine(
  setting: OutgoingSetting,
  decisions: OutgoingDecisions = outgoingDecisions,
): Machine<OutgoingOp, OutgoingFacts> {
  const item = itemOf(setting)
  const budgets = [...new Set(instants.flatMap((now) => budgetAt(item, now) ?? []))]
  const records = { grant: deepFreeze({ id: 'grant', version: 1, commandId: 'c:0' }) }
  const facts = { at: 0, revoked: false, claimed: [] }
  return {
    name: `outgoing payment (${setting.name})`,
    begins: [
      { label: 'a grant with a limit', world: { records, processes: [], serial: 1, facts } },
    ],
    starts: (world) => starts(setting, world),
    target: ({ type, on }) => (type === 'revoke' ? 'grant' : on),
    retriesDiffer: ({ type }) => type === 'create',
    nextLoad: (op, seen, again) => nextLoad(item, op, seen, again),
    decide: (op, seen, again) => decide({ item, decisions }, op, seen, again),
    committed: (before, after, op, attempt) => committed(before, after, op, attempt),
    answered,
    broken: (world) => broken(setting, budgets, world),
    passed,
    visible: ({ records, facts }) => [
      ...setting.payments.map(([id]) => records[id]),
      ...budgets.map((id) => records[id]),
      facts,
    ],
  }
}

function itemOf({ limit, windows }: OutgoingSetting): GrantedItem {
  const start = new Date(startOfTests).toISOString()
  const interval = windows === undefined ? {} : { interval: `R${windows}/${start}/PT1S` }
  const limits = { debitAmount: usd(limit), ...interval }
  const item = { type: 'outgoing-payment', actions: ['create'], identifier: alice, limits } as const
  return deepFreeze(grantedItems([item], 'occurrences')[0] as GrantedItem)
}

const charge = { namespace: '', grantId: 'grant' }

/** The budget that counts what is created now; `undefined` outside all windows. */
function budgetAt(item: GrantedItem, now: Instant): string | undefined {
  const allowance = allowanceAt(item, now)
  return allowance.ok ? budgetId(charge, item, allowance.value) : undefined
}

function starts(
  { payments }: OutgoingSetting,
  { serial, facts, records }: OutgoingWorld,
): OutgoingOp[] {
  const now = instants[facts.at] ?? 0
  const base = { id: `c:${serial}`, now }
  const created = payments.flatMap(([on, value]): OutgoingOp[] => {
    if (facts.revoked) return []
    const request = `pay ${value}`
    const known = records[on] !== undefined
    const create = { ...base, type: 'create' as const, on, value }
    return [
      { ...create, request, known, label: `create ${on} of ${value}` },
      ...(on === 'payment 1'
        ? [{ ...create, request: 'another', label: `create ${on} by another request` }]
        : []),
    ]
  })
  const sent = payments.flatMap(([on, value]): OutgoingOp[] => {
    const payment = records[on] as OutgoingPayment | undefined
    if (payment === undefined) return []
    const isDue = (payment.dueAt ?? Number.MAX_VALUE) <= now
    const of = { ...base, on }
    const totals = [...new Set(['1', value])]
    return [
      { ...of, type: 'begin', label: `begin ${on}` },
      { ...of, type: 'cancel', label: `cancel ${on}` },
      ...(isDue ? [{ ...of, type: 'lapse' as const, label: `sweep ${on}` }] : []),
      { ...of, type: 'fail', label: `fail ${on}` },
      ...totals.map((total) => {
        return {
          ...of,
          type: 'report-sent' as const,
          value: total,
          label: `report ${total} of ${on}`,
        }
      }),
      ...(value === '1'
        ? []
        : [
            {
              ...of,
              type: 'report-sent' as const,
              value: '1',
              final: true as const,
              label: `report 1 of ${on} as final`,
            },
          ]),
    ]
  })
  const on = 'payment 1' as const
  const revoke = { ...base, type: 'revoke' as const, on, label: 'revoke the grant' }
  return [...created, ...sent, ...(facts.revoked ? [] : [revoke])]
}

/**
 * The loads of the services. A creation has authenticated with a live grant and no known payment. Once refused or
 * retried, it looks last whether its payment exists, because the budget may have been spent on it.
 */
function nextLoad(
  item: GrantedItem,
  { type, on, now }: OutgoingOp,
  seen: Process<OutgoingOp>['seen'],
  again: boolean,
): string | undefined {
  const budget = budgetAt(item, now) ?? 'no budget'
  switch (type) {
    case 'revoke':
      return ['grant'][seen.length]
    case 'create':
      return (again ? ['grant', budget, on] : [on, 'grant', budget, on])[seen.length]
    case 'begin':
      return [on][seen.length]
    default: {
      const payment = seen[0] as OutgoingPayment | undefined
      return seen.length === 1 ? payment?.budgetId : [on][seen.length]
    }
  }
}

interface Deps {
  readonly item: GrantedItem
  readonly decisions: OutgoingDecisions
}

const refusedAs = (refusal: string) => ({ ok: false, outcome: 'refused', refusal }) as const

function decide(
  deps: Deps,
  op: OutgoingOp,
  seen: Process<OutgoingOp>['seen'],
  again: boolean,
): Attempt {
  const { type, id: commandId } = op
  if (type === 'create') return decideCreation(deps, op, seen, again)
  if (type === 'revoke') {
    const grant = seen[0] as Stored & { readonly over?: true }
    const next = { ...grant, version: grant.version + 1, commandId, over: true }
    return { changes: grant.over ? [] : [{ key: 'grant', next }], result: { ok: true } }
  }
  const [payment, budget] = seen as [OutgoingPayment?, Budget?]
  if (payment === undefined) return { changes: [], result: refusedAs('payment_unknown') }
  const decision = deps.decisions.decide(payment, commandOf(op), op.now, policy)
  const result = { ...decision, isOwn: payment.commandId === commandId }
  if (decision.outcome !== 'changed') return { changes: [], result }
  const { record } = decision
  const changes: Change[] = [{ key: payment.id, next: record }]
  const next = budget && deps.decisions.release(budget, heldBy(payment), heldBy(record), commandId)
  if (next !== undefined) changes.push({ key: next.id, next })
  return { changes, result }
}

function commandOf({
  id: commandId,
  type,
  value = '0',
  final,
}: OutgoingOp): OutgoingPaymentCommand {
  const totals = { sentAmount: usd(value), deliveredAmount: usd(value) }
  if (type === 'report-sent') return { type, commandId, ...totals, ...(final && { final }) }
  return { type, commandId } as OutgoingPaymentCommand
}

function decideCreation(
  { item, decisions }: Deps,
  { id: commandId, on, value = '0', request: requestHash = '', now }: OutgoingOp,
  seen: Process<OutgoingOp>['seen'],
  again: boolean,
): Attempt {
  const repeat = { client: 'shop', requestHash }
  const [grant, budget, payment] = again ? seen : seen.slice(1)
  const earlier = repeated(
    (again ? payment : (seen[0] ?? payment)) as OutgoingPayment | undefined,
    repeat,
  )
  if (earlier !== undefined) {
    const result = earlier.ok ? unchanged(earlier.value) : earlier
    return { changes: [], result }
  }
  if (grant === undefined || 'over' in grant) {
    return { changes: [], result: refusedAs('token_unknown') }
  }
  const candidates = [{ item, ...(budget && { budget: budget as Budget }) }]
  const amounts = { debitAmount: usd(value), receiveAmount: usd(value) }
  const decision = decisions.create(
    {
      ...{ commandId, id: on, ...charge, walletAddress: alice, ...repeat },
      ...{ receiver: 'https://bank.example/payment', ...amounts, lists: [], candidates },
    },
    now,
    policy,
  )
  if (!decision.ok) return { changes: [], result: decision }
  const changes = [
    { key: on, next: decision.record },
    { key: decision.budget.id, next: decision.budget },
  ]
  const guards = decisions.guards ? [{ key: 'grant', version: grant.version }] : []
  return { changes, guards, result: decision }
}

const order = { created: 0, begun: 1, completed: 2, failed: 2 } as const

function committed(
  before: OutgoingWorld,
  after: OutgoingWorld,
  { type, on, now }: OutgoingOp,
  { changes }: Attempt,
): Noted<OutgoingFacts> {
  const { facts } = after
  if (type === 'revoke') return { facts: { ...facts, revoked: true } }
  const was = before.records[on] as OutgoingPayment | undefined
  const is = changes[0]?.next as OutgoingPayment
  if (type === 'create') {
    const broken = facts.revoked ? 'a revoked grant pays nothing' : undefined
    return { facts, broken: was === undefined ? broken : 'a payment is created once' }
  }
  return { facts, broken: was && brokenByMove(type, was, is, now) }
}

function brokenByMove(
  type: HostCommand,
  was: OutgoingPayment,
  is: OutgoingPayment,
  now: Instant,
): string | undefined {
  if (order[was.state] === 2) return 'a payment that has ended never changes'
  if (order[is.state] < order[was.state]) return 'the state of a payment moves only forward'
  if (BigInt(is.sent) < BigInt(was.sent) || BigInt(is.sent) > BigInt(was.debitAmount.value)) {
    return 'what was sent never falls, and never exceeds the amount'
  }
  if (type === 'begin' && now >= was.holdUntil) return 'a payment begins within its hold'
  if (type === 'lapse' && (was.state !== 'created' || now < was.holdUntil)) {
    return 'only a payment that was not begun in time lapses'
  }
  return type === 'cancel' && was.state !== 'created'
    ? 'a payment that was begun is not cancelled'
    : undefined
}

interface Told {
  readonly ok: boolean
  readonly outcome: string
  readonly refusal?: string
  readonly isOwn?: boolean
}

function answered(world: OutgoingWorld, op: OutgoingOp, { result }: Attempt): Noted<OutgoingFacts> {
  const { facts, records } = world
  const { type, on, known, request } = op
  const { ok } = result as Told
  const payment = records[on] as OutgoingPayment | undefined
  if (type === 'create') {
    if (ok && payment?.requestHash !== request) {
      return { facts, broken: 'a request is answered with its own payment' }
    }
    const forgot = !ok && known === true && payment?.requestHash === request
    return { facts, broken: forgot ? 'a repeated request gets the same payment' : undefined }
  }
  if (type !== 'begin' || !ok) return { facts }
  return facts.claimed.includes(on)
    ? { facts, broken: 'one process is told to send a payment' }
    : { facts: { ...facts, claimed: [...facts.claimed, on].sort() } }
}

function broken(
  { limit, payments }: OutgoingSetting,
  budgets: readonly string[],
  { records }: OutgoingWorld,
): string | undefined {
  for (const id of budgets) {
    const counted = payments.flatMap(([on]) => {
      const payment = records[on] as OutgoingPayment | undefined
      return payment?.budgetId === id ? [payment] : []
    })
    const held = counted.reduce((sum, payment) => sum + holds(payment), 0n)
    if (held > limit) return 'the payments of a window never exceed the limit'
    const budget = records[id] as Budget | undefined
    const spent = [
      budget?.spent.debitAmount?.value ?? '0',
      budget?.spent.receiveAmount?.value ?? '0',
    ]
    if (spent.some((value) => BigInt(value) !== held)) {
      return 'a budget is the sum of what its payments hold'
    }
  }
  return undefined
}

/** What a payment holds of the limit: all of it until it ends, and then what was sent. */
function holds({ state, sent, debitAmount }: OutgoingPayment): bigint {
  return BigInt(order[state] === 2 ? sent : debitAmount.value)
}

/** The next instant comes, unless an operation that began before the last one is still running. */
function passed(world: OutgoingWorld) {
  const { facts, processes } = world
  const now = instants[facts.at] ?? 0
  if (facts.at + 1 >= instants.length || processes.some(({ op }) => op.now < now)) return undefined
  return { label: 'time passes', world: { ...world, facts: { ...facts, at: facts.at + 1 } } }
}
