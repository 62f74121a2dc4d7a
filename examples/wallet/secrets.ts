import { createPrivateKey, generateKeyPairSync, type KeyObject, randomBytes } from 'node:crypto'
import type { PostgresClient } from 'open-payments-server/postgres'

/**
 * What the wallet must not forget, by name: made when it is first asked for, and the same ever after, in
 * every process of the wallet.
 */
export type Secrets = (name: string, make: () => string) => Promise<string>

/** Secrets that end with the process. */
export function memorySecrets(): Secrets {
  const kept = new Map<string, string>()
  return async (name, make) => {
    const secret = kept.get(name) ?? make()
    kept.set(name, secret)
    return secret
  }
}

/**
 * Secrets in a table of the wallet's own, beside those of the library. They are as safe as the database is:
 * a real wallet has them in its key management.
 */
export async function postgresSecrets(database: PostgresClient, wallet: string): Promise<Secrets> {
  const query = (text: string, values: unknown[] = []) => database.query({ text, values })
  const createTable = () =>
    query(`CREATE TABLE IF NOT EXISTS wallet_secrets (
      wallet text NOT NULL,
      name text NOT NULL,
      secret text NOT NULL,
      PRIMARY KEY (wallet, name)
    )`)
  // Of two processes that find no table at the same time one fails, and finds it when it looks again.
  await createTable().catch(createTable)

  return async (name, make) => {
    const insert = `INSERT INTO wallet_secrets (wallet, name, secret) VALUES ($1, $2, $3)
      ON CONFLICT (wallet, name) DO NOTHING`
    const select = 'SELECT secret FROM wallet_secrets WHERE wallet = $1 AND name = $2'
    const { rows } = await query(select, [wallet, name])
    if (rows[0] !== undefined) return rows[0]['secret']
    await query(insert, [wallet, name, make()])
    // Another process may have been first: what is stored is what counts.
    return (await query(select, [wallet, name])).rows[0]?.['secret']
  }
}

/** A symmetric key of 32 bytes. */
export async function secretKey(secrets: Secrets, name: string): Promise<Uint8Array> {
  const secret = await secrets(name, () => randomBytes(32).toString('base64'))
  return Buffer.from(secret, 'base64')
}

/** An Ed25519 key pair, by its private key. */
export async function signingKey(secrets: Secrets, name: string): Promise<KeyObject> {
  const pem = await secrets(name, () => {
    const { privateKey } = generateKeyPairSync('ed25519')
    return privateKey.export({ format: 'pem', type: 'pkcs8' }).toString()
  })
  return createPrivateKey(pem)
}
