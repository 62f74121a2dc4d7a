import { InvalidInputError, TransactionError } from '../../src/index.js'
import { causesOf } from '../sql/causes.js'
import { TablesMissingError } from '../sql/versions.js'

/** A statement with its values. The driver may keep a named statement prepared. */
export interface PostgresStatement {
  readonly name?: string
  readonly text: string
  readonly values: unknown[]
}

/** The part of a connection or a pool that the library uses. A `Client` or `Pool` of `pg` satisfies it. */
export interface PostgresClient {
  query(statement: PostgresStatement): Promise<{
    readonly rows: readonly PostgresRow[]
    /** The command that the server executed: `ROLLBACK` for the COMMIT of a transaction that had failed. */
    readonly command?: string
  }>
}

/** A row of a result, by the names of its columns. */
export interface PostgresRow {
  // biome-ignore lint/suspicious/noExplicitAny: the columns of a row depend on the statement
  readonly [column: string]: any
}

/** A pool of connections, such as a `Pool` of `pg`. */
export interface PostgresPool extends PostgresClient {
  connect(): Promise<PostgresPoolClient>
}

/** A connection from a pool. */
export interface PostgresPoolClient extends PostgresClient {
  release(destroy?: boolean): void
  on?(event: 'error', listener: (error: Error) => void): unknown
  off?(event: 'error', listener: (error: Error) => void): unknown
}

/** A database that runs transactions itself, such as PGlite. */
export interface PostgresDatabase extends PostgresClient {
  transaction<Result>(run: (client: PostgresClient) => Promise<Result>): Promise<Result>
}

/** The client that PGlite passes to its transactions. */
export interface PgliteClient {
  query(text: string, values?: unknown[]): Promise<{ rows: unknown[] }>
}

/** The part of a `PGlite` that the store uses. */
export interface PgliteDatabase extends PgliteClient {
  transaction<Result>(run: (client: PgliteClient) => Promise<Result>): Promise<Result>
}

/** Checks a pool or connection. The error does not quote a connection string, which may contain a password. */
export function requireDatabase(database: PostgresClient): void {
  if (typeof database?.query === 'function') return
  const problem = 'must be a pool or a connection with a method query, such as a Pool of pg'
  throw new InvalidInputError('database', problem)
}

/**
 * Adapts PGlite, or one of its transactions, to the interface of a `pg` pool or client.
 *
 * @example
 * ```ts
 * import { PGlite } from '@electric-sql/pglite'
 * import { fromPglite, migrate, postgresStore } from 'open-payments-server/postgres'
 *
 * const database = fromPglite(new PGlite())
 * await migrate(database)
 * const store = postgresStore(database)
 * ```
 */
export function fromPglite(database: PgliteDatabase): PostgresDatabase
export function fromPglite(client: PgliteClient): PostgresClient
export function fromPglite(
  database: PgliteClient | PgliteDatabase,
): PostgresClient | PostgresDatabase {
  const client = {
    query: ({ text, values }: PostgresStatement) =>
      database.query(text, values) as Promise<{ rows: PostgresRow[] }>,
  }
  if (!('transaction' in database)) return client
  return {
    ...client,
    transaction: <Result>(run: (client: PostgresClient) => Promise<Result>) =>
      database.transaction((inside) => run(fromPglite(inside))),
  }
}

/**
 * Runs work on one connection between BEGIN and COMMIT, or ROLLBACK if it fails. Closes the connection if it broke or
 * if the rollback fails.
 */
export async function inOneTransaction<Client extends PostgresPoolClient, Result>(
  pool: { connect(): Promise<Client> },
  work: (client: Client) => Promise<Result>,
): Promise<Result> {
  let broken = false
  const onError = () => {
    broken = true
  }
  const client = await watchedClient(pool, onError)
  try {
    await client.query({ text: 'BEGIN ISOLATION LEVEL READ COMMITTED', values: [] })
    const result = await work(client)
    const { command = 'COMMIT' } = await client.query({ text: 'COMMIT', values: [] })
    if (command === 'COMMIT') return result
    const message = `PostgreSQL answered COMMIT with ${command}: a statement failed and its error was caught`
    throw new TransactionError('ERR_TRANSACTION_FAILED', message)
  } catch (error) {
    await client.query({ text: 'ROLLBACK', values: [] }).catch(onError)
    throw error
  } finally {
    client.off?.('error', onError)
    client.release(broken)
  }
}

/**
 * Runs a statement. A `Pool` of `pg` closes a connection after any error of its `query`; this function keeps the
 * connection if the server only undid the statement.
 */
export async function queryOn(
  database: PostgresClient,
  statement: PostgresStatement,
  schema?: string,
): Promise<readonly PostgresRow[]> {
  if (!isPool(database)) return rowsOf(database, statement, schema)
  const client = await watchedClient(database, ignore)
  let broken = false
  try {
    return await rowsOf(client, statement, schema)
  } catch (error) {
    broken = !isLost(error) && !isTransient(error)
    throw error
  } finally {
    client.off?.('error', ignore)
    client.release(broken)
  }
}

