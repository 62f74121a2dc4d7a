import type { Instant } from '../../core/decision.js'
import type { Derivation } from '../../core/grant/record.js'
import { toBase64url } from '../../util/bytes.js'
import { hashText } from '../../util/hash.js'
import type { Call, ServiceContext } from './context.js'
import { type NonceGuard, type Replayed, transactSigned } from './transact.js'

/** A signature that was verified: whose it is, and what makes it the only one of its kind. */
export interface Proof {
  /** Thumbprint of the key that made it. */
  readonly thumbprint: string
  readonly keyid: string
  readonly createdAt: Instant
  readonly nonce?: string
  readonly signature: Uint8Array
}

/**
 * Whether a byte-identical repeat of a request without a nonce is refused. Ed25519 is deterministic and
 * deployed clients send no nonce, so two honest requests of one second can be the same to the byte.
 */
export type RepeatRule = 'accept-repeat' | 'refuse-repeat'

/** The record that makes a request count once, or `undefined` where repeats are welcome. */
export async function nonceGuardOf(
  context: ServiceContext,
  proof: Proof,
  rule: RepeatRule,
  call: Call,
): Promise<NonceGuard | undefined> {
  const { thumbprint, nonce, signature } = proof
  if (nonce === undefined && rule === 'accept-repeat') return undefined
  const unique = nonce === undefined ? `signature ${toBase64url(signature)}` : `nonce ${nonce}`
  const hash = await hashText(`${thumbprint} ${unique}`)
  const { ageMaxMs, skewMaxMs } = context.signatureRules
  const retainUntil = proof.createdAt + ageMaxMs + skewMaxMs
  const id = (await context.namespace()) + hash
  const next = { id, version: 1, commandId: call.commandId, dueAt: retainUntil, retainUntil }
  return {
    change: { kind: 'nonce', next, expectedVersion: 0 },
    consumedByRefusal: nonce !== undefined,
  }
}

/** What a bare signature is known by, so that what it brought about can tell itself that it was used. */
export function signatureOf(nonceGuard: NonceGuard | undefined): Pick<Derivation, 'signature'> {
  return nonceGuard === undefined || nonceGuard.consumedByRefusal
    ? {}
    : { signature: nonceGuard.change.next.id }
}

/** Spends a request's nonce for an answer that writes nothing else: a refusal, or what was only read. */
export function consumeNonce<Result>(
  context: ServiceContext,
  nonceGuard: NonceGuard | undefined,
  result: Result,
  { refused }: { readonly refused: boolean },
): Promise<Result | Replayed> {
  const operation = {
    loaded: undefined,
    reload: async () => undefined,
    decide: () => ({ changes: [], result, refused }),
  }
  return transactSigned(context, operation, nonceGuard)
}
