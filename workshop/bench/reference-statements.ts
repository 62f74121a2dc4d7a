import { createHash } from 'node:crypto'
import type { Pool } from 'pg'

const grantCount = 1_000

/**
 * The statements that the reference server sends for one rotation, in its order and on two connections, over
 * tables of the same shape. Its tables lack the index on `grantId`; it is added here, so that the comparison
 * measures the number of statements and not a scan.
 */
export async function createReferenceTables(pool: Pool, schema: string): Promise<void> {
  await pool.query(`
    CREATE TABLE ${schema}."grants" (
      id uuid PRIMARY KEY, state text NOT NULL, client text NOT NULL, "continueToken" text NOT NULL,
      "continueId" text NOT NULL, wait int, "tenantId" uuid NOT NULL, "finalizationReason" text,
      "finishMethod" text, "finishUri" text, "clientNonce" text, "lastContinuedAt" timestamptz,
      "createdAt" timestamptz NOT NULL DEFAULT now(), "updatedAt" timestamptz NOT NULL DEFAULT now());
    CREATE TABLE ${schema}."accessTokens" (
      id uuid PRIMARY KEY, value text NOT NULL UNIQUE, "managementId" text NOT NULL UNIQUE,
      "expiresIn" int NOT NULL, "grantId" uuid NOT NULL REFERENCES ${schema}."grants", "revokedAt" timestamptz,
      "createdAt" timestamptz NOT NULL DEFAULT now(), "updatedAt" timestamptz NOT NULL DEFAULT now());
    CREATE INDEX ON ${schema}."accessTokens" ("grantId");
    CREATE TABLE ${schema}."accesses" (
      id uuid PRIMARY KEY, type text NOT NULL, actions jsonb NOT NULL, identifier text, limits jsonb,
      "grantId" uuid NOT NULL REFERENCES ${schema}."grants",
      "createdAt" timestamptz NOT NULL DEFAULT now(), "updatedAt" timestamptz NOT NULL DEFAULT now());
    CREATE INDEX ON ${schema}."accesses" ("grantId");
    INSERT INTO ${schema}."grants" (id, state, client, "continueToken", "continueId", "tenantId")
      SELECT md5('g' || i)::uuid, 'FINALIZED', 'https://shop.example', md5('t' || i), md5('c' || i),
        md5('tenant')::uuid FROM generate_series(0, ${grantCount - 1}) i;
    INSERT INTO ${schema}."accesses" (id, type, actions, identifier, "grantId")
      SELECT md5('a' || i)::uuid, 'incoming-payment', '["create","read"]', 'https://wallet.example/bob',
        md5('g' || i)::uuid FROM generate_series(0, ${grantCount - 1}) i;
    INSERT INTO ${schema}."accessTokens" (id, value, "managementId", "expiresIn", "grantId")
      SELECT md5('k' || i)::uuid, md5('v' || i), md5('m' || i), 600, md5('g' || i)::uuid
      FROM generate_series(0, ${grantCount - 1}) i;
  `)
}

/** Rotates the token of one grant after another; keeps the state that it needs outside the database. */
export function referenceRotations(pool: Pool, schema: string): () => Promise<void> {
  const managements = Array.from({ length: grantCount }, (_, i) => md5(`m${i}`))
  let next = 0
  return async () => {
    const grant = next++ % grantCount
    managements[grant] = await rotation(pool, schema, managements[grant] ?? '')
  }
}

async function rotation(pool: Pool, schema: string, management: string): Promise<string> {
  const tokens = `${schema}."accessTokens"`
  const grants = `${schema}."grants"`
  const found = await pool.query(
    `SELECT * FROM ${tokens} WHERE "managementId" = $1 AND "revokedAt" IS NULL`,
    [management],
  )
  const { id, grantId } = found.rows[0]
  await pool.query(`SELECT * FROM ${grants} WHERE id = $1`, [grantId])
  const transaction = await pool.connect()
  try {
    await transaction.query('BEGIN')
    await transaction.query(`SELECT * FROM ${grants} WHERE id = $1 FOR NO KEY UPDATE`, [grantId])
    const revoke = `UPDATE ${tokens} SET "revokedAt" = $2 WHERE id = $1 RETURNING *`
    await pool.query(revoke, [id, new Date()])
    await pool.query(`SELECT * FROM ${tokens} WHERE id = $1`, [id])
    const successor = crypto.randomUUID()
    await pool.query(
      `INSERT INTO ${tokens} (id, value, "managementId", "expiresIn", "grantId")
        VALUES ($1, $2, $3, $4, $5) RETURNING *`,
      [successor, crypto.randomUUID(), successor, 600, grantId],
    )
    const accesses = `SELECT * FROM ${schema}."accesses" WHERE "grantId" = $1`
    await transaction.query(accesses, [grantId])
    await transaction.query('COMMIT')
    return successor
  } finally {
    transaction.release()
  }
}

function md5(text: string): string {
  return createHash('md5').update(text).digest('hex')
}
