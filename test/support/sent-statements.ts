import type { Pool as MysqlPool } from 'mysql2'
import type { Pool } from 'pg'
import type { SqliteConnection } from './sqlite.js'

/** The statements that a driver sends, as they are sent. */
export interface SentStatements {
  /**
   * Calls back directly after the driver was given the statement of this number, counted from now, with a function that
   * sends ROLLBACK on its connection. Returns whether it did.
   */
  when(number: number, then: (rollBack: () => void) => void): () => boolean
  /** The text of the last statement that was counted. */
  last(): string
  /** Counts no more. */
  stop(): void
}

export interface PgStatements extends SentStatements {
  /**
   * Keeps the statement of this number from the driver until ROLLBACK was answered on its connection. Returns whether
   * it did.
   */
  late(number: number): () => boolean
}

/** Whether a statement neither begins nor ends the transaction. */
function isInner(text: string): boolean {
  return text !== '' && !outermost.test(text)
}

const outermost = /^\s*(?:BEGIN|START|COMMIT|SET TRANSACTION|ROLLBACK\s*;?\s*$)/i

function createSent() {
  let awaited:
    | { number: number; then: (rollBack: () => void) => void; reached: boolean }
    | undefined
  let count = 0
  let last = ''
  const sent: SentStatements = {
    when(number, then) {
      count = 0
      const own = { number, then, reached: false }
      awaited = own
      return () => own.reached
    },
    last: () => last,
    stop() {
      awaited = undefined
    },
  }
  function note(text: string, rollBack: () => void): void {
    if (awaited === undefined || !isInner(text)) return
    count += 1
    if (count !== awaited.number) return
    awaited.reached = true
    last = text.replaceAll(/\s+/g, ' ')
    awaited.then(rollBack)
  }
  return { sent, note }
}

/** The statements of a pool of `pg`, which may have connections already. */
export function sentByPg(pool: Pool): PgStatements {
  const { sent, note } = createSent()
  const { prototype } = (pool as unknown as PoolOfClass).Client
  const query = prototype.query
  let late: { readonly number: number; reached: boolean } | undefined
  let count = 0
  const rolledBack = new WeakMap<PgClient, { readonly ended: Promise<void>; end(): void }>()

  function endOf(client: PgClient) {
    const known = rolledBack.get(client)
    if (known !== undefined) return known
    let end = () => {}
    const ended = new Promise<void>((resolve) => {
      end = resolve
    })
    rolledBack.set(client, { ended, end })
    return { ended, end }
  }

  prototype.query = function (this: PgClient, ...given) {
    const [statement] = given
    const text = (typeof statement === 'string' ? statement : statement?.text) ?? ''
    if (late !== undefined && isInner(text) && ++count === late.number) {
      late.reached = true
      return endOf(this).ended.then(() => query.apply(this, given))
    }
    if (/^\s*BEGIN/i.test(text)) rolledBack.delete(this)
    const answer = query.apply(this, given)
    if (/^\s*ROLLBACK\s*$/i.test(text)) void Promise.resolve(answer).then(() => endOf(this).end())
    note(text, () => void Promise.resolve(query.call(this, 'ROLLBACK')).catch(() => undefined))
    return answer
  }
  return {
    ...sent,
    late(number) {
      const own = { number, reached: false }
      late = own
      count = 0
      return () => own.reached
    },
    stop() {
      late = undefined
      sent.stop()
    },
  }
}

/** The class of the connections of a pool. */
interface PoolOfClass {
  readonly Client: { readonly prototype: PgClient }
}

interface PgClient {
  query(...given: [string | { readonly text?: string }, ...unknown[]]): unknown
}

/** The statements of a pool of `mysql2`, from its first connection on. */
export function sentByMysql(pool: MysqlPool): SentStatements {
  const { sent, note } = createSent()
  pool.on('connection', (connection) => {
    const query = connection.query.bind(connection) as (...given: unknown[]) => unknown
    connection.query = ((...given: unknown[]) => {
      const answer = query(...given)
      note(String(given[0]), () => void query('ROLLBACK', () => undefined))
      return answer
    }) as typeof connection.query
  })
  return sent
}

/** The statements of a connection of SQLite, which run as soon as they are sent. */
export function sentBySqlite(connection: SqliteConnection): SentStatements {
  const { sent, note } = createSent()
  const exec = connection.exec.bind(connection)
  const prepare = connection.prepare.bind(connection)
  const rollBack = () => {
    try {
      exec('ROLLBACK')
    } catch {} // no transaction is in progress
  }
  connection.exec = (text) => {
    const answer = exec(text)
    note(text, rollBack)
    return answer
  }
  connection.prepare = (text) => {
    const statement = prepare(text)
    const noted =
      (run: (...values: unknown[]) => unknown) =>
      (...values: unknown[]) => {
        const answer = run.apply(statement, values)
        note(text, rollBack)
        return answer
      }
    return new Proxy(statement, {
      get(target, name) {
        const value = Reflect.get(target, name, target)
        if (typeof value !== 'function') return value
        return name === 'all' || name === 'run' ? noted(value) : value.bind(target)
      },
    })
  }
  return sent
}
