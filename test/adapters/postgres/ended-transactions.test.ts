import { afterAll, beforeAll, describe, test } from 'vitest'
import { postgresStore } from '../../../adapters/postgres.js'
import type { IncomingPaymentServices, Store } from '../../../src/index.js'
import { type FreshPostgres, freshPostgres, servers } from '../../support/databases.js'
import {
  describeEndedTransactions,
  testLateStatements,
  type WayIn,
} from '../../support/ended-transactions.js'
import {
  createHostDatabase,
  type Example,
  examples,
  impatientPrisma,
  type OpenExample,
} from '../../support/host-databases.js'
import { runs } from '../../support/runs.js'
import { type PgStatements, sentByPg } from '../../support/sent-statements.js'

interface PgWayIn extends WayIn {
  readonly sent: PgStatements
}

const moments = runs(240, 12)

/** Opens examples on one database, and returns the ways into their transactions. */
function waysInto(server: string, ...opens: readonly OpenExample[]) {
  let database: Awaited<ReturnType<typeof createHostDatabase>>
  const opened: Example[] = []
  const ways: PgWayIn[] = []
  beforeAll(async () => {
    database = await createHostDatabase(server)
    const outside = postgresStore(database.pool)
    for (const open of opens) {
      const example = await open({ connectionString: database.url.href })
      opened.push(example)
      const run = (work: (inside: Store) => Promise<void>) => inTransactionOf(example, work)
      ways.push({ run, outside, sent: sentByPg(example.pool), checksEnd: true })
    }
  })
  afterAll(async () => {
    for (const example of opened) await example.close()
    await database?.drop()
  })
  return ways
}

describe.each(examples)('a transaction of %s', (_, installed) => {
  if (installed === undefined) return test.skip('skipped: run .ci/transactions', () => {})

  const ways = waysInto(installed.server, installed.open)
  describeEndedTransactions(() => ways[0] as WayIn, { moments })
})

describe('a transaction of Prisma that ends at its time limit', () => {
  const patient = examples.find(([name]) => name === 'Prisma')?.[1]
  if (impatientPrisma === undefined || patient === undefined) {
    return test.skip('skipped: run .ci/transactions', () => {})
  }
  const ways = waysInto(impatientPrisma.server, impatientPrisma.open, patient.open)
  testLateStatements(() => ways as [PgWayIn, PgWayIn])
})

/** Runs work in the transaction in which an example credits a payment, in the place of `receive`. */
function inTransactionOf(example: Example, work: (inside: Store) => Promise<void>) {
  const within = (inside: Store) => {
    const receive = async () => {
      await work(inside)
      return { ok: true, changed: false }
    }
    return { incomingPayments: { receive } as unknown as IncomingPaymentServices }
  }
  const funds = { transferId: 'none', amount: { value: '1', assetCode: 'USD', assetScale: 2 } }
  return example.creditIncoming({ within } as never, 'none', funds)
}

describe.skipIf(servers.PostgreSQL === undefined)('a transaction that the host begins', () => {
  let fresh: FreshPostgres
  let way: WayIn
  beforeAll(async () => {
    fresh = await freshPostgres()
    const { schema } = fresh
    const pool = fresh.connect()
    async function run(work: (inside: Store) => Promise<void>) {
      const client = await pool.connect()
      try {
        await client.query('BEGIN')
        await work(postgresStore.inTransaction(client, { schema }))
        await client.query('COMMIT')
      } finally {
        await client.query('ROLLBACK')
        client.release()
      }
    }
    const outside = postgresStore(fresh.pool, { schema })
    way = { run, outside, sent: sentByPg(pool), checksEnd: false }
  })
  afterAll(() => fresh?.drop())

  describeEndedTransactions(() => way, { moments })
})
