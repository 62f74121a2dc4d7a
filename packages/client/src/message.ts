import type { Repeat } from './refusal.js'

/** A request of the client. */
export interface Outgoing {
  readonly method: 'GET' | 'POST' | 'DELETE'
  readonly url: string
  /** An access token or a continuation token. */
  readonly token?: string
  readonly body?: object
  readonly idempotencyKey?: string
  /** Public documents are read without a signature. Default: true. */
  readonly isSigned?: boolean
  /** That the request creates something, and how it may be repeated. Such a request is sent once. */
  readonly creates?: Repeat
}

/** A response with its JSON. */
export interface Answer {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  /** `undefined` if the body is not JSON. */
  readonly body: unknown
}
