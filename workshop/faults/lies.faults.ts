import { randomBytes } from 'node:crypto'
import fc from 'fast-check'
import { Pool } from 'pg'
import { afterEach, beforeEach, describe, expect, inject, onTestFinished, test, vi } from 'vitest'
import { migrate, postgresStore } from '../../adapters/postgres.js'
import { memoryStore, type Store } from '../../src/index.js'
import { lastWriteWins } from '../../test/support/stores.js'
import { createTally, live, plans } from './history.js'
import { histories, seed } from './settings.js'

/** Runs histories and returns what happened in them. */
async function liveMany(numRuns: number, makeStore: () => Store | Promise<Store>) {
  const { tally, add } = createTally()
  const property = fc.asyncProperty(plans, async (plan) => {
    const history = await live(await makeStore(), plan)
    add(history)
    expect(history.breaches).toEqual([])
  })
  // Limits the time for shrinking a counterexample.
  const options = { numRuns, seed, interruptAfterTimeLimit: 120_000 }
  const { failed, errorInstance, counterexample } = await fc.check(property, options)
  expect(errorInstance, JSON.stringify(counterexample)).toBeFalsy()
  return { failed, tally }
}

describe('a store that misreports the outcome of commits does no harm', () => {
  // The library pauses to let other processes continue. There are none here.
  beforeEach(() => void vi.stubGlobal('setTimeout', (run: () => void) => setImmediate(run)))
  afterEach(() => void vi.unstubAllGlobals())

  test('on memory', async () => {
    const { failed, tally } = await liveMany(histories.memory, memoryStore)
    expect(failed).toBe(false)
    expect(tally.struck).toBeGreaterThan(histories.memory)
    console.log(`lies on memory: ${JSON.stringify(tally)}`)
  })

  test.each([
    { fault: 'lets the last writer win', twin: lastWriteWins },
    { fault: 'sometimes writes a part of a commit', twin: tornCommits },
  ])('and the same search finds a store that $fault', async ({ twin }) => {
    const property = fc.asyncProperty(plans, async (plan) => {
      return (await live(twin(memoryStore()), plan)).breaches.length === 0
    })
    const runs = { numRuns: histories.memory, seed, endOnFailure: true }
    expect((await fc.check(property, runs)).failed).toBe(true)
  })
})

test('a store that misreports the outcome of commits does no harm on PostgreSQL', async () => {
  const schema = `faults_${randomBytes(6).toString('hex')}`
  const pool = new Pool({ connectionString: inject('database').url, max: 5 })
  pool.on('error', () => {})
  await pool.query(`CREATE SCHEMA ${schema}`)
  onTestFinished(async () => {
    await pool.query(`DROP SCHEMA ${schema} CASCADE`)
    await pool.end()
  })
  await migrate(pool, { schema })
  const { failed, tally } = await liveMany(histories.postgres, async () => {
    await pool.query(`TRUNCATE ${schema}.open_payments_records`)
    return postgresStore(pool, { schema })
  })
  expect(failed).toBe(false)
  expect(tally.struck).toBeGreaterThan(histories.postgres)
  console.log(`lies on PostgreSQL: ${JSON.stringify(tally)}`)
})

/** A broken store: of every few commits with several records, it writes only the first record. */
function tornCommits(store: Store): Store {
  let commits = 0
  return {
    ...store,
    async commit({ changes, guards }) {
      const torn = changes.length > 1 && ++commits % 4 === 0
      const landed = await store.commit({ changes: torn ? changes.slice(0, 1) : changes, guards })
      if (torn) throw Object.assign(new Error('torn'), { code: 'ECONNRESET' })
      return landed
    },
  }
}
