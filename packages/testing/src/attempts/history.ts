import type { Arbitrary, FastCheck } from '../spending/values.js'

/** What the link does with one request of the host. Requests that only read are not affected. */
export type Fate =
  | 'arrives'
  | 'request lost'
  | 'reply lost'
  /** Something in between answers with a status, and has forwarded the request or not. */
  | 'answered in between, forwarded'
  | 'answered in between, not forwarded'
  /** There is no reply, and the request arrives `lateMs` later. */
  | 'late'
  /** It arrives, and again `lateMs` later. */
  | 'twice'
  | 'sender killed before it left'
  | 'sender killed before the reply'

/** The fate of one request. */
export interface RequestFate {
  readonly fate: Fate
  readonly status?: number
  readonly lateMs?: number
}

/** A history of one settlement. All that fails heals in the end. */
export interface AttemptsHistory {
  /** The fates of the first requests, in their order. Later ones arrive. */
  readonly fates: readonly RequestFate[]
  /** How many reads fail after the first one. */
  readonly unreadable: number
  /** After how many writes to the store the process is killed: at that write, before or after it takes effect. */
  readonly kills: readonly { readonly write: number; readonly after: boolean }[]
  /** How much earlier (negative) or later than asked the host calls again, for each call. Then on time. */
  readonly lagsMs: readonly number[]
  /** What another payer pays to the same receiver, after which call. */
  readonly other?: { readonly afterCall: number; readonly amount: bigint }
  /** How far the clock of the other side is behind. */
  readonly behindMs: number
  /** The receiver withholds all replies, and denies what it has received, for this many requests. */
  readonly denied: number
}

/** A history in which nothing fails. */
export const healthy: AttemptsHistory = {
  fates: [],
  unreadable: 0,
  kills: [],
  lagsMs: [],
  behindMs: 0,
  denied: 0,
}

/** Never readable. */
export const forEver = Number.MAX_SAFE_INTEGER

/** Generates histories. */
export function histories(fc: FastCheck, mayDeny: boolean): Arbitrary<AttemptsHistory> {
  const faults: readonly Fate[] = [
    'request lost',
    'reply lost',
    'answered in between, forwarded',
    'answered in between, not forwarded',
    'late',
    'late',
    'twice',
    'sender killed before it left',
    'sender killed before the reply',
  ]
  const fate = fc.record({
    fate: fc.constantFrom<Fate>(...faults, 'arrives', 'arrives'),
    status: fc.constantFrom(400, 401, 404, 408, 409, 422, 429, 500, 502, 503, 504),
    lateMs: fc.constantFrom(500, 15_000, 55_000, 62_000, 300_000),
  })
  const other = fc.record({
    afterCall: fc.nat(4),
    amount: fc.constantFrom(1n, 250n, 1_000n, 1_500n),
  })
  return fc.record({
    fates: fc.array(fate, { maxLength: 5 }),
    unreadable: fc.constantFrom(0, 0, 0, 0, 1, 2, 3, forEver),
    kills: fc.array(fc.record({ write: fc.nat(8), after: fc.boolean() }), { maxLength: 2 }),
    lagsMs: fc.array(fc.constantFrom(-60_000, -5_000, 0, 0, 1, 20_000, 120_000), {
      minLength: 1,
      maxLength: 8,
    }),
    other: fc.option(other, { nil: undefined }),
    behindMs: fc.constantFrom(0, 0, 4_000, 9_000),
    denied: mayDeny ? fc.constantFrom(0, 0, 0, 0, 0, 0, 0, 1, 3, forEver) : fc.constant(0),
  }) as Arbitrary<AttemptsHistory>
}
