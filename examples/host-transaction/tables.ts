/**
 * The amounts that accounts cannot spend, because a payment may debit them. The row of a payment that has ended stays,
 * without an amount: it is the mark that nothing may be held for it any more.
 */
const holdsTable = `
  CREATE TABLE IF NOT EXISTS ledger_holds (
    payment_id text PRIMARY KEY,
    account_id text NOT NULL REFERENCES ledger_accounts (id),
    amount numeric(20, 0) NOT NULL,
    released boolean NOT NULL DEFAULT false
  );
  CREATE INDEX IF NOT EXISTS ledger_holds_account_id ON ledger_holds (account_id)
    WHERE NOT released;
`

/** The host's own ledger tables, in the same database as the library's table. */
export const ledgerTables = `
  CREATE TABLE IF NOT EXISTS ledger_accounts (
    id text PRIMARY KEY,
    asset_code text NOT NULL,
    asset_scale integer NOT NULL
  );
  CREATE TABLE IF NOT EXISTS ledger_entries (
    transfer_id text NOT NULL,
    account_id text NOT NULL REFERENCES ledger_accounts (id),
    amount numeric(20, 0) NOT NULL CHECK (amount <> 0),
    PRIMARY KEY (transfer_id, account_id)
  );
  ${holdsTable}
`

/** Returns the account of the rail on which funds of an asset arrive and leave. */
export function settlementAccount(assetCode: string): string {
  return `settlement:${assetCode}`
}
