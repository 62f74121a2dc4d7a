import { randomUUID } from 'node:crypto'
import type { AuthenticatedClient } from '@interledger/open-payments'
import { freePort } from 'open-payments-programs'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { openShop, type Shop } from '../../examples/demo/shop.js'
import { ilpAddressOf, peerWallet, type RailSettings } from '../../examples/ilp/rail.js'
import { repeatedly } from '../../examples/wallet/background.js'
import { memoryStorage } from '../../examples/wallet/memory-storage.js'
import { noFee } from '../../examples/wallet/prices.js'
import { type AdapterName, type RunningWallet, startWallet } from '../../examples/wallet/start.js'
import type { DeliveredEvent, FailedDelivery } from '../../src/index.js'
import { expiringSoon } from '../support/expiring.js'
import {
  type Access,
  approvedToken,
  clientOf,
  eur,
  failure,
  tokenWithoutConsent,
  usd,
} from '../support/official-client.js'
import { kindsOfReceivers } from '../support/stream-receivers.js'
import { dataDirectories, exited, killPrograms, startedWallet } from './program.js'

/** Two wallets that are each other's peers, each with its own storage, and the events of both. */
async function startPair(
  settle: 'auto' | 'manual',
  adapterNames: readonly AdapterName[] = ['express', 'express'],
  more: Pick<RailSettings, 'creditMax' | 'receivers'> = {},
) {
  const ports = [await freePort(), await freePort()] as const
  const urls = ports.map((port) => `http://localhost:${port}`)
  const storages = [memoryStorage(), memoryStorage()] as const
  const token = randomUUID()
  const events: DeliveredEvent[] = []
  const undelivered: FailedDelivery[] = []
  const start = (own: 0 | 1) => {
    const ilpAddress = ilpAddressOf(urls[own] ?? '')
    const peers = [peerWallet(urls[1 - own] ?? '', ilpAddress)]
    return startWallet({
      adapter: adapterNames[own] ?? 'express',
      port: ports[own],
      storage: storages[own],
      settle,
      outboundTimeoutMs: 60_000,
      rail: { ilpAddress, peers, token, ...more },
      fee: { ...noFee, basisPoints: 100n },
      onEvent: (event) => void events.push(event),
      onUndelivered: (failure) => void undelivered.push(failure),
    })
  }
  const [one, two] = await Promise.all([start(0), start(1)])
  return {
    one,
    two,
    events,
    undelivered,
    /** Restarts the second wallet. */
    restart: () => start(1),
    stop: () => Promise.all([one.stop(), two.stop()]),
  }
}

let shop: Shop
let client: AuthenticatedClient
beforeAll(async () => {
  shop = await openShop()
  client = await clientOf(shop)
})
afterAll(() => shop.stop())

type Origin = Pick<RunningWallet, 'baseUrl'>

function tokenFor({ baseUrl }: Origin, access: Access): Promise<string> {
  return tokenWithoutConsent(client, `${baseUrl}/auth`, access)
}

/** Creates an invoice of an account; returns its URL and state. */
async function invoiceOf(wallet: Origin, name: string, more: object = {}) {
  const accessToken = await tokenFor(wallet, [
    { type: 'incoming-payment', actions: ['create', 'read', 'complete'] },
  ])
  const { id } = await client.incomingPayment.create(
    { url: `${wallet.baseUrl}`, accessToken },
    { walletAddress: `${wallet.baseUrl}/${name}`, ...more },
  )
  const own = { url: id, accessToken }
  return {
    id,
    read: () => client.incomingPayment.get(own),
    complete: () => client.incomingPayment.complete(own),
  }
}

