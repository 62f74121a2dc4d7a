import { createPublicKey, type KeyObject } from 'node:crypto'
import type { LocaleSettings } from 'open-payments-pages'
import type { WalletAddress, WalletAddresses, WalletAddressServer } from 'open-payments-server'
import type { ClientIdentity } from '../ilp/guarded-client.js'
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
  /** The wallet's own client for reading receivers in other wallets. It is not an account. */
  readonly operator: ClientIdentity
  /** Everything with a wallet address document and a key set: the accounts and the operator. */
  readonly published: WalletAddresses
}

/** Refuses accounts at the paths of routes, because their wallet addresses could not be read. */
export function requireFreePaths(
  accounts: readonly Pick<Account, 'url'>[],
  addresses: Pick<WalletAddressServer, 'canServe'>,
  mounts: readonly { readonly path: string }[],
): void {
  const paths = mounts.map(({ path }) => path)
  const taken = accounts.find(({ url }) => !addresses.canServe(url, paths))
  if (taken === undefined) return
  throw new Error(`the account ${taken.url} needs another name: the wallet has a route there`)
}

/** An account to open. */
export interface NewAccount {
  /** The last segment of its wallet address. */
  readonly name: string
  readonly publicName: string
  readonly assetCode: string
  /** Default 2. */
  readonly assetScale?: number
  /** Default: `name`. */
  readonly owner?: string
}

const inTheDemo: readonly NewAccount[] = [
  { name: 'alice', publicName: 'Alice', assetCode: 'USD' },
  { name: 'bob', publicName: 'Bob', assetCode: 'USD' },
  { name: 'carol', publicName: 'Carol', assetCode: 'EUR' },
  { name: 'alice-euros', publicName: 'Alice', assetCode: 'EUR', owner: 'alice' },
]

/** Returns the private key of the account with this name. Its public key has the `kid` `{name}-1`. */
export function accountKey(secrets: Secrets, name: string): Promise<KeyObject> {
  return signingKey(secrets, `account-key:${name}`)
}

/** The accounts and the operator, with wallet addresses at the wallet's own origin. By default, two are Alice's. */
export async function demoAccounts(
  baseUrl: string,
  secrets: Secrets,
  registered: Pick<RegisteredKeys, 'of'>,
  opened = inTheDemo,
): Promise<Accounts> {
  async function account(opening: NewAccount): Promise<Account> {
    const { name, publicName, assetCode, assetScale = 2, owner = name } = opening
    const { x = '' } = createPublicKey(await accountKey(secrets, name)).export({ format: 'jwk' })
    const keys = [{ kid: `${name}-1`, x }]
    return { url: `${baseUrl}/${name}`, owner, publicName, assetCode, assetScale, keys }
  }

  const all = await Promise.all(opened.map(account))
  const named = { name: 'operator', publicName: 'Example wallet', assetCode: 'USD' }
  const operator = await account(named)
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
      privateKey: await accountKey(secrets, 'operator'),
    },
    published: { find: async (url) => (url === operator.url ? operator : find(url)) },
  }
}
