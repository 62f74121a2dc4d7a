import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { availableParallelism, cpus, loadavg } from 'node:os'
import type { HttpRequest } from 'open-payments-server/adapter'
import { positiveNumber, runScript, wholeNumber } from '../../script.js'
import { hasDatabase, withDatabase } from '../database.js'
import { median } from '../measure.js'
import { createAttacks } from './attacks.js'
import { liveHonestly } from './honest.js'
import { shopCount, shopKeys, walletAddressOf } from './key-hosts.js'
import { measurePayments } from './payments.js'
import { type Sample, sampleOf, startServer } from './processes.js'
import { createSender } from './sender.js'

const usage = `Usage: npm run load -- [--minutes 2] [--processes 4]

Loads a wallet on PostgreSQL as much as the machine allows, in turns without and with attacks, and measures the rate of
honest requests and the memory of the server. With --processes, so many processes serve whole payments instead, and the
cost of a payment is measured.

Exit code: 0 done; 1 an honest request was refused, or a target missed.
`

const clients = 16
/** One attack for so many honest requests: 20 % of all requests. */
const honestPerAttack = 4
/** Attacks that wait for slow hosts must not hold back the others. */
const attacksAtOnce = 200
const turnSeconds = 10
const rateLeast = 0.7
/** The caches of the server may fill after the first quarter; see SECURITY.md. */
const growthMostBytes = 18 * 2 ** 20

interface Turn {
  readonly attacked: boolean
  readonly perSecond: number
  readonly attacksPerSecond: number
  /** Honest requests for each second of CPU time of the server, whatever else the machine does. */
  readonly perCpuSecond: number
  readonly sample: Sample
}

/** Counts honest requests and attacks, and starts an attack for every fourth honest request if there are any. */
function createTraffic(port: number) {
  const { send, close } = createSender(port)
  const failures: unknown[] = []
  const attackStatuses = new Map<string, number>()
  let [honest, attacks, underway] = [0, 0, 0]
  let attacking = false
  let stopped = false
  let last: HttpRequest | undefined
  const { attack } = createAttacks(send, () => last)

  async function attackOnce(): Promise<void> {
    underway += 1
    try {
      const { name, status } = await attack()
      const key = `${name}: ${status}`
      attackStatuses.set(key, (attackStatuses.get(key) ?? 0) + 1)
      attacks += 1
    } catch (error) {
      failures.push(error)
    } finally {
      underway -= 1
    }
  }

  function onServed(request: HttpRequest): void {
    last = request
    honest += 1
    if (attacking && honest % honestPerAttack === 0 && underway < attacksAtOnce) void attackOnce()
  }

  const lives = Array.from({ length: clients }, async (_, index) => {
    const shop = index % shopCount
    const key = shopKeys[shop]
    if (key === undefined) throw new Error('no key')
    const client = { walletAddress: walletAddressOf(shop), key, send, onServed }
    // A client whose request was refused begins again, so that the load stays the same.
    while (!stopped) {
      await liveHonestly(client, () => stopped).catch((error) => void failures.push(error))
    }
  })
  return {
    failures,
    attackStatuses,
    counts: () => ({ honest, attacks }),
    attack(on: boolean) {
      attacking = on
    },
    async stop() {
      stopped = true
      await Promise.all(lives)
      while (underway > 0) await new Promise((resolve) => setTimeout(resolve, 50))
      close()
    },
  }
}

type Traffic = ReturnType<typeof createTraffic>

async function takeTurn(traffic: Traffic, server: ChildProcess, attacked: boolean): Promise<Turn> {
  traffic.attack(attacked)
  const { cpuMs } = await sampleOf(server)
  const before = traffic.counts()
  const start = performance.now()
  await new Promise((resolve) => setTimeout(resolve, turnSeconds * 1_000))
  const seconds = (performance.now() - start) / 1_000
  const after = traffic.counts()
  const sample = await sampleOf(server)
  const honest = after.honest - before.honest
  return {
    attacked,
    perSecond: honest / seconds,
    attacksPerSecond: (after.attacks - before.attacks) / seconds,
    perCpuSecond: (honest / (sample.cpuMs - cpuMs)) * 1_000,
    sample,
  }
}

const mebibytes = (bytes: number) => (bytes / 2 ** 20).toFixed(1)

