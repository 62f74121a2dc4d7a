/**
 * Measures how long the views for reports take for the last 100 payments of an account among many. Run it with
 *
 *     COUNT=10000000 npx tsx assurance/bench/reports.ts
 *
 * It creates COUNT payments, half of them incoming, as copies of payments that the library wrote, with their own ids,
 * accounts and times. 10,000,000 payments need 25 GB. The tables are dropped at the end.
 */

import * as library from 'open-payments-server'
import type { RecordKind, Stored } from 'open-payments-server/adapter'
import { migrate, postgresStore } from 'open-payments-server/postgres'
import type { Pool } from 'pg'
import { withDatabase } from './database.js'
import { type BenchWallet, benchWallet, bob, creation, newToken } from './fixtures.js'
import { median } from './measure.js'
import { completePayments, newPayer } from './payer.js'

const count = Number(process.env['COUNT'] ?? 1_000_000)
/** An account has a thousand payments, except for one. */
const accounts = Math.ceil(count / 1_000)
/** Every hundredth payment is of this account. */
const busiest = `${bob}-0`
const chunk = 100_000
const samples = 200

/** A record of the library as text, with marks where each copy differs. */
interface Template {
  readonly kind: RecordKind
  readonly record: Stored & { readonly createdAt: number; readonly walletAddress: string }
}

await withDatabase(async ({ schema, connect }) => {
  const pool = connect({ max: 1 })
  await migrate(pool, { schema, reports: true })
  const templates = await writtenTemplates(benchWallet(library, postgresStore(pool, { schema })))
  const table = `${schema}.open_payments_records`
  // Nothing here outlives the program, so that it needs no write-ahead log.
  await pool.query(`ALTER TABLE ${table} SET UNLOGGED`)
  await withoutIndexes(pool, schema, () => fill(pool, table, templates))
  await pool.query(`VACUUM ANALYZE ${table}`)
  const { rows } = await pool.query(
    `SELECT count(*)::int AS records, pg_size_pretty(pg_table_size($1)) AS heap,
      pg_size_pretty(pg_indexes_size($1)) AS indexes FROM ${table}`,
    [table],
  )
  console.log(rows[0])
  for (const view of ['outgoing_payments', 'incoming_payments'] as const) {
    await measure(pool, `${schema}.open_payments_${view}`)
  }
})

async function writtenTemplates(wallet: BenchWallet): Promise<Template[]> {
  await completePayments(await newPayer(wallet), 2)
  const { value } = await newToken(wallet)
  await wallet.resources.handle(await creation(wallet, value))
  const { incomingPayments, outgoingPayments } = wallet.resources
  const [received] = (await incomingPayments.list({ walletAddress: bob })).result
  const [sent] = (await outgoingPayments.list({ walletAddress: bob })).result
  const incoming = await incomingPayments.getRecord(received?.paymentId ?? '')
  const outgoing = await outgoingPayments.getRecord(sent?.paymentId ?? '')
  if (incoming === undefined || outgoing === undefined) throw new Error('a payment is missing')
  return [
    { kind: 'incoming-payment', record: incoming },
    { kind: 'outgoing-payment', record: outgoing },
  ]
}

/** Runs work on the table without its indexes, and creates them afterwards. */
async function withoutIndexes(pool: Pool, schema: string, work: () => Promise<void>) {
  const { rows } = await pool.query(
    `SELECT indexname AS name, indexdef AS text FROM pg_indexes
      WHERE schemaname = $1 AND tablename = 'open_payments_records'`,
    [schema],
  )
  const table = `${schema}.open_payments_records`
  await pool.query(`ALTER TABLE ${table} DROP CONSTRAINT open_payments_records_pkey`)
  for (const { name } of rows) await pool.query(`DROP INDEX IF EXISTS ${schema}.${name}`)
  await work()
  await pool.query(`SET maintenance_work_mem = '512MB'`)
  for (const { text } of rows) await pool.query(text)
}

