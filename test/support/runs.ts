/**
 * How often a search tries before it has found nothing: all of it in `npm run test:long`, and a quarter within
 * the time of `npm test`.
 */
export function runs(all: number): number {
  return process.env['MODE'] === 'long' ? all : Math.ceil(all / 4)
}
