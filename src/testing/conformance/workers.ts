import { demand, type TestRecord, type TrialStore } from './trial.js'

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

/** Loads a record that must exist. */
export async function loadExisting(store: TrialStore, id: string): Promise<TestRecord> {
  const found = await store.load(store.kind, id)
  demand(
    found !== undefined,
    `load does not find ${id}, which was written by a commit that returned true`,
  )
  return found as TestRecord
}

/** Returns the text of a command id that stores a number. */
export function numbered(count: number): string {
  return `number-${count}.`
}

/** Returns the number that the command id of a record stores. */
export function countOf({ commandId }: TestRecord): number {
  return Number(/^number-(-?\d+)-/.exec(commandId)?.[1])
}

/** Returns the same items in another order. */
export function shuffled<Item>(items: readonly Item[], index: (bound: number) => number): Item[] {
  const left = [...items]
  return items.flatMap(() => left.splice(index(left.length), 1))
}
