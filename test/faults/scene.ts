import { randomBytes } from 'node:crypto'
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { performance } from 'node:perf_hooks'
import { setTimeout as sleep } from 'node:timers/promises'
import { Pool } from 'pg'
import { migrate } from '../../adapters/postgres.js'
import type { DeliveredEvent, RecordKind, Stored } from '../../src/index.js'
import { gather, type Witness } from './evidence.js'
import { createJournal, type Journal, totalOf } from './journal.js'
import { breaches, laws, lawsOfPeace } from './laws.js'
import { customerNames, type Load, startLoad } from './load.js'
import { type ServerProcess, serverProcess } from './server-process.js'

export interface Scene {
  readonly schema: string
  readonly pool: Pool
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

const deliveredWithinMs = 20_000

/** A new database schema, an empty wallet in its own process, and customers that wait to act. */
export async function enterScene(url: string, seed: number): Promise<Scene> {
  const schema = `faults_${randomBytes(6).toString('hex')}`
  const pool = new Pool({ connectionString: url, max: 2 })
  pool.on('error', () => {})
  await pool.query(`CREATE SCHEMA ${schema}`)
  await migrate(pool, { schema })
  const folder = mkdtempSync(join(tmpdir(), 'faults-events-'))
  const eventsFile = join(folder, 'events')
  const server = serverProcess([url, schema, eventsFile, customerNames.join(' ')])
  await server.start()
  const journal = createJournal()
  const load = startLoad(server.wallet, journal, seed)
  const startedAt = performance.now()

  const witness: Witness = {
    wallet: server.wallet,
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
        if (server.runs()) await server.stop()
      }
      await pool.query(`DROP SCHEMA ${schema} CASCADE`)
      await pool.end()
      rmSync(folder, { recursive: true, force: true })
    },
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
