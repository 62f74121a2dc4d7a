import { createPublicKey } from 'node:crypto'
import type { WalletAddress, WalletAddresses } from '../../src/index.js'
import { type Secrets, signingKey } from './secrets.js'

/** An account of the example wallet, and who owns it. */
export interface Account extends WalletAddress {
  readonly owner: string
}

export interface Accounts extends WalletAddresses {
  readonly all: readonly Account[]
  ownedBy(owner: string): readonly Account[]
}

/** Three accounts whose wallet addresses lie at the wallet's own origin. */
export async function demoAccounts(baseUrl: string, secrets: Secrets): Promise<Accounts> {
  async function account(owner: string, publicName: string, assetCode: string): Promise<Account> {
    const privateKey = await signingKey(secrets, `account-key:${owner}`)
    const { x = '' } = createPublicKey(privateKey).export({ format: 'jwk' })
    const keys = [{ kid: `${owner}-1`, x }]
    return { url: `${baseUrl}/${owner}`, owner, publicName, assetCode, assetScale: 2, keys }
  }

  const all = [
    await account('alice', 'Alice', 'USD'),
    await account('bob', 'Bob', 'USD'),
    await account('carol', 'Carol', 'EUR'),
  ]
  return {
    all,
    find: async (url) => all.find((candidate) => candidate.url === url),
    ownedBy: (owner) => all.filter((candidate) => candidate.owner === owner),
  }
}
