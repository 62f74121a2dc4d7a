const depth = process.env['TEST_DEPTH']

/** Whether this is `npm run test:long`. */
export const isLong = depth === 'long'

/** Ends the title of a test with a server that `npm run test:long` alone runs: the checks ask who runs it. */
export const onlyLong = isLong ? '' : ' (skipped: run npm run test:long)'

/** Whether this is `npm test`. */
export const isShort = depth === 'short'

/**
 * Returns the number of runs of a property: `all` in `npm run test:long`, and `short`, by default a twelfth, in
 * `npm test`. `npm run mutation` runs each property for each mutant: half of `short`, by default a sixteenth.
 */
export function runs(all: number, short?: number): number {
  if (depth === 'mutation') return Math.ceil(short === undefined ? all / 16 : short / 2)
  return isLong ? all : (short ?? Math.ceil(all / 12))
}

/**
 * Returns what of a list runs in `npm test`: its first. The others show the same again, such as that a search finds a
 * mistake, and run in `npm run test:long`.
 */
export function some<T>(all: readonly T[], short = 1): readonly T[] {
  return isShort ? all.slice(0, short) : all
}

/** Options of the suite for stores on servers that a busy machine makes slow: only a case that hangs takes longer. */
export const patient = { sameData: true, timeoutMs: 600_000 }
