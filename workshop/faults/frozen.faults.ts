import { randomBytes } from 'node:crypto'
import { performance } from 'node:perf_hooks'
import { setTimeout as sleep } from 'node:timers/promises'
import { Pool, type PoolConfig } from 'pg'
import { expect, inject, onTestFinished, test } from 'vitest'
import { migrate, postgresStore } from '../../adapters/postgres.js'
import type { Store } from '../../src/index.js'
import { createWorld, incomingAccess } from '../../test/support/world.js'
import { databaseProxy } from './database-proxy.js'

/** The time-outs of the pool in docs/storage.md. */
const timeouts = { connectionTimeoutMillis: 2_000, query_timeout: 2_000 }

/** How long no connection is answered, before new connections are. The old ones never are. */
const frozenMs = 1_000

const connections = 4

/** More than a busy machine needs. Without time-outs, a request to a frozen primary never ends. */
const slackMs = 120_000

test('a pool with both time-outs serves soon after a frozen primary is replaced, and one without never does', async () => {
  const primary = await databaseProxy(inject('database').url)
  onTestFinished(primary.close)
  const timed = await storeOver(primary.url, timeouts)
  const bare = await storeOver(primary.url, {})
  // Every connection of the pools is open, and some operation waits on each.
  await Promise.all([reads(timed), reads(bare)].flat())

  primary.freeze()
  const frozenAt = performance.now()
  const served = Promise.any(reads(bare)).then(
    () => 'served',
    () => 'failed',
  )
  const held = Promise.race([served, sleep(10_000, 'held')])
  const thawed = sleep(frozenMs).then(() => primary.serve(inject('database').url))
  let failures = 0
  while (!(await serves(timed))) failures++
  const outageMs = performance.now() - frozenAt
  await thawed

  expect(failures).toBeGreaterThan(0)
  // At worst an attempt to connect begins immediately before the replacement.
  const { query_timeout, connectionTimeoutMillis } = timeouts
  const longestMs = Math.max(query_timeout, frozenMs) + connectionTimeoutMillis
  expect(outageMs, 'ms without service').toBeLessThan(longestMs + slackMs)
  expect(await held).toBe('held')
  console.log(
    `the primary was frozen for ${frozenMs} ms: ${outageMs.toFixed(0)} ms without service, ` +
      `${failures} attempts failed; without time-outs none was answered in 10 s`,
  )
})

test('the first request to a frozen primary gets 503 in time, also over a pool without time-outs', async () => {
  const primary = await databaseProxy(inject('database').url)
  onTestFinished(primary.close)
  const world = createWorld({ store: await storeOver(primary.url, {}) })
  const client = world.client()
  const { body } = await client.request([incomingAccess])
  primary.freeze()
  const frozenAt = performance.now()
  const rotated = client.rotate(body.access_token).then(({ status }) => status)
  expect(await Promise.race([rotated, sleep(slackMs, 'held', { ref: false })])).toBe(503)
  console.log(
    `the first request was answered ${(performance.now() - frozenAt).toFixed(0)} ms later`,
  )
})

async function storeOver(connectionString: string, config: PoolConfig): Promise<Store> {
  const schema = `faults_${randomBytes(6).toString('hex')}`
  const direct = new Pool({ connectionString: inject('database').url, max: 1 })
  await direct.query(`CREATE SCHEMA ${schema}`)
  await migrate(direct, { schema })
  const pool = new Pool({ connectionString, max: connections, ...config })
  pool.on('error', () => {})
  onTestFinished(async () => {
    await direct.query(`DROP SCHEMA ${schema} CASCADE`)
    await direct.end()
  })
  return postgresStore(pool, { schema })
}

/** Reads as often as the pool has connections, concurrently as a server does. Loads would share a connection. */
function reads(store: Store): Promise<unknown>[] {
  const query = { kind: 'grant', list: 'absent', forward: true, limit: 1 } as const
  return Array.from({ length: connections }, () => store.list(query))
}

function serves(store: Store): Promise<boolean> {
  return Promise.any(reads(store)).then(
    () => true,
    () => false,
  )
}
