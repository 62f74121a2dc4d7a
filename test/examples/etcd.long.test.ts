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
  const { TEST_ETCD_URLS, TEST_ETCD_PID } = process.env
  if (TEST_ETCD_URLS === undefined) {
    return test.skip('skipped: TEST_ETCD_URLS is not set', () => {})
  }
  const urls = TEST_ETCD_URLS.split(' ')
  const [url] = urls
  const prefix = `test-${randomUUID()}`
  let made = 0
  describe('keeps the contract, with each store at another member', () => {
    keepsTheContract(() => {
      const at = made++ % urls.length
      return etcdStore({ urls: [...urls.slice(at), ...urls.slice(0, at)], prefix })
    })
  })

  test('leaves nothing of a removed record behind', async () => {
    const own = `${prefix}-removed`
    const store = etcdStore({ urls, prefix: own })
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

  // The last test: the member does not come back.
  test('goes on when a member is killed, loses nothing that it confirmed, and tears no commit', async () => {
    const store = etcdStore({ urls, prefix })
    const kind = 'grant' as const
    const ids = Array.from({ length: 20 }, (_, i) => `member-kill-${i}`)
    const versionsOf = async () => {
      const records = await store.load(ids.map((id) => ({ kind, id })))
      return new Set(records.map((record) => record?.version ?? 0))
    }
    let [version, confirmed, unknown] = [0, 0, 0]
    for (let round = 1; confirmed < 40; round++) {
      if (round === 10) process.kill(Number(TEST_ETCD_PID), 'SIGKILL')
      expect(round, 'the cluster has a majority').toBeLessThan(400)
      const changes = ids.map((id) => {
        const next = { id, version: version + 1, commandId: `${id} ${round}` }
        return { kind, next, expectedVersion: version } as const
      })
      const outcome = await store.commit({ changes, guards: [] }).catch(() => 'unknown')
      if (outcome === true) confirmed += 1
      if (outcome === 'unknown') unknown += 1
      const found = await versionsOf().catch(() => undefined)
      if (found === undefined) continue // while the members elect a leader
      expect(found.size).toBe(1)
      const [now = 0] = found
      expect(now === version || now === version + 1).toBe(true)
      if (outcome !== 'unknown') expect(outcome).toBe(now === version + 1)
      version = now
    }
    expect(version).toBeGreaterThanOrEqual(confirmed)
    expect(version - confirmed).toBeLessThanOrEqual(unknown)
  })
})
