/** One migration step as plain SQL. A released step never changes. */
export interface Migration {
  readonly version: number
  readonly name: string
  readonly statements: readonly string[]
}

/** What a migration has done. */
export interface Migrated {
  /** The names of the steps that this call applied; empty if the tables were up to date. */
  readonly applied: readonly string[]
  /** How the database can lose commits that it has acknowledged, with the remedy; absent if it cannot. */
  readonly warnings?: readonly string[]
}

/**
 * The error of `migrate` if a later version of the library created the tables.
 *
 * @example
 * ```ts
 * import { DatabaseNewerError, migrate } from 'open-payments-server/postgres'
 *
 * await migrate(pool).catch((error: unknown) => {
 *   if (error instanceof DatabaseNewerError) console.error('a later version runs already')
 *   throw error
 * })
 * ```
 */
export class DatabaseNewerError extends Error {
  readonly code = 'ERR_DATABASE_NEWER'
}

/**
 * The error of `migrate` if the database or its sessions would not return records unchanged and up to date.
 *
 * @example
 * ```ts
 * import { DatabaseSettingsError, migrate } from 'open-payments-server/postgres'
 *
 * await migrate(pool).catch((error: unknown) => {
 *   if (error instanceof DatabaseSettingsError) console.error('change the database:', error.message)
 *   throw error
 * })
 * ```
 */
export class DatabaseSettingsError extends Error {
  readonly code = 'ERR_DATABASE_SETTINGS'
}

/**
 * The error of a store whose tables do not exist. Its message says what creates them.
 *
 * @example
 * ```ts
 * import { postgresStore, TablesMissingError } from 'open-payments-server/postgres'
 *
 * const query = { kind: 'grant', list: 'wallet01 owner alice', forward: true, limit: 1 } as const
 * await postgresStore(pool)
 *   .list(query)
 *   .catch((error: unknown) => {
 *     if (error instanceof TablesMissingError) console.error('run migrate first')
 *     throw error
 *   })
 * ```
 */
export class TablesMissingError extends Error {
  readonly code = 'ERR_TABLES_MISSING'

  /**
   * `module` is the module whose `migrate` creates the tables, `call` how to call it, and `schema` where they are not.
   */
  constructor(module: string, call: string, cause: unknown, schema?: string) {
    const [where, other] =
      schema === undefined ? ['', ''] : [` in schema ${schema}`, ', or pass { schema }']
    const remedy = `run ${call} of ${module} before the store is used${other}`
    super(`the tables of the library do not exist${where}: ${remedy}`, { cause })
  }
}

/** @throws {DatabaseNewerError} if a version was applied that is not among the migrations. */
export function missing(migrations: readonly Migration[], done: readonly number[]): Migration[] {
  const newest = Math.max(0, ...done)
  if (newest > migrations.length) {
    const supported = `this version of the library supports ${migrations.length}`
    throw new DatabaseNewerError(`the tables have version ${newest}, and ${supported}`)
  }
  return migrations.filter(({ version }) => !done.includes(version))
}
