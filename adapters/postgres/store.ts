import {
  type RecordKey,
  requireKnownOptions,
  type Stored,
  storeBounds,
} from '../../src/entry-adapter.js'
import type { Store } from '../../src/index.js'
import { pageOf, recordIn, recordOf, removedOf } from '../sql/records.js'
import {
  createMark,
  hostTransaction,
  retried,
  type TransactionResult,
} from '../sql/transactions.js'
import {
  isLost,
  isPool,
  isTransient,
  type PostgresClient,
  type PostgresPoolClient,
  type PostgresStatement,
  queryOn,
  requireDatabase,
} from './driver.js'
import {
  type HostDatabase,
  hostTransactionsOf,
  type PostgresTransactions,
} from './host-transaction.js'
import { checkedSchema, createStatements, isEmpty, type Statements } from './statements.js'
import { type Run, requireOpen, storeInTransaction, whileOpen } from './transaction.js'

/** Where the tables are, and whether statements are prepared. */
export interface PostgresStoreOptions {
  /**
   * The schema of the tables, which must exist: at most 40 lower-case letters, digits and underscores.
   * Default: the first schema of the connection's `search_path`.
   */
  readonly schema?: string
  /**
   * Whether to prepare statements by name. Default true. Set it to false for a pooler that may run each
   * statement on another connection, such as PgBouncer in transaction mode with `max_prepared_statements = 0`,
   * or before version 1.21. Otherwise operations reject with a `PreparedStatementError`.
   */
  readonly prepare?: boolean
}

/** The type of `postgresStore`: a function, with the transactions of a host. */
export interface PostgresStore {
  /**
   * Returns a store over a pool of connections, such as a `Pool` of `pg`, or over `fromPglite(database)`. Run
   * `migrate` first. Each operation is one statement and so one round trip.
   *
   * The store retries serialization failures and deadlocks for up to 3 s. After that, a commit resolves to
   * false, and other operations throw the error. It rethrows all other errors of the driver unchanged.
   *
   * @throws {PreparedStatementError} from its operations behind a pooler that needs `prepare: false`.
   * @throws {InvalidInputError} for an invalid schema and for an unknown option.
   */
  (database: PostgresClient, options?: PostgresStoreOptions): Store
  /**
   * Returns a store inside a transaction that the host has begun on `client`, so that the library's writes
   * commit or roll back together with the host's own rows. Create one for each transaction and pass it to
   * `within` of a server. The isolation level must be READ COMMITTED.
   *
   * No write is visible to others, or certain, before the host's COMMIT. After a statement that failed, PostgreSQL
   * rolls back at COMMIT and reports no error: check that the `command` of its result is `COMMIT`.
   *
   * Rejects with a `TransactionError` if the transaction cannot continue: with code `ERR_RESTART_TRANSACTION` after a
   * deadlock or serialization failure, so that the host can restart it from BEGIN, otherwise with
   * `ERR_TRANSACTION_FAILED`.
   */
  inTransaction(client: PostgresClient, options?: PostgresStoreOptions): Store
  /**
   * Runs a transaction of the host on a connection of its own, with the library's writes in it: pass `store` to
   * `within` of a server. Commits it if the result is `ok`, and rolls it back if not, or if `run` rejects. After a
   * deadlock, a serialization failure or a `ContentionError` it runs the whole transaction again, at most five times in
   * all, so `run` must have no effects outside the transaction.
   *
   * @param pool a `Pool` of `pg`, or another object whose `connect` resolves to a connection.
   * @throws the error of `run` or of the driver. If COMMIT itself fails, its outcome is unknown: run the transaction
   *   again, with calls that may be repeated.
   * @throws {TransactionError} with code `ERR_TRANSACTION_FAILED` if PostgreSQL has rolled the transaction back,
   *   because a statement failed and `run` caught its error.
   */
  transaction<Client extends PostgresPoolClient, Result extends TransactionResult>(
    pool: { connect(): Promise<Client> },
    run: (client: Client, store: Store) => Promise<Result>,
    options?: PostgresStoreOptions,
  ): Promise<Result>
  /**
   * Does the same in a transaction of a query builder or an ORM, which `run` gets in place of a connection.
   *
   * @throws the error of `run` or of the query builder. If its COMMIT fails, the outcome is unknown, as above.
   */
  transaction<Transaction, Result extends TransactionResult>(
    transactions: PostgresTransactions<Transaction>,
    run: (transaction: Transaction, store: Store) => Promise<Result>,
    options?: PostgresStoreOptions,
  ): Promise<Result>
}

/**
 * Creates stores on PostgreSQL: over a pool, inside a transaction of the host, or with `transaction` around one.
 *
 * @example
 * ```ts
 * import { postgresStore } from 'open-payments-server/postgres'
 * import type { PoolClient } from 'pg'
 *
 * const store = postgresStore(pool)
 *
 * const amount = { value: '100', assetCode: 'USD', assetScale: 2 }
 * await postgresStore.transaction(pool, async (client: PoolClient, inside) => {
 *   const { incomingPayments } = wallet.resources.within(inside)
 *   const received = await incomingPayments.receive('payment-1', { transferId: 'rail-1', amount })
 *   const credit = 'UPDATE accounts SET balance = balance + 100 WHERE id = $1'
 *   if (received.ok && received.changed) await client.query(credit, ['alice'])
 *   return received
 * })
 * ```
 */
export const postgresStore: PostgresStore = Object.assign(overPool, {
  inTransaction,
  transaction: inHostTransaction,
})

