import type { PublicJwk } from '../ports/host.js'
import { decodeUtf8, encodeUtf8, fromBase64, fromBase64url, toBase64url } from '../util/bytes.js'
import { readInput, string } from '../util/input.js'
import { nodeCrypto } from '../util/runtime.js'
import { signerOf } from './http-signature/ed25519.js'
import { isSoundKey } from './http-signature/jwk.js'
import { isObject, parseJson } from './json.js'

const clientKeyLengthMax = 4_096

/** Why the text of a key is refused: see `readClientKey`. Minor versions add members: give a `switch` a `default`. */
export type ClientKeyRefusal =
  | 'key_missing'
  | 'key_too_long'
  | 'key_private'
  | 'key_unsupported'
  | 'key_damaged'
  | 'key_unsound'
  | 'keys_several'
  | 'kid_invalid'

/**
 * The form of a pasted key: a JWK, a JWKS with one key, a PEM, or the base64 or base64url of the text of a JWK or a
 * JWKS.
 */
export type ClientKeyForm = 'jwk' | 'jwks' | 'pem' | 'base64'

/**
 * Reads a public key that the owner of an account pasted, to register it for an app: a JWK, a JWKS with one key, the
 * base64 or base64url of one of them, as browser extensions show it, or a PEM (`-----BEGIN PUBLIC KEY-----`), of at
 * most 4,096 characters. `kid` and `alg` may be missing from a JWK. Store the key with a `kid` that is unique in its
 * account, and return it in `keys` of `walletAddresses.find`.
 *
 * @returns the key and the form in which the text has it, or `reason`, which is a sentence for the owner, and never
 *   quotes the text.
 * @throws {InvalidInputError} if `text` is not a string.
 * @see RFC 7517; RFC 8037; RFC 8410
 *
 * @example
 * ```ts
 * import { readClientKey } from 'open-payments-server'
 *
 * const pasted = '{"kty":"OKP","crv":"Ed25519","x":"O2onvM62pC1io6jQKm8Nc2UyFXcd4kOmOsBIoYtZ2ik"}'
 * const read = readClientKey(pasted)
 * console.log(read.ok ? read.key.x : read.reason)
 * ```
 */
export function readClientKey(text: string):
  | {
      readonly ok: true
      readonly form: ClientKeyForm
      readonly key: Pick<PublicJwk, 'x'> & Partial<Pick<PublicJwk, 'kid'>>
    }
  | {
      readonly ok: false
      readonly refusal: ClientKeyRefusal
      readonly reason: string
    } {
  readInput('text', string, text)
  const trimmed = text.trim()
  // Before all others, so that nobody looks for a better way to paste it.
  if (isPrivate(trimmed.slice(0, screenedLengthMax))) return pasted('key_private')
  if (text.length > clientKeyLengthMax) return pasted('key_too_long')
  if (trimmed.startsWith('-----BEGIN ')) return readPem(trimmed)
  if (trimmed.startsWith('{')) return readJson(trimmed)
  const decoded = decodeUtf8(leniently(trimmed))?.trim()
  if (decoded?.startsWith('{') !== true) return pasted('key_missing')
  const isWhole = fromBase64url(inUrlAlphabet(trimmed)) !== undefined
  const read = isWhole ? readJson(decoded) : pasted('key_damaged')
  return read.ok ? { ...read, form: 'base64' } : read
}

/** Reads the text of a JWK, or of a JWKS with one key. */
function readJson(text: string): ReadKey {
  const value = parseJson(encodeUtf8(text))
  if (!isObject(value)) return pasted('key_damaged')
  const isSet = Array.isArray(value['keys'])
  const keys: readonly unknown[] = Array.isArray(value['keys']) ? value['keys'] : [value]
  const [key] = keys
  if (keys.length > 1) return pasted('keys_several')
  if (!isObject(key) || key['kty'] === undefined) return pasted('key_missing')
  const { kty, crv, alg = 'EdDSA', use = 'sig', kid, x } = key
  const isEdDsa = alg === 'EdDSA' || alg === 'Ed25519'
  if (kty !== 'OKP' || crv !== 'Ed25519' || !isEdDsa || use !== 'sig') {
    return pasted('key_unsupported')
  }
  if (kid !== undefined && !(typeof kid === 'string' && kidForm.test(kid))) {
    return pasted('kid_invalid')
  }
  if (typeof x !== 'string' || !/^[\w-]{43}$/.test(x)) return pasted('key_damaged')
  if (kid !== undefined && (isPrivate(kid) || isPrivatePartOf(x, kid))) return pasted('key_private')
  if (!isSoundKey({ x })) return pasted('key_unsound')
  const form = isSet ? 'jwks' : 'jwk'
  return { ok: true, form, key: { x, ...(kid !== undefined && { kid }) } }
}

/** The length of a text in which a private key is looked for. */
const screenedLengthMax = 4 * clientKeyLengthMax

