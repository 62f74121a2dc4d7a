import { InvalidInputError } from 'open-payments-server'
import { hashedListName } from 'open-payments-server/adapter'
import {
  isBusy,
  isWithoutTables,
  sqliteBegin,
  sqliteDurable,
  sqliteListName,
  sqliteMarked,
  sqliteMigrations,
  sqliteReportMigrations,
  sqliteStatements,
  sqliteVersionsTable,
} from '../../../adapters/sql/sqlite.js'
import { type Steps, withListNames } from '../../../adapters/sql/statements.js'
import type { Engine } from './engine.js'
import {
  isDuplicate,
  isMysqlConflict,
  isWithoutTables as isMysqlWithoutTables,
  mysqlMigrations,
  mysqlReportMigrations,
  mysqlStatements,
  mysqlStatementsInside,
  mysqlVersionsTable,
} from './mysql.js'
import { portable } from './portable.js'

/** The SQL that the database understands: see the options of `kyselyStore`. */
export type KyselyDialect = 'postgres' | 'portable' | 'mysql' | 'sqlite'

const engines: Readonly<Record<Exclude<KyselyDialect, 'postgres'>, Engine>> = {
  mysql: {
    statements: mysqlStatements,
    statementsInside: async () => mysqlStatementsInside,
    versionsTable: mysqlVersionsTable,
    migrations: mysqlMigrations(),
    reportMigrations: mysqlReportMigrations(),
    // At this level, transactions lock no gaps between records.
    begin: ['SET TRANSACTION ISOLATION LEVEL READ COMMITTED', 'START TRANSACTION'],
    async setSavepoint(run) {
      await run('SAVEPOINT open_payments')
      // Outside a transaction, SAVEPOINT has no effect and reports no error.
      await run('ROLLBACK TO SAVEPOINT open_payments')
    },
    rollBackToSavepoint: ['ROLLBACK TO SAVEPOINT open_payments'],
    isolation: 'read committed',
    text: (text) => text,
    listName: hashedListName,
    parameter: (value) => value,
    isTransient: isMysqlConflict,
    mayMigrateAgain: isMysqlConflict,
    isDuplicate,
    isWithoutTables: isMysqlWithoutTables,
    hasSnapshots: true,
  },
  portable,
  sqlite: {
    statements: sqliteStatements,
    statementsInside: sqliteMarked,
    versionsTable: sqliteVersionsTable,
    migrations: sqliteMigrations(),
    reportMigrations: sqliteReportMigrations(),
    begin: [sqliteDurable, sqliteBegin],
    async setSavepoint(run) {
      // Outside a transaction, SAVEPOINT begins one. Inside, SQLite refuses BEGIN.
      const isOpen = await run('BEGIN').then(
        () => false,
        () => true,
      )
      if (!isOpen) {
        await run('ROLLBACK')
        throw new Error('no transaction is in progress')
      }
      await run('SAVEPOINT open_payments')
    },
    // If the host has ended the transaction meanwhile, the savepoint has begun another one, which RELEASE ends.
    rollBackToSavepoint: ['ROLLBACK TO SAVEPOINT open_payments', 'RELEASE SAVEPOINT open_payments'],
    text: (text) => text,
    listName: sqliteListName,
    // A driver may write a number as a floating-point number.
    parameter: (value) => (typeof value === 'number' ? BigInt(value) : value),
    isTransient: isBusy,
    // Another process that starts may hold the lock of the file.
    mayMigrateAgain: isBusy,
    isDuplicate: () => false,
    isWithoutTables,
    hasSnapshots: false,
  },
}

/** @throws {InvalidInputError} for an unknown dialect. */
export function requireDialect(dialect: KyselyDialect): void {
  if (dialect === 'postgres' || Object.hasOwn(engines, dialect)) return
  throw new InvalidInputError('dialect', "must be 'postgres', 'portable', 'mysql' or 'sqlite'")
}

export function engineOf(dialect: Exclude<KyselyDialect, 'postgres'>): Engine {
  return engines[dialect]
}

/** Returns steps with the names under which the database keeps the lists. */
export async function namedSteps({ listName }: Engine, steps: Steps): Promise<Steps> {
  const lists: string[] = []
  withListNames(steps, (list) => {
    lists.push(list)
    return list
  })
  const names = new Map<string, string>()
  for (const list of new Set(lists)) names.set(list, await listName(list))
  return withListNames(steps, (list) => names.get(list) ?? list)
}