/** An app that may pay from an account without a limit. */
async function payerAt(wallet: Origin, name: string) {
  const url = `${wallet.baseUrl}`
  const walletAddress = `${wallet.baseUrl}/${name}`
  const quoting = {
    url,
    accessToken: await tokenFor(wallet, [{ type: 'quote', actions: ['create', 'read'] }]),
  }
  const access: Access = [
    { type: 'outgoing-payment', actions: ['create', 'read'], identifier: walletAddress },
  ]
  const { value: accessToken } = await approvedToken(client, `${wallet.baseUrl}/auth`, access, shop)

  const quote = (receiver: string, asked: object = {}) =>
    client.quote.create(quoting, { walletAddress, receiver, method: 'ilp', ...asked })
  const payQuote = (quoteId: string) =>
    client.outgoingPayment.create({ url, accessToken }, { walletAddress, quoteId })
  return {
    quote,
    payQuote,
    async pay(receiver: string, asked: object = {}) {
      return payQuote((await quote(receiver, asked)).id)
    },
    payDirectly: (incomingPayment: string, debitAmount: ReturnType<typeof usd>) =>
      client.outgoingPayment.create(
        { url, accessToken },
        { walletAddress, incomingPayment, debitAmount },
      ),
    read: (id: string) => client.outgoingPayment.get({ url: id, accessToken }),
  }
}

/** Returns what the peers of a wallet owe it. */
async function balanceAt({ baseUrl }: Origin): Promise<bigint> {
  const answer = (await (await fetch(`${baseUrl}/ledger/peers`)).json()) as Record<
    string,
    { value: string }
  >
  const [balance] = Object.values(answer)
  return BigInt(balance?.value ?? '')
}

/** Reports to a wallet what a peer has paid it. */
async function settled({ baseUrl }: Origin, peer: string, value: bigint): Promise<void> {
  const answer = await fetch(`${baseUrl}/ledger/settlements`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify({ transferId: randomUUID(), peer, value: `${value}` }),
  })
  expect(answer.status).toBe(200)
}

/** A cent of a dollar, in the asset of the link. */
const cent = 10_000_000n

describe.each([
  ['express', 'fastify'],
  ['hono', 'express'],
] as const)('two wallets, on %s and on %s', (...names) => {
  let pair: Awaited<ReturnType<typeof startPair>>
  beforeAll(async () => {
    pair = await startPair('auto', names)
  })
  afterAll(() => pair.stop())

  const both = [
    ['one', 'two'],
    ['two', 'one'],
  ] as const

  test.each(both)('pay an invoice from %s to %s in the same currency', async (from, to) => {
    const before = [await balanceAt(pair[from]), await balanceAt(pair[to])]
    const invoice = await invoiceOf(pair[to], 'bob', { incomingAmount: usd('2500') })
    const alice = await payerAt(pair[from], 'alice')
    const payment = await alice.pay(invoice.id)
    expect([payment.debitAmount, payment.receiveAmount]).toEqual([usd('2525'), usd('2500')])
    await expect.poll(async () => (await invoice.read()).completed).toBe(true)
    expect((await invoice.read()).receivedAmount).toEqual(usd('2500'))
    await expect.poll(async () => (await alice.read(payment.id)).sentAmount).toEqual(usd('2525'))
    expect((await alice.read(payment.id)).failed).toBe(false)
    // What one wallet sends arrives at the other, and both balances show it.
    const after = [await balanceAt(pair[from]), await balanceAt(pair[to])]
    expect(after[0]).toBe((before[0] ?? 0n) - 2500n * cent)
    expect(after[1]).toBe((before[1] ?? 0n) + 2500n * cent)
  })

  test.each(both)('pay an invoice from %s to %s in another currency', async (from, to) => {
    const before = [await balanceAt(pair[from]), await balanceAt(pair[to])]
    const invoice = await invoiceOf(pair[to], 'carol', { incomingAmount: eur('2500') })
    const alice = await payerAt(pair[from], 'alice')
    const payment = await alice.pay(invoice.id)
    expect([payment.debitAmount, payment.receiveAmount]).toEqual([usd('2727'), eur('2500')])
    await expect.poll(async () => (await alice.read(payment.id)).sentAmount).toEqual(usd('2727'))
    expect(await invoice.read()).toMatchObject({ completed: true, receivedAmount: eur('2500') })
    const [moved, arrived] = [
      (before[0] ?? 0n) - (await balanceAt(pair[from])),
      (await balanceAt(pair[to])) - (before[1] ?? 0n),
    ]
    expect(moved).toBe(arrived)
    // 25 euros are 27 dollars. Rounding may add to the packets' cost, up to the debited amount.
    expect(moved).toBeGreaterThanOrEqual(2700n * cent)
    expect(moved).toBeLessThanOrEqual(2727n * cent)
  })
})

