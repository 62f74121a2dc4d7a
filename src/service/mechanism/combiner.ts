import { storeBounds } from '../../ports/store.js'
import type { Pacing } from './pacing.js'
import { storeTimeoutDefaultMs } from './timed-store.js'
import { ContentionError } from './transact.js'

/**
 * Combines concurrent commands of this process on one record. While a commit is in progress, further commands wait;
 * the next commit decides all of them in the order of their arrival. Alone, each would need its own commit, and all
 * but one would lose the race for the record.
 */
export interface Combiner {
  /**
   * Resolves to the command's own result after the commit that decided it.
   *
   * @param key the name of the record. All commands with a key must pass equivalent functions.
   * @param decideAll decides commands in order, and resolves to a result for each one after the commit. `waited` says
   *   whether the commands waited for another commit.
   * @param most the maximum number of commands that one commit decides, see `combinedMaxOf`.
   * @throws {ContentionError} if too many commands wait, or the command has waited too long.
   */
  run<Command, Result>(
    key: string,
    command: Command,
    decideAll: (commands: readonly Command[], waited: boolean) => Promise<readonly Result[]>,
    most: number,
  ): Promise<Result>
}

/** What one commit of several commands writes: records, list entries and guards, without events. */
export interface CommandsSize {
  readonly each: number
  readonly once: number
  /** The number of events in addition to one for each command. */
  readonly eventsOnce: number
}

/** An event and its list entry. */
const eventSize = 2

/**
 * Returns the maximum number of commands that one commit decides, so that it stays within `storeBounds.commitSize`.
 * Each consumer of events gets its own events.
 */
export function combinedMaxOf(consumers: number, { each, once, eventsOnce }: CommandsSize): number {
  const left = storeBounds.commitSize - once - eventsOnce * eventSize * consumers
  return Math.floor(left / (each + eventSize * consumers))
}

/** The maximum number of commands that wait for one record. */
export const waitingMax = 1_000

/** A command with the promise of its result. The combiner does not know their types. */
interface Waiting {
  readonly command: unknown
  readonly decided: (result: unknown) => void
  readonly failed: (error: unknown) => void
}

type DecideAll = (commands: readonly unknown[], waited: boolean) => Promise<readonly unknown[]>

/** @param waitMaxMs how long a command waits until a commit begins that decides it, in milliseconds. */
export function createCombiner(pacing: Pacing, waitMaxMs = storeTimeoutDefaultMs): Combiner {
  /** The commands that wait for each record with a commit in progress. */
  const waitingFor = new Map<string, Waiting[]>()

  async function decideFrom(
    key: string,
    first: Waiting,
    decideAll: DecideAll,
    most: number,
  ): Promise<void> {
    const waiting: Waiting[] = []
    waitingFor.set(key, waiting)
    for (let batch = [first]; batch.length > 0; batch = waiting.splice(0, most)) {
      await decideBatch(batch, (commands) => decideAll(commands, batch[0] !== first))
    }
    waitingFor.delete(key)
  }

  async function wait(waiting: Waiting[], entry: Waiting, begun: AbortSignal): Promise<void> {
    waiting.push(entry)
    await pacing.sleep(waitMaxMs, begun)
    const index = waiting.indexOf(entry)
    if (index === -1) return
    waiting.splice(index, 1)
    entry.failed(new ContentionError())
  }

  return {
    run<Command, Result>(
      key: string,
      command: Command,
      decideAll: (commands: readonly Command[], waited: boolean) => Promise<readonly Result[]>,
      most: number,
    ): Promise<Result> {
      return new Promise<Result>((resolve, reject) => {
        const waiting = waitingFor.get(key)
        const begun = new AbortController()
        const entry = waitingEntry(command, begun, resolve, reject)
        if (waiting === undefined) void decideFrom(key, entry, decideAll as DecideAll, most)
        else if (waiting.length >= waitingMax) entry.failed(new ContentionError())
        else void wait(waiting, entry, begun.signal)
      })
    },
  }
}

function waitingEntry<Result>(
  command: unknown,
  begun: AbortController,
  resolve: (result: Result) => void,
  reject: (error: unknown) => void,
): Waiting {
  return {
    command,
    decided(result) {
      begun.abort()
      resolve(result as Result)
    },
    failed(error) {
      begun.abort()
      reject(error)
    },
  }
}

async function decideBatch(
  batch: readonly Waiting[],
  decideAll: (commands: readonly unknown[]) => Promise<readonly unknown[]>,
): Promise<void> {
  try {
    const results = await decideAll(batch.map(({ command }) => command))
    for (const [index, { decided }] of batch.entries()) decided(results[index])
  } catch (error) {
    for (const { failed } of batch) failed(error)
  }
}
