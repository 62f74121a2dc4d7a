import { randomUUID } from 'node:crypto'
import { createClient } from '@redis/client'
import { storeConformance } from 'open-payments-server-testing'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type RedisClient, redisStore } from '../../examples/stores/redis.js'
import type { Stored } from '../../src/entry-adapter.js'
import type { Store } from '../../src/index.js'
import { removeOne } from '../support/one-record.js'
import { patient } from '../support/runs.js'
import { keepsTheOrder } from '../support/store-order.js'

const { TEST_REDIS_URL: redisUrl } = process.env

/** Two stores over the same data, each with its own connections. */
type Pair = readonly [Store, Store]

function record(id: string, version = 1, more: object = {}): Stored {
  return { id, version, commandId: `${id} ${version}`, ...more }
}

function put(store: Store, ...records: readonly Stored[]): Promise<boolean> {
  const changes = records.map((next) => {
    return { kind: 'grant' as const, next, expectedVersion: next.version - 1 }
  })
  return store.commit({ changes, guards: [] })
}

function behavesAsAStore(pair: () => Pair): void {
  describe('keeps the contract', () => {
    let made = 0
    const makeStore = () => pair()[made++ % 2] as Store
    for (const { name, rule, run } of storeConformance(makeStore, patient)) {
      test(`${name} (${rule})`, run)
    }
  })

  test('orders, pages and lists due records like the memory store, for all instants', () =>
    keepsTheOrder(pair()[0]))
}

describe('the Redis recipe', () => {
  if (redisUrl === undefined) return test.skip('skipped: TEST_REDIS_URL is not set', () => {})

  const prefix = `test-${randomUUID()}`
  const clients = [createClient({ url: redisUrl }), createClient({ url: redisUrl })] as const
  const [client] = clients
  const keys = () => client.keys(`*${prefix}*`)

  beforeAll(async () => {
    await Promise.all(clients.map((each) => each.connect()))
  })
  afterAll(async () => {
    await client.del(await keys())
    await Promise.all(clients.map((each) => each.close()))
  })

  behavesAsAStore(() => [redisStore(clients[0], { prefix }), redisStore(clients[1], { prefix })])

  test('uses one hash tag in all its keys, so that a cluster keeps them in one slot', async () => {
    await put(redisStore(client, { prefix }), record(randomUUID(), 1, { dueAt: 1 }))
    const tags = (await keys()).map((key) => key.slice(0, key.indexOf('}') + 1))
    expect(tags).toEqual([`{${prefix}}`, `{${prefix}}`])
  })

  test('leaves nothing of a removed record behind', async () => {
    const own = `${prefix}-removed`
    const store = redisStore(client, { prefix: own })
    const lists = [1, 2, 3].map((at) => ({ list: `list ${at}`, at }))
    await put(store, record('a', 1, { dueAt: 1, lists }))
    await put(store, record('a', 2, { dueAt: 2, lists: lists.slice(1) }))
    expect(await client.zCard(`{${own}}:places`)).toBe(3)
    expect(await removeOne(store, 'grant', 'a', 2)).toBe(true)
    expect((await keys()).filter((key) => key.includes(own))).toEqual([])
  })

  test('continues when Redis has forgotten its scripts', async () => {
    let forgotten = 0
    const forgetful: RedisClient = {
      hmGet: (key, fields) => client.hmGet(key, fields),
      eval: (script, options) => client.eval(script, options),
      evalSha: (_, options) => client.evalSha(String(forgotten++).padStart(40, '0'), options),
    }
    const store = redisStore(forgetful, { prefix })
    const id = randomUUID()
    expect([await put(store, record(id)), await put(store, record(id))]).toEqual([true, false])
    expect(await store.due('grant', id.slice(0, 8), 0, 1)).toEqual([])
    expect(forgotten).toBe(3)
  })
})
