import type { Store } from 'open-payments-server'
import {
  describeEndedTransactions,
  type WayIn,
} from 'open-payments-test-support/ended-transactions'
import { type FreshKysely, kyselyDatabases } from 'open-payments-test-support/kysely'
import { runs } from 'open-payments-test-support/runs'
import type { SentStatements } from 'open-payments-test-support/sent-statements'
import { afterAll, beforeAll, describe, test } from 'vitest'
import { kyselyStore, migrate } from '../src/index.js'

describe.each(kyselyDatabases)('Kysely on $name', ({ dialect, name, fresh: create }) => {
  if (create === undefined) return test.skip(`skipped: there is no ${name}`, () => {})

  let fresh: FreshKysely
  let ways: Readonly<Record<'transaction' | 'inTransaction', WayIn>>
  beforeAll(async () => {
    fresh = await create()
    let sent: SentStatements | undefined
    const db = fresh.connect((statements) => {
      sent = statements
    })
    await migrate(db, { dialect })
    if (sent === undefined) throw new Error('the connection reports its statements')
    const shared = { outside: kyselyStore(fresh.connect(), { dialect }), sent }
    ways = {
      transaction: {
        ...shared,
        checksEnd: true,
        run: (work: (inside: Store) => Promise<void>) =>
          kyselyStore.transaction(
            db,
            async (_, inside) => {
              await work(inside)
              return { ok: true }
            },
            { dialect },
          ),
      },
      inTransaction: {
        ...shared,
        checksEnd: false,
        run: (work: (inside: Store) => Promise<void>) => {
          const begun = db.transaction()
          const own = dialect === 'sqlite' ? begun : begun.setIsolationLevel('read committed')
          return own.execute((trx) => work(kyselyStore.inTransaction(trx, { dialect })))
        },
      },
    }
  })
  afterAll(() => fresh?.drop())

  describe.each(['transaction', 'inTransaction'] as const)('with `%s`', (way) => {
    describeEndedTransactions(() => ways[way], { moments: runs(240, 12) })
  })
})
