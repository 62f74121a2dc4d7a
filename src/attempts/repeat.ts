import type { AttemptsOptions, SettleRequest } from './options.js'

const foundBy = { proven: 'arrived', refused: 'never', unknown: 'pending' } as const

/**
 * Returns an `ask` for another side that carries out an order once for its key, whole or not at all: it repeats the
 * order, under the same reference, and takes the reply as the answer. Such an order needs no `notAfter`, because it is
 * repeated and never replaced. The key must follow from the request or the reference. Do not use it for a side that
 * forgets keys before `giveUpMs`.
 *
 * @param send the function that the driver sends with.
 *
 * @example
 * ```ts
 * import { type AttemptsOptions, askByRepeating, attempts } from 'open-payments-server/attempts'
 *
 * declare const credit: AttemptsOptions['send'] // its key is `request.id`
 *
 * const options = { name: 'credits', store, evidence: 'id' } as const
 * const credits = attempts({ ...options, send: credit, ask: askByRepeating(credit) })
 * ```
 */
export function askByRepeating<Request extends SettleRequest>(
  send: AttemptsOptions<Request>['send'],
): AttemptsOptions<Request>['ask'] {
  return async ({ request, references, signal }) => {
    const replies = references.map(async (reference) => {
      const reply = await send({ request, reference, amount: request.amount, signal })
      const { arrived, proof } = { arrived: undefined, proof: undefined, ...reply }
      const found = { found: foundBy[reply.outcome] }
      const parts = {
        ...(arrived !== undefined && { arrived }),
        ...(proof !== undefined && { proof }),
      }
      return [reference, { ...found, ...parts }] as const
    })
    return { by: 'id', attempts: Object.fromEntries(await Promise.all(replies)) }
  }
}