/** Runs a statement, and returns its rows. An error about missing tables names their schema, if it is known. */
export async function rowsOf(
  client: PostgresClient,
  statement: PostgresStatement,
  schema?: string,
): Promise<readonly PostgresRow[]> {
  try {
    return (await client.query(statement)).rows
  } catch (error) {
    throw explained(error, statement, schema)
  }
}

/**
 * Takes a client that has a listener for errors. The driver reports a connection that the server ended between two
 * statements by an event. Without a listener it would end the process; with one, the next statement fails.
 *
 * The pool removes its own listener before it passes the client on, and the same bytes that made the client ready can
 * contain the end of its connection. A promise would be too late for that, so a pool of `pg` gets a callback. A host
 * may have put a function in its place that takes none and returns a promise.
 */
async function watchedClient<Client extends PostgresPoolClient>(
  pool: { connect(): Promise<Client> },
  onError: () => void,
): Promise<Client> {
  if (!isPool(pool)) {
    const client = await pool.connect()
    client.on?.('error', onError)
    return client
  }
  const connect = pool.connect.bind(pool) as ConnectWithCallback<Client>
  return new Promise((resolve, reject) => {
    let taken: Client | undefined
    const take = (client: Client | undefined) => {
      if (client === undefined || client === taken) return
      if (taken !== undefined) return client.release()
      taken = client
      client.on?.('error', onError)
      resolve(client)
    }
    const promised = connect((error, client) => {
      if (client === undefined) reject(error)
      else take(client)
    })
    promised?.then(take, reject)
  })
}

type ConnectWithCallback<Client> = (
  callback: (error: unknown, client: Client | undefined) => void,
) => Promise<Client | undefined> | undefined

/** Tells a pool from a single client of `pg`, whose `connect` is another function. */
export function isPool(database: object): database is PostgresPool {
  return 'connect' in database && 'totalCount' in database
}

function ignore(): void {}

/**
 * Returns the SQLSTATE of an error from the server, or `undefined` for any other error. A query builder may have
 * wrapped it.
 */
export function sqlState(error: unknown): string | undefined {
  return causesOf(error)
    .map(ownState)
    .find((state) => state !== undefined)
}

function ownState(error: Error): string | undefined {
  const code = 'code' in error ? error.code : undefined
  return typeof code === 'string' && /^[0-9A-Z]{5}$/.test(code) ? code : undefined
}

/**
 * Returns whether an error, or one of its causes, is a serialization failure, a deadlock or the end of a wait for a
 * lock, after which the transaction can be retried. The host may have wrapped it in an error with a code of its own.
 */
export function isTransient(
  error: unknown,
  stateOf: (error: Error) => string | undefined = ownState,
): boolean {
  return causesOf(error).some((each) => transientStates.includes(stateOf(each) ?? ''))
}

const transientStates: readonly string[] = ['40001', '40P01', '55P03']

/**
 * The error for a prepared statement that the connection does not have, because a pooler runs each statement on another
 * connection. Set `prepare: false` in the options of `postgresStore`. Nothing was written.
 *
 * @example
 * ```ts
 * import { PreparedStatementError, postgresStore } from 'open-payments-server/postgres'
 *
 * const behindPooler = postgresStore(pool)
 * const [found] = await behindPooler
 *   .load([{ kind: 'grant', id: 'wallet01grant-1' }])
 *   .catch((error: unknown) => {
 *     if (error instanceof PreparedStatementError) console.error('set prepare: false')
 *     throw error
 *   })
 * ```
 */
export class PreparedStatementError extends Error {
  readonly code = 'ERR_PREPARED_STATEMENT'
}

/** The SQLSTATEs of prepared statements that are missing, exist already, or have other parameters. */
const notPrepared: readonly (string | undefined)[] = ['26000', '42P05', '08P01']

/** The SQLSTATE of a table that does not exist. */
const undefinedTable = '42P01'

export function isWithoutTables(error: unknown): boolean {
  return sqlState(error) === undefinedTable
}

/** Returns an error that names the cause, if a statement failed because of how it was prepared, or without tables. */
function explained(error: unknown, { name }: PostgresStatement, schema?: string): unknown {
  if (error instanceof TablesMissingError) return error
  if (isWithoutTables(error)) {
    return new TablesMissingError('open-payments-server/postgres', 'migrate(pool)', error, schema)
  }
  if (name === undefined || !notPrepared.includes(sqlState(error))) return error
  const message =
    'the database connection lost a prepared statement, as with a pooler in transaction mode: ' +
    'set { prepare: false } in the options of postgresStore'
  return new PreparedStatementError(message, { cause: error })
}

/** Returns whether an error is the deliberate division by zero that rolls back a commit that lost. */
export function isLost(error: unknown): boolean {
  return sqlState(error) === '22012'
}
