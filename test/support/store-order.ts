import { randomUUID } from 'node:crypto'
import fc from 'fast-check'
import { memoryStore, type Store } from 'open-payments-server'
import { runs } from './runs.js'

/** A store orders, pages and lists due records like the memory store, for all instants. */
export async function keepsTheOrder(store: Store): Promise<void> {
  const instant = fc.oneof(
    fc.maxSafeInteger(),
    fc.integer({ min: -2, max: 2 }),
    fc.constantFrom(Number.MAX_SAFE_INTEGER, Number.MIN_SAFE_INTEGER, -0),
    fc.integer({ min: 1_700_000_000_000, max: 1_700_000_000_003 }),
  )
  const id = fc.stringMatching(/^[A-Za-z0-9._-]{1,4}$/)
  const cursor = fc.record({ at: instant, id: fc.oneof(id, fc.constant('')) })
  const script = fc.record({
    places: fc.uniqueArray(fc.record({ id, at: instant }), {
      maxLength: 12,
      selector: (place) => place.id,
    }),
    queries: fc.array(
      fc.record(
        { cursor, forward: fc.boolean(), limit: fc.integer({ min: 0, max: 6 }) },
        { requiredKeys: ['forward', 'limit'] },
      ),
      { minLength: 1, maxLength: 4 },
    ),
    before: instant,
  })
  await fc.assert(
    fc.asyncProperty(script, async ({ places, queries, before }) => {
      const model = memoryStore()
      const namespace = randomUUID().slice(0, 8)
      const list = `${namespace} Zoë\ud800 ${'x'.repeat(300)}`
      const changes = places.map((place) => {
        const own = `${namespace}${place.id}`
        const next = { id: own, version: 1, commandId: own, dueAt: place.at }
        const lists = [{ list, at: place.at }]
        return { kind: 'grant' as const, next: { ...next, lists }, expectedVersion: 0 }
      })
      for (const each of [store, model]) {
        if (!(await each.commit({ changes, guards: [] }))) throw new Error('the commit lost')
      }
      for (const { cursor, ...rest } of queries) {
        const near = cursor && { cursor: { ...cursor, id: `${namespace}${cursor.id}` } }
        const query = { kind: 'grant' as const, list, ...rest, ...near }
        same(await store.list(query), await model.list(query))
      }
      const asked = ['grant', namespace, before, 5] as const
      same(await store.due(...asked), await model.due(...asked))
    }),
    { numRuns: runs(60, 10) },
  )
}

function same(found: unknown, expected: unknown): void {
  const [left, right] = [found, expected].map((each) => JSON.stringify(each))
  if (left !== right) throw new Error(`the store returned ${left}, and the memory store ${right}`)
}
