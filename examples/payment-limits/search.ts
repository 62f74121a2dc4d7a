import fc from 'fast-check'
import type { Store } from 'open-payments-server'
import { spendingProperty } from 'open-payments-server-testing'

export interface SearchOptions {
  /** The maximum number of histories. */
  readonly histories: number
  /** The same seed plays the same histories. Default: a random seed. */
  readonly seed?: number
}

/** The number of histories played, and the shortest failing one, step by step. */
export interface SearchResult {
  readonly played: number
  readonly overspent?: string
}

/**
 * Searches for a way to overspend on a store. In your own tests one line is enough:
 *
 * ```ts
 * test('no client overspends', () => fc.assert(spendingProperty(fc, { store }), { numRuns: 2_000 }))
 * ```
 */
export async function searchForOverspending(
  store: () => Store,
  { histories, ...seed }: SearchOptions,
): Promise<SearchResult> {
  const result = await fc.check(spendingProperty(fc, { store }), { numRuns: histories, ...seed })
  const played = result.numRuns
  if (!result.failed) return { played }
  const { errorInstance } = result
  return { played, overspent: errorInstance instanceof Error ? errorInstance.message : 'no error' }
}
