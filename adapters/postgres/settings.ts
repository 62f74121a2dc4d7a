import { DatabaseSettingsError } from '../sql/versions.js'
import { type PostgresClient, queryOn } from './driver.js'
import { onPrimary, tableIn } from './statements.js'

/** Any instant that a number of 32 bits and a floating-point number of 32 bits do not have. */
const instant = 1_700_000_000_001

/** As text, the values have the same form for every driver. */
const text = `${onPrimary}SELECT current_setting('server_encoding') AS encoding, pg_is_in_recovery()::text AS standby,
    current_setting('transaction_read_only') AS "readonly", current_setting('array_nulls') AS nulls,
    current_setting('synchronous_commit') AS waits, current_setting('fsync') AS flushes,
    ${instant}::bigint AS due_at,
    (SELECT relpersistence::text FROM pg_class WHERE oid = to_regclass($1)) AS persistence,
    EXISTS (SELECT FROM pg_trigger WHERE tgrelid = to_regclass($1) AND NOT tgisinternal)::text AS triggers,
    row_security_active(to_regclass($1)::oid)::text AS policies`

export interface Settings {
  /** What would go wrong silently, with its remedy. */
  readonly problem?: string
  /** How the database can lose commits that it has acknowledged. */
  readonly loss?: string
  /** Whether the role of the connection sees only what policies of the table let it see. */
  readonly hasPolicies: boolean
  readonly hasTriggers: boolean
}

export async function settingsOf(
  database: PostgresClient,
  schema: string | undefined,
): Promise<Settings> {
  const values = [tableIn(schema, 'open_payments_records')]
  const [row = {}] = await queryOn(database, { text, values })
  const problem = problemIn(row)
  // PGlite, which has no server, never flushes.
  const loss = lossIn('transaction' in database ? { ...row, flushes: 'on' } : row)
  return {
    ...(problem !== undefined && { problem }),
    ...(loss !== undefined && { loss }),
    hasPolicies: row['policies'] === 'true',
    hasTriggers: row['triggers'] === 'true',
  }
}

type Row = Readonly<Record<string, unknown>>

function problemIn(row: Row): string | undefined {
  const other = 'give the library a pool that does not'
  if (!('due_at' in row)) return `the driver renames the columns of rows, such as due_at: ${other}`
  if (Number(row['due_at']) !== instant) {
    return `the driver misreads integers of 64 bits, such as with \`binary: true\`: ${other}`
  }
  // In other encodings, the database rejects records with characters that they lack. SQL_ASCII stores any bytes.
  if (row['encoding'] !== 'UTF8' && row['encoding'] !== 'SQL_ASCII') {
    return `the encoding of the database is ${row['encoding']}, and must be UTF8`
  }
  if (row['standby'] === 'true') return 'the database is a standby: connect to the primary'
  if (row['readonly'] === 'on') {
    return 'transactions are read-only: set default_transaction_read_only = off'
  }
  return row['nulls'] === 'off' ? 'array_nulls is off: set array_nulls = on' : undefined
}

function lossIn(row: Row): string | undefined {
  if (row['persistence'] === 'u') {
    const remedy = 'ALTER TABLE open_payments_records SET LOGGED'
    return `the table is UNLOGGED, so that a crash empties it: ${remedy}`
  }
  if (row['flushes'] === 'off') {
    return 'fsync is off, so that a crash of the machine loses acknowledged commits: set it to on'
  }
  if (row['waits'] !== 'off') return undefined
  return 'synchronous_commit is off, so that a crash loses acknowledged commits: set it to on'
}

/** @throws {DatabaseSettingsError} for settings with which records would be changed, lost or outdated silently. */
export async function requireSettings(
  database: PostgresClient,
  schema: string | undefined,
): Promise<Settings> {
  const settings = await settingsOf(database, schema)
  if (settings.problem !== undefined) throw new DatabaseSettingsError(settings.problem)
  return settings
}
