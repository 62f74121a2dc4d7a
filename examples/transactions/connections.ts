import { PrismaPg } from '@prisma/adapter-pg'
import { drizzle } from 'drizzle-orm/node-postgres'
import knexOn from 'knex'
import { Kysely, PostgresDialect } from 'kysely'
import type { IncomingPaymentServices, MayPay, ReceivedFunds } from 'open-payments-server'
import { Pool, type PoolConfig } from 'pg'
import { DataSource } from 'typeorm'
import type { PostgresDriver } from 'typeorm/driver/postgres/PostgresDriver.js'
import type { endPayment, Outcome } from '../host-transaction/settle-outgoing.js'
import * as drizzleExample from './drizzle.js'
import { PrismaClient } from './generated/client.ts'
import * as knexExample from './knex.js'
import * as kyselyExample from './kysely.js'
import type { Resources } from './ledger.js'
import * as prismaExample from './prisma.js'
import * as typeormExample from './typeorm.js'

/** An example with its connection. */
export interface Opened {
  /** The pool of the query builder, for `postgresStore`. */
  pool: Pool
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
  holdFunds: MayPay
  /** Holds in a transaction inside of another one. */
  holdNested?: (...asked: Parameters<MayPay>) => Promise<unknown>
  close(): Promise<unknown>
}

interface Example<Database> {
  creditIncoming(
    db: Database,
    ...rest: Parameters<Opened['creditIncoming']>
  ): ReturnType<Opened['creditIncoming']>
  settleOutgoing(
    db: Database,
    ...rest: Parameters<Opened['settleOutgoing']>
  ): ReturnType<Opened['settleOutgoing']>
  holdFunds(db: Database): MayPay
}

function opened<Database>(
  pool: Pool,
  db: Database,
  { creditIncoming, settleOutgoing, holdFunds }: Example<Database>,
  close: () => Promise<unknown>,
  nested?: (work: (transaction: unknown) => Promise<unknown>) => Promise<unknown>,
): Opened {
  return {
    pool,
    creditIncoming: (...rest) => creditIncoming(db, ...rest),
    settleOutgoing: (...rest) => settleOutgoing(db, ...rest),
    holdFunds: holdFunds(db),
    ...(nested && {
      holdNested: (...asked) =>
        nested(async (transaction) => holdFunds(transaction as Database)(...asked)),
    }),
    close,
  }
}

/** Returns a pool whose connections may end in a transaction; the process goes on. */
function listening(pool: Pool): Pool {
  const ignore = () => undefined // the next statement fails
  return pool.on('error', ignore).on('connect', (client) => client.on('error', ignore))
}

async function prismaOn(
  config: PoolConfig,
  transactionOptions?: { readonly timeout: number },
): Promise<Opened> {
  const pool = listening(new Pool(config))
  const adapter = new PrismaPg(pool, { disposeExternalPool: true })
  const db = new PrismaClient({ adapter, ...(transactionOptions && { transactionOptions }) })
  return opened(
    pool,
    db,
    prismaExample,
    () => db.$disconnect(),
    (work) => db.$transaction(work),
  )
}

/** How each query builder and ORM shares a pool with `postgresStore`. */
export const connections: Readonly<Record<string, (config: PoolConfig) => Promise<Opened>>> = {
  async Kysely(config) {
    const pool = listening(new Pool(config))
    const db = new Kysely<kyselyExample.Tables>({ dialect: new PostgresDialect({ pool }) })
    return opened(pool, db, kyselyExample, () => db.destroy())
  },
  async Drizzle(config) {
    const pool = listening(new Pool(config))
    const db = drizzle({ client: pool })
    return opened(
      pool,
      db,
      drizzleExample,
      () => pool.end(),
      (work) => db.transaction(work),
    )
  },
  Prisma: (config) => prismaOn(config),
  /** Ends each transaction after so short a time that a statement can be late. */
  'Prisma with a time limit': (config) => prismaOn(config, { timeout: 500 }),
  async Knex(config) {
    const pool = listening(new Pool(config))
    const db = knexOn({ client: 'pg', connectionPool: pool })
    return opened(
      pool,
      db,
      knexExample,
      () => db.destroy().then(() => pool.end()),
      (work) => db.transaction(work),
    )
  },
  async TypeORM({ connectionString: url = '', ...extra }) {
    const { ledgerAccounts, ledgerEntries, ledgerHolds } = typeormExample
    const entities = [ledgerAccounts, ledgerEntries, ledgerHolds]
    const db = await new DataSource({ type: 'postgres', url, extra, entities }).initialize()
    // TypeORM takes no pool. This is the one that it has made.
    const pool = listening((db.driver as PostgresDriver).master)
    return opened(
      pool,
      db,
      typeormExample,
      () => db.destroy(),
      (work) => db.transaction(work),
    )
  },
}