describe.each(kindsOfReceivers)('two wallets that receive with %s', (_, receivers) => {
  let pair: Awaited<ReturnType<typeof startPair>>
  beforeAll(async () => {
    pair = await startPair('auto', ['express', 'express'], { receivers })
  })
  afterAll(() => pair.stop())

  test('pay each other 0.01, 1.00, 25.00 and 3.45, exactly', async () => {
    const values = ['1', '100', '2500', '345']
    const [one, two] = [await payerAt(pair.one, 'alice'), await payerAt(pair.two, 'alice')]
    const payments = values.flatMap((value) => [
      { payer: one, to: pair.two, value },
      { payer: two, to: pair.one, value },
    ])
    for (const { payer, to, value } of payments) {
      const invoice = await invoiceOf(to, 'bob', { incomingAmount: usd(value) })
      const { id, debitAmount } = await payer.pay(invoice.id)
      await expect.poll(async () => (await payer.read(id)).sentAmount).toEqual(debitAmount)
      expect(await payer.read(id)).toMatchObject({ failed: false })
      expect(await invoice.read()).toMatchObject({ completed: true, receivedAmount: usd(value) })
    }
    // Both have paid the same.
    expect([await balanceAt(pair.one), await balanceAt(pair.two)]).toEqual([0n, 0n])
  })

  test('pay whatever arrives from another currency into an open incoming payment', async () => {
    const alice = await payerAt(pair.one, 'alice')
    const open = await invoiceOf(pair.two, 'carol')
    const payment = await alice.pay(open.id, { debitAmount: usd('3000') })
    await expect.poll(async () => (await alice.read(payment.id)).sentAmount).toEqual(usd('3000'))
    expect(await open.read()).toMatchObject({ receivedAmount: payment.receiveAmount })
    expect(await balanceAt(pair.two)).toBe(-(await balanceAt(pair.one)))
  })
})

test('payments at once to one peer stay within its credit, and are exact once it settles', async () => {
  const dollar = 100n * cent
  const pair = await startPair('auto', ['express', 'express'], { creditMax: 30n * dollar })
  const [one, two] = [ilpAddressOf(pair.one.baseUrl), ilpAddressOf(pair.two.baseUrl)]
  const alice = await payerAt(pair.one, 'alice')
  const values = ['2500', '2000', '500']
  const invoices = await Promise.all(
    values.map((value) => invoiceOf(pair.two, 'bob', { incomingAmount: usd(value) })),
  )
  const seen: bigint[] = []
  const errors: unknown[] = []
  const look = async () => void seen.push(await balanceAt(pair.two))
  const watch = repeatedly(10, look, (error) => errors.push(error))
  const payments = await Promise.all(invoices.map(({ id }) => alice.pay(id)))

  // Together they are 50 dollars.
  await expect.poll(() => balanceAt(pair.two)).toBeGreaterThan(20n * dollar)
  await settled(pair.two, one, 25n * dollar)
  await settled(pair.one, two, -25n * dollar)
  for (const [index, { id, debitAmount }] of payments.entries()) {
    await expect.poll(async () => (await alice.read(id)).sentAmount).toEqual(debitAmount)
    const receivedAmount = usd(values[index] ?? '')
    expect(await invoices[index]?.read()).toMatchObject({ completed: true, receivedAmount })
  }
  await watch.stop()
  expect(errors).toEqual([])
  for (const owed of seen) expect(owed).toBeLessThanOrEqual(30n * dollar)
  const balances = [await balanceAt(pair.one), await balanceAt(pair.two)]
  expect(balances).toEqual([-25n * dollar, 25n * dollar])
  await pair.stop()
})

