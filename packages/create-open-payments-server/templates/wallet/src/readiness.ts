import type { Handler } from 'open-payments-server'

/**
 * Answers `/ready`, for a load balancer: 200, or 503 if there is a problem, which is printed and not sent. Every other
 * path is for the next handler.
 */
export function withReadiness(
  handle: Handler<string | Uint8Array>,
  problem: () => Promise<string | undefined>,
): Handler<string | Uint8Array> {
  return async (request) => {
    if (request.url.split('?', 1)[0] !== '/ready') return handle(request)
    const found = await problem()
    if (found !== undefined) console.warn(`The wallet is not ready: ${found}`)
    const headers = { 'content-type': 'text/plain', 'cache-control': 'no-store' }
    return found === undefined
      ? { status: 200, headers, body: 'ready' }
      : { status: 503, headers, body: 'not ready' }
  }
}
