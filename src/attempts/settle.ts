import {
  concludeFrom,
  decideAttempt,
  type Evidence,
  type FoundById,
  type Undecided,
} from '../core/attempts/evidence.js'
import { recordReply, reserveAttempt, stopSettlement } from '../core/attempts/reply.js'
import { isOpen, openSettlement, type Settlement } from '../core/attempts/settlement.js'
import {
  type AttemptsPolicy,
  nextAttemptAt,
  nextQuestionAt,
  nextStep,
} from '../core/attempts/step.js'
import type { Instant } from '../core/instant.js'
import type { Random } from '../ports/host.js'
import { newUniqueText } from '../protocol/credential.js'
import { InvalidInputError } from '../util/invalid-input.js'
import type { Book, SettlementRecord } from './book.js'
import type { Calls } from './calls.js'
import type { AttemptsOptions, SettleRequest } from './options.js'
import { again, type Settled, settledOf } from './views.js'

export interface Driver<Request extends SettleRequest>
  extends Pick<AttemptsOptions<Request>, 'evidence' | 'notAfter'> {
  readonly book: Book
  readonly calls: Calls<Request>
  readonly random: Random
  readonly now: () => Instant
  readonly marginMs: number
  /** Absent if references cannot be closed. */
  readonly closeAfterMs: number | undefined
  readonly policyOf: (amount: bigint) => AttemptsPolicy
}

/**
 * Carries out a settlement step by step, until it has ended or something must be waited for. It sends at most once, so
 * that a call takes a limited time, and the other side is not sent a dozen orders in a row.
 */
export async function settle<Request extends SettleRequest>(
  driver: Driver<Request>,
  request: Request,
): Promise<Settled> {
  const { book, now } = driver
  const { id, amount, otherSide } = request
  const policy = driver.policyOf(amount)
  const opened = openSettlement({
    amount,
    now: now(),
    ...(otherSide !== undefined && { otherSide }),
  })
  let record = await book.open(id, opened, now())
  if (BigInt(record.settlement.amount) !== amount) {
    throw new InvalidInputError('request.amount', 'must be that of the first call')
  }
  const stop = (reason: string) =>
    book.change(id, (settlement) => stopSettlement(settlement, reason, now()), now())

  let hasSent = false
  for (;;) {
    const step = nextStep(record.settlement, policy, now())
    if (step.do === 'end') return settledOf(record.settlement)
    if (step.do === 'stop') {
      record = await stop(step.reason)
      continue
    }
    if (step.do === 'send' && hasSent) {
      return again(record.settlement, nextAttemptAt(record.settlement, now()), 'not_arrived')
    }
    const needsBase = driver.evidence === 'sum' && record.settlement.base === undefined
    const done =
      step.do === 'ask'
        ? await look(driver, request, record)
        : needsBase
          ? await readBase(driver, request, record)
          : await attempt(driver, request, record, step.amount)
    record = done.record
    hasSent ||= step.do === 'send' && !needsBase
    if (done.wait === undefined) continue
    const { why, until, at } = done.wait
    const next = at ?? nextQuestionAt(record.settlement, until, policy, now())
    if (next !== undefined) {
      return again(record.settlement, next, why)
    }
    const isOpenStill = record.settlement.attempts.some(isOpen)
    record = await stop(isOpenStill ? 'it was not decided in time' : 'it could not be sent in time')
    return settledOf(record.settlement)
  }
}

/** A step that was done. With `wait`, there is nothing else to do now. */
interface Done {
  readonly record: SettlementRecord
  readonly wait?: {
    readonly why: Undecided | 'refused'
    /** When to go on, if the other side has said it. */
    readonly at?: Instant
    /** From when on an answer decides. */
    readonly until?: Instant | undefined
  }
}