describe('a wallet', () => {
  let pair: Awaited<ReturnType<typeof startPair>>
  beforeAll(async () => {
    pair = await startPair('manual')
  })
  afterAll(() => pair.stop())

  const refused = {
    status: 400,
    code: 'invalid_receiver',
    description: 'invalid receiver',
  }

  test('has no price for an invalid receiver, and creates no payment to it', async () => {
    const { one, two } = pair
    const alice = await payerAt(one, 'alice')
    const complete = await invoiceOf(two, 'bob')
    await complete.complete()
    const { expiresAt, created: expired } = await expiringSoon((expiresAt) =>
      invoiceOf(two, 'bob', { expiresAt }),
    )
    await expect.poll(() => Date.now() > expiresAt).toBe(true)
    const bad = [
      complete.id,
      expired.id,
      `${two.baseUrl}/incoming-payments/unknown`,
      `${one.baseUrl}/incoming-payments/unknown`,
      'https://169.254.169.254/incoming-payments/1',
      'https://10.0.0.1/incoming-payments/1',
    ]
    for (const receiver of bad) {
      const problem =
        receiver === complete.id ? 'the incoming payment is complete' : expect.any(String)
      const told = (path: string) => ({ ...refused, details: { path, problem } })
      const asked = { debitAmount: usd('100') }
      expect(await failure(alice.quote(receiver, asked)), receiver).toEqual(told('receiver'))
      const paid = alice.payDirectly(receiver, usd('100'))
      expect(await failure(paid), receiver).toEqual(told('incomingPayment'))
    }
    const shapeless = [
      `${two.baseUrl}/bob`,
      `${two.baseUrl}/incoming-payments/..%2f..%2fbob`,
      'https://169.254.169.254/latest/meta-data',
    ]
    for (const receiver of shapeless) {
      const asked = { debitAmount: usd('100') }
      expect(await failure(alice.quote(receiver, asked)), receiver).toMatchObject({ status: 400 })
    }
    const told = pair.events.filter(
      (event) => 'receiver' in event && [...bad, ...shapeless].includes(event.receiver),
    )
    expect(told).toEqual([])
  })

  test('accepts packets only from its peers', async () => {
    const [peer = ''] = Object.keys(
      (await (await fetch(`${pair.one.baseUrl}/ledger/peers`)).json()) as object,
    )
    const post = async (path: string, headers: Record<string, string> = {}) =>
      (await fetch(pair.one.baseUrl + path, { method: 'POST', headers, body: 'x' })).status
    const authorization = 'Bearer another-token'
    expect(await post(`/ilp/${peer}`)).toBe(401)
    expect(await post(`/ilp/${peer}`, { authorization })).toBe(401)
    expect(await post('/ilp', { authorization })).toBe(404)
    expect(await post('/ilp/test.other', { authorization })).toBe(404)
    expect((await fetch(`${pair.one.baseUrl}/ledger/peers`, { method: 'POST' })).status).toBe(405)
  })
})

test('a payment is sent automatically, once, although the event receiver fails', async () => {
  const told: string[] = []
  const wallet = await startWallet({
    adapter: 'express',
    port: await freePort(),
    settle: 'auto',
    outboundTimeoutMs: 60_000,
    onEvent({ type }) {
      told.push(type)
      if (told.filter((other) => other === type).length < 3) throw new Error('it is unavailable')
    },
  })
  const alice = await payerAt(wallet, 'alice')
  const invoice = await invoiceOf(wallet, 'bob')
  const { id } = await alice.payDirectly(invoice.id, usd('1000'))
  const sent = async () => (await alice.read(id)).sentAmount
  await expect.poll(sent).toEqual(usd('1000'))
  const created = () => told.filter((type) => type === 'outgoing-payment.created')
  await expect.poll(created).toHaveLength(3)
  expect((await invoice.read()).receivedAmount).toEqual(usd('1000'))
  await wallet.stop()
})

test('a payment waits for the other wallet to come back', async () => {
  const pair = await startPair('auto')
  const alice = await payerAt(pair.one, 'alice')
  const bob = await invoiceOf(pair.two, 'bob', { incomingAmount: usd('3000') })
  const { id: quoted } = await alice.quote(bob.id)
  await pair.two.stop()
  const payment = await alice.payQuote(quoted)
  await expect.poll(() => pair.undelivered.length).toBeGreaterThan(0)
  const two = await pair.restart()
  await expect.poll(async () => (await alice.read(payment.id)).sentAmount).toEqual(usd('3030'))
  expect(await bob.read()).toMatchObject({ completed: true, receivedAmount: usd('3000') })
  await Promise.all([pair.one.stop(), two.stop()])
})

