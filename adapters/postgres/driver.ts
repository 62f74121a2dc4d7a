/** A statement with its values. The driver may keep a named statement prepared. */
export interface PostgresStatement {
  readonly name?: string
  readonly text: string
  readonly values: unknown[]
}

/** What the library needs of a connection or a pool. A `Client` or `Pool` of `pg` satisfies it. */
export interface PostgresClient {
  query(statement: PostgresStatement): Promise<{ readonly rows: readonly PostgresRow[] }>
}

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

export interface PgliteDatabase extends PgliteClient {
  transaction<Result>(run: (client: PgliteClient) => Promise<Result>): Promise<Result>
}

/** Adapts PGlite, or one of its transactions, to the interface of a `pg` pool or client. */
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

/** Runs all work on one connection between BEGIN and COMMIT, or ROLLBACK if it fails. */
export async function inOneTransaction<Result>(
  database: PostgresPool | PostgresDatabase,
  run: (client: PostgresClient) => Promise<Result>,
): Promise<Result> {
  if ('transaction' in database) return database.transaction(run)
  const client = await database.connect()
  let broken = true
  // The driver reports a connection that the server ended between two statements by an event. Without a
  // listener it would end the process; with one, the next statement fails.
  client.on?.('error', ignore)
  try {
    await client.query({ text: 'BEGIN ISOLATION LEVEL READ COMMITTED', values: [] })
    const result = await run(client)
    await client.query({ text: 'COMMIT', values: [] })
    broken = false
    return result
  } finally {
    // Close the connection: the server rolls back whatever was begun on it.
    client.off?.('error', ignore)
    client.release(broken)
  }
}

function ignore(): void {}

/** Returns the SQLSTATE of an error from the server, or `undefined` for any other error. */
export function sqlState(error: unknown): string | undefined {
  const code = error instanceof Error && 'code' in error ? error.code : undefined
  return typeof code === 'string' && /^[0-9A-Z]{5}$/.test(code) ? code : undefined
}

/**
 * Returns whether an error is a serialization failure or a deadlock, after which the transaction can be
 * retried.
 */
export function isTransient(error: unknown): boolean {
  const state = sqlState(error)
  return state === '40001' || state === '40P01'
}
