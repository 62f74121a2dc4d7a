import {
  createIncomingPayment,
  decideIncomingPayment,
  type IncomingPayment,
  type IncomingPaymentEvent,
  type IncomingPaymentPolicy,
  type Transfer,
  transferOf,
} from '../../src/core/incoming-payment.js'
import type { Instant } from '../../src/core/instant.js'
import { startOfTests } from '../support/clock.js'
import { deepFreeze } from '../support/frozen.js'
import { creation, usd } from '../support/incoming-payments.js'
import type { Attempt, Machine, Noted, Operation, Process, Records, World } from './processes.js'

const policy: IncomingPaymentPolicy = {
  expiryDefaultMs: 1,
  expiryMaxMs: 1,
  unpaidRetentionMs: 2,
  retentionMs: 3,
}

const expiresAt = startOfTests + policy.expiryDefaultMs

/** Every instant that a decision compares with, and one before and after each. */
const instants: readonly Instant[] = [
  startOfTests,
  expiresAt,
  expiresAt + 1,
  expiresAt + policy.unpaidRetentionMs,
  expiresAt + policy.retentionMs,
  expiresAt + policy.retentionMs + 86_400_000,
]

type PaymentId = 'payment' | 'other payment'
type TransferId = 'transfer a' | 'transfer b' | 'transfer c'

interface IncomingOp extends Operation {
  readonly type: 'receive' | 'complete' | 'expire' | 'remove'
  /** The record that the operation is about. */
  readonly on: PaymentId | TransferId
  readonly transfer?: TransferId
  readonly value?: string
}

interface IncomingFacts {
  /** The position in the instants. */
  readonly at: number
  /** What was counted, by the commits: which payment and how much. */
  readonly counted: Readonly<Partial<Record<TransferId, readonly [PaymentId, string]>>>
  /** The reports that were answered with "credit the account". */
  readonly credited: readonly TransferId[]
  /** The payments that somebody asked to complete. */
  readonly ended: readonly PaymentId[]
}

type IncomingWorld = World<IncomingOp, IncomingFacts>

/** What the library decides with. A test replaces a part to plant a mistake. */
export interface IncomingDecisions {
  readonly decide: typeof decideIncomingPayment
  /** Whether a report that changes nothing looks for its transfer again, as it must. */
  readonly confirms: boolean
}

export const incomingDecisions: IncomingDecisions = {
  decide: decideIncomingPayment,
  confirms: true,
}

export interface IncomingSetting {
  readonly name: string
  readonly incomingAmount?: bigint
  /** What arrives, and for which payments it may be reported. */
  readonly reports: readonly (readonly [TransferId, string, PaymentId])[]
}

/** Payments, the transfers that arrive for them, their client instance and the sweep. */
export function incomingMachine(
  setting: IncomingSetting,
  decisions: IncomingDecisions = incomingDecisions,
): Machine<IncomingOp, IncomingFacts> {
  const payments = [...new Set(setting.reports.map(([, , payment]) => payment))]
  return {
    name: `incoming payment (${setting.name})`,
    begins: [{ label: 'a client creates a payment', world: newWorld(setting, payments) }],
    starts: (world) => starts(setting, payments, world),
    target: ({ on }) => on,
    retriesDiffer: () => false,
    nextLoad: (op, seen) => nextLoad(decisions, op, seen),
    decide: (op, seen) => decide(decisions, op, seen),
    committed,
    answered,
    broken: (world) => broken(setting, payments, world),
    passed,
    visible: ({ records, facts }) => [
      ...payments.map((id) => records[id]),
      Object.entries(records).filter(([id]) => id.startsWith('transfer')),
      facts,
    ],
  }
}

function newWorld({ incomingAmount }: IncomingSetting, payments: readonly PaymentId[]) {
  const records: Record<string, IncomingPayment> = {}
  for (const id of payments) {
    const amount = incomingAmount === undefined ? {} : { incomingAmount: usd(incomingAmount) }
    const created = createIncomingPayment(creation({ id, ...amount }), startOfTests, policy)
    if (!created.ok) throw new Error(created.reason)
    records[id] = deepFreeze(created.record)
  }
  return {
    records,
    processes: [],
    serial: 1,
    facts: { at: 0, counted: {}, credited: [], ended: [] },
  }
}

