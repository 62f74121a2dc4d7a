/** An Ed25519 public key as a JSON Web Key (RFC 8037); members that play no part are left out. */
export interface PublicJwk {
  readonly kid: string
  /** The public key, base64url. */
  readonly x: string
}

/** Which key of which client instance is asked for. */
export interface ClientKeyQuery {
  /** The client instance's wallet address, canonical. */
  readonly walletAddress: string
  /** The `kid` that the signature names, compared byte for byte. */
  readonly kid: string
  /**
   * True on a grant request, when the key may be so new that a cached key set lacks it. Later a missing
   * key has been withdrawn, and looking again would only give whoever holds it a way to cause traffic.
   */
  readonly mayBeNew: boolean
}

/**
 * Finds the public keys of client instances. `remoteClientKeys` is the implementation that fetches
 * `{walletAddress}/jwks.json`.
 */
export interface ClientKeys {
  /**
   * Answers the key, or `undefined` when the client instance has no such key (any more). Rejects when
   * that could not be found out for now: the caller is told to come back, and no grant is harmed.
   */
  find(query: ClientKeyQuery): Promise<PublicJwk | undefined>
}
