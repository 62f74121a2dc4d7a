import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import type { Store } from 'open-payments-server'
import { storeConformance } from 'open-payments-server-testing'
import { startFaultyProxy } from 'open-payments-test-support/faulty-proxy'
import { loadOne, removeOne } from 'open-payments-test-support/one-record'
import { patient } from 'open-payments-test-support/runs'
import { keepsTheOrder } from 'open-payments-test-support/store-order'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { checkTable, createTable, dynamodbStore, tableDefinition } from '../src/index.js'
import { clientOf, endpoint, newTable } from './dynamodb-local.js'

const kind = 'grant'

describe('a store on DynamoDB Local', () => {
  if (endpoint === undefined) return test.skip('skipped: TEST_DYNAMODB_URL is not set', () => {})

  const address: string = endpoint
  const client = clientOf(address)
  const table = newTable()
  const store = dynamodbStore(client, { table })
  beforeAll(async () => {
    // Several processes may start at the same time.
    await Promise.all([1, 2, 3].map(() => createTable(client, { table })))
  })
  afterAll(() => client.deleteTable({ TableName: table }))

  describe('keeps the contract', () => {
    for (const { name, rule, run } of storeConformance(
      () => dynamodbStore(client, { table }),
      patient,
    )) {
      test(`${name} (${rule})`, run)
    }
  })

  test('orders, pages and lists due records like the memory store, for all instants', () =>
    keepsTheOrder(store))

  test('leaves nothing of a removed record behind', async () => {
    const { Count: before } = await client.scan({ TableName: table })
    const lists = [1, 2, 3].map((at) => ({ list: `list ${at}`, at }))
    const first = { id: 'removed-1', version: 1, commandId: 'a', dueAt: 1, lists }
    expect(
      await store.commit({ changes: [{ kind, next: first, expectedVersion: 0 }], guards: [] }),
    ).toBe(true)
    const next = { ...first, version: 2, lists: lists.slice(1) }
    const change = { kind, next, expectedVersion: 1, previous: { lists, dueAt: 1 } } as const
    expect(await store.commit({ changes: [change], guards: [] })).toBe(true)
    expect((await client.scan({ TableName: table })).Count).toBe((before ?? 0) + 3)
    expect(await removeOne(store, kind, 'removed-1', 2)).toBe(true)
    expect((await client.scan({ TableName: table })).Count).toBe(before)
  })

  test('is ready once the table exists, and not on a table with other indexes', async () => {
    expect(await checkTable(client, { table })).toEqual({ ok: true })
    expect(await checkTable(client, { table: newTable() })).toEqual({
      ok: false,
      problem: expect.stringContaining('run createTable(client)'),
    })
    const { LocalSecondaryIndexes: _, ...rest } = tableDefinition({ table: newTable() })
    const AttributeDefinitions = rest.AttributeDefinitions?.filter(
      ({ AttributeName }) => AttributeName !== 'place',
    )
    await client.createTable({ ...rest, AttributeDefinitions })
    const other = { table: rest.TableName ?? '' }
    const problem = expect.stringContaining('other keys or indexes')
    expect(await checkTable(client, other)).toEqual({ ok: false, problem })
    await expect(createTable(client, other)).rejects.toThrow('other keys or indexes')
    await client.deleteTable({ TableName: other.table })
    const unreachable = clientOf('http://127.0.0.1:1', 1)
    expect(await checkTable(unreachable, { table })).toEqual({
      ok: false,
      problem: expect.stringMatching(/^DynamoDB did not answer: \w+$/),
    })
  })

  test('commits all or nothing through a link that loses answers, and confirms only what it wrote', async () => {
    const proxy = await startFaultyProxy()
    proxy.upstream = Number(new URL(address).port)
    let transactions = 0
    proxy.fault = async (request, forward) => {
      const reply = await forward(request)
      const target = request.headers.find(([name]) => /^x-amz-target$/i.test(name))?.[1] ?? ''
      // The client asks three times, and in every fourth commit all answers are lost.
      const isLost = target.endsWith('TransactWriteItems') && transactions++ % 4 !== 3
      return isLost ? { ...reply, isLost: true } : reply
    }
    const behind = dynamodbStore(clientOf(proxy.origin), { table })
    const ids = ['lost-answer-1', 'lost-answer-2']
    const outcomes = new Set<string>()
    let version = 0
    for (let i = 0; i < 12; i++) {
      const changes = ids.map((id) => {
        const next = { id, version: version + 1, commandId: `${id} ${i}` }
        return { kind, next, expectedVersion: version } as const
      })
      const outcome = await behind.commit({ changes, guards: [] }).then(String, () => 'unknown')
      outcomes.add(outcome)
      const found = await Promise.all(ids.map((id) => loadOne(store, kind, id)))
      const versions = found.map((record) => record?.version ?? 0)
      expect(new Set(versions).size).toBe(1)
      const isWritten = versions[0] === version + 1
      if (outcome !== 'unknown') expect(outcome).toBe(String(isWritten))
      if (isWritten) version += 1
    }
    expect([...outcomes]).toContain('true')
    expect(version).toBeGreaterThan(6)
    await proxy.stop()
  })

  test('keeps a whole commit or none of it when its process is killed', async () => {
    const count = 30
    for (const delayMs of [40, 90, 160, 250, 400]) {
      const prefix = `killed-${delayMs}-`
      const confirmed = await killedWriter([address, table, prefix, String(count)], delayMs)
      const keys = Array.from({ length: count }, (_, i) => ({ kind, id: `${prefix}${i}` }) as const)
      const versions = await settledVersions(store, keys, confirmed)
      expect(versions.size).toBe(1)
      const page = await store.list({ kind, list: prefix, forward: true, limit: 100 })
      expect(page.records).toHaveLength(count)
    }
  })
})

/** Kills a writer some time after its first commit. Returns the last version that it confirmed. */
async function killedWriter(given: readonly string[], delayMs: number): Promise<number> {
  const script = join(import.meta.dirname, 'writer.ts')
  const writer: ChildProcess = fork(script, [...given], { execArgv: ['--import', 'tsx'] })
  let confirmed = 0
  writer.on('message', (version) => {
    confirmed = Number(version)
  })
  await once(writer, 'message')
  await new Promise((resolve) => setTimeout(resolve, delayMs))
  writer.kill('SIGKILL')
  await once(writer, 'exit')
  return confirmed
}

/** The versions of all records, once the request that the killed process had sent is done. */
async function settledVersions(
  store: Store,
  keys: Parameters<Store['load']>[0],
  confirmed: number,
): Promise<ReadonlySet<number | undefined>> {
  let before = ''
  for (;;) {
    const versions = (await store.load(keys)).map((record) => record?.version)
    expect(Math.min(...versions.map((version) => version ?? 0))).toBeGreaterThanOrEqual(confirmed)
    if (versions.join() === before) return new Set(versions)
    before = versions.join()
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
}
