import { type AttemptsOptions, attempts, type Reply } from 'open-payments-server/attempts'
import type { AttemptsPorts, AttemptsSubject, OtherAccounts } from 'open-payments-server-testing'

/** A custodian behind an API, as a test imitates it. */
export function custodianApi(accounts: OtherAccounts) {
  return async (request: Request): Promise<Response> => {
    const { pathname } = new URL(request.url)
    if (request.method === 'DELETE') {
      return Response.json({
        custodian: true,
        closed: accounts.close(pathname.split('/')[2] ?? ''),
      })
    }
    const reference = pathname.split('/')[2] ?? ''
    if (pathname === '/total') return Response.json({ received: `${accounts.received()}` })
    if (request.method === 'GET') {
      const found = accounts.find(reference)
      return Response.json({ custodian: true, state: found ? 'done' : 'not_found' })
    }
    const { amount, notAfter } = (await request.json()) as { amount: string; notAfter?: number }
    const state = accounts.carryOut({ reference, amount: BigInt(amount), notAfter })
    return Response.json({ custodian: true, state })
  }
}

export const validMs = 60_000
export const quiet = { onError: () => undefined }

/** The host's code: it believes nothing but the custodian's own words. */
export function sendTo(fetch: AttemptsPorts['fetch']): AttemptsOptions['send'] {
  return async ({ reference, amount, notAfter }): Promise<Reply> => {
    const response = await fetch(`https://custodian.example/orders/${reference}`, {
      method: 'PUT',
      body: JSON.stringify({ amount: `${amount}`, notAfter }),
    })
    const { custodian, state } = (await response.json()) as { custodian?: boolean; state: string }
    if (custodian !== true) return { outcome: 'unknown', reason: `HTTP ${response.status}` }
    return state === 'done'
      ? { outcome: 'proven', proof: 'receipt' }
      : { outcome: 'refused', reason: state, retryAt: 0 }
  }
}

/** Orders that an attempt is never carried out, unless it was. */
export function closeAt(fetch: AttemptsPorts['fetch']): NonNullable<AttemptsOptions['close']> {
  return async ({ reference }) => {
    const url = `https://custodian.example/orders/${reference}`
    const response = await fetch(url, { method: 'DELETE' })
    const { custodian, closed } = (await response.json()) as {
      custodian?: boolean
      closed: 'arrived' | 'never'
    }
    return custodian === true ? closed : 'unknown'
  }
}

export function askById(fetch: AttemptsPorts['fetch'], whenAbsent: 'absent' | 'never' = 'absent') {
  return async ({ references }: { readonly references: readonly string[] }) => {
    const found = references.map(async (reference) => {
      const response = await fetch(`https://custodian.example/orders/${reference}`)
      const { state } = (await response.json()) as { state: string }
      return [reference, { found: state === 'done' ? 'arrived' : whenAbsent }] as const
    })
    return { by: 'id' as const, attempts: Object.fromEntries(await Promise.all(found)) }
  }
}

export function askSum(fetch: AttemptsPorts['fetch']) {
  return async () => {
    const response = await fetch('https://custodian.example/total')
    return {
      by: 'sum' as const,
      received: BigInt(((await response.json()) as { received: string }).received),
    }
  }
}

/** The host, right by default. `change` plants a mistake. */
export function custodian(
  evidence: 'id' | 'sum',
  change: (options: AttemptsOptions, ports: AttemptsPorts) => Partial<AttemptsOptions> = () => ({}),
): AttemptsSubject {
  return {
    otherSide: custodianApi,
    ...(evidence === 'sum' && { trustMax: 1_000n }),
    create(ports) {
      const { fetch, store, clock } = ports
      const options: AttemptsOptions = {
        name: 'custodian',
        store,
        clock,
        evidence,
        send: sendTo(fetch),
        ask: evidence === 'id' ? askById(fetch) : askSum(fetch),
        notAfter: (now) => now + validMs,
        ...quiet,
      }
      return attempts({ ...options, ...change(options, ports) })
    },
  }
}
