import type { PGlite } from '@electric-sql/pglite'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import {
  fromDrizzle,
  fromKnex,
  fromPglite,
  fromPrisma,
  fromTypeorm,
  migrate,
  type PgliteClient,
  type PostgresTransactions,
  postgresStore,
} from '../../../adapters/postgres.js'
import { emptyPglite } from '../../support/databases.js'
import { loadOne } from '../../support/one-record.js'

let lite: PGlite
beforeAll(async () => {
  lite = await emptyPglite()
  await migrate(fromPglite(lite))
})
afterAll(() => lite?.close())

/** What the query builder was told, besides statements. */
let told: unknown[] = []

type Work<Transaction> = (transaction: Transaction) => Promise<unknown>

/** Runs work in a transaction, in the form of a query builder. */
function runningAs<Transaction>(inside: (client: PgliteClient) => Transaction) {
  return (work: Work<Transaction>, options?: unknown) => {
    told.push(options)
    return lite.transaction((client) => work(inside(client))) as Promise<never>
  }
}

/** Stands for the `sql` of Drizzle, which numbers the parameters itself. */
const sql = {
  raw: (text: string) => ({ text }),
  param: (value: unknown) => ({ value }),
  join: (parts: unknown[]) => parts,
}

type Part = { readonly text: string } | { readonly value: unknown }

const drizzle = {
  transaction: runningAs((client) => ({
    execute(parts: readonly Part[]) {
      const values: unknown[] = []
      const texts = parts.map((part) =>
        'text' in part ? part.text : `$${values.push(part.value)}`,
      )
      return client.query(texts.join(''), values)
    },
    rollback: () => undefined,
  })),
}

const knex = {
  transaction: runningAs((client) => ({
    raw(statement: string, bindings: unknown[]) {
      let number = 0
      return client.query(
        statement.replaceAll('?', () => `$${++number}`),
        bindings,
      )
    },
    isTransaction: true,
  })),
}

const prisma = {
  $connect: async () => undefined,
  $transaction: runningAs((client) => ({
    $transaction: async () => undefined,
    $queryRawUnsafe: async (text: string, ...values: unknown[]) =>
      (await client.query(text, values)).rows,
  })),
}

const typeorm = {
  transaction(isolation: string, work: Work<object>) {
    const inside = (client: PgliteClient) => ({
      queryRunner: {
        isTransactionActive: true,
        async query(text: string, values: unknown[], structured: true) {
          expect(structured).toBe(true)
          return { records: (await client.query(text, values)).rows }
        },
      },
    })
    return runningAs(inside)(work, isolation)
  },
}

/** The database in the form of each query builder, and what its transactions must be told. */
const builders: Readonly<
  Record<string, readonly [(db?: unknown) => PostgresTransactions<unknown>, unknown]>
> = {
  Drizzle: [
    (db = drizzle) => fromDrizzle(db as typeof drizzle, sql),
    { isolationLevel: 'read committed' },
  ],
  Knex: [(db = knex) => fromKnex(db as typeof knex), { isolationLevel: 'read committed' }],
  Prisma: [
    (db = prisma) => fromPrisma(db as typeof prisma, { timeout: 15_000, maxWait: 1_000 }),
    { isolationLevel: 'ReadCommitted', timeout: 15_000, maxWait: 1_000 },
  ],
  TypeORM: [(db = typeorm) => fromTypeorm(db as typeof typeorm), 'READ COMMITTED'],
}

/** The error of a statement that met a deadlock, as each query builder reports it. */
const deadlocks: Readonly<Record<string, Error>> = {
  Drizzle: new Error('Failed query', { cause: Object.assign(new Error(), { code: '40P01' }) }),
  Knex: Object.assign(new Error('deadlock detected'), { code: '40P01' }),
  Prisma: Object.assign(new Error('Raw query failed'), {
    code: 'P2010',
    meta: { driverAdapterError: { cause: { originalCode: '40P01' } } },
  }),
  TypeORM: Object.assign(new Error('deadlock detected'), { code: '40P01' }),
}

