/**
 * Returns the number of runs of a property: all of them in `npm run test:long`, and a quarter of them in `npm
 * test`.
 */
export function runs(all: number): number {
  return process.env['MODE'] === 'long' ? all : Math.ceil(all / 4)
}
