/** A statement with its values; one with a name may be kept prepared under it. */
export interface PostgresStatement {
  readonly name?: string
  readonly text: string
  readonly values: unknown[]
}

/** What the library needs of a connection, or of a pool of them. A `Client` or `Pool` of `pg` has it. */
export interface PostgresClient {
  query(statement: PostgresStatement): Promise<{ readonly rows: readonly PostgresRow[] }>
}

export interface PostgresRow {
  // biome-ignore lint/suspicious/noExplicitAny: what is in a row depends on the statement
  readonly [column: string]: any
}

/** A pool of connections, such as a `Pool` of `pg`. */
export interface PostgresPool extends PostgresClient {
  connect(): Promise<PostgresPoolClient>
}

/** A connection that was taken out of a pool. */
export interface PostgresPoolClient extends PostgresClient {
  release(destroy?: boolean): void
  on?(event: 'error', listener: (error: Error) => void): unknown
  off?(event: 'error', listener: (error: Error) => void): unknown
}

/** A database that runs transactions by itself, such as PGlite. */
export interface PostgresDatabase extends PostgresClient {
  transaction<Result>(run: (client: PostgresClient) => Promise<Result>): Promise<Result>
}

/** What PGlite gives to its transactions. */
export interface PgliteClient {
  query(text: string, values?: unknown[]): Promise<{ rows: unknown[] }>
}

export interface PgliteDatabase extends PgliteClient {
  transaction<Result>(run: (client: PgliteClient) => Promise<Result>): Promise<Result>
}

/** Lets PGlite, or a transaction of it, be used where a pool or a client of `pg` is asked for. */
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

/** Runs everything on one connection, between BEGIN and COMMIT, or ROLLBACK when it fails. */
export async function inOneTransaction<Result>(
  database: PostgresPool | PostgresDatabase,
  run: (client: PostgresClient) => Promise<Result>,
): Promise<Result> {
  if ('transaction' in database) return database.transaction(run)
  const client = await database.connect()
  let broken = true
  // A connection that the server ends between two statements says so by an event, which has to be heard;
  // the next statement then fails.
  client.on?.('error', ignore)
  try {
    await client.query({ text: 'BEGIN ISOLATION LEVEL READ COMMITTED', values: [] })
    const result = await run(client)
    await client.query({ text: 'COMMIT', values: [] })
    broken = false
    return result
  } finally {
    // The connection is given up with whatever was begun on it: the server rolls that back.
    client.off?.('error', ignore)
    client.release(broken)
  }
}

function ignore(): void {}

/** The SQLSTATE of an error that the server answered with, or `undefined` for any other error. */
export function sqlState(error: unknown): string | undefined {
  const code = error instanceof Error && 'code' in error ? error.code : undefined
  return typeof code === 'string' && /^[0-9A-Z]{5}$/.test(code) ? code : undefined
}

/** Serialization failure and deadlock: the server has undone all of it, and it may be tried again. */
export function isTransient(error: unknown): boolean {
  const state = sqlState(error)
  return state === '40001' || state === '40P01'
}
