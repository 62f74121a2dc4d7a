import type { GrantedItem } from '../core/access.js'
import type { Instant } from '../core/instant.js'
import type { PublicJwk } from './client-keys.js'
import type { Store } from './store.js'

/** The result of introspecting an access token (RFC 9767 section 3.3). */
export type Introspection =
  | { readonly active: false }
  | {
      readonly active: true
      readonly grantId: string
      /**
       * Version of the grant's record; absent when another process stores the grant. The resource server guards
       * the commit of each outgoing payment with it, so that a revoked grant cannot spend.
       */
      readonly grantVersion?: number
      readonly access: readonly GrantedItem[]
      /** The key that the token is bound to. Every request with the token must be signed with it. */
      readonly key: PublicJwk & { readonly thumbprint: string }
      /** Wallet address of the client instance; absent when it identifies itself by its key alone. */
      readonly walletAddress?: string
      readonly expiresAt: Instant
    }

/**
 * Introspects an access token at the authorization server. Rejects when the authorization server cannot be
 * reached: the client then receives 503, because an outage must not look like an invalid token.
 */
export interface Introspect {
  (query: { readonly accessToken: string }): Promise<Introspection>
  /**
   * The store that holds the grants, if this process uses it. A resource server on the same store object
   * removes the lifetime budget of a grant that no longer exists; otherwise it keeps the budget.
   */
  readonly store?: Store
}

/** The introspection of an active token. */
export type ActiveToken = Extract<Introspection, { readonly active: true }>

/** Why introspection did not return an active token. */
export type TokenRefusal = 'token_unknown' | 'introspection_unavailable'
