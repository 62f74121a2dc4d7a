import type { Amount } from '../core/amount.js'
import type { Refused } from '../core/decision.js'
import type { IncomingPayment } from '../core/incoming-payment.js'
import type { Instant } from '../core/instant.js'
import type {
  BoundedFunction,
  Clock,
  MayReceive,
  MayReceiveAnswer,
  MayReceiveQuery,
  ReviewRequired,
} from '../ports/host.js'
import { reviewSchema } from '../protocol/host-answers.js'
import { parseWith } from '../protocol/schema.js'
import { HostAnswerError } from '../util/errors.js'
import { given } from '../util/given.js'
import { postponedMaxMs } from './events/handler.js'
import { readHostAnswer, refusedByHost } from './host-answer.js'

/** Why the host refuses a creation or an arrival. Minor versions add members: give a `switch` a `default`. */
export type MayReceiveRefusal = Exclude<
  Extract<MayReceiveAnswer, { readonly ok: false }>['refusal'],
  'review_required'
>

/** An arrival waits for a review: nothing is counted, and nothing is refused. Report it again at `retryAt`. */
export type ArrivalInReview = ReviewRequired & {
  /** Why, for the operator: the reason that `mayReceive` gave, or one of the library. No response contains it. */
  readonly reason: string
}

interface Arrival {
  readonly transferId: string
  readonly amount: Amount
}

const reasons: Readonly<Record<MayReceiveRefusal, string>> = {
  amount_too_large: 'the amount is too large for the host',
  payment_not_allowed: 'the host does not allow the payment',
}

export async function askMayCreate(
  mayReceive: BoundedFunction<MayReceive>,
  payment: IncomingPayment,
): Promise<Refused<MayReceiveRefusal> | undefined> {
  return refusalIn(await ask(mayReceive, payment, { type: 'creation' }))
}

export async function askMayReceive(
  mayReceive: BoundedFunction<MayReceive>,
  payment: IncomingPayment,
  arrival: Arrival,
  clock: Clock,
): Promise<Refused<MayReceiveRefusal> | ArrivalInReview | undefined> {
  const answer = await ask(mayReceive, payment, { type: 'arrival', ...arrival })
  return readReview(answer, clock.now()) ?? refusalIn(answer)
}

function ask(
  mayReceive: BoundedFunction<MayReceive>,
  payment: IncomingPayment,
  asked: { readonly type: 'creation' } | ({ readonly type: 'arrival' } & Arrival),
): Promise<unknown> {
  const { id: incomingPaymentId, walletAddress, expiresAt } = payment
  const { client, incomingAmount, metadata } = payment
  // A copy, so that the host cannot change what is stored.
  const query: MayReceiveQuery = structuredClone({
    ...asked,
    incomingPaymentId,
    walletAddress,
    expiresAt,
    ...given({ client, incomingAmount, metadata }),
  })
  return mayReceive(query)
}

function refusalIn(answer: unknown): Refused<MayReceiveRefusal> | undefined {
  const read = readHostAnswer('mayReceive', answer)
  return read.ok ? undefined : refusedByHost('mayReceive', read, reasons)
}

/**
 * Reads the answer that an arrival waits for a review. Returns `undefined` for any other answer.
 *
 * @throws {HostAnswerError} for an invalid time.
 */
function readReview(answer: unknown, now: Instant): ArrivalInReview | undefined {
  const { ok, refusal }: Readonly<Record<string, unknown>> = Object(answer)
  if (ok !== false || refusal !== 'review_required') return undefined
  const read = parseWith(reviewSchema, answer)
  if (!read.ok) throw new HostAnswerError('mayReceive', `${read.path} ${read.problem}`)
  const { retryAt, reason = 'the arrival waits for a review' } = read.value
  // The handler of an event can postpone it for as long.
  if (retryAt <= now || retryAt > now + postponedMaxMs) {
    throw new HostAnswerError('mayReceive', 'retryAt must be in the next 30 days')
  }
  return { ok, refusal, reason, retryAt }
}
