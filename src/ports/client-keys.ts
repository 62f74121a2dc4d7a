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
   * True on a grant request, where the key can be newer than a cached key set. False on later requests: a
   * key that is missing then has been withdrawn, and a new fetch would let its holder cause traffic.
   */
  readonly mayBeNew: boolean
}

/**
 * Finds the public keys of client instances. `remoteClientKeys` is the implementation that fetches
 * `{walletAddress}/jwks.json`.
 */
export interface ClientKeys {
  /**
   * Resolves to the key, or to `undefined` when the client instance does not publish it, or no longer does.
   * Rejects when the keys cannot be read at the moment; the client then receives 503, and no grant changes.
   */
  find(query: ClientKeyQuery): Promise<PublicJwk | undefined>
}
