import { type Refused, refused } from '../core/decision.js'
import type { GrantKey } from '../core/grant/record.js'
import type { Instant } from '../core/instant.js'
import { retained, type Stored } from '../core/stored.js'
import type { RecordKey } from '../ports/store.js'
import type { SignatureRules } from '../protocol/http-signature/inspect.js'
import { toBase64url } from '../util/bytes.js'
import { hashText } from '../util/hash.js'
import type { Call, ServiceContext } from './context.js'
import type { Read } from './load.js'
import { replayMarginMs } from './time.js'
import { answerWrite, type Decided, type Write } from './write/write.js'

/** A verified signature and its replay identifier. */
export interface Proof {
  /** The key that signed. */
  readonly key: GrantKey
  readonly createdAt: number
  readonly nonce?: string
  readonly signature: Uint8Array
}

/**
 * Which byte-identical repeats of a request without a nonce are refused: none; repeats of a request that succeeded; or
 * all. Ed25519 is deterministic and deployed clients send no nonce, so two legitimate requests in the same second can
 * be byte-identical.
 */
export type RepeatRule = 'accept' | 'refuse' | 'refuse-every'

/** The values that determine the id and the retention of a replay record. */
interface ReplaySettings {
  readonly namespace: () => Promise<string>
  readonly signatureRules: Pick<SignatureRules, 'ageMaxMs'>
}

/** The record by which a signed request counts once. It identifies the request by its nonce or signature. */
export interface ReplayRecord {
  readonly key: RecordKey
  readonly record: Stored
  readonly of: 'nonce' | 'signature'
  /** Whether a refusal writes it too. */
  readonly byRefusal: boolean
}

/** The signature or nonce of this request has been used before. */
export type Replayed = Refused<'replayed'>

const replayed: Replayed = refused('replayed', 'the signature or nonce has already been used')

/** Returns the record that makes a request count once, or `undefined` if repeats are accepted. */
export async function replayRecordOf(
  { namespace, signatureRules }: ReplaySettings,
  { key: { thumbprint }, nonce, signature, createdAt }: Proof,
  rule: RepeatRule,
  commandId: string,
): Promise<ReplayRecord | undefined> {
  if (nonce === undefined && rule === 'accept') return undefined
  const unique = nonce === undefined ? `signature ${toBase64url(signature)}` : `nonce ${nonce}`
  const id = (await namespace()) + (await hashText(`${thumbprint} ${unique}`))
  const until = retainReplayUntil(createdAt, signatureRules)
  return {
    key: { kind: 'replay', id },
    record: { id, version: 1, commandId, ...retained(until) },
    of: nonce === undefined ? 'signature' : 'nonce',
    byRefusal: nonce !== undefined || rule === 'refuse-every',
  }
}

/** Returns until when the record of a signed request is kept: as long as any server can accept the signature. */
function retainReplayUntil(
  createdAt: Instant,
  { ageMaxMs }: Pick<SignatureRules, 'ageMaxMs'>,
): Instant {
  return createdAt + ageMaxMs + replayMarginMs
}

/** The call of a signed request, which counts once. */
export interface SignedCall extends Call {
  /** Its signature, which only a byte-identical repeat of the request has. */
  readonly proof: Proof
  /** The record that makes the request count once; absent if its repeats are accepted. */
  readonly replay: ReplayRecord | undefined
  /**
   * Executes a write, and records in the same commit that the request was used.
   *
   * @param decideReplayed decides about a byte-identical repeat. If it returns `undefined`, as by default, the
   *   repeat is refused as a replay.
   */
  run<Result extends Answer>(
    write: Write<Result>,
    decideReplayed?: DecideReplayed<Result>,
  ): Promise<Result | Replayed>
}

type DecideReplayed<Result> = (read: Read) => Decided<Result> | undefined

interface Answer {
  readonly ok: boolean
}

/**
 * Runs the operation of a signed request, which counts once. What the operation writes with `call.run` is committed
 * together with the replay record. If it writes nothing, a commit of its own writes the record before the answer is
 * returned. An interim result writes no record: if the token is refused after it, none is written, as for any request
 * whose token is refused.
 *
 * @param isHarmless whether repeating this answer is harmless, so that nothing is recorded. Default: never.
 */
export async function countOnce<Answered extends Answer>(
  context: ServiceContext,
  call: Call,
  proof: Proof,
  rule: RepeatRule,
  operation: (call: SignedCall) => Promise<Answered>,
  isHarmless: (answer: Answered) => boolean = () => false,
): Promise<Answered | Replayed> {
  const replay = await replayRecordOf(context, proof, rule, call.commandId)
  let hasRun = false
  const run: SignedCall['run'] = (write, decideReplayed) => {
    hasRun = true
    return context.run(countedOnceWrite(write, replay, decideReplayed))
  }
  // In Node 20, a literal that begins with a spread takes 1 µs for each member that the spread object lacks.
  const answer = await operation({ proof, replay, run, ...call })
  const needsNoRecord = replay === undefined || hasRun || isHarmless(answer)
  return needsNoRecord ? answer : run<Answered>(answerWrite(answer))
}

/**
 * Returns a write that takes effect once for a signed request, however often the request is repeated. It writes the
 * replay record in the commit of the answer: with a nonce always, and without one if the request succeeds, or with
 * `refuse-every` also if it is refused. An equal request finds the record, or loses the race to write it.
 */
export function countedOnceWrite<Result extends Answer>(
  write: Write<Result>,
  replay: ReplayRecord | undefined,
  decideReplayed?: DecideReplayed<Result>,
): Write<Result | Replayed> {
  if (replay === undefined) return write
  const { key, record, byRefusal } = replay
  return {
    ...write,
    // If the write has `assumed` records, the replay record is assumed not to exist. If it does, the commit fails.
    reads: [...write.reads, key],
    decide(read) {
      const used = read(key)
      if (used !== undefined && used.commandId !== record.commandId) {
        return { ...(decideReplayed?.(read) ?? { result: replayed }), tookEffect: true }
      }
      const decision = write.decide(read)
      if (used !== undefined) return { ...decision, tookEffect: true }
      const isRecorded = !decision.isInterim && (decision.result.ok || byRefusal)
      return isRecorded ? { ...decision, also: [{ kind: 'replay', next: record }] } : decision
    },
  }
}
