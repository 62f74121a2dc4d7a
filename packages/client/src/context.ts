import type { Clock } from 'open-payments-server'
import type { Exchange } from './exchange.js'
import type { Tokens } from './tokens.js'

/** What the calls of one client share. */
export interface Context {
  readonly exchange: Exchange
  readonly tokens: Tokens
  readonly clock: Clock
  readonly newNonce: () => string
  /** How the client names itself: by its wallet address, or by its key. */
  readonly client: string | object
}
