import { generateKeyPairSync } from 'node:crypto'
import type { WalletAddress, WalletAddresses } from '../../src/index.js'

/** An account of the example wallet, and who owns it. */
export interface Account extends WalletAddress {
  readonly owner: string
}

export interface Accounts extends WalletAddresses {
  readonly all: readonly Account[]
  ownedBy(owner: string): readonly Account[]
}

/** Three accounts whose wallet addresses lie at the wallet's own origin. */
export function demoAccounts(baseUrl: string): Accounts {
  const all = [
    account(baseUrl, 'alice', 'Alice', 'USD'),
    account(baseUrl, 'bob', 'Bob', 'USD'),
    account(baseUrl, 'carol', 'Carol', 'EUR'),
  ]
  return {
    all,
    find: async (url) => all.find((candidate) => candidate.url === url),
    ownedBy: (owner) => all.filter((candidate) => candidate.owner === owner),
  }
}

function account(baseUrl: string, owner: string, publicName: string, assetCode: string): Account {
  const { publicKey } = generateKeyPairSync('ed25519')
  const { x = '' } = publicKey.export({ format: 'jwk' })
  return {
    url: `${baseUrl}/${owner}`,
    owner,
    publicName,
    assetCode,
    assetScale: 2,
    keys: [{ kid: `${owner}-1`, x }],
  }
}
