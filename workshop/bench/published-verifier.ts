import {
  getKeyId,
  validateSignature,
  validateSignatureHeaders,
} from '@interledger/http-signature-utils'
import type { PublicJwk } from '../../src/ports/host.js'
import type { SignedMessage } from '../../src/protocol/http-signature/components.js'

/**
 * The published verifier, for a server that is otherwise the same: the build uses this file instead of
 * `inspect.ts` and `verify.ts`.
 */
interface Candidate {
  readonly keyid: string
  readonly createdAt: number
  readonly signature: Uint8Array
  readonly request: Parameters<typeof validateSignatureHeaders>[0]
}

export async function inspectSignatures({ method, origin, target, fields, body }: SignedMessage) {
  const headers = Object.fromEntries([...fields].map(([name, lines]) => [name, lines.join(', ')]))
  const text = Buffer.from(body).toString()
  const request = { method, url: origin + target, headers, ...(text !== '' && { body: text }) }
  if (!validateSignatureHeaders(request)) {
    return { ok: false, problem: 'refused by the published verifier' }
  }
  const keyid = getKeyId(headers['signature-input'] ?? '') ?? ''
  const signature = Buffer.from(headers['signature'] ?? '')
  return { ok: true, value: [{ keyid, createdAt: Date.now(), signature, request }] }
}

export async function verifyCandidates(candidates: readonly Candidate[], { kid, x }: PublicJwk) {
  const jwk = { kid, x, kty: 'OKP', crv: 'Ed25519', alg: 'EdDSA' } as const
  const [candidate] = candidates
  if (candidate === undefined || candidate.keyid !== kid) return undefined
  return (await validateSignature(jwk, candidate.request)) ? candidate : undefined
}
