import type { Telemetry } from '../ports/host.js'
import type { SignedMessage } from '../protocol/http-signature/components.js'
import type { Call } from '../service/context.js'
import type { KnownClient, SigningClient } from './hooks.js'
import type { HttpResponse } from './message.js'
import type { HttpRefusal, HttpResult } from './refusals.js'
import type { Server, ServerOperation } from './routes.js'

/** A request whose size, route and headers have been checked, with its operation. */
export interface Exchange {
  readonly server: Server
  readonly message: SignedMessage
  readonly operation: ServerOperation
  /** The part of the path that matches the `{id}` or `{path}` of the route. */
  readonly id: string
  readonly call: Call
  /** Notes what is known of the client, for the report of a refusal. */
  readonly note: (client: KnownClient) => void
  /**
   * Applies the host's rate limit: after the signature is verified, or immediately for unsigned operations.
   */
  readonly limit: (client?: SigningClient) => Promise<HttpRefusal | undefined>
  readonly telemetry?: Telemetry | undefined
}

export type Serve = (exchange: Exchange) => Promise<HttpResult<HttpResponse>>

/** Serves an operation that needs no signature, after the rate limit. */
export function unsigned(serve: Serve): Serve {
  return async (exchange) => (await exchange.limit()) ?? serve(exchange)
}
