import { createHash } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Connection, Pool, SqlError, UpsertResult } from 'mariadb'
import type { Store } from 'open-payments-server'
import type { RecordChange, RecordKind, Stored, VersionGuard } from 'open-payments-server/adapter'

export interface MariadbOptions {
  /** The prefix of the two table names. Stores with different prefixes share no data. */
  readonly prefix?: string
}

/** Creates the tables of `mariadbStore` if they do not exist. Call it before any process uses the store. */
export async function createMariadbTables(pool: Pool, options: MariadbOptions = {}): Promise<void> {
  const { records, places } = tablesOf(pool, options)
  await requireCurrentReads(pool)
  // Binary strings compare byte for byte, without case, padding or character sets.
  await pool.query(`CREATE TABLE IF NOT EXISTS ${records} (
    kind VARBINARY(32) NOT NULL,
    id VARBINARY(128) NOT NULL,
    version BIGINT NOT NULL,
    body LONGBLOB NOT NULL,
    namespace VARBINARY(8) NOT NULL,
    due_at BIGINT,
    guarded BIT NOT NULL DEFAULT 0,
    PRIMARY KEY (kind, id),
    INDEX due (kind, namespace, due_at, id)
  ) ENGINE = InnoDB`)
  await pool.query(`CREATE TABLE IF NOT EXISTS ${places} (
    kind VARBINARY(32) NOT NULL,
    id VARBINARY(128) NOT NULL,
    list BINARY(32) NOT NULL,
    listed_at BIGINT NOT NULL,
    PRIMARY KEY (kind, id, list),
    INDEX pages (kind, list, listed_at, id)
  ) ENGINE = InnoDB`)
}

/** Refuses sessions that read what may be rolled back or is outdated, and a server that refuses all commits. */
async function requireCurrentReads(pool: Pool): Promise<void> {
  const names = ['wsrep_on', 'wsrep_sync_wait', 'tx_isolation', 'log_bin', 'binlog_format']
  const quoted = names.map((name) => `'${name}'`).join(', ')
  const sql = `SHOW VARIABLES WHERE Variable_name IN (${quoted})`
  const setting = Object.fromEntries(await execute<[string, string][]>(pool, sql, []))
  // On Galera, a node may not yet have what another has committed. Other servers have no such variables.
  if (setting['wsrep_on'] === 'ON' && (Number(setting['wsrep_sync_wait']) & 1) === 0) {
    throw new Error('on Galera, give the pool sessionVariables: { wsrep_sync_wait: 1 }')
  }
  if (setting['tx_isolation'] === 'READ-UNCOMMITTED') {
    throw new Error('the isolation level is READ UNCOMMITTED, which shows what is rolled back')
  }
  if (setting['log_bin'] === 'ON' && setting['binlog_format'] === 'STATEMENT') {
    throw new Error('set binlog_format to MIXED or ROW: no commit works with STATEMENT')
  }
}

/**
 * Stores records in MariaDB: a row for each record, a row for each of its places in lists, and a transaction
 * for each commit. Before production:
 *
 * - Leave `innodb_flush_log_at_trx_commit` at 1, or a crash loses acknowledged commits.
 * - Read from the primary only, because `load` must see every commit. A failover to an asynchronous replica
 *   can lose acknowledged commits.
 * - Give the pool `sessionVariables: { innodb_lock_wait_timeout: 1, idle_transaction_timeout: 5 }`, in
 *   seconds, or a process that dies within a transaction keeps its records locked for hours.
 * - On Galera, add `wsrep_sync_wait: 1` to these, so that a node reads what another has committed.
 *
 * A transaction that deadlocks, or that loses against another node of a Galera cluster, is retried for up to
 * 3 s; after that the promise rejects.
 */
