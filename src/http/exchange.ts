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

type Answer = HttpResult<HttpResponse>

declare const isServed: unique symbol

/** An answer that `signed` or `unsigned` made: an operation that forgets both does not compile. */
type Served = Answer & { readonly [isServed]: true }

export type Serve = (exchange: Exchange) => Promise<Served>

/** Serves an operation that needs no signature, after the rate limit. */
export function unsigned(serve: (exchange: Exchange) => Promise<Answer>): Serve {
  return async (exchange) => ((await exchange.limit()) ?? (await serve(exchange))) as Served
}

/** The part of a request that an operation needs once the signature has been verified. */
export interface SignedExchange extends Pick<Exchange, 'id' | 'message'> {
  readonly call: SignedCall
}

/** @param resultId the id of what the request created. */
export type AnswerAgain = (
  exchange: Pick<Exchange, 'id'>,
  resultId: string | undefined,
) => Promise<Answer | undefined>

/** An operation of a signed request. `Signer` is what its authentication finds. */
interface SignedOperation<Signer> {
  readonly authenticate: (exchange: Exchange) => Promise<HttpResult<Signer>>
  readonly rule: RepeatRule | ((signer: Signer) => RepeatRule)
  readonly serve: (exchange: SignedExchange, signer: Signer) => Promise<Answer>
  /** Answers a repeat of a request that succeeded; `undefined` refuses it, as by default. */
  readonly again?: AnswerAgain | undefined
  /** Whether repeating this answer is harmless, so that nothing is recorded. Default: never. */
  readonly isHarmless?: (answer: Answer) => boolean
}

/** Serves a request once, after its signature has been verified. */
export function signed<Signer extends { readonly proof: Proof }>(
  context: ServiceContext,
  { authenticate, rule, serve, again, isHarmless }: SignedOperation<Signer>,
): Serve {
  return async (exchange) => {
    const authenticated = await authenticate(exchange)
    if (!authenticated.ok) return authenticated as Served
    const signer = authenticated.value
    const answer = await countOnce<Answer>(
      context,
      exchange.call,
      signer.proof,
      typeof rule === 'function' ? rule(signer) : rule,
      (call) => serve({ id: exchange.id, message: exchange.message, call }, signer),
      {
        ...(again !== undefined && { again: (resultId) => again(exchange, resultId) }),
        ...(isHarmless !== undefined && { isHarmless }),
      },
    )
    return answer as Served
  }
}
