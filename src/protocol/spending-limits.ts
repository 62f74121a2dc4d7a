import * as v from 'valibot'
import { parseInterval, shortestWindowMs } from '../core/interval.js'
import { spendingLimitsMax } from '../core/spending-limits.js'
import { amountSchema, objectOf, refusing } from './schema.js'

const windowMinMs = 60_000
const paymentsMax = 1_000_000_000

const limitSchema = v.pipe(
  objectOf(
    v.strictObject({
      debitAmount: v.exactOptional(amountSchema),
      payments: v.exactOptional(
        v.pipe(
          v.number(),
          v.check(
            (value) => Number.isInteger(value) && value >= 1 && value <= paymentsMax,
            `must be an integer from 1 to ${paymentsMax}`,
          ),
        ),
      ),
      interval: v.exactOptional(v.pipe(v.string(), refusing(problemOfInterval))),
    }),
  ),
  v.check(
    ({ debitAmount, payments }) => debitAmount !== undefined || payments !== undefined,
    'must have debitAmount, payments or both',
  ),
)

function problemOfInterval(text: string): string | undefined {
  const parsed = parseInterval(text)
  if (!parsed.ok) return parsed.problem
  return shortestWindowMs(parsed.value) < windowMinMs
    ? `must have windows of at least ${windowMinMs} ms`
    : undefined
}

/**
 * The limits that an owner sets for a grant or an account. Each has another interval, because payments are counted by
 * the windows of the interval.
 *
 * @see SpendingLimit
 */
export const spendingLimitsSchema = v.pipe(
  v.array(limitSchema),
  v.maxLength(spendingLimitsMax, `must contain at most ${spendingLimitsMax} limits`),
  v.check(
    (limits) => new Set(limits.map(({ interval }) => interval)).size === limits.length,
    'must not contain two limits with the same interval',
  ),
)
