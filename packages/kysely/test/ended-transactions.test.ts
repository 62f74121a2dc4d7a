import { afterAll, beforeAll, describe, test } from 'vitest'
import type { Store } from '../../../src/index.js'
import { describeEndedTransactions, type WayIn } from '../../../test/support/ended-transactions.js'
import { type FreshKysely, kyselyDatabases } from '../../../test/support/kysely.js'
import { runs } from '../../../test/support/runs.js'
import type { SentStatements } from '../../../test/support/sent-statements.js'
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
    describeEndedTransactions(() => ways[way], { moments: runs(240, 24) })
  })
})