/** Whether a text contains a private or symmetric key, as it is or in base64. */
function isPrivate(text: string): boolean {
  if (privatePem.test(text)) return true
  if (text.startsWith('{')) return namesPrivatePart(text)
  const bytes = leniently(text)
  const decoded = Array.from(bytes, (byte) => String.fromCharCode(byte)).join('')
  return (
    privateDer.test(hexOf(bytes.subarray(0, 16))) ||
    privatePem.test(decoded) ||
    (decoded.trimStart().startsWith('{') && namesPrivatePart(decoded))
  )
}

const privatePem = /BEGIN (?:[A-Z\d]{1,16} ){0,2}PRIVATE KEY/

/** How PKCS #8 (RFC 5958), PKCS #1 and SEC 1 begin: a sequence whose first element is the version 0 or 1. */
const privateDer = /^30(?:[0-7].|81..|82....)02010[01]/

/** Whether a text is the private part of a public key. Only Node can tell without waiting. */
function isPrivatePartOf(x: string, text: string): boolean {
  return nodeCrypto() !== undefined && signerOf({ x, d: inUrlAlphabet(text) }) !== undefined
}

/** Returns base64 or base64url, with or without padding and line breaks, as base64url. */
function inUrlAlphabet(text: string): string {
  return text
    .replace(/\s/g, '')
    .replace(/={1,2}$/, '')
    .replaceAll('+', '-')
    .replaceAll('/', '_')
}

/** Returns the bytes of base64 that may be cut off: an incomplete private key is private. Other text has no bytes. */
function leniently(text: string): Uint8Array {
  const encoded = inUrlAlphabet(text)
  const whole = fromBase64url(encoded)
  return whole ?? fromBase64url(encoded.slice(0, encoded.length & ~3)) ?? new Uint8Array()
}

function hexOf(bytes: Uint8Array): string {
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('')
}

/** The private members of JWKs (RFC 7518 section 6), and other names for them. */
const privateMember = /"(?:d|k|p|q|dp|dq|qi|oth|seed|priv[^"]{0,64}|secret[^"]{0,64})":/i

/**
 * Whether JSON has a member that is named like the private part of a key, at any depth. The function searches the text
 * and not the parsed value, because the text may be cut off, and a repeated member replaces the earlier one.
 */
function namesPrivatePart(text: string): boolean {
  const unescaped = text.replace(/\\u([\da-f]{4})/gi, (_, code) =>
    String.fromCharCode(Number.parseInt(code, 16)),
  )
  return privateMember.test(unescaped.replace(/\s/g, ''))
}

type ReadKey = ReturnType<typeof readClientKey>

/** RFC 8410: everything before the 32 bytes of an Ed25519 key. */
const ed25519Prefix = '302a300506032b6570032100'

/** The object identifiers of other keys: X25519, X448, Ed448, elliptic curves, RSA, DSA and Diffie-Hellman. */
const otherKeys = /06032b65(?:6e|6f|71)|06072a8648ce(?:3d0201|380401|3e0201)|06092a864886f70d01/

/** Reads an RFC 7468 text. Other labels are those of certificates and of keys in other formats. */
function readPem(text: string): ReadKey {
  if (!text.startsWith('-----BEGIN PUBLIC KEY-----')) return pasted('key_unsupported')
  const [, content] = /^-----BEGIN PUBLIC KEY-----([^-]*)-----END PUBLIC KEY-----$/.exec(text) ?? []
  const bytes = fromBase64((content ?? '').replace(/\s/g, ''))
  if (content === undefined || bytes === undefined) return pasted('key_damaged')
  const hex = hexOf(bytes)
  if (hex.startsWith(ed25519Prefix) && bytes.length === 44) {
    const x = toBase64url(bytes.subarray(12))
    return isSoundKey({ x }) ? { ok: true, form: 'pem', key: { x } } : pasted('key_unsound')
  }
  if (privateDer.test(hex)) return pasted('key_private')
  return pasted(otherKeys.test(hex.slice(0, 64)) ? 'key_unsupported' : 'key_damaged')
}

/** Signatures can name no other `kid` (RFC 9421 section 2.3; RFC 8941 section 3.3.3). */
const kidForm = /^[\x20-\x7e]{1,256}$/

const reasons = {
  key_missing:
    'This is not a public key. Paste a JWK, which begins with {, its base64, which begins with eyJ, or a PEM, which begins with -----BEGIN PUBLIC KEY-----.',
  key_too_long: `This is too long for a public key: the limit is ${clientKeyLengthMax} characters.`,
  key_private:
    'This is a private key. Never paste it anywhere: who has it can act as the app. Make a new pair of keys, and paste its public key.',
  key_unsupported: 'This is a key of another kind. Paste a public Ed25519 key, for signatures.',
  key_damaged:
    'This key is damaged or incomplete. Copy it again, from the first to the last character.',
  key_unsound: 'This is not a valid and safe Ed25519 key. Make a new pair of keys.',
  keys_several: 'This contains several keys. Paste one of them.',
  kid_invalid: 'The kid of this key must have 1 to 256 characters, of printable ASCII.',
}

function pasted(refusal: keyof typeof reasons) {
  return { ok: false, refusal, reason: reasons[refusal] } as const
}
