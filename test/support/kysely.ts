import { randomBytes } from 'node:crypto'
import {
  type Dialect,
  Kysely,
  type Logger,
  MysqlDialect,
  PostgresDialect,
  SqliteDialect,
} from 'kysely'
import { createPool, type PoolOptions } from 'mysql2'
import type { KyselyDialect } from 'open-payments-server-kysely'
import { freshPostgres, servers } from './databases.js'
import { type SentStatements, sentByMysql, sentByPg, sentBySqlite } from './sent-statements.js'
import { freshSqlite, sqliteDrivers } from './sqlite.js'

/** The tables of a host, which are not those of the library. */
export interface HostTables {
  readonly accounts: { id: string; balance: number }
}

export type HostDatabase = Kysely<HostTables>

/** A database without tables, for one test. */
export interface FreshKysely {
  /** Opens another pool of connections, and passes on the statements that it will send. */
  connect(watch?: (sent: SentStatements) => void, log?: Logger): HostDatabase
  drop(): Promise<void>
}

export interface KyselyDatabase {
  readonly dialect: KyselyDialect
  /** The part of the name of a test that says which server it needs. */
  readonly name: string
  /** Absent where it cannot be had. */
  readonly fresh?: () => Promise<FreshKysely>
}

function kyselyOver(dialect: Dialect, log?: Logger): HostDatabase {
  return new Kysely<HostTables>({ dialect, ...(log !== undefined && { log }) })
}

/** @param settings Settings of each session, such as `default_transaction_isolation=serializable`. */
export async function onPostgres(settings: readonly string[] = []): Promise<FreshKysely> {
  const fresh = await freshPostgres({ migrated: false })
  const options = [`search_path=${fresh.schema}`, ...settings].map((each) => `-c ${each}`).join(' ')
  return {
    connect(watch, log) {
      const pool = fresh.connect({ options })
      watch?.(sentByPg(pool))
      return kyselyOver(new PostgresDialect({ pool }), log)
    },
    drop: () => fresh.drop(),
  }
}

async function onMariadb(): Promise<FreshKysely> {
  return onMysqlServers([mysqlUrl(servers.MariaDB ?? '')])
}

/** Each connection opens a pool on the next of the servers, which share their data. */
export async function onMysqlServers(
  urls: readonly string[],
  settings: readonly string[] = [],
  options: PoolOptions = {},
  named?: (database: string) => void,
): Promise<FreshKysely> {
  const name = `test_${randomBytes(6).toString('hex')}`
  const admin = createPool({ uri: urls[0] ?? '' })
  await admin.promise().query(`CREATE DATABASE ${name}`)
  named?.(name)
  const opened: HostDatabase[] = []
  return {
    connect(watch) {
      const url = new URL(urls[opened.length % urls.length] ?? '')
      url.pathname = `/${name}`
      const pool = createPool({ uri: url.href, connectionLimit: 6, ...options })
      pool.on('connection', (connection) => {
        for (const setting of settings) connection.query(`SET ${setting}`)
      })
      watch?.(sentByMysql(pool))
      const db = kyselyOver(new MysqlDialect({ pool }))
      opened.push(db)
      return db
    },
    async drop() {
      await Promise.all(opened.map((db) => db.destroy()))
      await admin.promise().query(`DROP DATABASE ${name}`)
      await admin.promise().end()
    },
  }
}

/** The tests name the driver `mariadb`; the protocol is the same. */
export function mysqlUrl(url: string): string {
  return url.replace(/^mariadb:/, 'mysql:')
}

async function onSqlite(): Promise<FreshKysely> {
  const fresh = freshSqlite(openSqlite as NonNullable<typeof openSqlite>)
  return {
    connect(watch) {
      const database = fresh.connect()
      watch?.(sentBySqlite(database))
      // A driver that waits for a lock would keep the other connection of this process from releasing it.
      database.exec('PRAGMA busy_timeout = 0')
      return kyselyOver(new SqliteDialect({ database: database as never }))
    },
    drop: async () => fresh.drop(),
  }
}

const openSqlite = sqliteDrivers['better-sqlite3']

export const kyselyDatabases: readonly KyselyDatabase[] = [
  {
    dialect: 'postgres',
    name: 'PostgreSQL',
    ...(servers.PostgreSQL !== undefined && { fresh: () => onPostgres() }),
  },
  {
    dialect: 'portable',
    name: 'PostgreSQL, as a portable database',
    ...(servers.PostgreSQL !== undefined && { fresh: () => onPostgres() }),
  },
  {
    dialect: 'mysql',
    name: 'MariaDB',
    ...(servers.MariaDB !== undefined && { fresh: onMariadb }),
  },
  {
    dialect: 'sqlite',
    name: 'SQLite',
    ...(openSqlite !== undefined && { fresh: onSqlite }),
  },
]