function starts(
  { reports }: IncomingSetting,
  payments: readonly PaymentId[],
  { serial, facts, records }: IncomingWorld,
): IncomingOp[] {
  const now = instants[facts.at] ?? 0
  const base = { id: `c:${serial}`, now }
  const received = reports.map(([transfer, value, on]): IncomingOp => {
    const label = `report ${transfer} of ${value} for the ${on}`
    return { ...base, label, type: 'receive', on, transfer, value }
  })
  const ended = payments.flatMap((on): IncomingOp[] => [
    { ...base, label: `complete the ${on}`, type: 'complete', on },
    { ...base, label: `sweep the ${on}`, type: isClosed(records, on) ? 'remove' : 'expire', on },
  ])
  const removed = reports.map(([on]): IncomingOp => {
    return { ...base, label: `sweep ${on}`, type: 'remove', on }
  })
  // A sweep finds records that are due.
  const isDue = ({ type, on }: IncomingOp) =>
    type === 'receive' || type === 'complete' || (records[on]?.dueAt ?? Number.MAX_VALUE) <= now
  return [...received, ...ended, ...removed].filter(isDue)
}

function isClosed(records: Records, id: PaymentId): boolean {
  const payment = records[id] as IncomingPayment | undefined
  return payment?.completed === true || payment?.expiryRecorded === true
}

/**
 * A report loads the transfer and the payment, at different moments. If it changes nothing, it looks for the transfer
 * again. If somebody has counted it, it loads both again.
 */
function nextLoad(
  decisions: IncomingDecisions,
  op: IncomingOp,
  seen: Process<IncomingOp>['seen'],
): string | undefined {
  const { type, on, transfer } = op
  if (type !== 'receive' || transfer === undefined) return [on][seen.length]
  if (seen.length < 2) return [transfer, on][seen.length]
  const isConfirmed = !decisions.confirms || decide(decisions, op, seen).changes.length > 0
  if (seen.length === 2) return isConfirmed ? undefined : transfer
  return seen[2] === undefined ? undefined : [transfer, on][seen.length - 3]
}

const unknown = { ok: false, outcome: 'refused', refusal: 'payment_unknown', reason: '' } as const

function decide(
  decisions: IncomingDecisions,
  op: IncomingOp,
  seen: Process<IncomingOp>['seen'],
): Attempt {
  const { id: commandId, type, on, now } = op
  if (type === 'receive') return decideReceive(decisions, op, seen)
  const [record] = seen
  if (record === undefined) return { changes: [], result: unknown }
  if (type === 'remove') {
    const isOver = record.retainUntil !== undefined && record.retainUntil <= now
    const next = { ...record, version: record.version + 1 }
    return { changes: isOver ? [{ key: on, next, removes: true }] : [], result: { ok: true } }
  }
  const payment = record as IncomingPayment
  const decision = decisions.decide<'complete' | 'expire'>(payment, { type, commandId }, now)
  return {
    changes: decision.outcome === 'changed' ? [{ key: on, next: decision.record }] : [],
    result: decision,
  }
}

function decideReceive(
  decisions: IncomingDecisions,
  { id: commandId, on, transfer: transferId = 'transfer a', value = '0', now }: IncomingOp,
  seen: Process<IncomingOp>['seen'],
): Attempt {
  const [first, second] = seen.length > 3 ? seen.slice(3) : seen
  const counted = first as Transfer | undefined
  const payment = second as IncomingPayment | undefined
  if (payment === undefined) return { changes: [], result: unknown }
  const command = { type: 'receive', commandId, transferId, amount: usd(value), counted } as const
  const decision = decisions.decide<'receive'>(payment, command, now)
  const result = { ...decision, isOwn: counted?.commandId === commandId }
  if (decision.outcome !== 'changed') return { changes: [], result }
  const version = (counted?.version ?? 0) + 1
  return {
    changes: [
      { key: on, next: decision.record },
      { key: transferId, next: { ...transferOf(payment, command), version } },
    ],
    result,
  }
}

function committed(
  before: IncomingWorld,
  after: IncomingWorld,
  op: IncomingOp,
  attempt: Attempt,
): Noted<IncomingFacts> {
  const { type, on, now, transfer, value = '0' } = op
  const { facts } = after
  const was = before.records[on] as IncomingPayment
  if (type === 'remove') {
    return { facts, broken: brokenByRemoval(op, was) }
  }
  const is = attempt.changes[0]?.next as IncomingPayment
  const broken = brokenByCommit(op, was, is, attempt)
  if (type === 'receive' && transfer !== undefined) {
    const twice = facts.counted[transfer] && 'a transfer counts once'
    const counted = { ...facts.counted, [transfer]: [on, value] as const }
    return { facts: { ...facts, counted }, broken: twice ?? broken }
  }
  if (type === 'expire') {
    const early = now <= expiresAt ? 'a payment expires after its expiry' : undefined
    return { facts, broken: early ?? broken }
  }
  return { facts: { ...facts, ended: [...facts.ended, on as PaymentId].sort() }, broken }
}

