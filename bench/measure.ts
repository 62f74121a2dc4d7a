type Target = { readonly least: number } | { readonly most: number }

/** One line of the result: a figure, and the bound that it is held against. */
export interface Figure {
  readonly name: string
  readonly value: number
  readonly unit: 'ratio' | 'µs' | 'ms' | 'kB' | 'requests/s' | 'calls' | 'bytes'
  readonly target?: Target
}

export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b)
  const middle = sorted.length >> 1
  const upper = sorted[middle] ?? Number.NaN
  return sorted.length % 2 === 1 ? upper : ((sorted[middle - 1] ?? Number.NaN) + upper) / 2
}

/** Microseconds that one call takes. */
export async function elapsedUs(call: () => unknown): Promise<number> {
  const start = process.hrtime.bigint()
  await call()
  return Number(process.hrtime.bigint() - start) / 1_000
}

/** Microseconds that one call takes, over a run of calls in sequence. */
export async function perCallUs(calls: number, call: () => unknown): Promise<number> {
  const start = process.hrtime.bigint()
  for (let i = 0; i < calls; i++) await call()
  return Number(process.hrtime.bigint() - start) / 1_000 / calls
}

/**
 * Runs contestants round by round, in turn, so that a machine whose speed drifts slows all of them, and
 * answers with each one's figures in the order of the rounds.
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
    // Whoever goes first finds the caches cold: let it be each in turn.
    const turn = names.map((_, index) => names[(index + round) % names.length] as Name)
    for (const name of turn) {
      figures[name].push(await contestants[name]())
    }
  }
  return figures
}

/** The median over the rounds of one contestant's figure by another's, and the bound it is held against. */
export function ratioFigure(
  name: string,
  above: readonly number[],
  below: readonly number[],
  target?: Target,
): Figure {
  const value = median(above.map((figure, index) => figure / (below[index] ?? Number.NaN)))
  return { name, value, unit: 'ratio', ...(target && { target }) }
}

/** The median over the rounds of one contestant's figure. */
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
