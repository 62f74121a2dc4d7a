import type { GrantedItem } from '../core/access.js'
import type { Instant } from '../core/decision.js'
import type { PublicJwk } from './client-keys.js'
import type { Store } from './store.js'

/** What a resource server learns of an access token (RFC 9767 section 3.3). */
export type Introspection =
  | { readonly active: false }
  | {
      readonly active: true
      readonly grantId: string
      /** Version of the grant's record; absent where the grant lies in a store that is out of reach. */
      readonly grantVersion?: number
      readonly access: readonly GrantedItem[]
      /** The key that the token is bound to; every use of the token must be signed with it. */
      readonly key: PublicJwk & { readonly thumbprint: string }
      /** Absent for a client instance that is known by its key alone. */
      readonly walletAddress?: string
      readonly expiresAt: Instant
    }

/**
 * Asks the authorization server about an access token. Rejects when it cannot be asked: the caller gets
 * 503, for an outage must not look like a bad token.
 */
export interface Introspect {
  (query: { readonly accessToken: string }): Promise<Introspection>
  /**
   * The store that grants are kept in, if it is in this process. A resource server on the very same store
   * commits an outgoing payment only while the grant is as it was introspected.
   */
  readonly store?: Store
}

/** A token that is good now, and all that is known of it. */
export type ActiveToken = Extract<Introspection, { readonly active: true }>

/** Why nothing is known of a token. */
export type TokenRefusal = 'token_unknown' | 'introspection_unavailable'
