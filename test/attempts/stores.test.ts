import { kyselyStore, migrate } from 'open-payments-server-kysely'
import { attemptsConformance } from 'open-payments-server-testing'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { migrate as migrateSqlite, sqliteStore } from '../../adapters/sqlite.js'
import { attempts } from '../../src/entry-attempts.js'
import { memoryStore, type Store } from '../../src/index.js'
import { custodian } from '../support/custodian.js'
import { type FreshKysely, kyselyDatabases } from '../support/kysely.js'
import { freshSqlite, sqliteDrivers } from '../support/sqlite.js'

/** The cases in which the record decides. The others are the same on each store. */
const ofRecords = /killed|reply is lost$|second decision/

interface Fresh {
  readonly stores: readonly [Store, Store]
  drop(): unknown
}

const [openSqlite] = Object.values(sqliteDrivers).flatMap((open) => open ?? [])

async function onSqlite(open: NonNullable<typeof openSqlite>): Promise<Fresh> {
  const fresh = freshSqlite(open)
  const connections = [fresh.connect(), fresh.connect()] as const
  await migrateSqlite(connections[0])
  return { stores: [sqliteStore(connections[0]), sqliteStore(connections[1])], drop: fresh.drop }
}

const databases: readonly { readonly name: string; readonly open?: () => Promise<Fresh> }[] = [
  ...kyselyDatabases
    .filter(({ dialect }) => dialect !== 'sqlite')
    .map(({ name, dialect, fresh: create }) => {
      const open = async (fresh: () => Promise<FreshKysely>): Promise<Fresh> => {
        const { connect, drop } = await fresh()
        const [one, other] = [connect(), connect()]
        await migrate(one, { dialect })
        return { stores: [kyselyStore(one, { dialect }), kyselyStore(other, { dialect })], drop }
      }
      return { name, ...(create !== undefined && { open: () => open(create) }) }
    }),
  { name: 'SQLite', ...(openSqlite !== undefined && { open: () => onSqlite(openSqlite) }) },
]

describe.each(databases)('settlements on $name', ({ name, open }) => {
  const isSkipped = open === undefined
  const title = (text: string) => (isSkipped ? `${text} (skipped: no ${name})` : text)
  let fresh: Fresh

  beforeAll(async () => {
    if (open !== undefined) fresh = await open()
  })
  afterAll(() => fresh?.drop())

  const subject = { ...custodian('sum'), store: () => fresh.stores[0] }
  const cases = attemptsConformance(subject).filter((each) => ofRecords.test(each.name))
  for (const each of cases) test.skipIf(isSkipped)(title(each.name), each.run)

  test.skipIf(isSkipped)(title('two processes at one settlement send it once'), async () => {
    await race(fresh.stores)
  })
})

test('two calls at one settlement send it once', async () => {
  const store = memoryStore()
  await race([store, store])
})

/** Lets four calls in two processes work at each of several settlements. */
async function race(stores: readonly Store[]): Promise<void> {
  const done = new Map<string, bigint>()
  const drivers = stores.map((store) =>
    attempts({
      name: 'race',
      store,
      evidence: 'id',
      async send({ reference, amount }) {
        await new Promise(setImmediate)
        done.set(reference, amount)
        return { outcome: 'proven' }
      },
      ask: async ({ references }) => {
        const found = references.map((reference) => {
          return [reference, { found: done.has(reference) ? 'arrived' : 'absent' }] as const
        })
        return { by: 'id', attempts: Object.fromEntries(found) }
      },
      onError: () => undefined,
    }),
  )
  const ids = Array.from({ length: 5 }, () => crypto.randomUUID())
  const calls = [...drivers, ...drivers].flatMap((driver) =>
    ids.map((id) => driver.settle({ id, amount: 10n })),
  )
  const settled = await Promise.all(calls)
  expect([...done.values()]).toEqual(ids.map(() => 10n))
  // A call that found the attempt of another one in progress is to come again.
  for (const { state } of settled) expect(['ended', 'again']).toContain(state)
  for (const id of ids) expect(await drivers[0]?.get(id)).toMatchObject({ totals: { proven: 10n } })
}
