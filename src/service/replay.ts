import { type Refused, refused } from '../core/decision.js'
import type { Stored } from '../core/stored.js'
import type { RecordKey } from '../ports/store.js'
import type { SignatureRules } from '../protocol/http-signature/inspect.js'
import { toBase64url } from '../util/bytes.js'
import { hashText } from '../util/hash.js'
import { nonceMarginMs } from './time.js'
import type { Write } from './write.js'

/** A verified signature and its replay identifier. */
export interface Proof {
  /** The thumbprint of the key that signed. */
  readonly thumbprint: string
  readonly keyid: string
  readonly createdAt: number
  readonly nonce?: string
  readonly signature: Uint8Array
}

/**
 * Which byte-identical repeats of a request without a nonce are refused: none; those of a request that succeeded; or
 * all. Ed25519 is deterministic and deployed clients send no nonce, so two legitimate requests in the same second can
 * be byte-identical.
 */
export type RepeatRule = 'accept-repeat' | 'refuse-repeat' | 'refuse-every-repeat'

/** What determines the id and the retention of a replay record. */
export interface ReplaySettings {
  readonly namespace: () => Promise<string>
  readonly signatureRules: Pick<SignatureRules, 'ageMaxMs'>
}

/** The record by which a signed request counts once: that of its nonce, or that of its signature. */
export interface ReplayRecord {
  readonly key: RecordKey
  readonly record: Stored
  readonly of: 'nonce' | 'signature'
  /** Whether a refusal writes it too. */
  readonly byRefusal: boolean
}

/** The signature or nonce of this request has been used before. */
export type Replayed = Refused<'replayed'>

export const replayed: Replayed = refused(
  'replayed',
  'the signature or nonce has already been used',
)

/** Returns the record that makes a request count once, or `undefined` if repeats are accepted. */
export async function replayRecordOf(
  { namespace, signatureRules }: ReplaySettings,
  { thumbprint, nonce, signature, createdAt }: Proof,
  rule: RepeatRule,
  commandId: string,
): Promise<ReplayRecord | undefined> {
  if (nonce === undefined && rule === 'accept-repeat') return undefined
  const unique = nonce === undefined ? `signature ${toBase64url(signature)}` : `nonce ${nonce}`
  const id = (await namespace()) + (await hashText(`${thumbprint} ${unique}`))
  const retainUntil = createdAt + signatureRules.ageMaxMs + nonceMarginMs
  return {
    key: { kind: 'nonce', id },
    record: { id, version: 1, commandId, dueAt: retainUntil, retainUntil },
    of: nonce === undefined ? 'signature' : 'nonce',
    byRefusal: nonce !== undefined || rule === 'refuse-every-repeat',
  }
}

/** Returns a write that takes effect once for a signed request, however often the request is repeated. */
export function once<Result extends { readonly ok: boolean }>(
  write: Write<Result>,
  replay: ReplayRecord | undefined,
): Write<Result | Replayed> {
  if (replay === undefined) return write
  const { key, record, byRefusal } = replay
  const isRead = write.reads.some(({ kind, id }) => kind === key.kind && id === key.id)
  return {
    ...write,
    reads: isRead ? write.reads : [...write.reads, key],
    // Not looked up at the first attempt: a commit that writes the record shows that it did not exist.
    ...(write.known && { known: isRead ? write.known : [...write.known, undefined] }),
    creates: [...(write.creates ?? []), key],
    decide(read) {
      const used = read(key)
      if (used !== undefined && used.commandId !== record.commandId) {
        return { result: write.repeated?.(read) ?? replayed }
      }
      const decision = write.decide(read)
      const isWritten = used !== undefined || decision.recordsSignature === true
      if (isWritten || (!decision.result.ok && !byRefusal)) return decision
      return { ...decision, also: [{ kind: 'nonce', next: record }] }
    },
  }
}
