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
import { openAccount } from '../src/ledger.js'
import type { Receivers } from '../src/pricing.js'
import type { Database } from '../src/sql.js'
import { migrate } from '../src/tables.js'
import { createWallet, mayPayFrom } from '../src/wallet.js'
import { freshDatabase } from './fresh-database.js'

let database: Database
beforeAll(async () => {
  database = await freshDatabase()
  await migrate(database)
})
afterAll(() => database?.close())

/** Opens an account, or resets it. */
async function openNew(walletAddress: string, balance: bigint): Promise<void> {
  await database.sql('DELETE FROM holds WHERE wallet_address = ?', walletAddress)
  await database.sql('DELETE FROM accounts WHERE wallet_address = ?', walletAddress)
  await openAccount(database, { url: walletAddress, owner: 'owner', ...usd, balance })
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
  const receivers: Receivers = async (url) => {
    const found = scene.receivers.find((each) => each.url === url)
    if (found === undefined) return { ok: false, reason: 'unknown' }
    const { asset, walletAddress } = found
    return { ok: true, receiver: { asset, ...(walletAddress && { walletAddress }) } }
  }

  /** The servers of this wallet, on its database, with its prices and holds. */
  async function serversWith({ failing, clock, clientKeys }: SpendingPorts) {
    // Enough for every payment of a history: only the grant limits them.
    for (const url of [scene.walletAddress, `${baseUrl}/savings`]) await openNew(url, 10n ** 18n)
    const ignore = () => undefined // the search reports what matters
    const ports = { clock, clientKeys, receivers, onRefusal: ignore, onError: ignore }
    const { auth, resources } = createWallet(
      settings,
      { ...database, store: failing(database.store) },
      // The search has no owner who confirms payments.
      { ...ports, mustConfirm: () => false },
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
    await openNew(walletAddress, balance)
    return account(walletAddress)
  }

  for (const { name, run, timeoutMs } of holdConformance(open, { reopen: account })) {
    test(name, { timeout: timeoutMs }, run)
  }
})
