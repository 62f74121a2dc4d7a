/** A cryptographically secure source of random bytes. The global `crypto` is an implementation. */
export interface Random {
  getRandomValues(array: Uint8Array): Uint8Array
}
