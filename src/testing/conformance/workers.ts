import type { Store } from 'open-payments-server'
import { demand, type TestRecord } from './trial.js'

/** Far more attempts than a writer of one record can lose in this suite. */
const attemptsMax = 500

/** Repeats an attempt until it succeeds. Every lost race has a winner, so this ends. */
export async function repeatedly(attempt: () => Promise<boolean>): Promise<void> {
  for (let attempts = 0; attempts < attemptsMax; attempts++) {
    if (await attempt()) return
  }
  throw new Error(
    `${attemptsMax} commits in a row returned false, each over records loaded right before it; one of ` +
      'the racing commits must succeed each time',
  )
}

/** Loads a grant that must exist. */
export async function loadExisting(store: Store, id: string): Promise<TestRecord> {
  const found = await store.load('grant', id)
  demand(
    found !== undefined,
    `load does not find ${id}, which was written by a commit that returned true`,
  )
  return found as TestRecord
}

/** Returns the count that a record stores. */
export function countOf(counter: TestRecord): number {
  return Number(counter['count'])
}

/** Returns the same items in another order. */
export function shuffled<Item>(items: readonly Item[], index: (bound: number) => number): Item[] {
  const left = [...items]
  return items.flatMap(() => left.splice(index(left.length), 1))
}