describe.each(Object.entries(builders))('a transaction of %s', (name, [from, options]) => {
  const id = `of-${name}`
  const written = async () =>
    (await loadOne(postgresStore(fromPglite(lite)), 'quote', id)) !== undefined
  const commit = {
    changes: [
      { kind: 'quote' as const, next: { id, version: 1, commandId: id }, expectedVersion: 0 },
    ],
    guards: [],
  }

  test('has the records of the library, and is read committed', async () => {
    told = []
    const refused = await postgresStore.transaction(from(), async (_, store) => {
      expect(await store.commit(commit)).toBe(true)
      return { ok: false }
    })
    expect([refused, await written()]).toEqual([{ ok: false }, false])
    const done = await postgresStore.transaction(from(), async (_, store) => {
      expect(await store.commit(commit)).toBe(true)
      expect(await store.commit(commit)).toBe(false)
      return { ok: (await loadOne(store, 'quote', id)) !== undefined }
    })
    expect([done, await written()]).toEqual([{ ok: true }, true])
    expect(told).toEqual([options, options])
  })

  test.each([
    ['its statement', deadlocks[name]],
    ['a call of the library', Object.assign(new Error(), { code: 'ERR_RESTART_TRANSACTION' })],
  ])(
    'runs again after a deadlock of %s that services of the host have wrapped',
    async (_, cause) => {
      const repository = Object.assign(new Error('could not post', { cause }), { code: 'LEDGR' })
      const wrapped = new Error('could not credit', { cause: repository })
      let attempts = 0
      const done = await postgresStore.transaction(from(), async () => {
        if (++attempts < 5) throw wrapped
        return { ok: true }
      })
      expect([done, attempts]).toEqual([{ ok: true }, 5])
    },
  )

  test('is refused in the place of the database', async () => {
    const refusal =
      'db must be the database and not one of its transactions, which commits with the outer one'
    await postgresStore.transaction(from(), async (transaction) => {
      expect(() => from(transaction)).toThrow(refusal)
      return { ok: true }
    })
  })
})

test('a setting of Knex that hides the rows is named', async () => {
  const lifting = {
    transaction: (work: Work<object>) =>
      knex.transaction((trx) => {
        const raw = async (...given: Parameters<typeof trx.raw>) => (await trx.raw(...given)).rows
        return work({ raw })
      }),
  }
  const read = postgresStore.transaction(fromKnex(lifting), async (_, store) => {
    return { ok: (await loadOne(store, 'quote', 'any')) !== undefined }
  })
  await expect(read).rejects.toMatchObject({
    code: 'ERR_TRANSACTION_FAILED',
    message: 'postProcessResponse of Knex must keep `rows` in the results of raw statements',
  })
})

test.each([
  ['Drizzle', fromDrizzle({ transaction: runningAs(() => ({ execute: async () => ({}) })) }, sql)],
  [
    'Prisma',
    fromPrisma({
      $connect: async () => undefined,
      $transaction: runningAs(() => ({ $queryRawUnsafe: async () => 1 })),
    }),
  ],
  ['TypeORM', fromTypeorm({ transaction: (_, work) => runningAs(() => ({}))(work) })],
])('%s that returns no rows is not read as an empty database', async (_, transactions) => {
  const read = postgresStore.transaction(transactions, async (_, store) => {
    return { ok: (await loadOne(store, 'quote', 'any')) === undefined }
  })
  await expect(read).rejects.toMatchObject({ code: 'ERR_TRANSACTION_FAILED' })
})

test('the SQLSTATE of an error of Prisma is that of its driver', () => {
  const { sqlState } = fromPrisma(prisma)
  const cause = { originalCode: '40P01' }
  expect(sqlState?.({ meta: { driverAdapterError: { cause } } })).toBe('40P01')
  for (const other of [new Error('other'), {}, { meta: {} }, undefined]) {
    expect(sqlState?.(other)).toBeUndefined()
  }
})
