import fc from 'fast-check'
import type { Store } from 'open-payments-server'
import { spendingProperty } from 'open-payments-server-testing'

export interface SearchOptions {
  /** How many histories are played at most. */
  readonly histories: number
  /** The same seed plays the same histories. Default: others each time. */
  readonly seed?: number
}

/** What a search has come to: how many histories were played, and the shortest that went wrong, step by step. */
export interface SearchResult {
  readonly played: number
  readonly overspent?: string
}

/**
 * Searches for a way to overspend on a store. In your own tests a line is enough:
 *
 * ```ts
 * test('nobody overspends', () => fc.assert(spendingProperty(fc, { store }), { numRuns: 2_000 }))
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
