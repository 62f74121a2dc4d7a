type Target = { readonly least: number } | { readonly most: number }

/** One line of the result: a figure and its bound. */
export interface Figure {
  readonly name: string
  readonly value: number
  readonly unit: 'ratio' | 'µs' | 'ms' | 'kB' | 'requests/s' | 'receives/s' | 'calls' | 'bytes'
  readonly target?: Target
  /** How much the rounds differ: the largest minus the smallest, of the median. */
  readonly spread?: number
}

export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b)
  const middle = sorted.length >> 1
  const upper = sorted[middle] ?? Number.NaN
  return sorted.length % 2 === 1 ? upper : ((sorted[middle - 1] ?? Number.NaN) + upper) / 2
}

/** Returns the duration of one call in microseconds. */
export async function elapsedUs(call: () => unknown): Promise<number> {
  const start = process.hrtime.bigint()
  await call()
  return Number(process.hrtime.bigint() - start) / 1_000
}

/** Returns the CPU time of this process during one call, in microseconds: other work on the machine is not in it. */
export async function cpuUs(call: () => unknown): Promise<number> {
  const before = process.cpuUsage()
  await call()
  const { user, system } = process.cpuUsage(before)
  return user + system
}

/** Returns the average duration of sequential calls in microseconds. */
export async function perCallUs(calls: number, call: () => unknown): Promise<number> {
  const start = process.hrtime.bigint()
  for (let i = 0; i < calls; i++) await call()
  return Number(process.hrtime.bigint() - start) / 1_000 / calls
}

/**
 * Runs the contestants alternately in rounds, so that a change of the machine's speed affects all of them.
 * Returns the figures of each contestant in the order of the rounds.
 */
export async function interleaved<Name extends string>(
  rounds: number,
  contestants: Readonly<Record<Name, () => Promise<number>>>,
): Promise<Record<Name, number[]>> {
  const names = Object.keys(contestants) as Name[]
  const figures = Object.fromEntries(names.map((name) => [name, []])) as unknown as Record<
    Name,
    number[]
  >
  for (const name of names) await contestants[name]()
  for (let round = 0; round < rounds; round++) {
    // The first contestant of a round finds cold caches, so the order rotates.
    const turn = names.map((_, index) => names[(index + round) % names.length] as Name)
    for (const name of turn) {
      figures[name].push(await contestants[name]())
    }
  }
  return figures
}

/** Returns the median over the rounds of the ratio between two contestants, with its bound. */
export function ratioFigure(
  name: string,
  above: readonly number[],
  below: readonly number[],
  target?: Target,
): Figure {
  const value = median(above.map((figure, index) => figure / (below[index] ?? Number.NaN)))
  return { name, value, unit: 'ratio', ...(target && { target }) }
}

/** Returns the median over the rounds of one contestant's figure, and how much they differ. */
export function medianFigure(
  name: string,
  figures: readonly number[],
  unit: Figure['unit'],
): Figure {
  const value = median(figures)
  const spread = (Math.max(...figures) - Math.min(...figures)) / value
  return { name, value, unit, spread }
}

export function meets({ value, target }: Figure): boolean | undefined {
  if (target === undefined) return undefined
  return 'least' in target ? value >= target.least : value <= target.most
}

/** Above these, other work on the machine decides the figures, or its speed changes. */
const loadMax = 0.5
const floorSpreadMax = 0.3

/** What shows whether the machine was quiet: the average load of a core, and how much the rounds of floors differ. */
export interface Quietness {
  readonly loadBefore: number
  /** Contains the load of the measurement itself. */
  readonly loadAfter: number
  readonly floorSpread: number
  readonly isQuiet: boolean
}

export function quietnessOf(
  load: { readonly before: number; readonly after: number },
  figures: readonly Figure[],
): Quietness {
  const floors = figures.filter(({ name }) => name.startsWith('floor server'))
  const floorSpread = Math.max(0, ...floors.map(({ spread = 0 }) => spread))
  const isQuiet = load.before <= loadMax && floorSpread <= floorSpreadMax
  return { loadBefore: load.before, loadAfter: load.after, floorSpread, isQuiet }
}
