import type { Session } from './session.js'

/**
 * `required` if the specification says MUST or the OpenAPI documents describe the behaviour, `recommended` if the
 * specification says SHOULD, or makes the behaviour optional.
 */
export type ServerRuleLevel = 'required' | 'recommended'

/** A case of the suite for servers. */
export interface ServerCaseDefinition {
  /** Unique and stable. */
  readonly id: string
  /** A sentence that states what the server does. */
  readonly name: string
  /** The section of an RFC or the operation of the OpenAPI documents. */
  readonly rule: string
  /** Default: `required`. */
  readonly level?: ServerRuleLevel
  /** `client` if the client instance needs a wallet address, `consent` if an owner must decide too. */
  readonly needs?: 'client' | 'consent'
  readonly check: (session: Session) => Promise<void>
}
