import { createPublicKey } from 'node:crypto'
import type { WalletAddress, WalletAddresses } from 'open-payments-server'
import type { ClientInstance } from './guarded-client.js'
import type { LocaleSettings } from './locale.js'
import type { RegisteredKeys } from './registered-keys.js'
import { type Secrets, signingKey } from './secrets.js'

/** An account of the example wallet, and its owner. */
export interface Account extends WalletAddress {
  readonly owner: string
  /** The language and the time zone that the owner has chosen for the pages. */
  readonly locale?: LocaleSettings
}

export interface Accounts extends WalletAddresses {
  readonly all: readonly Account[]
  ownedBy(owner: string): readonly Account[]
  /** The wallet's own client instance for reading receivers in other wallets. It is not an account. */
  readonly operator: ClientInstance
  /** Everything with a wallet address document and a key set: the accounts and the operator. */
  readonly published: WalletAddresses
}

/** Refuses accounts at the paths of routes, because their wallet addresses could not be read. */
export function requireFreePaths(
  accounts: readonly Pick<Account, 'url'>[],
  mounts: readonly { readonly path: string }[],
): void {
  const taken = new Set(mounts.map(({ path }) => path).filter((path) => path !== ''))
  for (const { url } of accounts) {
    const [first = ''] = /^\/[^/]*/.exec(new URL(url).pathname) ?? []
    // Express ignores case.
    if (taken.has(first.toLowerCase())) {
      throw new Error(`the account ${url} needs another name: ${first} is a route of the wallet`)
    }
  }
}

/** Four accounts, two of which are Alice's, and the operator, with wallet addresses at the wallet's own origin. */
export async function demoAccounts(
  baseUrl: string,
  secrets: Secrets,
  registered: Pick<RegisteredKeys, 'of'>,
): Promise<Accounts> {
  const keyOf = (name: string) => signingKey(secrets, `account-key:${name}`)
  async function account(
    name: string,
    publicName: string,
    assetCode: string,
    owner = name,
  ): Promise<Account> {
    const { x = '' } = createPublicKey(await keyOf(name)).export({ format: 'jwk' })
    const keys = [{ kid: `${name}-1`, x }]
    return { url: `${baseUrl}/${name}`, owner, publicName, assetCode, assetScale: 2, keys }
  }

  const all = [
    await account('alice', 'Alice', 'USD'),
    await account('bob', 'Bob', 'USD'),
    await account('carol', 'Carol', 'EUR'),
    await account('alice-euros', 'Alice', 'EUR', 'alice'),
  ]
  const operator = await account('operator', 'Example wallet', 'USD')
  const find: WalletAddresses['find'] = async (url) => {
    const found = all.find((each) => each.url === url)
    if (found === undefined) return undefined
    const added = (await registered.of(url)).map(({ kid, x }) => ({ kid, x }))
    return { ...found, keys: [...(found.keys ?? []), ...added] }
  }
  return {
    all,
    find,
    ownedBy: (owner) => all.filter((candidate) => candidate.owner === owner),
    operator: {
      walletAddress: operator.url,
      keyId: 'operator-1',
      privateKey: await keyOf('operator'),
    },
    published: { find: async (url) => (url === operator.url ? operator : find(url)) },
  }
}