export function mariadbStore(pool: Pool, options: MariadbOptions = {}): Store {
  const tables = tablesOf(pool, options)
  const { records, places } = tables
  const { write, hold, erase } = stepsOver(tables)

  async function read(sql: string, ...values: readonly unknown[]): Promise<Stored[]> {
    const rows = await execute<[Buffer][]>(pool, sql, values)
    return rows.map(([body]) => JSON.parse(body.toString()) as Stored)
  }

  return {
    async load(keys) {
      // One statement reads one snapshot. The row of a key that exists has its place.
      const found = await execute<[number | bigint, Buffer][]>(
        pool,
        keys
          .map((_, i) => `SELECT ${i}, body FROM ${records} WHERE kind = ? AND id = ?`)
          .join(' UNION ALL '),
        keys.flatMap(({ kind, id }) => [kind, id]),
      )
      const texts = new Map(found.map(([place, body]) => [Number(place), body.toString()]))
      return keys.map((_, i) => {
        const text = texts.get(i)
        return text === undefined ? undefined : (JSON.parse(text) as Stored)
      })
    },

    async commit({ changes, guards }) {
      return transact(pool, [...changes.map(write), ...guards.map(hold)])
    },

    async list({ kind, list: wanted, cursor, forward, limit }) {
      // Without a cursor, start beyond all safe integers.
      const { at, id } = cursor ?? { at: forward ? -(2 ** 53) : 2 ** 53, id: '' }
      const [beyond, order] = forward ? ['>', 'ASC'] : ['<', 'DESC']
      const found = await read(
        `SELECT body FROM ${places} AS p FORCE INDEX (pages)
        STRAIGHT_JOIN ${records} AS r ON r.kind = p.kind AND r.id = p.id
        WHERE p.kind = ? AND p.list = ? AND p.listed_at ${beyond}= ?
          AND (p.listed_at ${beyond} ? OR p.id ${beyond} ?)
        ORDER BY p.listed_at ${order}, p.id ${order} LIMIT ?`,
        ...[kind, listKey(wanted), BigInt(at), BigInt(at), id, BigInt(limit + 1)],
      )
      const page = found.slice(0, limit)
      return { records: forward ? page : page.reverse(), more: found.length > limit }
    },

    async due(kind, namespace, before, limit) {
      return read(
        `SELECT body FROM ${records} WHERE kind = ? AND namespace = ? AND due_at <= ?
        ORDER BY due_at, id LIMIT ?`,
        ...[kind, namespace, BigInt(before), BigInt(limit)],
      )
    },

    async remove(given) {
      const removed: boolean[] = []
      const remove = async (each: VersionGuard) => each.version > 0 && transact(pool, [erase(each)])
      for (let from = 0; from < given.length; from += 8) {
        removed.push(...(await Promise.all(given.slice(from, from + 8).map(remove))))
      }
      return removed
    },
  }
}

/** What a transaction does with one record. */
interface Step {
  readonly record: string
  /** Resolves to false if the record is not at the expected version; otherwise the record stays locked. */
  readonly take: (connection: Connection) => Promise<boolean>
}

/** Applies all steps and commits, or none: resolves to false as soon as a step finds another version. */
async function transact(pool: Pool, steps: readonly Step[]): Promise<boolean> {
  // Locking records in the same order in every transaction prevents deadlocks.
  const ordered = steps.toSorted((a, b) => (a.record < b.record ? -1 : 1))
  for (const startedAt = performance.now(); ; await sleep(Math.random() * 32)) {
    const connection = await pool.getConnection()
    try {
      await connection.query('SET TRANSACTION ISOLATION LEVEL READ COMMITTED')
      await connection.query('START TRANSACTION')
      let taken = true
      for (const { take } of ordered) taken &&= await take(connection)
      await connection.query(taken ? 'COMMIT' : 'ROLLBACK')
      return taken
    } catch (error) {
      // A connection that cannot roll back must not return to the pool with an open transaction.
      await connection.query('ROLLBACK').catch(() => connection.destroy())
      if (!isError(error, deadlock, lockWaitTimeout)) throw error
      if (performance.now() - startedAt >= retryMs) throw error
    } finally {
      await connection.release()
    }
  }
}

