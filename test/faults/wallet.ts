import type { HttpRequest, ReceivedFunds } from '../../src/index.js'
import type { Answer } from '../support/world.js'

/** The status of a request whose answer never came. */
export const lostStatus = 0

/**
 * A wallet as its clients and its own ledger see it, wherever it runs. What goes wrong inside is a status of
 * 500 or 503, an answer that never came is `lostStatus`, and nothing rejects.
 */
export interface Wallet {
  send(request: HttpRequest): Promise<Answer>
  /** Body: an `InteractionResult`. */
  approve(interactionId: string): Promise<Answer>
  /** Body: the `ok` and `refusal` of a `ReceiveResult`. */
  receive(funds: ReceivedFunds): Promise<Answer>
  /** Body: those of the tokens that introspect as active. */
  introspect(tokens: readonly string[]): Promise<Answer>
}

/** Whether what was asked for may or may not have happened. */
export function isUnknown({ status }: Answer): boolean {
  return status === lostStatus || status >= 500
}