function overPool(database: PostgresClient, options: PostgresStoreOptions = {}): Store {
  requireDatabase(database)
  const statements = statementsOf(options)
  const tryOnce = (statement: PostgresStatement) => queryOn(database, statement, statements.schema)
  const run = (statement: PostgresStatement) => retried(() => tryOnce(statement), isTransient)
  const textsOf = textsBy(statements, run)
  const textsOnce = textsBy(statements, tryOnce)
  return {
    ...reads(statements, run, isPool(database) ? sharing(textsOf, textsOnce) : textsOf),
    async commit(commit) {
      if (isEmpty(commit)) return true
      try {
        return (await run(statements.commit(commit))).length > 0
      } catch (error) {
        // The server has undone the commit, so that its outcome is known.
        if (isLost(error) || isTransient(error)) return false
        throw error
      }
    },
  }
}

function inTransaction(client: PostgresClient, options: PostgresStoreOptions = {}): Store {
  const statements = statementsOf(options, createMark())
  const { run, commit } = storeInTransaction(client, statements)
  return { ...reads(statements, run, textsBy(statements, run)), commit }
}

function inHostTransaction<Transaction, Result extends TransactionResult>(
  database: HostDatabase<Transaction>,
  run: (transaction: Transaction, store: Store) => Promise<Result>,
  options?: PostgresStoreOptions,
): Promise<Result> {
  const { begin, clientOf, isTransient } = hostTransactionsOf(database)
  return hostTransaction<Transaction, Result>({
    begin,
    run: (transaction) =>
      whileOpen(clientOf(transaction), (client) =>
        run(transaction, inTransaction(client, options)),
      ),
    requireOpen: (transaction) => requireOpen(clientOf(transaction)),
    isTransient,
  })
}

/** Resolves to the text of the record with each key, in their order, or null if there is none. */
type TextsOf = (keys: readonly RecordKey[]) => Promise<readonly unknown[]>

function textsBy(statements: Statements, run: Run): TextsOf {
  return async (keys) => (await run(statements.load(keys))).flatMap((row) => Object.values(row))
}

/** A call that waits for its SELECT. */
interface Waiting {
  readonly keys: readonly RecordKey[]
  readonly settle: (texts: ReturnType<TextsOf>) => void
}

/**
 * Sends a call at once if no other is being answered. Otherwise collects calls until the event loop has handled the
 * input of its turn, and sends one SELECT for them. No call joins a SELECT that has been sent, so each sees all commits
 * that returned before it. If a shared SELECT fails, each call is repeated separately, because the cause may be another
 * call.
 */
function sharing(textsOf: TextsOf, tryOnce: TextsOf): TextsOf {
  let waiting: Waiting[] = []
  let sent = 0

  function send(): void {
    const all = waiting
    waiting = []
    let [size, from] = [0, 0]
    for (const [i, { keys }] of all.entries()) {
      if (size + keys.length > storeBounds.loadKeys && i > from) {
        void share(all.slice(from, i))
        ;[size, from] = [0, i]
      }
      size += keys.length
    }
    void share(all.slice(from))
  }

  async function answered<Texts>(select: Promise<Texts>): Promise<Texts> {
    sent += 1
    try {
      return await select
    } finally {
      sent -= 1
    }
  }

  async function share(calls: readonly Waiting[]): Promise<void> {
    const [only] = calls
    if (only !== undefined && calls.length === 1) return only.settle(answered(textsOf(only.keys)))
    const together = calls.flatMap(({ keys }) => keys)
    const texts = await answered(tryOnce(together)).catch(() => undefined)
    let from = 0
    for (const { keys, settle } of calls) {
      const own = texts?.slice(from, from + keys.length)
      from += keys.length
      settle(own === undefined ? textsOf(keys) : Promise.resolve(own))
    }
  }

  return (keys) => {
    if (sent === 0 && waiting.length === 0) return answered(textsOf(keys))
    return new Promise((settle) => {
      waiting.push({ keys, settle })
      if (waiting.length === 1) endOfTurn(send)
    })
  }
}

// Not every runtime with a pool like `pg.Pool` has `setImmediate`.
const endOfTurn = globalThis.setImmediate ?? queueMicrotask

/** How often one call of `due` moves records. */
const moveRoundsMax = 100

function recordOrNone(text: unknown): Stored | undefined {
  return text === null || text === undefined ? undefined : recordIn(String(text))
}

function reads(statements: Statements, run: Run, textsOf: TextsOf): Omit<Store, 'commit'> {
  return {
    async load(keys) {
      return (await textsOf(keys)).map(recordOrNone)
    },
    async list(query) {
      return pageOf(query, await run(statements.list(query)))
    },
    async due(kind, ...query) {
      let before: ReadonlySet<string> = new Set()
      for (let round = 1; ; round++) {
        const rows = await run(statements.due(kind, ...query))
        const records = rows.map(recordOf)
        // A commit does not move the indexed time of a record that becomes due later, so `due` moves it.
        const isMoved = ({ dueAt }: Stored, i: number) => dueAt !== Number(rows[i]?.['due_at'])
        const moved = records.filter(isMoved)
        const left = records.filter((record, i) => !isMoved(record, i))
        // A later call moves the others.
        if (moved.length === 0 || round === moveRoundsMax) return left
        const moving = new Set(moved.map(({ id, version }) => `${id} ${version}`))
        if ([...moving].some((key) => before.has(key))) {
          throw new Error('the database returns another due_at of a record than it was given')
        }
        before = moving
        await run(statements.move(kind, moved))
      }
    },
    async remove(records) {
      return removedOf(records, await run(statements.remove(records)))
    },
  }
}

function statementsOf(options: PostgresStoreOptions, mark?: string): Statements {
  requireKnownOptions('', options, { schema: true, prepare: true })
  const { schema, prepare = true } = options
  return createStatements(checkedSchema(schema), prepare, mark)
}
