const depth = process.env['TEST_DEPTH']

/** Whether this is `npm run test:long`. */
export const isLong = depth === 'long'

/**
 * Returns the number of runs of a property: `all` in `npm run test:long`, by default an eighth in `npm test`, and half
 * of those of `npm test` in `npm run mutation`, which runs each property for each mutant.
 */
export function runs(all: number, short = Math.ceil(all / 8)): number {
  if (depth === 'mutation') return Math.ceil(short / 2)
  return isLong ? all : short
}
