import {
  type BareItem,
  type Item,
  serializeByteSequence,
  serializeInnerList,
} from 'structured-headers'
import { ok, type Problem, type Result } from '../../core/decision.js'
import type { Instant } from '../../core/instant.js'
import { sha256 } from '../../util/hash.js'
import { type Signer, signerOf } from './ed25519.js'

/** An Ed25519 private key as a JSON Web Key (RFC 8037): what Node and Web Crypto export as `jwk`. */
export interface PrivateJwk {
  /** `OKP`. */
  readonly kty?: string | undefined
  /** `Ed25519`. */
  readonly crv?: string | undefined
  /** The public key, base64url. */
  readonly x?: string | undefined
  /** The private key, base64url. */
  readonly d?: string | undefined
}

/** A key for signing requests, and the `kid` of its public key. */
export interface SigningKey {
  readonly kid: string
  readonly sign: Signer
}

const kidForm = /^[\x20-\x7e]{1,256}$/

/** The problem with an unusable key never quotes the key. */
export function readSigningKey(
  kid: unknown,
  { kty, crv, x, d }: PrivateJwk,
): Result<SigningKey, Problem> {
  if (typeof kid !== 'string' || !kidForm.test(kid)) {
    return { ok: false, problem: 'must have a kid of 1 to 256 printable ASCII characters' }
  }
  if (kty !== 'OKP' || crv !== 'Ed25519')
    return { ok: false, problem: 'must have kty OKP and crv Ed25519' }
  if (typeof x !== 'string' || typeof d !== 'string')
    return { ok: false, problem: 'must have x and d' }
  const sign = signerOf({ x, d })
  return sign === undefined
    ? { ok: false, problem: 'must have x and d of the same key pair' }
    : ok({ kid, sign })
}

export interface UnsignedRequest {
  readonly method: string
  /** The absolute URL, exactly as the server constructs it. */
  readonly url: string
  /** Empty if the request has no body. */
  readonly body: Uint8Array
  readonly createdAt: Instant
  readonly nonce?: string
}

/**
 * Signs a request without a token, and returns the headers to add: `Signature-Input`, `Signature` and, if there is
 * a body, `Content-Digest`.
 *
 * @see RFC 9635 section 7.3.1; RFC 9421 section 3.1; RFC 9530
 */
export async function signatureHeaders(
  { body, ...request }: UnsignedRequest,
  key: SigningKey,
): Promise<Readonly<Record<string, string>>> {
  const headers =
    body.length === 0
      ? {}
      : { 'content-digest': `sha-256=${serializeByteSequence(await sha256(body))}` }
  return { ...headers, ...(await signatureOver(headers, request, key)) }
}

/**
 * Signs method, URL and the given header fields of a request, whose names are in lower case. Returns `Signature-Input`
 * and `Signature`.
 */
export async function signatureOver(
  headers: Readonly<Record<string, string>>,
  { method, url, createdAt, nonce }: Omit<UnsignedRequest, 'body'>,
  { kid, sign }: SigningKey,
) {
  const components = Object.entries({ '@method': method, '@target-uri': url, ...headers })
  const parameters = new Map<string, BareItem>([
    ['created', Math.floor(createdAt / 1000)],
    ['keyid', kid],
  ])
  if (nonce !== undefined) parameters.set('nonce', nonce)
  parameters.set('tag', 'gnap')

  const items = components.map(([name]): Item => [name, new Map()])
  const input = serializeInnerList([items, parameters])
  const lines = components.map(([name, value]) => `"${name}": ${value}\n`).join('')
  const signature = await sign(`${lines}"@signature-params": ${input}`)
  return {
    'signature-input': `sig1=${input}`,
    signature: `sig1=${serializeByteSequence(signature)}`,
  } as const
}
