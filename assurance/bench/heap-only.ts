import { migrate, postgresStore } from 'open-payments-server/postgres'
import type { Pool } from 'pg'
import { hasDatabase, withDatabase } from './database.js'
import {
  type BenchWallet,
  benchWallet,
  creation,
  type Library,
  newToken,
  signed,
} from './fixtures.js'
import type { Figure } from './measure.js'

const records = 300
/** Has no common factor with the number of records. */
const stride = 77
const updatesPerRecord = 6
const concurrency = 8

/**
 * Measures the share of heap-only updates on PostgreSQL: an update that stays on its page and changes no indexed
 * column writes no index.
 */
export async function heapOnly(library: Library): Promise<Figure[]> {
  if (!(await hasDatabase())) return []
  const figures: Figure[] = []
  for (const reports of [false, true]) {
    const suffix = reports ? ', with the views for reports' : ''
    figures.push(await share(library, `rotations${suffix}`, rotations, reports))
    figures.push(await share(library, `receives${suffix}`, receives, reports))
  }
  return figures
}

/** Prepares records in a wallet, and returns how to update each of them once. */
type Prepare = (wallet: BenchWallet) => Promise<(index: number, turn: number) => Promise<void>>

function share(
  library: Library,
  name: string,
  prepare: Prepare,
  reports: boolean,
): Promise<Figure> {
  return withDatabase(async ({ schema, connect }) => {
    const pool = connect({ max: 1 })
    await migrate(pool, { schema, reports })
    const working = connect()
    const update = await prepare(benchWallet(library, postgresStore(working, { schema })))
    for (let turn = 0; turn < updatesPerRecord; turn++) {
      // Not in the order in which the records were created: neighbours on a page are updated at different times.
      const indexes = Array.from({ length: records }, (_, i) => (i * stride) % records).values()
      const work = async () => {
        for (const index of indexes) await update(index, turn)
      }
      await Promise.all(Array.from({ length: concurrency }, work))
    }
    // A connection reports its statistics at the latest when it ends.
    await working.end()
    const value = await shareOf(pool, schema, records * updatesPerRecord)
    return { name: `heap-only share of ${name}`, value, unit: 'ratio', target: { least: 0.95 } }
  })
}

async function shareOf(pool: Pool, schema: string, expected: number): Promise<number> {
  for (;;) {
    const { rows } = await pool.query(
      `SELECT n_tup_upd::int AS updates, n_tup_hot_upd::int AS "heapOnly" FROM pg_stat_user_tables
        WHERE schemaname = $1 AND relname = 'open_payments_records'`,
      [schema],
    )
    if (rows[0].updates >= expected) return rows[0].heapOnly / rows[0].updates
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
}

const rotations: Prepare = async (wallet) => {
  const tokens: { value: string; manage: string }[] = []
  for (let i = 0; i < records; i++) tokens.push(await newToken(wallet))
  return async (index) => {
    const { value: token = '', manage: url = '' } = tokens[index] ?? {}
    const { body = '' } = await wallet.auth.handle(
      await signed(wallet.key, { method: 'POST', url, token }),
    )
    tokens[index] = JSON.parse(body).access_token
  }
}

const receives: Prepare = async (wallet) => {
  const { value: token } = await newToken(wallet)
  const { incomingPayments } = wallet.resources
  const ids: string[] = []
  for (let i = 0; i < records; i++) {
    const { body = '' } = await wallet.resources.handle(await creation(wallet, token))
    ids.push(incomingPayments.idOf(JSON.parse(body).id) ?? '')
  }
  return async (index, turn) => {
    const amount = { value: '1', assetCode: 'USD', assetScale: 2 }
    const result = await incomingPayments.receive(ids[index] ?? '', {
      transferId: `${index} ${turn}`,
      amount,
    })
    if (!result.ok) throw new Error(result.refusal)
  }
}
