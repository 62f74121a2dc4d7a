import type { ServiceContext } from '../service/mechanism/context.js'
import {
  consumingNonce,
  nonceGuardOf,
  type Proof,
  type RepeatRule,
  type SignedCall,
} from '../service/mechanism/nonces.js'
import type { HttpResponse } from './message.js'
import type { Exchange, Serve } from './pipeline.js'
import type { HttpResult } from './refusals.js'

/** A request whose signature has been verified. */
export interface SignedExchange extends Exchange {
  readonly call: SignedCall
}

export type ServeSigned<Caller> = (
  exchange: SignedExchange,
  caller: Caller,
) => Promise<HttpResult<HttpResponse>>

/**
 * Serves a signed operation: authenticates its caller, runs it, and consumes the nonce or signature of the
 * request, whether the operation succeeds or is refused. What the operation itself commits is committed
 * together with the nonce.
 */
export function signed<Caller extends { readonly proof: Proof }>(
  { context, repeats }: { readonly context: ServiceContext; readonly repeats: RepeatRule },
  authenticate: (exchange: Exchange) => Promise<HttpResult<Caller>>,
  serve: ServeSigned<Caller>,
): Serve {
  return async (exchange) => {
    const caller = await authenticate(exchange)
    if (!caller.ok) return caller
    const guard = await nonceGuardOf(context, caller.value.proof, repeats, exchange.call)
    const call = { ...exchange.call, replay: { guard, consumed: false } }
    return consumingNonce(context, call, () => serve({ ...exchange, call }, caller.value))
  }
}
