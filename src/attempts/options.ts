import * as v from 'valibot'
import type { Evidence, FoundById } from '../core/attempts/evidence.js'
import type { Reply } from '../core/attempts/reply.js'
import type { Instant } from '../core/instant.js'
import type { Clock, Random } from '../ports/host.js'
import type { Store } from '../ports/store.js'
import { clockOption, randomOption } from '../protocol/host-options.js'
import { printError } from '../util/errors.js'
import {
  callback,
  checked,
  integerFrom,
  type Members,
  oneOf,
  optionsOf,
  port,
  positiveInteger,
  textOfAtMost,
} from '../util/input.js'
import type { InTransaction } from './book.js'

/** What is to be settled. Give `send` and `ask` what they need in further members: they get this object. */
export interface SettleRequest {
  /** Such as the id of a payment: 1 to 100 of `A-Z a-z 0-9 . _ -`. One settlement has one id. */
  readonly id: string
  /** What is to arrive, in the unit that the evidence counts. Positive; the same in each call. */
  readonly amount: bigint
  /** Who the money moves at, for the list of doubts, such as the `receiver` of a payment: at most 2,048 characters. */
  readonly otherSide?: string
}

/** One request that the host is to make at the other side. */
export interface Order<Request extends SettleRequest> {
  readonly request: Request
  /** New for each attempt: the other side's key for repeats, or the id by which it is asked. */
  readonly reference: string
  /** What is to arrive by this attempt: all of the settlement, or what is left of it. */
  readonly amount: bigint
  /** Put it into the request: the other side may not carry it out later. Absent without the option `notAfter`. */
  readonly notAfter?: Instant
  /** Aborted when the driver no longer waits for the reply. */
  readonly signal: AbortSignal
}

/** A question about open attempts. */
export interface Question<Request extends SettleRequest> {
  readonly request: Request
  /** The references of the open attempts. Empty for the sum before the first attempt. */
  readonly references: readonly string[]
  /** How long ago the oldest of them was reserved, in milliseconds. 0 before the first attempt. */
  readonly openMs: number
  readonly signal: AbortSignal
}

/** The answer to a question, as the host's code has read it. */
export type Answer =
  | { readonly by: 'id'; readonly attempts: Readonly<Record<string, FoundById>> }
  | {
      readonly by: 'sum'
      /** What the receiver has received in total, from everybody, in smallest units of the asset that arrives. */
      readonly received: bigint
      /** When the sum was read, if that was before the question, such as at a replica or a cache. */
      readonly askedAt?: Instant
    }

/** What is known after an order to close a reference. */
export type Closed = 'arrived' | 'never' | 'unknown'

/** How a driver sends and asks at the other side, and when it gives up. */
export interface AttemptsOptions<Request extends SettleRequest = SettleRequest> {
  /** Separates the settlements of this driver in the store, such as `custodian`: at most 100 characters. */
  readonly name: string
  /** The store of the servers, or another one. */
  readonly store: Store
  /**
   * Makes one request. Resolves to `proven` or `refused` only by the other side's own words. Everything else is
   * `unknown`, also if it rejects, or does not settle within `replyMs`.
   */
  readonly send: (order: Order<Request>) => Promise<Reply>
  /** Asks the other side. If it rejects, or resolves to `undefined`, nothing is decided. */
  readonly ask: (question: Question<Request>) => Promise<Answer | undefined>
  /** Whether `ask` finds each attempt by its reference (exact), or a total of the receiver (a bound). */
  readonly evidence: Evidence['by']
  /**
   * Tells the other side never to carry out an attempt that is not yet carried out. `never` and `arrived` are its own
   * words about it, which are believed as an answer by reference is: `trustMax` does not bound them. Called for
   * attempts that are still open `closeAfterMs` after their reservation. Default: none.
   */
  readonly close?: (order: Omit<Order<Request>, 'amount' | 'notAfter'>) => Promise<Closed>
  /** How long after its reservation an open attempt is closed, in milliseconds. Default 60,000. */
  readonly closeAfterMs?: number
  /**
   * Returns the instant after which the other side does not carry out an order that is made now. The request contains
   * it, because a process can stop for minutes before the request leaves. Default: none, and no missing order is ever
   * taken as "never".
   */
  readonly notAfter?: (now: Instant) => Instant
  /**
   * How long after `notAfter` an order may still be carried out: the difference of the clocks, and the time in which
   * the other side completes what it has begun. Default 10,000.
   */
  readonly marginMs?: number
  /**
   * The most that the other side may deny by its word about a sum before nothing more is sent. Default: the amount of
   * each settlement.
   */
  readonly trustMax?: bigint
  /** The most attempts of one settlement. Default 12. */
  readonly attemptsMax?: number
  /**
   * How long after its first call a settlement sends and asks. What is open then stays in doubt. It does not end before
   * an answer could decide. Default 1,800,000: half an hour.
   */
  readonly giveUpMs?: number
  /** How long the driver waits for each call of `send`, `ask` and `close`. Default 15,000. */
  readonly replyMs?: number
  /** How long a settlement without doubts is kept after its last change. Default 31,622,400,000: 366 days. */
  readonly retentionMs?: number
  /** Runs each write of a settlement in a transaction of the host: see `SettlementChange`. */
  readonly transaction?: InTransaction
  /** The source of the time. Default: `Date`. */
  readonly clock?: Clock
  /** The source of the references. Default: the global `crypto`. */
  readonly random?: Random
  /** Receives the errors of `send`, `ask` and `close`, which count as "unknown". Default: `console.error`. */
  readonly onError?: (error: unknown) => void
}

const positiveAmount = checked<bigint>((value) =>
  typeof value === 'bigint' && value > 0n ? undefined : 'must be a positive bigint',
)
const amountFromZero = checked<bigint>((value) =>
  typeof value === 'bigint' && value >= 0n ? undefined : 'must be a bigint of at least 0n',
)
const duration = integerFrom(0, Number.MAX_SAFE_INTEGER)

export const attemptsOptions = optionsOf({
  name: textOfAtMost(100),
  store: port<Store>('load', 'commit', 'list', 'due', 'remove'),
  send: callback(),
  ask: callback(),
  evidence: oneOf('id', 'sum'),
  close: v.optional(callback()),
  closeAfterMs: v.optional(duration, 60_000),
  notAfter: v.optional(callback()),
  marginMs: v.optional(duration, 10_000),
  trustMax: v.optional(amountFromZero),
  attemptsMax: v.optional(integerFrom(1, 100), 12),
  giveUpMs: v.optional(duration, 1_800_000),
  replyMs: v.optional(positiveInteger, 15_000),
  retentionMs: v.optional(duration, 366 * 86_400_000),
  transaction: v.optional(callback()),
  clock: clockOption,
  random: randomOption,
  onError: v.optional(callback<(error: unknown) => void>(), () => printError),
} satisfies Members<AttemptsOptions>)

export const settlementId = checked<string>((value) =>
  typeof value === 'string' && /^[A-Za-z0-9._-]{1,100}$/.test(value)
    ? undefined
    : 'must have 1 to 100 of A-Z a-z 0-9 . _ -',
)

export const settleRequest = v.looseObject({
  id: settlementId,
  amount: positiveAmount,
  // As long as the URL of a receiver, which a client chooses.
  otherSide: v.optional(textOfAtMost(2_048)),
})

/** What an operator decides. */
export const what = oneOf('arrived', 'never', 'corrected')

export const decideOptions = optionsOf({ reference: v.optional(textOfAtMost(256)) })
