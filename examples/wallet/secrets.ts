import { createPrivateKey, generateKeyPairSync, type KeyObject, randomBytes } from 'node:crypto'
import type { PostgresClient } from 'open-payments-server/postgres'
import { openTable } from '../ilp/own-table.js'

/**
 * Returns a persistent secret by name. It is created at the first request and stays the same in every process
 * of the wallet.
 */
export type Secrets = (name: string, make: () => string) => Promise<string>

/** Secrets in the memory of this process. */
export function memorySecrets(): Secrets {
  const kept = new Map<string, string>()
  return async (name, make) => {
    const secret = kept.get(name) ?? make()
    kept.set(name, secret)
    return secret
  }
}

/**
 * Secrets in a table of the wallet's own, in the same database as the library's records. They are only as
 * safe as the database: a real wallet uses its key management system.
 */
export async function postgresSecrets(database: PostgresClient, wallet: string): Promise<Secrets> {
  const query = await openTable(
    database,
    `wallet_secrets (
      wallet text NOT NULL,
      name text NOT NULL,
      secret text NOT NULL,
      PRIMARY KEY (wallet, name)
    )`,
  )

  return async (name, make) => {
    const insert = `INSERT INTO wallet_secrets (wallet, name, secret) VALUES ($1, $2, $3)
      ON CONFLICT (wallet, name) DO NOTHING`
    const select = 'SELECT secret FROM wallet_secrets WHERE wallet = $1 AND name = $2'
    const { rows } = await query(select, [wallet, name])
    if (rows[0] !== undefined) return rows[0]['secret']
    await query(insert, [wallet, name, make()])
    // Another process may have been first: the stored value counts.
    return (await query(select, [wallet, name])).rows[0]?.['secret']
  }
}

/** Returns a symmetric key of 32 bytes. */
export async function secretKey(secrets: Secrets, name: string): Promise<Uint8Array> {
  const secret = await secrets(name, () => randomBytes(32).toString('base64'))
  return Buffer.from(secret, 'base64')
}

/** Returns an Ed25519 private key. */
export async function signingKey(secrets: Secrets, name: string): Promise<KeyObject> {
  const pem = await secrets(name, () => {
    const { privateKey } = generateKeyPairSync('ed25519')
    return privateKey.export({ format: 'pem', type: 'pkcs8' }).toString()
  })
  return createPrivateKey(pem)
}
