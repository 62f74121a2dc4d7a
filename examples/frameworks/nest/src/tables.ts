/** The host's own tables. */
export const tables = `
  CREATE TABLE IF NOT EXISTS accounts (
    wallet_address text PRIMARY KEY,
    owner text NOT NULL,
    public_name text NOT NULL,
    asset_code text NOT NULL DEFAULT 'USD',
    asset_scale integer NOT NULL DEFAULT 2,
    balance bigint NOT NULL CHECK (balance >= 0)
  );
  CREATE TABLE IF NOT EXISTS holds (
    payment_id text PRIMARY KEY,
    wallet_address text NOT NULL REFERENCES accounts,
    amount bigint NOT NULL,
    released boolean NOT NULL DEFAULT false
  );
  CREATE INDEX IF NOT EXISTS holds_wallet_address ON holds (wallet_address) WHERE NOT released;
  CREATE TABLE IF NOT EXISTS notices (
    event_id text PRIMARY KEY,
    wallet_address text NOT NULL,
    type text NOT NULL
  );
`
