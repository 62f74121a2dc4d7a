import { createActors, openShops } from './actors/all.js'
import { auditTokens } from './audit.js'
import { count } from './journal.js'
import { makePeace } from './peace.js'
import { withSimulatedTimers } from './timers.js'
import { createTrace } from './trace.js'
import { createWorld, type Mistake } from './world.js'

export interface LifeOptions {
  readonly seed: string
  /** How many things happen before the faults end. */
  readonly steps: number
  readonly mistake?: Mistake
  /** Receives each line of the trace. */
  readonly print?: (line: string) => void
}

export interface Life {
  readonly seed: string
  /** The steps until the life ended or a law was broken. */
  readonly steps: number
  /** What broke the laws; empty for a life without a problem. */
  readonly breaches: readonly string[]
  /** SHA-256 of everything that happened. */
  readonly hash: string
  readonly counts: ReadonlyMap<string, number>
}

/** The most operations that are in progress at the same time. */
const pendingMax = 8

/**
 * Lives one life: clients, owners, payers and operators of one wallet, with all faults at once. After each step every
 * law is checked. The seed alone determines what happens.
 */
export async function live({ seed, steps, mistake, print }: LifeOptions): Promise<Life> {
  const trace = createTrace(print)
  const world = createWorld(seed, trace, mistake)
  const { scheduler, journal } = world
  const { draw } = scheduler
  if (world.isRemote) count(journal, 'lives with remote grants')
  const beginPercent = draw.one(5, 15, 40)
  let step = 0
  await withSimulatedTimers(scheduler, async () => {
    await openShops(world)
    const begin = createActors(world)
    while (step < steps && journal.breaches.length === 0) {
      step += 1
      const begins = scheduler.size() < pendingMax && draw.chance(beginPercent)
      if (begins || !(await scheduler.step())) {
        if (!begins && scheduler.hasTimers() && draw.chance(50)) scheduler.awaitTimer()
        else await begin()
      }
      await auditTokens(world)
    }
    if (journal.breaches.length === 0) await makePeace(world)
  })
  for (const breach of journal.breaches) trace.note(breach)
  return {
    seed,
    steps: step,
    breaches: journal.breaches,
    hash: trace.hash(),
    counts: journal.counts,
  }
}
