import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { postgresStore } from '../../adapters/postgres.js'
import { realPacing } from '../../src/service/time.js'
import { anyPostgres } from '../../test/support/databases.js'
import { isLong, onlyLong } from '../../test/support/runs.js'
import { calm, deliverAll, type Plan } from './world.js'

describe('events on PostgreSQL', () => {
  let database: Awaited<ReturnType<typeof anyPostgres>>
  beforeAll(async () => {
    database = await anyPostgres()
  })
  afterAll(() => database.close())

  const startedAt = performance.now()
  const time = { now: () => performance.now() - startedAt, pacing: realPacing }
  const busy: Plan = {
    ...calm,
    streams: 100,
    latencyMs: 0,
    failsPercent: 10,
    handler: { mostMs: 20, slowPercent: 2, slowMs: 1_500 },
    options: { backoffMs: 100 },
    skewMs: 0,
    withinMs: 60_000,
  }

  test('are delivered in order, to one of 3 consumers at a time, each once', async () => {
    const store = postgresStore(database.client, database.options)
    const { problems, repeats, written } = await deliverAll(store, time, busy)
    expect([problems, repeats, written]).toEqual([[], 0, 300])
  })

  test.runIf(isLong)(`are delivered within 25 s after a consumer has died${onlyLong}`, async () => {
    const store = postgresStore(database.client, database.options)
    const plan: Plan = {
      ...busy,
      seed: '2',
      failsPercent: 0,
      handler: calm.handler,
      accidents: [{ kind: 'dies', atMs: 1_500, forMs: 0 }],
      withinMs: 25_000,
    }
    expect((await deliverAll(store, time, plan)).problems).toEqual([])
  })
})
