import { exec } from 'node:child_process'
import { performance } from 'node:perf_hooks'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import { expect, inject, onTestFinished, test } from 'vitest'
import { restartCluster } from './cluster.js'
import { seededNumbers } from './customer.js'
import { totalOf } from './journal.js'
import { enterScene, type Scene } from './scene.js'
import { rounds, seed } from './settings.js'
import { lostStatus } from './wallet.js'

const database = inject('database')
const restartCommand = process.env['FAULT_RESTART_COMMAND']

/** The maximum time until the server works again after its database does. */
const recoveredWithinMs = 120_000

test(`all connections are terminated under load, ${rounds} times, and no operation is half done`, async () => {
  const scene = await enterScene(database.url, seed)
  onTestFinished(scene.leave)
  const random = seededNumbers(seed)
  let terminated = 0

  for (let round = 1; round <= rounds; round++) {
    await underLoad(scene, async () => {
      for (let i = 0; i < 5; i++) {
        await sleep(20 + random() * 100)
        terminated += await terminateBackends(scene)
      }
    })
    expect(await scene.look(), `round ${round}`).toEqual([])
  }

  expect(terminated).toBeGreaterThan(rounds)
  await endWell(scene)
  console.log(`terminated ${terminated} backends in ${rounds * 5} rounds: ${scene.summary()}`)
})

const restart = restartOf(random())
const skipped = restart === undefined
test.skipIf(skipped)(
  skipped
    ? 'PostgreSQL restarts under load (skipped: the tests did not start this server, and FAULT_RESTART_COMMAND is not set)'
    : `PostgreSQL restarts under load, ${rounds} times, and no operation is half done`,
  async () => {
    const scene = await enterScene(database.url, seed)
    onTestFinished(scene.leave)
    for (let round = 1; round <= rounds; round++) {
      await underLoad(scene, async () => restart?.())
      expect(await scene.look(), `round ${round}`).toEqual([])
    }
    expect(totalOf(scene.journal.unknown), 'requests that failed meanwhile').toBeGreaterThan(0)
    await endWell(scene)
    console.log(`restarted PostgreSQL ${rounds} times: ${scene.summary()}`)
  },
)

/** Customers act before, during and after the fault; afterwards no outcome is unknown. */
async function underLoad(
  { server, load, journal }: Scene,
  blow: () => Promise<unknown>,
): Promise<void> {
  load.resume()
  await sleep(150)
  await blow()
  const before = totalOf(journal.acknowledged)
  const struckAt = performance.now()
  while (totalOf(journal.acknowledged) < before + 50) {
    const tooLong = performance.now() - struckAt > recoveredWithinMs
    expect(server.death(), 'the error of a process that died').toBeUndefined()
    if (tooLong) throw new Error(`not recovered: ${JSON.stringify([...journal.unknown])}`)
    await sleep(20)
  }
  await load.settle()
}

/** Checks that the original process still runs, answered every request, and has fully recovered. */
async function endWell(scene: Scene): Promise<void> {
  const { server, load, journal } = scene
  expect(await scene.lookInPeace()).toEqual([])
  expect(server.death()).toBeUndefined()
  const statuses = [...journal.unknown.keys()]
  expect(statuses, 'statuses of failed requests').not.toContain(lostStatus)
  expect(statuses.filter((status) => status !== 503)).toEqual([])

  const failed = totalOf(journal.unknown)
  load.resume()
  await sleep(500)
  await load.settle()
  expect(totalOf(journal.unknown), 'failures after recovery').toBe(failed)
}

async function terminateBackends({ pool, schema }: Scene): Promise<number> {
  const { rows } = await pool.query(
    'SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = $1',
    [schema],
  )
  return rows.length
}

function random(): () => number {
  return seededNumbers(seed)
}

/** Restarts a server that the tests started: orderly or by a crash, with equal probability. */
function restartOf(next: () => number): (() => Promise<unknown>) | undefined {
  const { control } = database
  if (control !== undefined) {
    return () => restartCluster(control, next() < 0.5 ? 'fast' : 'immediate')
  }
  return restartCommand === undefined ? undefined : () => promisify(exec)(restartCommand)
}
