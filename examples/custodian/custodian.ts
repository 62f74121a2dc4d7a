import type { AttemptsOptions, Reply, SettleRequest } from 'open-payments-server/attempts'

/** A hold of the funds of a payment, or a credit of an arrival. */
export interface AccountRequest extends SettleRequest {
  readonly account: string
}

/** Money that leaves the custodian, from what a hold has kept or from an account. */
export interface PayoutRequest extends SettleRequest {
  readonly from: string
  readonly to: string
  readonly hold?: string
}

/** The calls of the custodian's API that move money. */
export interface Custodian {
  /** Once for the id of the payment. Whether it holds can take minutes: until then, the outcome is unknown. */
  readonly hold: AttemptsOptions<AccountRequest>['send']
  /** Once for the id of the transfer. */
  readonly credit: AttemptsOptions<AccountRequest>['send']
  /** No key for repeats: each request pays. The memo is the only trace. */
  readonly payout: AttemptsOptions<PayoutRequest>['send']
  readonly findPayouts: AttemptsOptions<PayoutRequest>['ask']
  /** Ends a hold, also one that is still under way. Resolves to whether the custodian has said so. */
  release(paymentId: string): Promise<boolean>
}

const final = { released: 'the hold was released', rejected: 'the custodian has rejected it' }

/** Reads the custodian's own words. Whatever else comes back, of whatever status, says nothing about the money. */
function replyOf({ state }: { readonly state?: string }): Reply {
  if (state === 'done' || state === 'held') return { outcome: 'proven' }
  if (state === 'rejected' || state === 'released') {
    return { outcome: 'refused', reason: final[state] }
  }
  // The order came too late, and another one may be made.
  if (state === 'too_late') return { outcome: 'refused', reason: state, retryAt: 0 }
  return { outcome: 'unknown', reason: state === 'pending' ? 'it is being reviewed' : 'no reply' }
}

/** Returns the calls of a custodian's API. Errors of `fetch`, and replies that are no JSON, reject. */
export function custodianAt(url: string, fetch = globalThis.fetch): Custodian {
  async function call(method: string, path: string, content?: object, signal?: AbortSignal) {
    const response = await fetch(`${url}${path}`, {
      method,
      signal: signal ?? AbortSignal.timeout(30_000),
      ...(content && { body: JSON.stringify(content) }),
    })
    return (await response.json()) as { state?: string; payouts?: readonly { value: string }[] }
  }
  const put = (path: string): Custodian['hold'] => {
    return async ({ request: { id, account }, amount, signal }) => {
      const order = { account, value: `${amount}` }
      return replyOf(await call('PUT', `/${path}/${encodeURIComponent(id)}`, order, signal))
    }
  }
  return {
    hold: put('holds'),
    credit: put('credits'),
    async payout({ request: { from, to, hold }, reference: memo, amount, notAfter, signal }) {
      const order = { memo, from, to, hold, value: `${amount}`, notAfter }
      return replyOf(await call('POST', '/payouts', order, signal))
    },
    async findPayouts({ references, signal }) {
      const found = references.map(async (memo) => {
        const path = `/payouts?memo=${encodeURIComponent(memo)}`
        const { payouts } = await call('GET', path, undefined, signal)
        if (payouts === undefined) throw new Error('not the answer of the custodian')
        return [memo, { found: payouts.length > 0 ? 'arrived' : 'absent' }] as const
      })
      return { by: 'id', attempts: Object.fromEntries(await Promise.all(found)) }
    },
    async release(paymentId) {
      try {
        const { state } = await call('DELETE', `/holds/${encodeURIComponent(paymentId)}`, {})
        return state === 'released'
      } catch {
        return false
      }
    },
  }
}
