import { randomBytes, randomUUID } from 'node:crypto'
import fc from 'fast-check'
import {
  type HoldSubject,
  holdConformance,
  type SpendingPorts,
  type SpendingScene,
  spendingProperty,
} from 'open-payments-server-testing'
import { afterAll, beforeAll, describe, test } from 'vitest'
import { handle } from '../src/background.js'
import { migrate } from '../src/migrate.js'
import type { Database } from '../src/sql.js'
import { createWallet, mayPayFrom } from '../src/wallet.js'
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

const baseUrl = 'https://wallet.example'
const usd = { assetCode: 'USD', assetScale: 2 }
const settings = {
  baseUrl,
  sessionSecret: randomBytes(32),
  paymentDetailsSecret: randomBytes(32),
  demoPassword: '',
}

describe('a grant', () => {
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
  /** The account as the wallet holds, debits and releases it. */
  function account(walletAddress: string): HoldSubject {
    const wallet = createWallet(settings, database)
    const { ledger } = wallet
    return {
      walletAddress,
      asset: usd,
      mayPay: mayPayFrom(ledger),
      onEvent: (event) => handle(wallet, event),
      async settle({ outgoingPaymentId: paymentId, sentAmount, deliveredAmount }) {
        if (sentAmount.value === '0') return // the wallet moves nothing
        const values = { debit: sentAmount.value, credit: deliveredAmount.value }
        const transfer = { paymentId, from: walletAddress, to: `${baseUrl}/nobody`, ...values }
        await database.transaction((sql) => ledger.move(sql, transfer))
      },
      balance: async () => (await ledger.find(walletAddress))?.balance ?? 0n,
      async held() {
        const sum = 'SELECT SUM(amount) AS total FROM holds WHERE wallet_address = ?'
        const [row] = await database.sql(sum, walletAddress)
        return BigInt(`${row?.['total'] ?? 0}`)
      },
    }
  }

  async function open(balance: bigint): Promise<HoldSubject> {
    const walletAddress = `${baseUrl}/${randomUUID()}`
    await openAccount(walletAddress, balance)
    return account(walletAddress)
  }

  for (const { name, run, timeoutMs } of holdConformance(open, { reopen: account })) {
    test(name, { timeout: timeoutMs }, run)
  }
})
