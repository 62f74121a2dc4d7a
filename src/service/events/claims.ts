import type { Stored } from '../../core/stored.js'
import { newUniqueText } from '../../protocol/credential.js'
import { newCall, type ServiceContext } from '../context.js'
import { sliceNamespace } from '../event-record.js'
import { recordsOf } from '../load.js'

/**
 * Which consumer delivers the events of a slice. Each slice has one such record, of the kind `server`, that no query
 * finds. The holder changes it at least every few seconds.
 */
export interface ClaimRecord extends Stored {
  /** The consumer that holds the slice; absent if it is free. */
  readonly holder?: string
  /** The ids of the event records that the holder may have begun to deliver, and that have no lease of their own. */
  readonly started: readonly string[]
}

/** How long after it has sent the commit of its claim a holder may begin a delivery, in milliseconds. */
export const beginWithinMs = 5_000

/** How long after that the holder stops deliveries, if it cannot change its claim, in milliseconds. */
export const stopAfterMs = 10_000

/**
 * How long a claim must not have changed before another consumer takes it, in milliseconds of that consumer's own
 * stopwatch. It is longer than the others, because a claim takes effect after its holder has sent it.
 */
export const abandonedAfterMs = 15_000

export type Claimed =
  | {
      readonly isHeld: true
      readonly claim: ClaimRecord
      /** The events that the holder before may have begun to deliver, if it has not given the slice back. */
      readonly abandoned?: readonly string[]
    }
  | { readonly isHeld: false; readonly claim: ClaimRecord }

export interface ClaimAttempt {
  readonly id: string
  readonly commandId: string
  readonly holder: string
  /** The ids of the events that the holder is about to deliver. */
  readonly started: readonly string[]
  readonly isRenewal: boolean
  /** Whether a consumer that holds the slice by this claim has abandoned it. */
  readonly isAbandoned: (claim: ClaimRecord) => boolean
}

/**
 * Decides whether a consumer gets a slice. One that takes an abandoned slice still has to deal with the events that the
 * holder before had begun, and begins none.
 */
export function decideClaim(
  found: ClaimRecord | undefined,
  { id, commandId, holder, started, isRenewal, isAbandoned }: ClaimAttempt,
): Claimed {
  const isOthers = found?.holder !== undefined && found.holder !== holder
  const takesOver = isOthers && isAbandoned(found)
  // A consumer that renews a claim must still have it.
  const isLost = isRenewal && found?.holder !== holder
  if (found !== undefined && ((isOthers && !takesOver) || isLost)) {
    return { isHeld: false, claim: found }
  }
  const abandoned = takesOver ? found.started : undefined
  const version = (found?.version ?? 0) + 1
  const claim = { ...found, id, version, commandId, holder, started: abandoned ?? started }
  return { isHeld: true, claim, ...(abandoned !== undefined && { abandoned }) }
}

/** Returns the record of a slice that its holder gives back, or `undefined` if another consumer has taken it. */
export function decideRelease(
  found: ClaimRecord | undefined,
  holder: string | undefined,
  commandId: string,
): ClaimRecord | undefined {
  if (found === undefined || found.holder !== holder) return undefined
  const { holder: _holder, ...rest } = found
  return { ...rest, version: rest.version + 1, commandId, started: [] }
}

/** The claims of a process, and what it has seen of those of others. */
export type Claims = ReturnType<typeof createClaims>

export function createClaims(context: ServiceContext) {
  const { pacing } = context
  /** The claim of each slice that was last seen, and since when. */
  const seen = new Map<number, { readonly commandId: string; readonly since: number }>()
  /** The claims that consumers of this process have given back, which are probably still free. */
  const free = new Map<number, ClaimRecord>()
  /** The last consumer of this process that has ended without giving a slice back. */
  const ended = new Map<number, string>()

  const keyOf = async (slice: number) => {
    const namespace = sliceNamespace(await context.namespace(), slice)
    return { kind: 'server', id: `${namespace}.claim` } as const
  }

  /** Notes the claim of another consumer. */
  function see(slice: number, { commandId }: ClaimRecord): void {
    if (seen.get(slice)?.commandId === commandId) return
    seen.set(slice, { commandId, since: pacing.elapsedMs() })
  }

  /** Returns how to recognize a claim whose holder no longer renews it. */
  function abandonedIn(slice: number): ClaimAttempt['isAbandoned'] {
    const found = seen.get(slice)
    const isOld = found !== undefined && pacing.elapsedMs() - found.since >= abandonedAfterMs
    return ({ commandId, holder }) =>
      (isOld && commandId === found.commandId) ||
      (holder !== undefined && holder === ended.get(slice))
  }

  /** Leaves a slice to any consumer, after an error of the store. */
  function abandon(slice: number, holder: string | undefined): void {
    if (holder !== undefined) ended.set(slice, holder)
  }

  return {
    abandon,

    /** Claims a slice for a holder that is about to begin these deliveries, or renews the claim `held`. */
    async take(
      slice: number,
      started: readonly string[],
      held: ClaimRecord | undefined,
    ): Promise<Claimed> {
      const { commandId } = newCall(context)
      const key = await keyOf(slice)
      const holder = held?.holder ?? newUniqueText(context.random)
      const known = held ?? free.get(slice)
      const isAbandoned = abandonedIn(slice)
      const isRenewal = held !== undefined
      const attempt = { id: key.id, commandId, holder, started, isRenewal, isAbandoned }
      free.delete(slice)
      let last: Claimed | undefined
      try {
        const claimed = await context.run<Claimed>({
          reads: [key],
          ...(known !== undefined && {
            basis: { type: 'loaded', records: recordsOf('server', known) },
          }),
          decide(read) {
            const found = read<ClaimRecord>(key)
            // An earlier commit of this call has taken effect.
            if (last !== undefined && found?.commandId === commandId) {
              return { type: 'answer', result: { ...last, claim: found } }
            }
            const result = decideClaim(found, attempt)
            last = result
            return result.isHeld
              ? { type: 'commit', changes: [{ kind: 'server', next: result.claim }], result }
              : { type: 'answer', result }
          },
        })
        if (!claimed.isHeld) see(slice, claimed.claim)
        return claimed
      } catch (error) {
        // The commit may have taken effect.
        if (!isRenewal) abandon(slice, holder)
        throw error
      }
    },

    /** Gives a slice back, unless another consumer has taken it. */
    async release(slice: number, held: ClaimRecord): Promise<void> {
      const { commandId } = newCall(context)
      const key = await keyOf(slice)
      const released = await context.run<ClaimRecord | undefined>({
        reads: [key],
        basis: { type: 'loaded', records: recordsOf('server', held) },
        decide(read) {
          const found = read<ClaimRecord>(key)
          if (found?.commandId === commandId) return { type: 'answer', result: found }
          const next = decideRelease(found, held.holder, commandId)
          return next === undefined
            ? { type: 'answer', result: undefined }
            : { type: 'commit', changes: [{ kind: 'server', next }], result: next }
        },
      })
      if (released !== undefined) free.set(slice, released)
    },
  }
}
