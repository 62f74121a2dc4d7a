import type { Database, Sql } from './sql.js'

/**
 * The tables of this wallet. Append a step for each change, and never edit one that has run somewhere. End each CREATE
 * TABLE with the options.
 */
const stepsWith = (tableOptions: string): readonly (readonly string[])[] => [
  [
    `CREATE TABLE accounts (
      wallet_address VARCHAR(255) PRIMARY KEY,
      owner VARCHAR(64) NOT NULL,
      public_name VARCHAR(64) NOT NULL,
      asset_code VARCHAR(16) NOT NULL,
      asset_scale INTEGER NOT NULL,
      balance BIGINT NOT NULL CHECK (balance >= 0),
      locks BIGINT NOT NULL DEFAULT 0
    ) ${tableOptions}`,
    `CREATE TABLE holds (
      payment_id VARCHAR(128) PRIMARY KEY,
      wallet_address VARCHAR(255) NOT NULL,
      amount BIGINT NOT NULL,
      released INTEGER NOT NULL DEFAULT 0
    ) ${tableOptions}`,
    'CREATE INDEX holds_of_account ON holds (wallet_address, released)',
  ],
  [
    `CREATE TABLE client_keys (
      wallet_address VARCHAR(255) NOT NULL,
      kid VARCHAR(256) NOT NULL,
      x VARCHAR(43) NOT NULL,
      name VARCHAR(64) NOT NULL,
      added_at BIGINT NOT NULL,
      PRIMARY KEY (wallet_address, kid),
      UNIQUE (wallet_address, x)
    ) ${tableOptions}`,
  ],
  [
    `CREATE TABLE account_limits (
      wallet_address VARCHAR(255) PRIMARY KEY,
      limits VARCHAR(2000) NOT NULL
    ) ${tableOptions}`,
  ],
]

/**
 * Resolves to what is wrong with the tables, or to `undefined`. It only reads. Tables of a later version are right, so
 * that this version can start again after an upgrade.
 */
export async function checkTables(database: Database): Promise<string | undefined> {
  const { sql, tableOptions, checkRecords = () => recordsBy(sql) } = database
  const problem = await checkRecords()
  if (problem !== undefined) return problem
  try {
    const [row] = await sql('SELECT MAX(version) AS version FROM wallet_migrations')
    const isOld = Number(row?.['version']) < stepsWith(tableOptions).length
    return isOld ? 'the tables of this wallet are of an earlier version' : undefined
  } catch {
    return 'the tables of this wallet do not exist'
  }
}

async function recordsBy(sql: Sql): Promise<string | undefined> {
  try {
    await sql('SELECT kind FROM open_payments_records LIMIT 1')
    return undefined
  } catch {
    return 'the database does not answer, or lacks the tables of the library'
  }
}

/**
 * Brings the tables of the library and of this wallet up to date. If there is nothing to do, it only reads. Run it
 * before several processes start, so that they do not create the tables at the same time.
 */
export async function migrate({ sql, tableOptions, migrateRecords }: Database): Promise<void> {
  await migrateRecords()
  await sql('CREATE TABLE IF NOT EXISTS wallet_migrations (version INTEGER PRIMARY KEY)')
  const [row] = await sql('SELECT COALESCE(MAX(version), 0) AS version FROM wallet_migrations')
  const done = Number(row?.['version'])
  for (const [index, statements] of stepsWith(tableOptions).entries()) {
    if (index < done) continue
    for (const statement of statements) await sql(statement)
    await sql('INSERT INTO wallet_migrations (version) VALUES (?)', index + 1)
  }
}