async function fill(pool: Pool, table: string, templates: readonly Template[]): Promise<void> {
  const each = count / templates.length
  for (let from = 0; from < each; from += chunk) {
    const to = Math.min(from + chunk, each)
    for (const template of templates) await copies(pool, table, template, from + 1, to)
    if (to % 500_000 === 0)
      console.error(`${(to * templates.length).toLocaleString('en')} payments`)
  }
}

/** Writes copies with times of two years, in the order of time as a wallet would. */
async function copies(
  pool: Pool,
  table: string,
  { kind, record }: Template,
  from: number,
  to: number,
) {
  const { id, createdAt, walletAddress, lists = [], dueAt = null } = record
  const marked = JSON.stringify(record)
    .replaceAll(id, '@id@')
    .replaceAll(walletAddress, '@account@')
    .replace(/\b\d{13}\b/g, (ms) => `@${Number(ms) - createdAt}@`)
  const offsets = [...new Set([...marked.matchAll(/@(-?\d+)@/g)].map(([, ms]) => ms))]
  const value = offsets.reduce(
    (text, ms) => `replace(${text}, '@${ms}@', (at + ${ms})::text)`,
    `replace(replace($1, '@id@', id), '@account@', account)`,
  )
  const listCells = lists.map(({ list, at }) => [
    `replace('${list}', '${walletAddress}', account)`,
    `at + ${at - createdAt}`,
  ])
  const names = lists.map((_, i) => `list_${i + 1}, list_${i + 1}_at`)
  const spanMs = 2 * 365 * 86_400_000
  await pool.query(
    `INSERT INTO ${table} (kind, id, version, value, due_at, ${names.join(', ')})
      SELECT '${kind}', id, ${record.version}, ${value}, at + ${(dueAt ?? createdAt) - createdAt},
        ${listCells.flat().join(', ')}
      FROM (
        SELECT '${id.slice(0, 8)}' || left(md5(i::text), 22) AS id,
          '${bob}-' || CASE WHEN i % 100 = 0 THEN 0 ELSE hashint8(i)::bigint & 2147483647 END % ${accounts} AS account,
          ${createdAt - spanMs}::bigint + i * ${Math.floor((2 * spanMs) / count)} AS at
        FROM generate_series($2::bigint, $3::bigint) AS i
      ) AS copy`,
    [marked, from, to],
  )
}

/** Measures the query of one view: in the server, and with the rows read by the driver. */
async function measure(pool: Pool, view: string): Promise<void> {
  const text = `SELECT * FROM ${view} WHERE account = $1 ORDER BY created_at DESC LIMIT 100`
  const explained = `EXPLAIN (ANALYZE, TIMING OFF, FORMAT JSON) ${text}`
  const inServer = async (account: string) => {
    const { rows } = await pool.query(explained, [account])
    const [plan] = rows[0]['QUERY PLAN']
    return plan['Planning Time'] + plan['Execution Time']
  }
  const inAll = async (account: string) => {
    const start = performance.now()
    const { rows } = await pool.query({ name: view, text, values: [account] })
    if (rows.length !== 100) throw new Error(`${account} has ${rows.length} payments`)
    return performance.now() - start
  }
  const some = Array.from({ length: samples }, (_, i) => `${bob}-${(i * 47 + 1) % accounts}`)
  const busy = Array<string>(20).fill(busiest)
  const figures = {
    [`in the server, ${samples} accounts, each for the first time`]: [inServer, some],
    'in the server, the same accounts again': [inServer, some],
    'in the server, the account with a hundredth of all': [inServer, busy],
    'with the driver, the same accounts again': [inAll, some],
  } as const
  for (const [name, [measured, wanted]] of Object.entries(figures)) {
    const times: number[] = []
    for (const account of wanted) times.push(await measured(account))
    const [middle, most] = [median(times), Math.max(...times)].map((ms) => ms.toFixed(2))
    console.log(`${view.split('.')[1]} ${name}: median ${middle} ms, slowest ${most} ms`)
  }
  const { rows } = await pool.query(`EXPLAIN (ANALYZE, BUFFERS) ${text}`, [some[0]])
  console.log(rows.map((row) => row['QUERY PLAN']).join('\n'))
}