function brokenByRemoval({ on, now }: IncomingOp, was: IncomingPayment): string | undefined {
  const kept = on.startsWith('transfer')
    ? policy.retentionMs + 86_400_000
    : was.received === '0'
      ? policy.unpaidRetentionMs
      : policy.retentionMs
  return now < expiresAt + kept ? 'a record is kept for its retention' : undefined
}

const eventsOf = {
  receive: ['incoming-payment.received'],
  complete: ['incoming-payment.completed'],
  expire: ['incoming-payment.expired'],
  remove: [],
} as const

function brokenByCommit(
  { type, now, value = '0' }: IncomingOp,
  was: IncomingPayment,
  is: IncomingPayment,
  { result }: Attempt,
): string | undefined {
  if (was.completed) return 'a completed payment never changes'
  const arrived = type === 'receive' ? BigInt(value) : 0n
  if (BigInt(is.received) !== BigInt(was.received) + arrived)
    return 'only a transfer adds to the total'
  if (type === 'receive' && now > expiresAt) return 'an expired payment receives nothing'
  if (type === 'expire' && is.completed) return 'an expiry completes nothing'
  const { events } = result as unknown as { readonly events: readonly IncomingPaymentEvent[] }
  const wanted: string[] = [...eventsOf[type]]
  if (type === 'receive' && is.completed) wanted.push('incoming-payment.completed')
  const told = events.map((event) => event.type)
  const total = events.every(({ receivedAmount }) => receivedAmount.value === is.received)
  return told.join() === wanted.join() && total ? undefined : 'the events say what happened'
}

interface Told {
  readonly ok: boolean
  readonly outcome: string
  readonly refusal?: string
  readonly isOwn?: boolean
}

function answered(world: IncomingWorld, op: IncomingOp, { result }: Attempt): Noted<IncomingFacts> {
  const { facts, records } = world
  const { type, on, transfer, value, now } = op
  const { ok, outcome, refusal, isOwn } = result as Told
  const payment = records[on] as IncomingPayment | undefined
  if (type === 'complete' && ok && payment?.completed === false) {
    return { facts, broken: 'a completion that is answered completes the payment' }
  }
  if (type !== 'receive' || transfer === undefined) return { facts }
  if (!ok) {
    // A payment whose expiry is recorded is over, also for a report that began before.
    const isOver = payment?.expiryRecorded === true || now > expiresAt
    const early = refusal === 'payment_expired' && !isOver
    const open = refusal === 'payment_completed' && payment?.completed === false
    if (early || open) return { facts, broken: 'a payment that accepts funds refuses none' }
    const was = records[transfer] === undefined ? undefined : facts.counted[transfer]
    const forgot = payment !== undefined && was?.[0] === on && was[1] === value
    return { facts, broken: forgot ? 'a report that is refused was not counted' : undefined }
  }
  const counted = facts.counted[transfer]
  if (counted?.[0] !== on || counted[1] !== value) {
    return { facts, broken: 'a report that is accepted was counted' }
  }
  if (outcome !== 'changed' && !isOwn) return { facts }
  return facts.credited.includes(transfer)
    ? { facts, broken: 'a transfer is credited once' }
    : { facts: { ...facts, credited: [...facts.credited, transfer].sort() } }
}

function broken(
  { incomingAmount }: IncomingSetting,
  payments: readonly PaymentId[],
  { records, facts }: IncomingWorld,
): string | undefined {
  for (const id of payments) {
    const payment = records[id] as IncomingPayment | undefined
    if (payment === undefined) continue
    const counted = Object.values(facts.counted).filter(([of]) => of === id)
    const total = counted.reduce((sum, [, value]) => sum + BigInt(value), 0n)
    if (payment.received !== total.toString())
      return 'the total is the sum of the distinct transfers'
    const stored = Object.values(records).filter(
      (record) => (record as Transfer | undefined)?.paymentId === id,
    )
    const mustStay = (instants[facts.at] ?? 0) < (payment.retainUntil ?? 0)
    if (mustStay && stored.length !== counted.length)
      return 'a transfer is kept longer than its payment'
    const whole = incomingAmount !== undefined && total >= incomingAmount
    if (payment.completed !== (whole || facts.ended.includes(id))) {
      return 'a payment is complete with its amount, or if somebody completes it'
    }
  }
  return undefined
}

/** The next instant comes, unless an operation that began before the last one is still running. */
function passed(world: IncomingWorld) {
  const { facts, processes } = world
  const now = instants[facts.at] ?? 0
  if (facts.at + 1 >= instants.length || processes.some(({ op }) => op.now < now)) return undefined
  return { label: 'time passes', world: { ...world, facts: { ...facts, at: facts.at + 1 } } }
}
