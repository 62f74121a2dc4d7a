import type { Derivation } from '../../core/grant/record.js'
import type { Instant } from '../../core/instant.js'
import { toBase64url } from '../../util/bytes.js'
import { hashText } from '../../util/hash.js'
import type { Call, ServiceContext } from './context.js'
import { clockDifferenceMaxMs, lateCommitMaxMs } from './steady-clock.js'
import {
  type NonceGuard,
  type Replayed,
  type ReplayProtection,
  transactSigned,
} from './transact.js'

/** A verified signature and its replay identifier. */
export interface Proof {
  /** The thumbprint of the key that signed. */
  readonly thumbprint: string
  readonly keyid: string
  readonly createdAt: Instant
  readonly nonce?: string
  readonly signature: Uint8Array
}

/**
 * Whether a byte-identical repeat of a request without a nonce is refused. Ed25519 is deterministic and
 * deployed clients send no nonce, so two legitimate requests in the same second can be byte-identical.
 */
export type RepeatRule = 'accept-repeat' | 'refuse-repeat'

/** The call of a signed request. */
export interface SignedCall extends Call {
  readonly replay: ReplayProtection
}

/**
 * How long a nonce is kept after its signature has expired, in milliseconds. A server whose clock is ahead must not
 * remove the nonce while a server whose clock is behind accepts the signature, or while a commit of a copy of the
 * request can still take effect.
 */
export const nonceMarginMs = clockDifferenceMaxMs + lateCommitMaxMs + 1

/** Returns the record that makes a request count once, or `undefined` if repeats are accepted. */
export async function nonceGuardOf(
  context: ServiceContext,
  proof: Proof,
  rule: RepeatRule,
  { commandId }: Call,
): Promise<NonceGuard | undefined> {
  const { thumbprint, nonce, signature } = proof
  if (nonce === undefined && rule === 'accept-repeat') return undefined
  const unique = nonce === undefined ? `signature ${toBase64url(signature)}` : `nonce ${nonce}`
  const hash = await hashText(`${thumbprint} ${unique}`)
  const retainUntil = proof.createdAt + context.signatureRules.ageMaxMs + nonceMarginMs
  const id = (await context.namespace()) + hash
  const next = { id, version: 1, commandId, dueAt: retainUntil, retainUntil }
  return {
    change: { kind: 'nonce', next, expectedVersion: 0 },
    of: nonce === undefined ? 'signature' : 'nonce',
    consumedByRefusal: nonce !== undefined,
  }
}

/**
 * Refuses every repeat of a request, including one of a request that was refused: its identical repeat could
 * succeed later, when the client instance no longer expects it.
 */
export async function refuseRepeats(
  context: ServiceContext,
  proof: Proof,
  call: SignedCall,
): Promise<void> {
  const guard = await nonceGuardOf(context, proof, 'refuse-repeat', call)
  call.replay.guard = guard && { ...guard, consumedByRefusal: true }
}

/** Leaves the nonce of a request unconsumed: its response reveals nothing, so a repeat does no harm. */
export function keepNonce({ replay }: SignedCall): void {
  replay.consumed = true
}

/** Returns the signature hash to store on the grant if the request has no nonce. */
export function signatureOf({ guard }: ReplayProtection): Pick<Derivation, 'signature'> {
  return guard?.of === 'signature' ? { signature: guard.change.next.id } : {}
}

/**
 * Runs the operation of a signed request, and then consumes its nonce or signature. If a commit of the
 * operation has already consumed it, nothing more is written.
 */
export async function consumingNonce<Answer extends { readonly ok: boolean }>(
  context: ServiceContext,
  { replay }: SignedCall,
  operate: () => Promise<Answer>,
): Promise<Answer | Replayed> {
  const answer = await operate()
  return replay.consumed ? answer : consumeNonce(context, replay, answer)
}

/** Consumes the nonce of a request that writes nothing else: a refused request or a read. */
export function consumeNonce<Answer extends { readonly ok: boolean }>(
  context: ServiceContext,
  replay: ReplayProtection,
  answer: Answer,
): Promise<Answer | Replayed> {
  const operation = {
    loaded: undefined,
    reload: async () => undefined,
    decide: () => ({ changes: [], result: answer, refused: !answer.ok }),
  }
  return transactSigned(context, operation, replay)
}
