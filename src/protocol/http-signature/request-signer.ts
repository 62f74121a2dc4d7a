import { serializeByteSequence, serializeString } from 'structured-headers'
import type { Instant } from '../../core/instant.js'
import { sha512 } from '../../util/hash.js'
import { InvalidInputError } from '../../util/invalid-input.js'
import { type PrivateJwk, readSigningKey, signatureOver } from './sign.js'

/** A request of a client, before it is signed. */
export interface RequestToSign {
  readonly method: string
  /** The absolute URL to which the request is sent. */
  readonly url: string
  /** The bytes of the JSON that is sent. Default: no body. */
  readonly body?: Uint8Array
  /** An access token or a continuation token. */
  readonly token?: string
  /** The key that makes a payment repeatable, 1 to 255 printable ASCII characters. */
  readonly idempotencyKey?: string
  /** The time of the signature, in milliseconds since 1970. */
  readonly createdAt: Instant
  /** Text that no other signature of the key has. Without it, two equal requests of one second are one request. */
  readonly nonce?: string
}

/** The header fields of a signed request, by their names in lower case. */
export type SignRequest = (request: RequestToSign) => Promise<Readonly<Record<string, string>>>

/** A key of a client, and the `kid` under which its wallet address publishes the public key. */
export interface RequestSignerOptions {
  readonly keyId: string
  /** An Ed25519 key with `x` and `d`. */
  readonly privateKey: PrivateJwk
}

/**
 * Creates a function that signs requests as Open Payments clients do. It returns all header fields to send:
 * `Authorization` for a token, `Content-Digest`, `Content-Length` and `Content-Type` for a body, `Idempotency-Key`,
 * and the signature, which covers them, the method and the URL.
 *
 * @throws {InvalidInputError} for a key that cannot sign. The promise rejects instead, on runtimes other than Node, if
 * `d` is not the private key of `x`.
 * @see RFC 9635 section 7.3.1; RFC 9421 section 3.1; RFC 9530
 *
 * @example
 * ```ts
 * import { requestSigner } from 'open-payments-server'
 *
 * const privateKey = JSON.parse(process.env['CLIENT_KEY'] ?? '')
 * const sign = requestSigner({ keyId: 'app-1', privateKey })
 * const url = 'https://wallet.example/quotes/1'
 * const token = process.env['ACCESS_TOKEN'] ?? ''
 * const headers = await sign({ method: 'GET', url, token, createdAt: Date.now() })
 * const response = await fetch(url, { headers, redirect: 'manual' })
 * ```
 */
export function requestSigner({ keyId, privateKey }: RequestSignerOptions): SignRequest {
  const key = readSigningKey(keyId, privateKey)
  if (!key.ok) throw new InvalidInputError('privateKey', key.problem)
  return async ({ body, token, idempotencyKey, ...request }) => {
    const covered = {
      ...(token !== undefined && { authorization: `GNAP ${token}` }),
      ...(body !== undefined && (await contentHeaders(body))),
      ...(idempotencyKey !== undefined && { 'idempotency-key': serializeString(idempotencyKey) }),
    }
    return { ...covered, ...(await signatureOver(covered, request, key.value)) }
  }
}

async function contentHeaders(body: Uint8Array) {
  return {
    'content-digest': `sha-512=${serializeByteSequence(await sha512(body))}`,
    'content-length': `${body.length}`,
    'content-type': 'application/json',
  }
}
