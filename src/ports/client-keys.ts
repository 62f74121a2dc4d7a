/** An Ed25519 public key as a JSON Web Key (RFC 8037), reduced to the members that verification needs. */
export interface PublicJwk {
  readonly kid: string
  /** The public key, base64url. */
  readonly x: string
}

/** Identifies one key of one client instance. */
export interface ClientKeyQuery {
  /** The client instance's wallet address, canonical. */
  readonly walletAddress: string
  /** The `keyid` of the signature, compared with the key's `kid` byte for byte. */
  readonly kid: string
  /**
   * True for a grant request, which any sender can send, and whose key can be newer than a cached key set. False for
   * later requests under a grant: the client proved possession of the key when it requested the grant, so a missing key
   * has been withdrawn. A cache should not let lookups with true evict or delay lookups with false.
   */
  readonly mayBeNew: boolean
}

/**
 * Finds the public keys of client instances. `remoteClientKeys` is the implementation that fetches
 * `{walletAddress}/jwks.json`.
 */
export interface ClientKeys {
  /**
   * Resolves to the key, or to `undefined` only if the key set is known to be gone (404 or 410) or to lack the key:
   * `undefined` ends the tokens that are bound to the key. Rejects when the keys cannot be read at the moment, for
   * whatever reason; the client then receives 503, and no grant changes. A grant request gets 400 instead, as for an
   * unknown key, if the `code` of the error is `ERR_FETCH_REFUSED`: the client named a URL that is never fetched. A key
   * with another `kid` is taken for `undefined`; one that is not a sound Ed25519 key results in 500.
   */
  find(query: ClientKeyQuery): Promise<PublicJwk | undefined>
}
