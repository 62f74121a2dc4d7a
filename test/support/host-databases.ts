import { randomBytes } from 'node:crypto'
import { Pool, type PoolConfig } from 'pg'
import { expect, vi } from 'vitest'
import { migrate } from '../../adapters/postgres.js'
import { creditIncoming } from '../../examples/host-transaction/credit-incoming.js'
import { holdFunds } from '../../examples/host-transaction/hold-funds.js'
import {
  type endPayment,
  type Outcome,
  settleOutgoing,
} from '../../examples/host-transaction/settle-outgoing.js'
import { ledgerTables } from '../../examples/host-transaction/tables.js'
import type { IncomingPaymentServices, MayPay, ReceivedFunds } from '../../src/index.js'
import type { Resources } from './bank.js'
import { servers } from './databases.js'

/** The interface of examples/transactions/connections.ts. */
export interface Example {
  readonly pool: Pool
  creditIncoming(
    resources: Resources,
    paymentId: string,
    funds: ReceivedFunds,
  ): ReturnType<IncomingPaymentServices['receive']>
  settleOutgoing(
    resources: Resources,
    paymentId: string,
    outcome: Outcome,
  ): ReturnType<typeof endPayment>
  readonly holdFunds: MayPay
  readonly holdNested?: (...asked: Parameters<MayPay>) => Promise<unknown>
  close(): Promise<unknown>
}

export type OpenExample = (config: PoolConfig) => Promise<Example>

/** Where `.ci/transactions` has installed the examples. */
const folder = process.env['TEST_TRANSACTIONS']

const { connections } = (
  folder === undefined ? { connections: {} } : await import(`${folder}/connections.ts`)
) as { readonly connections: Readonly<Record<string, OpenExample>> }

/** The example for the driver itself, without a query builder. */
const pg: OpenExample = async (config) => {
  const pool = new Pool(config)
  pool.on('error', () => undefined)
  pool.on('connect', (client) => client.on('error', () => undefined))
  return {
    pool,
    creditIncoming: (...funds) => creditIncoming(pool, ...funds),
    settleOutgoing: (...report) => settleOutgoing(pool, ...report),
    holdFunds: holdFunds(pool),
    close: () => pool.end(),
  }
}

/** The example of this name, undefined if it is not installed or there is no server. */
function installed(name: string) {
  const open = name === 'pg' ? pg : connections[name]
  const { PostgreSQL: server } = servers
  return server === undefined || open === undefined ? undefined : { server, open }
}

export const examples = ['pg', 'Kysely', 'Drizzle', 'Prisma', 'Knex', 'TypeORM'].map(
  (name) => [name, installed(name)] as const,
)

/** Prisma, which ends each transaction after 500 ms. */
export const impatientPrisma = installed('Prisma with a time limit')

/** A database of its own, with the tables of the library and of the host. */
export async function createHostDatabase(server: string) {
  const database = `transactions_${randomBytes(6).toString('hex')}`
  await administer(server, `CREATE DATABASE ${database}`)
  const url = new URL(`/${database}`, server)
  const pool = new Pool({ connectionString: url.href })
  await migrate(pool)
  await pool.query(ledgerTables)
  // A pool has ended before the server has closed its connections.
  const closed = async (sessions: number) => {
    const query = `SELECT FROM pg_stat_activity WHERE datname = '${database}'`
    const count = async () => expect(await administer(server, query)).toBe(sessions)
    await vi.waitFor(count, { timeout: 120_000, interval: 20 })
  }
  return {
    url,
    pool,
    /**
     * Resolves to the number of deadlocks so far. All other connections must be closed: they report them when they end.
     */
    async deadlocks(): Promise<number> {
      await closed(pool.totalCount)
      const query = 'SELECT deadlocks FROM pg_stat_database WHERE datname = $1'
      return Number((await pool.query(query, [database])).rows[0].deadlocks)
    },
    async drop() {
      await pool.end()
      await closed(0)
      await administer(server, `DROP DATABASE ${database}`)
    },
  }
}

/** Runs a statement in another database, and resolves to the number of its rows. */
async function administer(server: string, statement: string): Promise<number | null> {
  const pool = new Pool({ connectionString: server, max: 1 })
  const { rowCount } = await pool.query(statement)
  await pool.end()
  return rowCount
}
