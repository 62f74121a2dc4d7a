import { randomBytes } from 'node:crypto'
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { performance } from 'node:perf_hooks'
import { setTimeout as sleep } from 'node:timers/promises'
import { Pool } from 'pg'
import { migrate } from '../../adapters/postgres.js'
import type { RecordKind, Stored } from '../../src/entry-adapter.js'
import type { DeliveredEvent } from '../../src/index.js'
import { gather, type Witness } from './evidence.js'
import { createJournal, type Journal, totalOf } from './journal.js'
import { breaches, laws, lawsOfPeace } from './laws.js'
import { customerNames, type Load, startLoad } from './load.js'
import { type ServerProcess, serverProcess } from './server-process.js'
import type { Wallet } from './wallet.js'

export interface Scene {
  readonly schema: string
  readonly pool: Pool
  /** The first of the processes. */
  readonly server: ServerProcess
  readonly journal: Journal
  readonly load: Load
  /** Checks everything now, while no customer acts. Returns descriptions of the broken laws. */
  look(): Promise<readonly string[]>
  /** The same after every event has been delivered, or after enough time for that. */
  lookInPeace(): Promise<readonly string[]>
  /** A summary in one line. */
  summary(): string
  leave(): Promise<void>
}

const deliveredWithinMs = 120_000

/** A new database schema, an empty wallet in one or more processes, and customers that wait to act. */
export async function enterScene(url: string, seed: number, processes = 1): Promise<Scene> {
  const schema = `faults_${randomBytes(6).toString('hex')}`
  const pool = new Pool({ connectionString: url, max: 2 })
  pool.on('error', () => {})
  await pool.query(`CREATE SCHEMA ${schema}`)
  await migrate(pool, { schema })
  const folder = mkdtempSync(join(tmpdir(), 'faults-events-'))
  const eventsFile = join(folder, 'events')
  const server = serverProcess([url, schema, eventsFile, customerNames.join(' ')])
  const others = Array.from({ length: processes - 1 }, () =>
    serverProcess([url, schema, eventsFile, customerNames.join(' ')]),
  )
  const servers = [server, ...others]
  await Promise.all(servers.map((each) => each.start()))
  const journal = createJournal()
  const wallet = inTurn(servers.map((each) => each.wallet))
  const load = startLoad(wallet, journal, seed)
  const startedAt = performance.now()

  const witness: Witness = {
    wallet,
    records: () => allRecords(pool, schema),
    delivered: () => readEvents(eventsFile),
  }
  const look = async () => breaches(laws, journal, await gather(journal, witness))

  return {
    ...{ schema, pool, server, journal, load, look },
    async lookInPeace() {
      const until = performance.now() + deliveredWithinMs
      for (;;) {
        const evidence = await gather(journal, witness)
        const over = evidence.pending.length === 0 || performance.now() > until
        if (over) return breaches([...laws, ...lawsOfPeace], journal, evidence)
        await sleep(100)
      }
    },
    summary() {
      const seconds = ((performance.now() - startedAt) / 1000).toFixed(1)
      const unknown = JSON.stringify(Object.fromEntries(journal.unknown))
      const deliveries = readEvents(eventsFile)
      const events = new Set(deliveries.map(({ id }) => id)).size
      return (
        `${totalOf(journal.acknowledged)} operations acknowledged, unanswered or failed ${unknown}, ` +
        `${journal.grants.length} grants, ${journal.payments.length} payments, ` +
        `${events} events in ${deliveries.length} deliveries, ${seconds} s, seed ${seed}`
      )
    },
    async leave() {
      try {
        await load.abandon()
      } finally {
        await Promise.all(servers.filter((each) => each.runs()).map((each) => each.stop()))
      }
      await pool.query(`DROP SCHEMA ${schema} CASCADE`)
      await pool.end()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

/** One wallet in several processes: each call goes to the next of them. */
function inTurn(wallets: readonly Wallet[]): Wallet {
  let calls = 0
  const next = () => {
    const wallet = wallets[calls++ % wallets.length]
    if (wallet === undefined) throw new Error('there is no process')
    return wallet
  }
  return {
    send: (request) => next().send(request),
    approve: (interactionId) => next().approve(interactionId),
    receive: (paymentId, funds) => next().receive(paymentId, funds),
    introspect: (tokens) => next().introspect(tokens),
  }
}

/** Uses one statement, so that all records are of the same instant. */
async function allRecords(pool: Pool, schema: string): Promise<(readonly [RecordKind, Stored])[]> {
  const { rows } = await pool.query<{ kind: RecordKind; value: string }>(
    `SELECT kind, value FROM ${schema}.open_payments_records WHERE kind <> 'replay'`,
  )
  return rows.map(({ kind, value }) => [kind, JSON.parse(value) as Stored])
}

function readEvents(file: string): readonly DeliveredEvent[] {
  if (!existsSync(file)) return []
  const lines = readFileSync(file, 'utf8').split('\n').slice(0, -1)
  return lines.map((line) => JSON.parse(line) as DeliveredEvent)
}
