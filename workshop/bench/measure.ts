type Target = { readonly least: number } | { readonly most: number }

/** One line of the result: a figure and its bound. */
export interface Figure {
  readonly name: string
  readonly value: number
  readonly unit: 'ratio' | 'µs' | 'ms' | 'kB' | 'requests/s' | 'receives/s' | 'calls' | 'bytes'
  readonly target?: Target
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

/** Returns the median over the rounds of one contestant's figure. */
export function medianFigure(
  name: string,
  figures: readonly number[],
  unit: Figure['unit'],
): Figure {
  return { name, value: median(figures), unit }
}

export function meets({ value, target }: Figure): boolean | undefined {
  if (target === undefined) return undefined
  return 'least' in target ? value >= target.least : value <= target.most
}
