import { setTimeout as sleep } from 'node:timers/promises'
import type { Handler, Store } from 'open-payments-server'
import { failure, json } from './json.js'

/**
 * Reports to a load balancer or supervisor whether this process can serve requests: 200 if its store
 * responds, otherwise 503. The response gives no reason, because the endpoint is public.
 *
 * @param timeoutMs the time limit for the store, in milliseconds.
 */
export function health(store: Pick<Store, 'load'>, timeoutMs = 2_000): Handler {
  return async ({ method, url }) => {
    if (url.split('?', 1)[0] !== '/healthz') return failure(404, 'not_found')
    if (method !== 'GET' && method !== 'HEAD') {
      return failure(405, 'method_not_allowed', { allow: 'GET, HEAD' })
    }
    return (await answers(store, timeoutMs))
      ? json(200, { status: 'ok' })
      : json(503, { status: 'unavailable' })
  }
}

async function answers(store: Pick<Store, 'load'>, timeoutMs: number): Promise<boolean> {
  const timer = new AbortController()
  try {
    // No grant has this id. Finding nothing takes a store as long as finding a record.
    const read = store.load([{ kind: 'grant', id: 'health' }]).then(() => true)
    return await Promise.race([read, sleep(timeoutMs, false, { signal: timer.signal })])
  } catch {
    return false
  } finally {
    timer.abort()
  }
}
