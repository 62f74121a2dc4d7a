import type { RefusalReport } from 'open-payments-server'

/** A request that a wallet of the sandbox has answered. */
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
  /** The fault that the request had. */
  readonly fault?: string
  /** What a rule of consent decided. */
  readonly consent?: 'by rule'
}

/** What is known while a request is served. */
export interface Seen {
  refusal?: RefusalReport
  fault?: string
  consent?: 'by rule'
  /** The account has too little for the payment. */
  lacksFunds?: true
  /** The owner has to confirm the payment. */
  mustConfirm?: true
}

/** The latest requests of both wallets. */
export interface RequestLog {
  add(request: Omit<RecordedRequest, 'id'>): void
  /** The oldest first. */
  list(): readonly RecordedRequest[]
  clear(): void
  /** Calls a function with each further request, until the returned function is called. */
  follow(listener: (request: RecordedRequest) => void): () => void
}

const requestsMax = 500

export function requestLog(): RequestLog {
  let kept: readonly RecordedRequest[] = []
  const listeners = new Set<(request: RecordedRequest) => void>()
  let count = 0
  return {
    add(given) {
      count += 1
      const request = { id: count, ...given }
      kept = [...kept, request].slice(-requestsMax)
      for (const listener of listeners) listener(request)
    },
    list: () => kept,
    clear() {
      kept = []
    },
    follow(listener) {
      listeners.add(listener)
      return () => void listeners.delete(listener)
    },
  }
}
