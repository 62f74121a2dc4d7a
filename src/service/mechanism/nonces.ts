import type { Instant } from '../../core/decision.js'
import type { Derivation } from '../../core/grant/record.js'
import { toBase64url } from '../../util/bytes.js'
import { hashText } from '../../util/hash.js'
import type { Call, ServiceContext } from './context.js'
import { type NonceGuard, type Replayed, transactSigned } from './transact.js'

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

/** Returns the record that makes a request count once, or `undefined` if repeats are accepted. */
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

/** Returns the signature hash to store on the grant if the request has no nonce. */
export function signatureOf(nonceGuard: NonceGuard | undefined): Pick<Derivation, 'signature'> {
  return nonceGuard === undefined || nonceGuard.consumedByRefusal
    ? {}
    : { signature: nonceGuard.change.next.id }
}

/** Consumes the nonce of a request that writes nothing else: a refused request or a read. */
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
