import { jwkOf, testKey } from './keys.js'

/** The public key of a client, as it is published. */
export const jwk = jwkOf(testKey('shop'))
const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'

/** Returns the key with changed members; members set to `undefined` are removed. */
export function jwkWith(changes: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const members = Object.entries({ ...jwk, ...changes })
  return Object.fromEntries(members.filter(([, value]) => value !== undefined))
}

/** Returns the other spellings of the bytes of `x`, which differ only in stray bits. */
export function respelt(x: string): string[] {
  const last = alphabet.indexOf(x.at(-1) ?? '')
  return [1, 2, 3].map((bits) => x.slice(0, -1) + alphabet.charAt(last ^ bits))
}