function stepsOver({ records, places }: Tables) {
  const ofRecord = 'kind = ? AND id = ?'
  const atVersion = `${ofRecord} AND version = ?`
  const insert = `INSERT INTO ${records} (version, body, namespace, due_at, kind, id) VALUES (?, ?, ?, ?, ?, ?)`
  const update = `UPDATE ${records} SET version = ?, body = ?, namespace = ?, due_at = ? WHERE ${atVersion}`
  const remove = `DELETE FROM ${records} WHERE ${atVersion}`
  // A node of a Galera cluster sends the others what a transaction has changed, not what it has locked.
  const guard = `UPDATE ${records} SET guarded = NOT guarded WHERE ${atVersion}`
  const enlist = `INSERT INTO ${places} (kind, id, list, listed_at) VALUES (?, ?, ?, ?)`
  const unlist = `DELETE FROM ${places} WHERE ${ofRecord}`

  function write({ kind, next, expectedVersion }: RecordChange): Step {
    const { id, version, dueAt, lists = [] } = next
    // Serialize before the first await: afterwards the caller may change the record.
    const body = Buffer.from(JSON.stringify(next))
    const due = dueAt === undefined ? null : BigInt(dueAt)
    const row = [BigInt(version), body, id.slice(0, 8), due, kind, id]
    const listed = lists.map(({ list: wanted, at }) => [kind, id, listKey(wanted), BigInt(at)])
    return step(kind, id, async (connection) => {
      const written = await (expectedVersion === 0
        ? inserts(connection, insert, row)
        : affects(connection, update, [...row, BigInt(expectedVersion)]))
      if (!written) return false
      if (expectedVersion > 0) await execute(connection, unlist, [kind, id])
      for (const place of listed) await execute(connection, enlist, place)
      return true
    })
  }

  function hold({ kind, id, version }: VersionGuard): Step {
    const expected = [kind, id, BigInt(version)]
    return step(kind, id, async (connection) => {
      if (version > 0) return affects(connection, guard, expected)
      // There is no row to lock: a placeholder, inserted and deleted, keeps others from creating the record.
      const placeholder = [0n, '', '', null, kind, id]
      return (
        (await inserts(connection, insert, placeholder)) && affects(connection, remove, expected)
      )
    })
  }

  function erase({ kind, id, version }: VersionGuard): Step {
    return step(kind, id, async (connection) => {
      const erased = await affects(connection, remove, [kind, id, BigInt(version)])
      if (erased) await execute(connection, unlist, [kind, id])
      return erased
    })
  }
  return { write, hold, erase }
}

function step(kind: RecordKind, id: string, take: Step['take']): Step {
  return { record: `${kind}/${id}`, take }
}

/** Runs a prepared statement. Its result has the same shape for every configuration of the pool. */
function execute<Result>(on: Pool | Connection, sql: string, values: readonly unknown[]) {
  return on.execute<Result>({ sql, rowsAsArray: true, metaAsArray: false }, values)
}

/**
 * Resolves to whether the statement found its row; updates always change it, so found and changed are equal.
 */
async function affects(connection: Connection, sql: string, values: readonly unknown[]) {
  return (await execute<UpsertResult>(connection, sql, values)).affectedRows === 1
}

/**
 * Resolves to false if the row exists. INSERT IGNORE would also ignore invalid values, and ON DUPLICATE KEY
 * UPDATE counts rows differently depending on the pool.
 */
function inserts(connection: Connection, sql: string, row: readonly unknown[]): Promise<boolean> {
  return affects(connection, sql, row).catch((error) => {
    if (isError(error, duplicateKey)) return false
    throw error
  })
}

const retryMs = 3_000
const duplicateKey = 1062
const lockWaitTimeout = 1205
const deadlock = 1213

function isError(error: unknown, ...numbers: readonly number[]): boolean {
  return numbers.includes((error as SqlError).errno)
}

type Tables = ReturnType<typeof tablesOf>

function tablesOf(pool: Pool, { prefix = 'open_payments' }: MariadbOptions) {
  return { records: pool.escapeId(`${prefix}_records`), places: pool.escapeId(`${prefix}_places`) }
}

/** Hashes a list name of any length to 32 bytes. JSON keeps lone surrogates distinct. */
function listKey(list: string): Buffer {
  return createHash('sha256').update(JSON.stringify(list)).digest()
}
