import { PrismaPg } from '@prisma/adapter-pg'
import { drizzle } from 'drizzle-orm/node-postgres'
import knexOn from 'knex'
import { Kysely, PostgresDialect } from 'kysely'
import type {
  IncomingPaymentServices,
  OutgoingPaymentServices,
  ReceivedFunds,
  Totals,
} from 'open-payments-server'
import { Pool } from 'pg'
import { DataSource } from 'typeorm'
import * as drizzleExample from './drizzle.js'
import { PrismaClient } from './generated/client.ts'
import * as knexExample from './knex.js'
import * as kyselyExample from './kysely.js'
import type { Resources } from './ledger.js'
import * as prismaExample from './prisma.js'
import * as typeormExample from './typeorm.js'

/** An example with its connection. */
export interface Opened {
  creditIncoming(
    resources: Resources,
    paymentId: string,
    funds: ReceivedFunds,
  ): ReturnType<IncomingPaymentServices['receive']>
  settleOutgoing(
    resources: Resources,
    paymentId: string,
    totals: Totals,
  ): ReturnType<OutgoingPaymentServices['reportSent']>
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
}

function opened<Database>(
  db: Database,
  { creditIncoming, settleOutgoing }: Example<Database>,
  close: () => Promise<unknown>,
): Opened {
  return {
    creditIncoming: (...rest) => creditIncoming(db, ...rest),
    settleOutgoing: (...rest) => settleOutgoing(db, ...rest),
    close,
  }
}

// #region pool
/** Returns a pool whose connections may end in a transaction; the process goes on. */
function poolOn(connectionString: string): Pool {
  const ignore = () => undefined // the next statement fails
  return new Pool({ connectionString })
    .on('error', ignore)
    .on('connect', (client) => client.on('error', ignore))
}
// #endregion pool

/** How each query builder and ORM connects to a database. */
export const connections: Readonly<Record<string, (url: string) => Promise<Opened>>> = {
  async Kysely(url) {
    const db = new Kysely<kyselyExample.Tables>({
      dialect: new PostgresDialect({ pool: poolOn(url) }),
    })
    return opened(db, kyselyExample, () => db.destroy())
  },
  async Drizzle(url) {
    const pool = poolOn(url)
    return opened(drizzle({ client: pool }), drizzleExample, () => pool.end())
  },
  async Prisma(url) {
    const db = new PrismaClient({
      adapter: new PrismaPg(poolOn(url), { disposeExternalPool: true }),
    })
    return opened(db, prismaExample, () => db.$disconnect())
  },
  async Knex(url) {
    const db = knexOn({ client: 'pg', connection: url })
    return opened(db, knexExample, () => db.destroy())
  },
  async TypeORM(url) {
    const entities = [typeormExample.ledgerEntries]
    const db = await new DataSource({ type: 'postgres', url, entities }).initialize()
    return opened(db, typeormExample, () => db.destroy())
  },
}
