import { type Refused, refused } from '../core/decision.js'
import type { GrantKey } from '../core/grant/record.js'
import type { Instant } from '../core/instant.js'
import { retained, type Stored } from '../core/stored.js'
import type { RecordKey } from '../ports/store.js'
import type { SignatureRules } from '../protocol/http-signature/inspect.js'
import { toBase64url } from '../util/bytes.js'
import { given } from '../util/given.js'
import { shortHashText } from '../util/hash.js'
import type { Call, ServiceContext } from './context.js'
import type { Read } from './load.js'
import { replayMarginMs } from './time.js'
import { answerWrite, type Decided, type Write } from './write/write.js'

/** A verified signature and its replay identifier. */
export interface Proof {
  readonly key: GrantKey
  readonly createdAt: number
  readonly nonce?: string
  readonly signature: Uint8Array
}

/**
 * Which byte-identical repeats of a request without a nonce are recognized: none; repeats of a request that succeeded;
 * of one that was refused; or all. Ed25519 is deterministic and deployed clients send no nonce, so two legitimate
 * requests in the same second can be byte-identical.
 */
export type RepeatRule = 'accept' | 'refuse' | 'refuse-refused' | 'refuse-every'

interface ReplaySettings {
  readonly namespace: () => Promise<string>
  readonly signatureRules: Pick<SignatureRules, 'ageMaxMs'>
}

/** The record of a signed request that was answered. Its id is a hash of its nonce, or else of its signature. */
export interface UsedSignature extends Stored {
  /** The short hash of the signature; absent if the id is a hash of it. */
  readonly signatureHash?: string
  /**
   * The id of the payment or quote that the request created, or that an earlier one had created. Absent if the request
   * says it, by its quote or its idempotency key.
   */
  readonly resultId?: string
  readonly refusal?: Pick<Refused<string>, 'refusal' | 'reason' | 'retryAt' | 'details'>
}

/** The record by which a signed request counts once. It identifies the request by its nonce or signature. */
export interface ReplayRecord {
  readonly key: RecordKey
  readonly record: UsedSignature
  /** Whether a success writes it, and whether a refusal does. */
  readonly bySuccess: boolean
  readonly byRefusal: boolean
}

/** The nonce of this request has been used before, with another signature. */
const replayed = refused('replayed', 'the nonce has already been used')

/** This request was answered before, and its answer cannot be given again. */
export interface Repeated extends Refused<'repeated'> {
  readonly resultId?: string
}

/** The signature or nonce of this request has been used before. */
export type Replayed = typeof replayed | Repeated

/** Returns the record that makes a request count once, or `undefined` if repeats are accepted. */
export async function replayRecordOf(
  { namespace, signatureRules }: ReplaySettings,
  { key: { thumbprint }, nonce, signature, createdAt }: Proof,
  rule: RepeatRule,
  commandId: string,
): Promise<ReplayRecord | undefined> {
  const hasNonce = nonce !== undefined
  if (!hasNonce && rule === 'accept') return undefined
  const unique = hasNonce ? `nonce ${nonce}` : `signature ${toBase64url(signature)}`
  const id = (await namespace()) + (await shortHashText(`${thumbprint} ${unique}`))
  const until = retainReplayUntil(createdAt, signatureRules)
  return {
    key: { kind: 'replay', id },
    record: {
      id,
      version: 1,
      commandId,
      ...retained(until),
      ...(hasNonce && { signatureHash: await shortHashText(signature) }),
    },
    bySuccess: hasNonce || rule !== 'refuse-refused',
    byRefusal: hasNonce || rule !== 'refuse',
  }
}

export function isSameSignature(used: UsedSignature, { record }: ReplayRecord): boolean {
  return used.commandId !== record.commandId && used.signatureHash === record.signatureHash
}

/** Returns until when the record of a signed request is kept: as long as any server can accept the signature. */
function retainReplayUntil(
  createdAt: Instant,
  { ageMaxMs }: Pick<SignatureRules, 'ageMaxMs'>,
): Instant {
  return createdAt + ageMaxMs + replayMarginMs
}

export interface SignedCall extends Call {
  /** Its signature, which only a byte-identical repeat of the request has. */
  readonly proof: Proof
  /** The record that makes the request count once; absent if its repeats are accepted. */
  readonly replay: ReplayRecord | undefined
  /**
   * Executes a write, and records in the same commit that the request was used.
   *
   * @param decideRepeated decides about a repeat of a request that succeeded. If it returns `undefined`, as by default,
   *   the request is refused as repeated.
   */
  run<Result extends Answer>(
    write: Write<Result>,
    decideRepeated?: DecideRepeated<Result>,
  ): Promise<Result | Replayed>
}

type DecideRepeated<Result> = (read: Read, used: UsedSignature) => Decided<Result> | undefined