function printTurn(turn: Turn, index: number): void {
  const { attacked, perSecond, perCpuSecond, attacksPerSecond, sample } = turn
  const heap = sample.heapUsed / 2 ** 20
  const columns = [
    `${(index + 1) * turnSeconds} s`.padStart(7),
    attacked ? 'attacked' : 'alone   ',
    `${perCpuSecond.toFixed(0).padStart(5)} honest/CPU s`,
    `${perSecond.toFixed(0).padStart(6)} honest/s`,
    `${attacksPerSecond.toFixed(0).padStart(5)} attacks/s`,
    `heap ${mebibytes(sample.heapUsed).padStart(6)} MiB`,
    `rss ${mebibytes(sample.rss).padStart(6)} MiB`,
    '#'.repeat(Math.round(heap)),
  ]
  console.log(columns.join('  '))
}

type Rate = 'perSecond' | 'perCpuSecond'

/** Returns the median over pairs of neighbouring turns, so that a change of the machine affects both. */
function rateUnderAttack(turns: readonly Turn[], rate: Rate): number {
  const ratios: number[] = []
  for (let i = 0; i + 1 < turns.length; i += 2) {
    const [one, other] = turns.slice(i, i + 2) as [Turn, Turn]
    const [alone, attacked] = one.attacked ? [other, one] : [one, other]
    ratios.push(attacked[rate] / alone[rate])
  }
  return median(ratios)
}

/** Returns how much more heap the last quarter uses than the second, by their medians. */
function growth(turns: readonly Turn[]): number {
  const quarter = Math.ceil(turns.length / 4)
  const used = turns.map(({ sample }) => sample.heapUsed)
  return median(used.slice(-quarter)) - median(used.slice(quarter, 2 * quarter))
}

function judge(turns: readonly Turn[], traffic: Traffic): boolean {
  for (const [name, count] of [...traffic.attackStatuses].sort()) {
    console.log(`${String(count).padStart(8)}  ${name}`)
  }
  const rate = rateUnderAttack(turns, 'perSecond')
  const perCpu = rateUnderAttack(turns, 'perCpuSecond')
  const grown = growth(turns)
  const errors = turns.at(-1)?.sample.errors ?? 0
  const { honest, attacks } = traffic.counts()
  console.log(`${honest} honest requests, ${attacks} attacks, ${errors} errors in the server`)
  console.log(
    `honest rate under attack, relative to alone: ${rate.toFixed(2)}, at least ${rateLeast}`,
  )
  console.log(`honest requests per CPU second of the server, relative: ${perCpu.toFixed(2)}`)
  console.log(
    `heap: ${mebibytes(grown)} MiB more at the end, at most ${mebibytes(growthMostBytes)}`,
  )
  console.log(`${traffic.failures.length} honest requests refused, at most 0`)
  for (const failure of traffic.failures.slice(0, 10)) console.log(String(failure))
  const served = traffic.failures.length === 0 && errors === 0
  return served && rate >= rateLeast && grown <= growthMostBytes
}

async function run(schema: string, connectionString: string, minutes: number): Promise<boolean> {
  const { server, port } = await startServer(connectionString, schema)
  const traffic = createTraffic(port)
  // Code is compiled and caches are filled in a turn that does not count.
  await takeTurn(traffic, server, true)
  const turns: Turn[] = []
  for (let i = 0; i < (minutes * 60) / turnSeconds; i++) {
    // Which turn of a pair is first changes from pair to pair.
    const turn = await takeTurn(traffic, server, i % 4 === 1 || i % 4 === 2)
    turns.push(turn)
    printTurn(turn, i)
  }
  await traffic.stop()
  const met = judge(turns, traffic)
  server.send('stop')
  await once(server, 'exit')
  return met
}

async function load(minutes: number, processes: number | undefined): Promise<boolean> {
  if (!(await hasDatabase())) return true
  const [cpu] = cpus()
  const load = loadavg().map((value) => value.toFixed(1))
  console.log(
    `${process.version}, ${availableParallelism()} × ${cpu?.model}, load ${load.join(' ')}`,
  )
  const connectionString =
    process.env['TEST_DATABASE_URL'] ?? 'postgres://postgres@127.0.0.1:5432/test'
  return withDatabase(({ schema, connect }) =>
    processes === undefined
      ? run(schema, connectionString, minutes)
      : measurePayments({ schema, connectionString, pool: connect() }, processes, minutes),
  )
}

const options = { minutes: { type: 'string' }, processes: { type: 'string' } } as const

await runScript({ name: 'npm run load --', usage, options }, ({ minutes = '2', processes }) =>
  load(
    positiveNumber('--minutes', minutes),
    processes === undefined ? undefined : wholeNumber('--processes', processes, 1),
  ),
)
