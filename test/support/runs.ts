/** Whether this is `npm run test:long`. */
export const isLong = process.env['TEST_DEPTH'] === 'long'

/** Returns the number of runs of a property: `all` in `npm run test:long`, by default a quarter in `npm test`. */
export function runs(all: number, short = Math.ceil(all / 4)): number {
  return isLong ? all : short
}
