import type { FoundById } from '../core/attempts/evidence.js'
import type { Reply } from '../core/attempts/reply.js'
import { exactly, type Members, positiveInteger, readInput } from '../util/input.js'
import type { AttemptsOptions, SettleRequest } from './options.js'

const repeatOptions = exactly({ keptMs: positiveInteger } satisfies Members<{ keptMs: number }>)

/**
 * Returns an `ask` for another side that carries out an order once for its key, whole or not at all: it repeats the
 * order, under the same reference, and takes the reply as the answer. Such an order needs no `notAfter`, because it is
 * repeated and never replaced. The key must follow from the request or the reference. An order whose key may be
 * forgotten is not repeated, because it would be another one: it stays in doubt until an operator decides.
 *
 * @param send the function that the driver sends with.
 * @param options `keptMs`: how long the other side keeps a key at least, in milliseconds, less the longest time for
 *   which a process of yours can stop before its request leaves.
 *
 * @example
 * ```ts
 * import { type AttemptsOptions, askByRepeating, attempts } from 'open-payments-server/attempts'
 *
 * declare const credit: AttemptsOptions['send'] // its key is `request.id`
 *
 * const options = { name: 'credits', store, evidence: 'id' } as const
 * const ask = askByRepeating(credit, { keptMs: 23 * 3_600_000 }) // it keeps keys for a day
 * const credits = attempts({ ...options, send: credit, ask })
 * ```
 */
export function askByRepeating<Request extends SettleRequest>(
  send: AttemptsOptions<Request>['send'],
  options: { readonly keptMs: number },
): AttemptsOptions<Request>['ask'] {
  const { keptMs } = readInput('options', repeatOptions, options)
  return async ({ request, references, openMs, signal }) => {
    if (openMs >= keptMs) return undefined
    const replies = references.map(async (reference) => {
      const reply = await send({ request, reference, amount: request.amount, signal })
      return [reference, foundBy(reply)] as const
    })
    return { by: 'id', attempts: Object.fromEntries(await Promise.all(replies)) }
  }
}

/** What a reply to the repeated order says about it. */
function foundBy(reply: Reply): FoundById {
  if (reply.outcome === 'unknown') return { found: 'pending' }
  if (reply.outcome === 'refused') {
    const { reason, retryAt } = reply
    return retryAt === undefined ? { found: 'refused', reason } : { found: 'never' }
  }
  const { arrived, proof } = reply
  return {
    found: 'arrived',
    ...(arrived !== undefined && { arrived }),
    ...(proof !== undefined && { proof }),
  }
}
