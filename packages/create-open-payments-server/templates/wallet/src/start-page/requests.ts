import { AsyncLocalStorage } from 'node:async_hooks'
import type { Handler, RefusalReport } from 'open-payments-server'
import type { HttpRequest } from 'open-payments-server/adapter'

/** A request that a wallet has answered. */
export interface RecordedRequest {
  /** Increases with each request. */
  readonly id: number
  /** When it arrived, by the real time. */
  readonly at: string
  /** The time of the wallets, if it was another. */
  readonly clock?: string
  /** The origin of the wallet. */
  readonly wallet: string
  readonly method: string
  /** Path and query. */
  readonly path: string
  /** The operation of the API; absent for pages. */
  readonly operation?: string
  /** The `keyid` of the signature, which need not be valid. */
  readonly keyid?: string
  /** The client, if the request was refused after its signature was verified. */
  readonly client?: string
  /** Absent if no response was sent. */
  readonly status?: number
  /** The time until the response, in milliseconds. */
  readonly ms: number
  /** The code of an error response. */
  readonly code?: string
  /** The refusal, more precise than the code. See docs/errors.md. */
  readonly refusal?: string
  /** Why the wallet refused the request. A wallet in production does not tell this to clients. */
  readonly reason?: string
  /** What the client should have signed, if its signature was refused. It contains the token of the request. */
  readonly signatureBase?: string
  /** The faults that took effect, such as `lost-response, failed-payment`. */
  readonly fault?: string
  /** What a rule decided about consent, and for which account. */
  readonly consent?: string
}

/** The latest requests. */
export interface RequestLog {
  /** Adds a request, unless it asks for the icon, which browsers do with each page. */
  add(request: Omit<RecordedRequest, 'id'>): void
  /** The oldest first. */
  list(): readonly RecordedRequest[]
  clear(): void
}

const requestsMax = 500

export function requestLog(): RequestLog {
  let kept: readonly RecordedRequest[] = []
  let count = 0
  return {
    add(given) {
      if (given.path === '/favicon.ico') return
      count += 1
      kept = [...kept, { id: count, ...given }].slice(-requestsMax)
    },
    list: () => kept,
    clear() {
      kept = []
    },
  }
}

/** What becomes of a request. */
export interface Answered {
  readonly wallet: string
  readonly arrivedAt: Date
  readonly ms: number
  readonly refusal?: RefusalReport | undefined
}

const pathShownMax = 500

/** Describes a request for the list. */
export function described(request: HttpRequest, { wallet, arrivedAt, ms, refusal }: Answered) {
  const keyid = keyidOf(request)
  return {
    at: arrivedAt.toISOString(),
    wallet,
    method: request.method,
    path: request.url.slice(0, pathShownMax),
    ms: Math.round(ms),
    ...(keyid && { keyid }),
    ...(refusal && {
      code: refusal.code,
      refusal: refusal.refusal,
      reason: refusal.reason,
      ...(refusal.operation && { operation: refusal.operation }),
      ...(refusal.client && { client: refusal.client }),
    }),
  }
}

function keyidOf({ headers }: HttpRequest): string | undefined {
  const input = headers.find(([name]) => name.toLowerCase() === 'signature-input')
  return /keyid="([^"]{1,200})"/.exec(input?.[1] ?? '')?.[1]
}

/** Adds the requests that a handler answers to a list. */
export function recorder(log: RequestLog, wallet: string) {
  const current = new AsyncLocalStorage<{ refusal?: RefusalReport }>()
  return {
    /** The hook of the servers, by which the list has the reason of each refusal. */
    noteRefusal(refusal: RefusalReport): void {
      const seen = current.getStore()
      if (seen !== undefined) seen.refusal = refusal
    },
    recorded<Body extends string | Uint8Array>(handle: Handler<Body>): Handler<Body> {
      return async (request) => {
        const seen: { refusal?: RefusalReport } = {}
        const [arrivedAt, started] = [new Date(), performance.now()]
        const response = await current.run(seen, () => handle(request))
        const ms = performance.now() - started
        const { status } = response
        log.add({ ...described(request, { wallet, arrivedAt, ms, ...seen }), status })
        return response
      }
    },
  }
}
