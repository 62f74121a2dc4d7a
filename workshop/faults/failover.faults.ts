import { setTimeout as sleep } from 'node:timers/promises'
import { Pool } from 'pg'
import { describe, expect, inject, onTestFinished, test } from 'vitest'
import {
  type Cluster,
  copyCluster,
  killCluster,
  promote,
  startCluster,
  startIn,
} from './cluster.js'
import { seededNumbers } from './customer.js'
import { databaseProxy } from './database-proxy.js'
import { totalOf } from './journal.js'
import { enterScene, type Scene } from './scene.js'
import { rounds, seed } from './settings.js'

const failovers = Math.min(rounds, 5)

const within = { timeout: 60_000, interval: 20 }

describe.skipIf(inject('database').control === undefined)('a primary that dies under load', () => {
  test(`loses nothing that was acknowledged if its synchronous standby takes over, ${failovers} times`, async () => {
    const { primary, proxy, scene, take } = await setUp()
    const random = seededNumbers(seed)
    let current = primary
    for (let round = 1; round <= failovers; round++) {
      const standby = take(await startIn(await copyCluster(current, 'standby')))
      await waitForStandby(current)
      scene.load.resume()
      await sleep(300 + random() * 700)
      killCluster(current)
      proxy.cut()
      await promote(standby)
      proxy.serve(standby.url)
      await serves(scene)
      await scene.load.settle()
      expect(await scene.look(), `failover ${round}`).toEqual([])
      current = standby
    }
    expect(await scene.lookInPeace()).toEqual([])
    expect(scene.server.death()).toBeUndefined()
    expect(totalOf(scene.journal.unknown), 'requests that failed meanwhile').toBeGreaterThan(0)
    console.log(`failed over ${failovers} times: ${scene.summary()}`)
  })

  test('loses what its standby had not received, and the same laws find that', async () => {
    const { primary, proxy, scene, take } = await setUp()
    const copy = await copyCluster(primary, 'standby')
    scene.load.resume()
    await serves(scene)
    killCluster(primary)
    proxy.cut()
    const standby = take(await startIn(copy))
    await promote(standby)
    proxy.serve(standby.url)
    await scene.load.settle()
    expect(await scene.look()).not.toEqual([])
  })
})

/** A primary of the test's own behind a proxy, and a wallet in two processes that know only the proxy. */
async function setUp() {
  const clusters: Cluster[] = []
  const take = (cluster: Cluster) => {
    clusters.push(cluster)
    return cluster
  }
  let leave = async () => {}
  onTestFinished(async () => {
    await leave()
    for (const cluster of clusters) await cluster.stop()
  })
  const cluster = await startCluster()
  if (cluster === undefined) throw new Error('PostgreSQL is not installed')
  const primary = take(cluster)
  const proxy = await databaseProxy(primary.url)
  leave = async () => proxy.close()
  const scene = await enterScene(proxy.url, seed, 2)
  leave = async () => {
    await scene.leave()
    proxy.close()
  }
  return { primary, proxy, scene, take }
}

/** From now on, the primary acknowledges a commit when the standby has it too. */
async function waitForStandby({ url }: Cluster): Promise<void> {
  const pool = new Pool({ connectionString: url, max: 1 })
  pool.on('error', () => {})
  onTestFinished(() => pool.end())
  await pool.query("ALTER SYSTEM SET synchronous_standby_names = 'standby'")
  await pool.query('SELECT pg_reload_conf()')
  const states = async () =>
    (await pool.query('SELECT sync_state FROM pg_stat_replication')).rows.map(
      (row) => row.sync_state,
    )
  await expect.poll(states, within).toEqual(['sync'])
}

/** Waits until further operations are acknowledged. */
async function serves({ journal, server }: Scene): Promise<void> {
  const before = totalOf(journal.acknowledged)
  const more = () => server.death() ?? totalOf(journal.acknowledged) - before
  await expect.poll(more, within).toBeGreaterThan(50)
}