interface Answer {
  readonly ok: boolean
}

interface RepeatedAnswers<Answered> {
  /**
   * Answers a repeat of a request that succeeded, if `call.run` has not done so. Resolves to `undefined` to refuse it,
   * as by default.
   *
   * @param resultId the id of what the request created.
   */
  readonly again?: (resultId: string | undefined) => Promise<Answered | undefined>
  /** Whether repeating this answer is harmless, so that nothing is recorded. Default: never. */
  readonly isHarmless?: (answer: Answered) => boolean
}

/**
 * Runs the operation of a signed request, which counts once. What the operation writes with `call.run` is committed
 * together with the replay record. If it writes nothing, a commit of its own writes the record before the answer is
 * returned. An interim result writes no record: if the token is refused after it, none is written, as for any request
 * whose token is refused.
 *
 * As long as a repeat of the request authenticates, its answer never says that the first was not carried out: it gets
 * the result of the first, or its refusal, or is refused as `repeated`.
 */
export async function countOnce<Answered extends Answer>(
  context: ServiceContext,
  call: Call,
  proof: Proof,
  rule: RepeatRule,
  operation: (call: SignedCall) => Promise<Answered>,
  { again, isHarmless = () => false }: RepeatedAnswers<Answered> = {},
): Promise<Answered | Replayed> {
  const replay = await replayRecordOf(context, proof, rule, call.commandId)
  let hasRun = false
  const run: SignedCall['run'] = (write, decideRepeated) => {
    hasRun = true
    return context.run(countedOnceWrite(write, replay, decideRepeated))
  }
  // In Node 20, a literal that begins with a spread takes 1 µs for each member that the spread object lacks.
  const answer = await operation({ proof, replay, run, ...call })
  const needsNoRecord = replay === undefined || hasRun || isHarmless(answer)
  const counted = needsNoRecord ? answer : await run<Answered>(answerWrite(answer))
  return (again && isRepeated(counted) && (await again(counted.resultId))) || counted
}

function isRepeated(answer: Answer): answer is Repeated {
  return !answer.ok && (answer as Refused<string>).refusal === 'repeated'
}

/**
 * Returns a write that takes effect once for a signed request, however often the request is repeated. It writes the
 * replay record in the commit of the answer: with a nonce always, and without one as its rule says. An equal request
 * finds the record, or loses the race to write it.
 */
export function countedOnceWrite<Result extends Answer>(
  write: Write<Result>,
  replay: ReplayRecord | undefined,
  decideRepeated?: DecideRepeated<Result>,
): Write<Result | Replayed> {
  if (replay === undefined) return write
  const { key, record } = replay
  return {
    ...write,
    // If the write has a basis, the replay record is assumed not to exist. If it does, the commit fails.
    reads: [...write.reads, key],
    decide(read) {
      const used = read<UsedSignature>(key)
      if (used !== undefined && used.commandId !== record.commandId) {
        if (!isSameSignature(used, replay)) return { type: 'repeat', result: replayed }
        const again = refusedAgain<Result>(used) ?? decideRepeated?.(read, used) ?? repeated(used)
        return asRepeat<Result | Repeated>(again)
      }
      const decision = write.decide(read)
      if (used !== undefined) return asRepeat(decision)
      const next = usedBy(replay, decision)
      if (next === undefined) return decision
      return Object.assign({}, decision, { also: [{ kind: 'replay', next }] as const })
    },
  }
}

/** A request that is used was answered by a commit that took effect. */
function asRepeat<Result>(decision: Decided<Result>): Decided<Result> {
  return decision.type === 'answer' ? { ...decision, type: 'repeat' } : decision
}

/** Returns the record of an answered request, or `undefined` if this answer needs none. */
function usedBy<Result extends Answer>(
  { record, bySuccess, byRefusal }: ReplayRecord,
  decision: Decided<Result>,
): UsedSignature | undefined {
  const { type, result } = decision
  if (type === 'interim' || !(result.ok ? bySuccess : byRefusal)) return undefined
  const { resultId } = decision
  if (result.ok) return resultId === undefined ? record : { resultId, ...record }
  const { refusal, reason, retryAt, details } = result as unknown as Refused<string>
  return { ...record, refusal: { refusal, reason, ...given({ retryAt, details }) } }
}

/** The refusal of a request that was refused before. */
function refusedAgain<Result>({ refusal }: UsedSignature): Decided<Result> | undefined {
  if (refusal === undefined) return undefined
  return { type: 'repeat', result: { ok: false, outcome: 'refused', ...refusal } as Result }
}

function repeated({ resultId }: UsedSignature): Decided<Repeated> {
  const refusal = refused('repeated', 'the request has been answered before')
  return { type: 'repeat', result: resultId === undefined ? refusal : { ...refusal, resultId } }
}
