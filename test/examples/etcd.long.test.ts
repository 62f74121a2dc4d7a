import { randomUUID } from 'node:crypto'
import { storeConformance } from 'open-payments-server-testing'
import { describe, expect, test } from 'vitest'
import { etcdStore } from '../../examples/stores/etcd.js'
import type { Store } from '../../src/index.js'
import { removeOne } from '../support/one-record.js'
import { patient } from '../support/runs.js'

function keepsTheContract(makeStore: () => Store): void {
  for (const { name, rule, run } of storeConformance(makeStore, patient)) {
    test(`${name} (${rule})`, run)
  }
}

describe('the etcd recipe', () => {
  const url = process.env['TEST_ETCD_URL']
  if (url === undefined) return test.skip('skipped: TEST_ETCD_URL is not set', () => {})
  const prefix = `test-${randomUUID()}`
  keepsTheContract(() => etcdStore({ url, prefix }))

  test('leaves nothing of a removed record behind', async () => {
    const own = `${prefix}-removed`
    const store = etcdStore({ url, prefix: own })
    const lists = [1, 2, 3].map((at) => ({ list: `list ${at}`, at }))
    const first = { id: 'removed-1', version: 1, commandId: 'a', dueAt: 1, lists }
    const next = { ...first, version: 2, dueAt: 2, lists: lists.slice(1) }
    const kind = 'grant' as const
    await store.commit({ changes: [{ kind, next: first, expectedVersion: 0 }], guards: [] })
    const change = { kind, next, expectedVersion: 1, previous: { lists, dueAt: 1 } }
    expect(await store.commit({ changes: [change], guards: [] })).toBe(true)
    const keys = async () => {
      const body = { key: btoa(`${own}/`), range_end: btoa(`${own}0`), count_only: true }
      const counted = await fetch(`${url}/v3/kv/range`, {
        method: 'POST',
        body: JSON.stringify(body),
      })
      return Number(((await counted.json()) as { count?: string }).count ?? 0)
    }
    expect(await keys()).toBe(4)
    expect(await removeOne(store, kind, 'removed-1', 2)).toBe(true)
    expect(await keys()).toBe(0)
  })
})
