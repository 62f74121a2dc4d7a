import * as v from 'valibot'
import type { OperatorDecision } from '../core/attempts/operator.js'
import type { Instant } from '../core/instant.js'
import { guardedStore } from '../service/store-guard.js'
import { type SweepOptions, sweepLimit } from '../service/sweep.js'
import { abortSignal, optionsOf, readInput, text } from '../util/input.js'
import { bookOn } from './book.js'
import { callsOf } from './calls.js'
import { decide } from './decide.js'
import {
  type AttemptsOptions,
  attemptsOptions,
  decideOptions,
  type SettleRequest,
  settlementId,
  settleRequest,
  what,
} from './options.js'
import { type Driver, settle } from './settle.js'
import { type DecideResult, type Settled, type SettlementView, viewOf } from './views.js'

/** A driver of settlements: see `attempts`. */
export interface Attempts<Request extends SettleRequest = SettleRequest> {
  /**
   * Carries out a settlement, or continues it after a crash. Call it again at the instant of `again`, and after a
   * rejection, always with the same id and amount. Any number of calls and processes may work at one settlement.
   *
   * After the end it sends nothing. It asks about what is still in doubt, so call it to review the list of `inDoubt`.
   *
   * @throws {InvalidInputError} for an invalid request, and for another amount than that of the first call.
   * @throws {ContentionError} if other writers keep changing the settlement, and the errors of the store. Then an
   *   attempt may have been made.
   */
  settle(request: Request): Promise<Settled>
  /** Resolves to a settlement, or to `undefined` if the id is unknown. */
  get(id: string): Promise<SettlementView | undefined>
  /** Returns all settlements of which something is not proven, the oldest doubt first, for a `for await` loop. */
  inDoubt(): AsyncIterable<SettlementView>
  /**
   * Decides by an operator who knows: all attempts that nobody knows about, or if there is none, those that were
   * decided by word alone, whose amounts `arrived` confirms. `corrected`: your account has what is due for what is
   * listed as `excess` and `withdrawn`. With `reference`, this attempt, as a whole.
   *
   * @param who the operator, for the record.
   */
  decide(
    id: string,
    what: OperatorDecision['what'],
    who: string,
    options?: { readonly reference?: string },
  ): Promise<DecideResult>
  /** Removes settlements past their retention, at most `limit` (default 1,000). For `runSweeps`. */
  sweep(
    options?: Pick<SweepOptions, 'limit'>,
  ): Promise<{ readonly removed: number; readonly more: boolean }>
}

/** How long a call of the store may take, in milliseconds. */
const storeTimeoutMs = 3_000

const sweepOptions = optionsOf({ limit: sweepLimit, signal: v.optional(abortSignal) })

/**
 * Creates a driver of settlements whose reply can be lost: at a bank, a custodian, a card processor or another wallet,
 * behind an API. It records each attempt before its request, asks about those without a reply, and sends money again
 * only after "never", under a new reference. It never waits for an instant: `settle` returns when to call it again.
 *
 * @throws {InvalidInputError} for an invalid or unknown option.
 *
 * @example
 * ```ts
 * import { attempts, type Reply } from 'open-payments-server/attempts'
 *
 * declare const custodian: {
 *   transfer(order: { key: string; amount: bigint; notAfter: number }): Promise<Reply>
 *   statusOf(key: string): Promise<'done' | 'rejected' | 'pending' | 'not_found'>
 * }
 * const found = { done: 'arrived', rejected: 'never', pending: 'pending', not_found: 'absent' } as const
 *
 * const transfers = attempts({
 *   name: 'custodian',
 *   store,
 *   evidence: 'id',
 *   notAfter: (now) => now + 60_000, // the custodian carries out no order later
 *   send: ({ reference: key, amount, notAfter = 0 }) => custodian.transfer({ key, amount, notAfter }),
 *   async ask({ references }) {
 *     const states = references.map(async (key) => [key, { found: found[await custodian.statusOf(key)] }])
 *     return { by: 'id', attempts: Object.fromEntries(await Promise.all(states)) }
 *   },
 * })
 * const settled = await transfers.settle({ id: 'payment-1', amount: 2_500n })
 * if (settled.state === 'again') console.log('call it again at', settled.retryAt)
 * ```
 */
export function attempts<Request extends SettleRequest>(
  options: AttemptsOptions<Request>,
): Attempts<Request> {
  const read = readInput('', attemptsOptions, options)
  const { name, clock, random, retentionMs, marginMs, attemptsMax, giveUpMs, trustMax } = read
  const { send, ask, close, evidence, notAfter, transaction: inTransaction } = options
  const now = (): Instant => Math.floor(clock.now())
  const store = guardedStore(read.store, { clock, timeoutMs: storeTimeoutMs, server: name })
  const book = bookOn({ store, name, retentionMs, random, inTransaction })
  const { replyMs, onError } = read
  const calls = callsOf({ send, ask, close, evidence, replyMs, clock, onError })
  const driver: Driver<Request> = {
    book,
    calls,
    random,
    now,
    marginMs,
    evidence,
    ...(notAfter !== undefined && { notAfter }),
    closeAfterMs: close && read.closeAfterMs,
    policyOf: (amount) => ({ attemptsMax, giveUpMs, trustMax: trustMax ?? amount }),
  }
  return {
    async settle(request) {
      readInput('request', settleRequest, request)
      return settle(driver, request)
    },
    async get(id) {
      readInput('id', settlementId, id)
      const record = await book.load(id)
      return record && viewOf(id, record.settlement)
    },
    inDoubt: () => book.listed(viewOf),
    async decide(id, outcome, who, given = {}) {
      readInput('id', settlementId, id)
      readInput('what', what, outcome)
      readInput('who', text, who)
      const { reference } = readInput('options', decideOptions, given)
      const decision = { what: outcome, who, ...(reference !== undefined && { reference }) }
      return decide(driver, id, decision)
    },
    async sweep(given = {}) {
      const { limit } = readInput('', sweepOptions, given)
      const removed = await book.sweep(now(), limit)
      return { removed, more: removed === limit }
    },
  }
}
