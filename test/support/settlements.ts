import {
  type Attempt,
  concludeFrom,
  type NewAttempt,
  openSettlement,
  type Reply,
  recordReply,
  reserveAttempt,
  type Settlement,
} from '../../src/entry-attempts.js'
import { startOfTests } from './clock.js'

export const start = startOfTests
/** Requests are valid for 20 s. */
export const validMs = 20_000
export const marginMs = 10_000
/** From then on after its request, an answer decides that an order never arrives. */
export const overMs = validMs + marginMs
export const lost: Reply = { outcome: 'unknown', reason: 'no reply' }
export const proven: Reply = { outcome: 'proven', proof: 'receipt' }

/** A settlement of 1,000, whose receiver had 500 before. */
export function opened(base?: bigint): Settlement {
  const settlement = openSettlement({ amount: 1_000n, now: start, otherSide: 'bank' })
  return base === undefined ? settlement : { ...settlement, base: `${base}` }
}

/** Reserves attempts of 250 with these references, and records the reply to each: `undefined` for none. */
export function attempted(
  settlement: Settlement,
  replies: Readonly<Record<string, Reply | undefined>>,
  { at = start, amount = 250n, isEndless = false } = {},
): Settlement {
  let next = settlement
  for (const [reference, reply] of Object.entries(replies)) {
    const attempt: NewAttempt = { reference, amount, ...(!isEndless && { notAfter: at + validMs }) }
    next = recordOf(reserveAttempt(next, attempt, 1_000n, at))
    if (reply !== undefined) next = recordOf(recordReply(next, reference, reply, at))
  }
  return next
}

/** Concludes from a sum, asked at this many milliseconds after the start. */
export function afterSum(settlement: Settlement, received: bigint, askedMs: number) {
  const askedAt = start + askedMs
  return concludeFrom(settlement, { by: 'sum', received, askedAt }, marginMs, askedAt)
}

export function recordOf(
  decision: { ok: true; record: Settlement } | { ok: false; reason: string },
): Settlement {
  if (!decision.ok) throw new Error(decision.reason)
  return decision.record
}

export function outcomeIn(settlement: Settlement, reference: string): Attempt['outcome'] {
  const attempt = settlement.attempts.find((each) => each.reference === reference)
  if (attempt === undefined) throw new Error(`no attempt ${reference}`)
  return attempt.outcome
}
