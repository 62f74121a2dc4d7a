import type { Store } from 'open-payments-server'
import { demand, type TestRecord } from './trial.js'

/** Far more than writers of one record can lose to each other in this suite. */
const attemptsMax = 500

/** Tries until it is told that it worked. Whoever loses has lost to somebody, so this ends. */
export async function repeatedly(attempt: () => Promise<boolean>): Promise<void> {
  for (let attempts = 0; attempts < attemptsMax; attempts++) {
    if (await attempt()) return
  }
  throw new Error(
    `${attemptsMax} commits in a row answered false, each over records loaded right before it; of ` +
      'those who race one should win each time',
  )
}

/** A grant that is known to exist. */
export async function loadExisting(store: Store, id: string): Promise<TestRecord> {
  const found = await store.load('grant', id)
  demand(
    found !== undefined,
    `load does not find ${id}, which a commit that answered true has written`,
  )
  return found as TestRecord
}

/** What a record that counts has counted. */
export function countOf(counter: TestRecord): number {
  return Number(counter['count'])
}

/** The same items in another order. */
export function shuffled<Item>(items: readonly Item[], index: (bound: number) => number): Item[] {
  const left = [...items]
  return items.flatMap(() => left.splice(index(left.length), 1))
}
