import { randomBytes, randomUUID } from 'node:crypto'
import fc from 'fast-check'
import {
  type SpendingPorts,
  type SpendingScene,
  spendingProperty,
} from 'open-payments-server-testing'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { ledgerOn } from '../src/ledger.js'
import { migrate } from '../src/migrate.js'
import type { Database } from '../src/sql.js'
import { createWallet } from '../src/wallet.js'
import { freshDatabase } from './fresh-database.js'

let database: Database
beforeAll(async () => {
  database = await freshDatabase()
  await migrate(database)
})
afterAll(() => database?.close())

/** Opens an account, or resets it. */
async function openAccount(walletAddress: string, balance: bigint): Promise<void> {
  await database.sql('DELETE FROM holds WHERE wallet_address = ?', walletAddress)
  await database.sql('DELETE FROM accounts WHERE wallet_address = ?', walletAddress)
  await database.sql(
    `INSERT INTO accounts (wallet_address, owner, public_name, asset_code, asset_scale, balance)
      VALUES (?, 'owner', 'Owner', 'USD', 2, ?)`,
    walletAddress,
    `${balance}`,
  )
}

describe('a grant', () => {
  const baseUrl = 'https://wallet.example'
  const usd = { assetCode: 'USD', assetScale: 2 }
  /** Two accounts of one owner, and incoming payments that they can pay, at the prices of `pricing.ts`. */
  const scene: SpendingScene = {
    walletAddress: `${baseUrl}/alice`,
    otherWalletAddress: `${baseUrl}/savings`,
    asset: usd,
    receivers: [
      { url: `${baseUrl}/incoming-payments/1`, asset: usd, walletAddress: `${baseUrl}/bob` },
      { url: `${baseUrl}/incoming-payments/2`, asset: usd, walletAddress: `${baseUrl}/carol` },
    ],
  }

  /** The incoming payments of the scene, which never expire: histories can last for decades. */
  const receivers = {
    idOf: (url: string) => (scene.receivers.some((each) => each.url === url) ? url : undefined),
    async get(id: string) {
      const { walletAddress = '' } = scene.receivers.find(({ url }) => url === id) ?? {}
      const expiresAt = Number.MAX_SAFE_INTEGER
      const receivedAmount = { ...usd, value: '0' }
      return { walletAddress, receivedAmount, status: 'open' as const, expiresAt }
    },
  }

  /** The servers of this wallet, on its database, with its prices and holds. */
  async function serversWith({ failing, ...ports }: SpendingPorts) {
    // Enough for every payment of a history: only the grant limits them.
    for (const url of [scene.walletAddress, `${baseUrl}/savings`])
      await openAccount(url, 10n ** 18n)
    const settings = {
      baseUrl,
      sessionSecret: randomBytes(32),
      paymentDetailsSecret: randomBytes(32),
      demoPassword: '',
    }
    const ignore = () => undefined // the search reports what matters
    const { auth, resources } = createWallet(
      settings,
      { ...database, store: failing(database.store) },
      { ...ports, receivers, onRefusal: ignore, onError: ignore },
    )
    const grantEndpoint = `${baseUrl}/auth`
    return { authorizationServer: auth, resourceServer: resources, grantEndpoint, baseUrl }
  }

  test('never spends more than its limits, in any order of payments, failures and repeats', async () => {
    const property = spendingProperty(fc, { servers: serversWith, scene, debitMax: 10n ** 15n })
    await fc.assert(property, { numRuns: 50 })
  })

  test('never spends more if several processes write at the same time', async () => {
    await fc.assert(spendingProperty(fc, { store: () => database.store }), { numRuns: 50 })
  })
})

describe('an account', () => {
  const balance = 100n
  const request = fc.record({
    payment: fc.nat({ max: 3 }),
    account: fc.nat({ max: 1 }),
    amount: fc.bigInt({ min: 1n, max: 80n }),
  })

  async function accountWith(value: bigint): Promise<string> {
    const walletAddress = `https://wallet.example/${randomUUID()}`
    await openAccount(walletAddress, value)
    return walletAddress
  }

  interface Requested {
    readonly payment: number
    readonly account: number
    readonly amount: bigint
  }

  /** Requests payments from two accounts at the same time, and returns the amounts that each account may have to pay. */
  async function heldAtOnce(requests: readonly Requested[]): Promise<readonly bigint[]> {
    const ledger = ledgerOn(database)
    const accounts = [await accountWith(balance), await accountWith(balance)]
    const run = randomUUID()
    const held = accounts.map(() => new Map<string, bigint>())
    await Promise.all(
      requests.map(async ({ payment, account, amount }) => {
        const request = {
          // A payment keeps its account and amount, however often the wallet is asked about it.
          outgoingPaymentId: `${run}-${payment}-${account}-${amount}`,
          walletAddress: accounts[account] ?? '',
          debitAmount: { value: `${amount}`, assetCode: 'USD', assetScale: 2 },
        }
        const isHeld = await ledger.hold(request)
        if (isHeld) held[account]?.set(request.outgoingPaymentId, amount)
      }),
    )
    for (const [index, walletAddress] of accounts.entries()) {
      const [row] = await database.sql(
        'SELECT SUM(amount) AS total FROM holds WHERE wallet_address = ?',
        walletAddress,
      )
      expect(BigInt(`${row?.['total'] ?? 0}`)).toBe(sum(held[index]?.values() ?? []))
    }
    return held.map((amounts) => sum(amounts.values()))
  }

  const sum = (amounts: Iterable<bigint>) => [...amounts].reduce((all, each) => all + each, 0n)

  test('never pays more than it has, whatever payments, amounts and accounts are repeated', async () => {
    const requests = fc.array(request, { minLength: 2, maxLength: 8 })
    const property = fc.asyncProperty(requests, async (some) => {
      for (const total of await heldAtOnce(some)) expect(total).toBeLessThanOrEqual(balance)
    })
    await fc.assert(property, { numRuns: 50 })
  })

  test('pays all that it has, and holds a repeat once', async () => {
    const requests = [60n, 39n, 1n].map((amount, payment) => ({ payment, account: 0, amount }))
    expect(await heldAtOnce([...requests, ...requests])).toEqual([balance, 0n])
  })
})
