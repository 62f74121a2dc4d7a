import { join } from 'node:path'
import { PGlite } from '@electric-sql/pglite'
import type { Store } from 'open-payments-server'
import {
  fromPglite,
  migrate,
  type PostgresDatabase,
  type PostgresPool,
  postgresStore,
} from 'open-payments-server/postgres'
import { Pool } from 'pg'
import { type PeerBalances, postgresPeerBalances } from '../ilp/peer-balances.js'
import { postgresSendingBook, type SendingBook } from '../ilp/sending-book.js'
import { takeDirectory, temporaryDirectory } from './data-directory.js'
import { postgresRegisteredKeys, type RegisteredKeys } from './registered-keys.js'
import { postgresSecrets, type Secrets } from './secrets.js'

/**
 * The wallet's storage: the library's records, its own secrets, the payments in progress, the balances with peers, and
 * the keys of apps.
 */
export interface WalletStorage {
  readonly store: Store
  readonly secrets: Secrets
  readonly sendings: SendingBook
  readonly balances: PeerBalances
  readonly keys: RegisteredKeys
  /** The kind and place of the storage, for the operator. */
  readonly description: string
  close(): Promise<void>
}

export interface StorageOptions {
  /** The wallet that owns the secrets, by its URL: a database may hold several wallets. */
  readonly baseUrl: string
  /** Connection string of PostgreSQL. */
  readonly databaseUrl?: string
  /** Directory for PGlite if there is no PostgreSQL. Default: a temporary directory for this run. */
  readonly dataDir?: string
}

/**
 * Opens PostgreSQL if its URL is given, else PGlite, and brings the tables up to date.
 *
 * @throws an error with code `ERR_DATA_DIR_IN_USE` if another process uses the directory.
 */
export async function openStorage(options: StorageOptions): Promise<WalletStorage> {
  return options.databaseUrl === undefined
    ? openPglite(options)
    : openPostgres(options, options.databaseUrl)
}

async function openPostgres(
  { baseUrl }: StorageOptions,
  connectionString: string,
): Promise<WalletStorage> {
  // Without both time-outs, a database that is frozen holds every request.
  const pool = new Pool({ connectionString, connectionTimeoutMillis: 5_000, query_timeout: 8_000 })
  // Without both listeners, a connection that the server ends would end the process.
  pool.on('error', (error) => console.error(`PostgreSQL: ${error.message}`))
  pool.on('connect', (client) => client.on('error', () => undefined))
  const close = () => pool.end()
  const description = `PostgreSQL at ${withoutCredentials(connectionString)}`
  return closingOnFailure(close, async () => {
    await pool.query('SELECT 1').catch((error: NodeJS.ErrnoException) => {
      // A refused connection has a code and no message.
      throw new Error(`cannot open ${description}: ${error.message || error.code}`, {
        cause: error,
      })
    })
    return { ...(await prepared(pool, baseUrl)), description, close }
  })
}

async function openPglite({ baseUrl, dataDir }: StorageOptions): Promise<WalletStorage> {
  const directory = await (dataDir === undefined ? temporaryDirectory() : takeDirectory(dataDir))
  return closingOnFailure(directory.release, async () => {
    const database = await PGlite.create(join(directory.path, 'pglite'))
    const close = async () => {
      await database.close()
      await directory.release()
    }
    const kept = dataDir === undefined ? ', only for this run' : ''
    const description = `PGlite in ${directory.path}${kept}`
    return { ...(await prepared(fromPglite(database), baseUrl)), description, close }
  })
}

async function prepared(database: PostgresPool | PostgresDatabase, baseUrl: string) {
  await migrate(database)
  return {
    store: postgresStore(database),
    secrets: await postgresSecrets(database, baseUrl),
    sendings: await postgresSendingBook(database, baseUrl),
    balances: await postgresPeerBalances(database, baseUrl),
    keys: await postgresRegisteredKeys(database, baseUrl),
  }
}

async function closingOnFailure<Result>(
  close: () => Promise<void>,
  open: () => Promise<Result>,
): Promise<Result> {
  try {
    return await open()
  } catch (error) {
    await close()
    throw error
  }
}

function withoutCredentials(connectionString: string): string {
  const { host, pathname } = new URL(connectionString)
  return host + pathname
}
