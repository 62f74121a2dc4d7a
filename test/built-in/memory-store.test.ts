import { storeConformance } from 'open-payments-server-testing'
import { describe, expect, test } from 'vitest'
import type { RecordChange, Stored } from '../../src/entry-adapter.js'
import { memoryStore } from '../../src/index.js'
import { loadOne, removeOne } from '../support/one-record.js'

function create(id: string, more: object = {}): RecordChange {
  const next: Stored = { id, version: 1, commandId: `command of ${id}`, ...more }
  return { kind: 'grant', next, expectedVersion: 0 }
}

describe('the memory store fulfills the contract', () => {
  // packages/testing/test/conformance.test.ts tries all kinds.
  const cases = storeConformance(memoryStore, { kinds: ['grant'] })
  for (const { name, run } of cases) test(name, run)
})

describe('beyond the contract, the memory store', () => {
  test('is empty initially and shares nothing with another instance', async () => {
    const [one, other] = [memoryStore(), memoryStore()]
    await one.commit({ changes: [create('a')], guards: [] })
    expect(await loadOne(other, 'grant', 'a')).toBeUndefined()
  })

  test('completes no call synchronously, so that it does not hide races', async () => {
    const store = memoryStore()
    const places = { dueAt: 1, lists: [{ list: 'x', at: 1 }] }
    await store.commit({ changes: [create('namespac-a', places)], guards: [] })
    const first: string[] = []
    const calls = [
      loadOne(store, 'grant', 'namespac-a'),
      store.commit({ changes: [create('b')], guards: [] }),
      store.list({ kind: 'grant', list: 'x', forward: true, limit: 1 }),
      store.due('grant', 'namespac', 1, 1),
      removeOne(store, 'grant', 'namespac-a', 1),
    ].map((call) => call.then(() => first.push('the store')))
    const other = Promise.resolve().then(() => first.push('somebody else'))
    await Promise.all([...calls, other])
    expect(first[0]).toBe('somebody else')
  })

  test('writes nothing when a commit contains a value that JSON does not support', async () => {
    const store = memoryStore()
    const changes = [create('a'), create('b', { amount: 5n }), create('c')]
    await expect(store.commit({ changes, guards: [] })).rejects.toThrow(TypeError)
    for (const id of ['a', 'b', 'c']) expect(await loadOne(store, 'grant', id)).toBeUndefined()
  })

  test.each([true, false])(
    'returns an empty page when no records are requested (forward: %s)',
    async (forward) => {
      const store = memoryStore()
      const query = { kind: 'grant' as const, list: 'x', forward, limit: 0 }
      expect(await store.list(query)).toEqual({ records: [], more: false })
      await store.commit({ changes: [create('a', { lists: [{ list: 'x', at: 1 }] })], guards: [] })
      expect(await store.list(query)).toEqual({ records: [], more: true })
    },
  )

  test('does not find due records by a shorter or longer namespace', async () => {
    const store = memoryStore()
    await store.commit({ changes: [create('namespac-a', { dueAt: 1 })], guards: [] })
    for (const namespace of ['', 'namespa', 'namespac-', 'namespac-a']) {
      expect(await store.due('grant', namespace, 1, 5)).toEqual([])
    }
    expect(await store.due('grant', 'namespac', 1, 0)).toEqual([])
    expect(await store.due('grant', 'namespac', 1, 5)).toHaveLength(1)
  })
})
