import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { PGlite } from '@electric-sql/pglite'
import type { AuthenticatedClient } from '@interledger/open-payments'
import { sqlBook } from 'open-payments-ilp'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { databaseOn } from '../../examples/created-wallet/embedded-database.js'
import { openShop, type Shop } from '../../examples/demo/shop.js'
import { ilpAddressOf } from '../../examples/ilp/rail.js'
import { startIlpPair, twoOrigins } from '../support/ilp-pair.js'
import { approvedToken, clientOf, tokenWithoutConsent, usd } from '../support/official-client.js'
import { exited, killPrograms, run, untilPrinted } from './program.js'

let shop: Shop
let client: AuthenticatedClient
beforeAll(async () => {
  shop = await openShop()
  client = await clientOf(shop)
})
afterAll(() => {
  killPrograms()
  shop.stop()
})

/** Creates an invoice of Bob; returns its URL, and what it has received. */
async function invoiceAt(baseUrl: string, value: string) {
  const accessToken = await tokenWithoutConsent(client, `${baseUrl}/auth`, [
    { type: 'incoming-payment', actions: ['create', 'read'] },
  ])
  const { id } = await client.incomingPayment.create(
    { url: baseUrl, accessToken },
    { walletAddress: `${baseUrl}/bob`, incomingAmount: usd(value) },
  )
  const received = async () => {
    const { receivedAmount } = await client.incomingPayment.get({ url: id, accessToken })
    return BigInt(receivedAmount.value)
  }
  return { id, received }
}

/** An app that may pay from the account of Alice without a limit. */
async function aliceAt(url: string) {
  const walletAddress = `${url}/alice`
  const quoting = await tokenWithoutConsent(client, `${url}/auth`, [
    { type: 'quote', actions: ['create'] },
  ])
  const { value: accessToken } = await approvedToken(
    client,
    `${url}/auth`,
    [{ type: 'outgoing-payment', actions: ['create', 'read'], identifier: walletAddress }],
    shop,
  )
  return {
    async pay(receiver: string) {
      const asked = { walletAddress, receiver, method: 'ilp' } as const
      const { id: quoteId } = await client.quote.create({ url, accessToken: quoting }, asked)
      return client.outgoingPayment.create({ url, accessToken }, { walletAddress, quoteId })
    },
    read: (id: string) => client.outgoingPayment.get({ url: id, accessToken }),
  }
}

/** A dollar, in the asset in which peers settle. */
const dollar = 1_000_000_000n

test('payments at once to one peer stay within its credit, and are exact once it settles', async () => {
  const { one, two, stop } = await startIlpPair({ creditMax: 30n * dollar })
  const [home, away] = [one.baseUrl, two.baseUrl]
  const owed = async ({ wallet }: typeof one) =>
    Object.values(await wallet.rail.balances())[0] ?? -1n
  const alice = await aliceAt(home)
  const values = [25n, 20n, 5n]
  const invoices = await Promise.all(values.map((each) => invoiceAt(away, `${each * 100n}`)))
  const payments = await Promise.all(invoices.map(({ id }) => alice.pay(id)))

  const seen: bigint[] = []
  const look = async () => {
    seen.push(await owed(two))
    return seen.at(-1)
  }
  // Together they are 50 dollars.
  await expect.poll(look, { interval: 10 }).toBeGreaterThan(20n * dollar)
  const settle = (wallet: typeof one, peer: string, amount: bigint) =>
    wallet.wallet.rail.settle(ilpAddressOf(peer), { id: 'a bank transfer', amount })
  for (const _ of [1, 2]) expect(await settle(two, home, 25n * dollar)).toBe('settled')
  expect(await settle(two, home, 26n * dollar)).toBe('transfer_mismatch')
  expect(await settle(one, away, -25n * dollar)).toBe('settled')
  for (const [index, { id, debitAmount }] of payments.entries()) {
    const sent = async () => {
      await look()
      return (await alice.read(id)).sentAmount
    }
    await expect.poll(sent).toEqual(debitAmount)
    expect(await invoices[index]?.received()).toBe((values[index] ?? 0n) * 100n)
  }
  for (const each of seen) expect(each).toBeLessThanOrEqual(30n * dollar)
  expect([await owed(one), await owed(two)]).toEqual([-25n * dollar, 25n * dollar])
  await stop()
})

test('payments at once survive the crash of both wallets, exactly', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'ilp-wallets-'))
  const urls = await twoOrigins()
  const start = async (own: 0 | 1) => {
    const [BASE_URL, PEER] = own === 0 ? urls : ([urls[1], urls[0]] as const)
    const DATA_DIR = join(folder, `${own}`)
    const program = run('test/examples/ilp-process.ts', { BASE_URL, PEER, DATA_DIR })
    await untilPrinted(program, 'ready')
    return program
  }
  /** What is on the accounts of a wallet that has ended, and what its peer owes it. */
  async function booked(own: 0 | 1) {
    const peer = urls[1 - own] ?? ''
    const lite = await PGlite.create(join(folder, `${own}`))
    const rows = await databaseOn(lite).sql(
      "SELECT balance FROM accounts WHERE owner IN ('alice', 'bob') ORDER BY owner",
    )
    const owed = await sqlBook(databaseOn(lite)).balance(ilpAddressOf(peer))
    await lite.close()
    return {
      alice: BigInt(`${rows[0]?.['balance']}`),
      bob: BigInt(`${rows[1]?.['balance']}`),
      owed,
    }
  }
  const [home, away] = urls
  const crashing = [await start(0), await start(1)]
  const alice = await aliceAt(home)
  const invoices = [await invoiceAt(away, '200000'), await invoiceAt(away, '200000')]
  const payments = await Promise.all(invoices.map(({ id }) => alice.pay(id)))
  const received = () => Promise.all(invoices.map((each) => each.received()))
  const some = async () => (await received()).some((value) => value > 0n)
  // Whether the second has begun, too, depends on whether one look-up found the events of both.
  await expect.poll(some).toBe(true)
  for (const { child } of crashing) child.kill('SIGKILL')
  await Promise.all(crashing.map(({ ended }) => ended))

  const again = [await start(0), await start(1)]
  expect((await received()).some((value) => value < 200_000n)).toBe(true)
  // The events of the payments are delivered again when their leases have ended, after three minutes.
  for (const { id, debitAmount } of payments) {
    const sent = async () => (await alice.read(id)).sentAmount
    await expect.poll(sent, { timeout: 1_200_000, interval: 500 }).toEqual(debitAmount)
    expect(await alice.read(id)).toMatchObject({ failed: false, debitAmount: usd('202000') })
  }
  expect(await received()).toEqual([200_000n, 200_000n])
  for (const { child } of again) child.kill('SIGTERM')
  expect(await Promise.all(again.map(({ ended }) => ended))).toEqual([exited, exited])
  expect(again.map(({ printed }) => printed.err)).toEqual(['', ''])
  expect(await booked(0)).toMatchObject({ alice: 500_000n - 404_000n, owed: -4_000n * dollar })
  expect(await booked(1)).toMatchObject({ bob: 10_000n + 400_000n, owed: 4_000n * dollar })
  await rm(folder, { recursive: true })
})
