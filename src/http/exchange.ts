import type { Telemetry } from '../ports/host.js'
import type { SignedMessage } from '../protocol/http-signature/components.js'
import type { Call, ServiceContext } from '../service/context.js'
import { countOnce, type Proof, type RepeatRule, type SignedCall } from '../service/signed-call.js'
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

/** A request whose signature has been verified. */
interface SignedExchange extends Exchange {
  readonly call: SignedCall
}

export type ServeSigned<Signer> = (
  exchange: SignedExchange,
  signer: Signer,
) => Promise<HttpResult<HttpResponse>>

interface SignedOptions<Signer> {
  readonly context: ServiceContext
  readonly repeats: RepeatRule | ((signer: Signer) => RepeatRule)
  /** Whether repeating this answer is harmless, so that nothing is recorded. Default: never. */
  readonly isHarmless?: (answer: HttpResult<HttpResponse>) => boolean
}

/** Serves a signed operation: authenticates its signer, and runs it once. */
export function signed<Signer extends { readonly proof: Proof }>(
  { context, repeats, isHarmless = () => false }: SignedOptions<Signer>,
  authenticate: (exchange: Exchange) => Promise<HttpResult<Signer>>,
  serve: ServeSigned<Signer>,
): Serve {
  return async (exchange) => {
    const signer = await authenticate(exchange)
    if (!signer.ok) return signer
    const rule = typeof repeats === 'function' ? repeats(signer.value) : repeats
    const operation = (call: SignedCall) => serve({ ...exchange, call }, signer.value)
    return countOnce(context, exchange.call, signer.value.proof, rule, operation, isHarmless)
  }
}
