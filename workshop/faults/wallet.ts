import type { HttpRequest } from '../../src/entry-adapter.js'
import type { ReceivedFunds } from '../../src/index.js'
import type { Answer } from '../../test/support/world.js'

/** The status for a request without a response. */
export const lostStatus = 0

/**
 * A wallet as its clients and its own ledger see it, in any process. A store that fails is a status of 503, a
 * missing response is `lostStatus`, and nothing rejects.
 */
export interface Wallet {
  send(request: HttpRequest): Promise<Answer>
  /** Body: an `InteractionResult`. */
  approve(interactionId: string): Promise<Answer>
  /** Body: the `ok` and `refusal` of the result of `receive`. */
  receive(paymentId: string, funds: ReceivedFunds): Promise<Answer>
  /** Body: the tokens among them that introspect as active. */
  introspect(tokens: readonly string[]): Promise<Answer>
}

/** Returns whether the outcome of a request is unknown. A store that fails never causes an internal error (500). */
export function isUnknown({ status }: Answer): boolean {
  return status === lostStatus || status === 503
}