async function twoProgramsPayEachOther(): Promise<void> {
  const directories = await dataDirectories()
  const ports = [`${await freePort()}`, `${await freePort()}`] as const
  const start = async (own: 0 | 1) =>
    startedWallet({
      PORT: ports[own],
      PEERS: `http://localhost:${ports[1 - own]}`,
      ILP_TOKEN: 'a-secret-that-both-share',
      DATA_DIR: await directories.create(),
    })
  try {
    const [one, two] = await Promise.all([start(0), start(1)])
    const alice = await payerAt(one, 'alice')
    const invoice = await invoiceOf(two, 'carol', { incomingAmount: eur('2500') })
    const { id } = await alice.pay(invoice.id)
    const sent = async () => (await alice.read(id)).sentAmount
    await expect.poll(sent).toEqual(usd('2700'))
    expect(await invoice.read()).toMatchObject({ completed: true, receivedAmount: eur('2500') })
    expect(await balanceAt(two)).toBe(-(await balanceAt(one)))
    for (const { child } of [one, two]) child.kill('SIGTERM')
    expect(await Promise.all([one.ended, two.ended])).toEqual([exited, exited])
    expect(one.printed.err + two.printed.err).toBe('')
  } finally {
    killPrograms()
    await directories.remove()
  }
}

test('two programs pay each other, started as the README says', twoProgramsPayEachOther)

async function twoPaymentsSurviveCrashes(): Promise<void> {
  const directories = await dataDirectories()
  const ports = [`${await freePort()}`, `${await freePort()}`] as const
  const [first, second] = [await directories.create(), await directories.create()]
  const start = (own: 0 | 1) =>
    startedWallet({
      PORT: ports[own],
      PEERS: `http://localhost:${ports[1 - own]}`,
      ILP_TOKEN: 'a-secret-that-both-share',
      DATA_DIR: own === 0 ? first : second,
    })
  try {
    const crashing = await Promise.all([start(0), start(1)])
    const [one, two] = crashing
    const alice = await payerAt(one, 'alice')
    const invoices = await Promise.all(
      [1, 2].map(() => invoiceOf(two, 'bob', { incomingAmount: usd('200000') })),
    )
    const payments = await Promise.all(invoices.map(({ id }) => alice.pay(id)))
    const received = async () =>
      (await Promise.all(invoices.map((invoice) => invoice.read()))).map(({ receivedAmount }) =>
        Number(receivedAmount.value),
      )
    // Whether the second has begun, too, depends on whether one look-up found the events of both.
    await expect.poll(async () => Math.max(...(await received()))).toBeGreaterThan(0)
    for (const { child } of crashing) child.kill('SIGKILL')
    await Promise.all(crashing.map(({ ended }) => ended))

    const again = await Promise.all([start(0), start(1)])
    expect(Math.min(...(await received()))).toBeLessThan(200_000)
    // The events of the payments are delivered again when their leases have ended, after three minutes.
    for (const { id } of payments) {
      const sent = async () => (await alice.read(id)).sentAmount
      await expect.poll(sent, { timeout: 1_200_000, interval: 500 }).toEqual(usd('200000'))
      expect(await alice.read(id)).toMatchObject({ failed: false })
    }
    expect(await received()).toEqual([200_000, 200_000])
    const balances = await Promise.all(again.map(balanceAt))
    expect(balances).toEqual([-400_000n * cent, 400_000n * cent])
    for (const { child } of again) child.kill('SIGTERM')
    expect(await Promise.all(again.map(({ ended }) => ended))).toEqual([exited, exited])
  } finally {
    killPrograms()
    await directories.remove()
  }
}

test('two payments at once survive the crash of both wallets, exactly', twoPaymentsSurviveCrashes)
