import { DatabaseSettingsError } from '../../../adapters/sql/versions.js'
import type { Client } from './client.js'

const charsets = ['character_set_client', 'character_set_connection', 'character_set_results']
/** Each server has these. */
const common = ['autocommit', 'sql_mode', ...charsets]
const names = [
  ...common,
  ...['tx_isolation', 'transaction_isolation', 'completion_type', 'log_bin', 'binlog_format'],
  ...['innodb_flush_log_at_trx_commit', 'read_only', 'wsrep_on', 'wsrep_sync_wait'],
]

/**
 * Refuses a session, a server or a driver with which records would be changed, or read before they are committed. The
 * store cannot see the sessions that a pool opens later: this checks one. Resolves to how the server can lose commits
 * that it has acknowledged, or to `undefined`.
 *
 * @throws {DatabaseSettingsError}
 */
export async function requireMysqlSettings(client: Client): Promise<string | undefined> {
  const quoted = names.map((name) => `'${name}'`).join(', ')
  const { rows } = await client.run(`SHOW VARIABLES WHERE Variable_name IN (${quoted})`)
  const variables = new Map(variablesIn(rows).map((row) => [row.Variable_name, row.Value]))
  const problem = problemIn((name) => variables.get(name) ?? '')
  if (problem !== undefined) throw new DatabaseSettingsError(problem)
  const flush = variables.get('innodb_flush_log_at_trx_commit')
  if (flush !== '0' && flush !== '2') return undefined
  return `innodb_flush_log_at_trx_commit is ${flush}, so that a crash loses acknowledged commits: set it to 1`
}

interface Variable {
  readonly Variable_name: string
  readonly Value: string
}

/** @throws {DatabaseSettingsError} for rows that the driver or the session has changed. */
function variablesIn(rows: readonly object[]): readonly Variable[] {
  const found = rows.map((row) => (row as Partial<Variable>).Variable_name)
  if (rows.some(Array.isArray)) {
    throw new DatabaseSettingsError('rows must be objects: open the pool without `rowsAsArray`')
  }
  if (found.some((name) => typeof name !== 'string')) {
    throw new DatabaseSettingsError('text must be a string: open the pool without `typeCast`')
  }
  if (common.some((name) => !found.includes(name))) {
    const problem = 'the session returns only a part of the rows'
    throw new DatabaseSettingsError(`${problem}: set sql_select_limit = DEFAULT`)
  }
  return rows as readonly Variable[]
}

function problemIn(setting: (name: string) => string): string | undefined {
  for (const name of charsets) {
    const charset = setting(name)
    // Without a character set for results, the server returns text as it is stored.
    if (charset === 'utf8mb4' || (name === charsets[2] && charset === '')) continue
    return `${name} is ${charset}, and must be utf8mb4`
  }
  if (setting('sql_mode').includes('NO_BACKSLASH_ESCAPES')) {
    return 'sql_mode must not contain NO_BACKSLASH_ESCAPES'
  }
  if (setting('autocommit') !== 'ON') return 'autocommit must be ON in each session'
  // MySQL has the second name alone.
  const isolation = setting('tx_isolation') || setting('transaction_isolation')
  if (isolation === 'READ-UNCOMMITTED') {
    return 'the isolation level is READ UNCOMMITTED, which shows what is rolled back: set READ COMMITTED'
  }
  if (setting('completion_type') !== '' && setting('completion_type') !== 'NO_CHAIN') {
    return `completion_type is ${setting('completion_type')}, and must be NO_CHAIN`
  }
  if (setting('log_bin') === 'ON' && setting('binlog_format') === 'STATEMENT') {
    return 'binlog_format is STATEMENT, with which no commit works: set MIXED or ROW'
  }
  if (setting('read_only') === 'ON') {
    return 'the server is read-only, such as a replica: connect to the primary'
  }
  // A node of a Galera cluster may not yet have the commits of another node. Other servers do not have these variables.
  if (setting('wsrep_on') === 'ON' && (Number(setting('wsrep_sync_wait')) & 1) === 0) {
    return 'on Galera, set wsrep_sync_wait = 1 in each session, when the pool opens it'
  }
  return undefined
}
