import { migrate } from 'open-payments-server/postgres'
import { openDatabase } from './database.js'

// A step of each deployment, before the new processes start.
const { pool } = openDatabase()
await migrate(pool)
// What drizzle-kit generates from tables.ts.
await pool.query(`
  CREATE TABLE IF NOT EXISTS accounts (
    url text PRIMARY KEY,
    owner text NOT NULL,
    public_name text NOT NULL,
    asset_code text NOT NULL,
    asset_scale integer NOT NULL
  );
  CREATE TABLE IF NOT EXISTS entries (
    transfer_id text NOT NULL,
    account text NOT NULL REFERENCES accounts,
    amount numeric(20, 0) NOT NULL,
    PRIMARY KEY (transfer_id, account)
  );
  CREATE TABLE IF NOT EXISTS holds (
    payment_id text PRIMARY KEY,
    account text NOT NULL REFERENCES accounts,
    amount numeric(20, 0) NOT NULL,
    released boolean NOT NULL DEFAULT false
  );
  CREATE INDEX IF NOT EXISTS entries_account ON entries (account);
  CREATE INDEX IF NOT EXISTS holds_account ON holds (account) WHERE NOT released;
`)
await pool.end()
