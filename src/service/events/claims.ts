import type { Stored } from '../../core/stored.js'
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

/** The outcome of an attempt to claim a slice. */
export type Claimed =
  | {
      readonly isHeld: true
      readonly claim: ClaimRecord
      /** The events that the holder before may have begun to deliver, if it has not given the slice back. */
      readonly abandoned?: readonly string[]
    }
  | { readonly isHeld: false; readonly claim: ClaimRecord }

/** The claims of a process, and what it has seen of those of others. */
export type Claims = ReturnType<typeof createClaims>

export function createClaims(context: ServiceContext) {
  const { pacing } = context
  /** The claim of each slice that was last seen, and since when. */
  const seen = new Map<number, { readonly commandId: string; readonly since: number }>()
  /** The claims that consumers of this process have given back, which are probably still free. */
  const free = new Map<number, ClaimRecord>()
  /** Consumers of this process that have ended without giving their slice back. */
  const ended = new Set<string>()

  const keyOf = async (slice: number) => {
    const namespace = sliceNamespace(await context.namespace(), slice)
    return { kind: 'server', id: `${namespace}.claim` } as const
  }

  /** Notes the claim of another consumer. */
  function see(slice: number, { commandId }: ClaimRecord): void {
    if (seen.get(slice)?.commandId === commandId) return
    seen.set(slice, { commandId, since: pacing.elapsedMs() })
  }

  function abandonedClaim(slice: number): string | undefined {
    const found = seen.get(slice)
    const isOld = found !== undefined && pacing.elapsedMs() - found.since >= abandonedAfterMs
    return isOld ? found.commandId : undefined
  }

  return {
    /**
     * Claims a slice, or extends the claim `held`, for a holder that is about to begin these deliveries. A holder that
     * takes an abandoned slice still has to deal with the events that the holder before had begun, and begins none.
     */
    async take(
      slice: number,
      holder: string,
      started: readonly string[],
      held: ClaimRecord | undefined,
    ): Promise<Claimed> {
      const { commandId } = newCall(context)
      const key = await keyOf(slice)
      const known = held ?? free.get(slice)
      const abandonedId = abandonedClaim(slice)
      free.delete(slice)
      let abandoned: readonly string[] | undefined
      const claimed = await context.run<Claimed>({
        reads: [key],
        ...(known !== undefined && { assumed: { records: recordsOf('server', known) } }),
        decide(read) {
          const found = read<ClaimRecord>(key)
          if (found !== undefined && found.commandId === commandId) {
            return {
              result: { isHeld: true, claim: found, ...(abandoned !== undefined && { abandoned }) },
            }
          }
          const isOthers = found?.holder !== undefined && found.holder !== holder
          const isAbandoned =
            isOthers && (found.commandId === abandonedId || ended.has(found.holder))
          // A consumer that extends a claim must still have it.
          const isLost = held !== undefined && found?.holder !== holder
          if (found !== undefined && ((isOthers && !isAbandoned) || isLost)) {
            return { result: { isHeld: false, claim: found } }
          }
          abandoned = isAbandoned ? found.started : undefined
          const claim: ClaimRecord = {
            ...found,
            id: key.id,
            version: (found?.version ?? 0) + 1,
            commandId,
            holder,
            started: abandoned ?? started,
          }
          const result = {
            isHeld: true,
            claim,
            ...(abandoned !== undefined && { abandoned }),
          } as const
          return { changes: [{ kind: 'server', next: claim }], result }
        },
      })
      if (!claimed.isHeld) see(slice, claimed.claim)
      return claimed
    },

    /** Gives a slice back, unless another consumer has taken it. */
    async release(slice: number, held: ClaimRecord): Promise<void> {
      const { commandId } = newCall(context)
      const key = await keyOf(slice)
      const released = await context.run<ClaimRecord | undefined>({
        reads: [key],
        assumed: { records: recordsOf('server', held) },
        decide(read) {
          const found = read<ClaimRecord>(key)
          if (found?.commandId === commandId) return { result: found }
          if (found === undefined || found.holder !== held.holder) return { result: undefined }
          const { holder: _holder, ...rest } = found
          const next: ClaimRecord = { ...rest, version: rest.version + 1, commandId, started: [] }
          return { changes: [{ kind: 'server', next }], result: next }
        },
      })
      if (released !== undefined) free.set(slice, released)
    },

    /** Leaves a slice to any consumer, after an error of the store. */
    abandon({ holder }: ClaimRecord): void {
      if (holder !== undefined) ended.add(holder)
    },
  }
}