/** Reads the sum before the first attempt. */
async function readBase<Request extends SettleRequest>(
  { book, calls, now }: Driver<Request>,
  request: Request,
  record: SettlementRecord,
): Promise<Done> {
  const sum = await calls.ask({ request, references: [], openMs: 0 })
  if (sum?.by !== 'sum') return { record, wait: { why: 'unreadable' } }
  const base = `${sum.received}`
  const change = (settlement: Settlement, version: number) =>
    version === record.version ? { ...settlement, base } : undefined
  return { record: await book.change(request.id, change, now()) }
}

/** Makes one attempt: reserves it, sends the request, and records the reply. */
async function attempt<Request extends SettleRequest>(
  { book, calls, random, now, notAfter, policyOf }: Driver<Request>,
  request: Request,
  record: SettlementRecord,
  amount: bigint,
): Promise<Done> {
  const at = now()
  const last = notAfter?.(at)
  const reference = newUniqueText(random)
  const order = { reference, amount, ...(last !== undefined && { notAfter: last }) }
  const { trustMax } = policyOf(request.amount)
  const reserve = (settlement: Settlement, version: number) => {
    if (version !== record.version) return undefined
    const reserved = reserveAttempt(settlement, order, trustMax, at)
    return reserved.ok ? reserved.record : undefined
  }
  const reserved = await book.change(request.id, reserve, at)
  const isReserved = reserved.settlement.attempts.some((each) => each.reference === reference)
  if (!isReserved) return { record: reserved }

  const reply = await calls.send({ request, ...order })
  const replied = (settlement: Settlement) => {
    const decision = recordReply(settlement, reference, reply, now())
    return decision.ok ? decision.record : undefined
  }
  const next = await book.change(request.id, replied, now())
  const retryAt = reply.outcome === 'refused' ? (reply.retryAt ?? 0) : 0
  return retryAt > now()
    ? { record: next, wait: { why: 'refused', at: retryAt } }
    : { record: next }
}

/** Asks about the open attempts, and closes old ones. */
async function look<Request extends SettleRequest>(
  { book, calls, marginMs, closeAfterMs, now }: Driver<Request>,
  request: Request,
  record: SettlementRecord,
): Promise<Done> {
  const { settlement, version } = record
  const open = settlement.attempts.filter(isOpen)
  const references = open.map(({ reference }) => reference)
  const oldest = Math.min(...open.map(({ reservedAt }) => reservedAt))
  const openMs = Math.max(0, now() - oldest)
  const evidence = await calls.ask({ request, references, openMs })
  const conclusion = concludeFrom(settlement, evidence, marginMs, now())
  let next = conclusion.settlement
  const arrivals = arrivalsIn(evidence)
  for (const { reference, reservedAt } of next.attempts.filter(isOpen)) {
    if (closeAfterMs === undefined || now() < reservedAt + closeAfterMs) continue
    const closed = await calls.close({ request, reference })
    if (closed === 'unknown') continue
    if (closed === 'arrived') arrivals[reference] = { found: 'arrived' }
    const decided = decideAttempt(next, reference, closed, { by: 'close' }, now())
    if (decided.ok) next = decided.record
  }
  if (next === settlement) {
    const { undecided = 'may_take_effect', until } = conclusion
    return { record, wait: { why: undecided, until } }
  }
  // An answer counts only for the settlement that was asked about, but what has arrived has arrived: an operator may
  // have decided meanwhile that it never does.
  const arrived = { by: 'id', askedAt: now(), attempts: arrivals } as const
  const change = (latest: Settlement, current: number) =>
    current === version ? next : concludeFrom(latest, arrived, marginMs, now()).settlement
  return { record: await book.change(request.id, change, now()) }
}

/** What an answer says to have arrived, by reference. */
function arrivalsIn(evidence: Evidence | undefined): Record<string, FoundById> {
  if (evidence?.by !== 'id') return {}
  const each = Object.entries(evidence.attempts)
  return Object.fromEntries(each.filter(([, { found }]) => found === 'arrived'))
}
