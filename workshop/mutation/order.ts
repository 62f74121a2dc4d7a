import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs'

/*
 * The run of a mutant ends at the first test that fails. Tests that take less time are therefore first, and those that
 * have found other mutants.
 */

interface Cost {
  ms: number
  found: number
}

export interface Test {
  readonly fullTitle: () => string
}

/** What the run without mutants has measured, for the processes that begin after it. */
const file = '.mutation/costs.json'
const isFirst = !existsSync(file)
const costs = new Map<string, Cost>(
  isFirst ? [] : Object.entries(JSON.parse(readFileSync(file, 'utf8'))),
)

/** The processor time that this process has taken, in milliseconds. A busy machine does not lengthen it. */
export function usedMs(): number {
  const { user, system } = process.cpuUsage()
  return (user + system) / 1_000
}

/** Returns how long a test takes at most. */
export function mostMs(title: string): number {
  const { ms } = costs.get(title) ?? { ms: Number.POSITIVE_INFINITY }
  return 300 + 5 * ms
}

/** Runs a test, and notes how long it takes. */
export async function measured(title: string, run: () => Promise<void>): Promise<void> {
  const startedAt = usedMs()
  const { ms, found } = costs.get(title) ?? { ms: Number.POSITIVE_INFINITY, found: 0 }
  try {
    await run()
    costs.set(title, { ms: Math.min(ms, usedMs() - startedAt), found })
  } catch (error) {
    costs.set(title, { ms, found: found + 1 })
    throw error
  }
}

/** Sorts tests in place. */
export function sort(tests: Test[]): void {
  const costOf = (test: Test) => {
    const { ms = 0, found = 0 } = costs.get(test.fullTitle()) ?? {}
    return ms / (1 + found)
  }
  tests.sort((one, other) => costOf(one) - costOf(other))
}

/** Keeps the costs for processes that begin later. */
export function keepCosts(): void {
  if (!isFirst) return
  // Renamed, because another process may be reading it.
  const own = `${file}.${process.pid}`
  writeFileSync(own, JSON.stringify(Object.fromEntries(costs)))
  renameSync(own, file)
}
