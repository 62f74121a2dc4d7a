import { randomUUID } from 'node:crypto'
import type { AuthenticatedClient } from '@interledger/open-payments'
import { isFinalizedGrantWithAccessToken, isPendingGrant } from '@interledger/open-payments'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { decide } from '../../examples/demo/browser.js'
import { openShop, type Shop } from '../../examples/demo/shop.js'
import { freePort } from '../../examples/wallet/free-port.js'
import { ilpAddressOf, peerWallet } from '../../examples/wallet/rail.js'
import { type AdapterName, type RunningWallet, startWallet } from '../../examples/wallet/start.js'
import type { DeliveredEvent } from '../../src/index.js'
import { type Access, clientOf, eur, usd } from '../support/official-client.js'

const patience = { timeout: 30_000 }
const timeout = 60_000

/** Two wallets that are each other's peers, and the app that pays from one to the other. */
async function startPair(settle: 'auto' | 'manual', adapterNames: readonly AdapterName[]) {
  const ports = [await freePort(), await freePort()] as const
  const urls = ports.map((port) => `http://localhost:${port}`)
  const token = randomUUID()
  const events: DeliveredEvent[] = []
  const start = (own: 0 | 1) => {
    const ilpAddress = ilpAddressOf(urls[own] ?? '')
    const peers = [peerWallet(urls[1 - own] ?? '', ilpAddress)]
    return startWallet({
      adapter: adapterNames[own] ?? 'express',
      port: ports[own],
      settle,
      rail: { ilpAddress, peers, token },
      onEvent: (event) => void events.push(event),
    })
  }
  const [one, two] = await Promise.all([start(0), start(1)])
  return { one, two, events, stop: () => Promise.all([one.stop(), two.stop()]) }
}

let shop: Shop
let client: AuthenticatedClient
beforeAll(async () => {
  shop = await openShop()
  client = await clientOf(shop)
})
afterAll(() => shop.stop())

async function tokenFor({ baseUrl }: RunningWallet, access: Access): Promise<string> {
  const grant = await client.grant.request({ url: `${baseUrl}/auth` }, { access_token: { access } })
  if (!isFinalizedGrantWithAccessToken(grant)) throw new Error('there is no token')
  return grant.access_token.value
}

/** An invoice of an account, and what has come of it. */
async function invoiceOf(wallet: RunningWallet, name: string, more: object = {}) {
  const accessToken = await tokenFor(wallet, [
    { type: 'incoming-payment', actions: ['create', 'read', 'complete'] },
  ])
  const { id } = await client.incomingPayment.create(
    { url: `${wallet.baseUrl}/op`, accessToken },
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
async function payerAt(wallet: RunningWallet, name: string) {
  const url = `${wallet.baseUrl}/op`
  const walletAddress = `${wallet.baseUrl}/${name}`
  const quoting = {
    url,
    accessToken: await tokenFor(wallet, [{ type: 'quote', actions: ['create', 'read'] }]),
  }
  const access: Access = [
    { type: 'outgoing-payment', actions: ['create', 'read'], identifier: walletAddress },
  ]
  const finish = { method: 'redirect' as const, uri: shop.finishUri, nonce: 'a-nonce' }
  const grant = await client.grant.request(
    { url: `${wallet.baseUrl}/auth` },
    { access_token: { access }, interact: { start: ['redirect'], finish } },
  )
  if (!isPendingGrant(grant)) throw new Error('it is not pending')
  const { location } = await decide(grant.interact.redirect, 'approve')
  const interact_ref = location?.searchParams.get('interact_ref') ?? ''
  const { uri, access_token } = grant.continue
  const continuation = { url: uri, accessToken: access_token.value }
  const issued = await client.grant.continue(continuation, { interact_ref })
  if (!isFinalizedGrantWithAccessToken(issued)) throw new Error('there is no token')
  const accessToken = issued.access_token.value

  const quote = (receiver: string, asked: object = {}) =>
    client.quote.create(quoting, { walletAddress, receiver, method: 'ilp', ...asked })
  return {
    quote,
    async pay(receiver: string, asked: object = {}) {
      const { id: quoteId } = await quote(receiver, asked)
      return client.outgoingPayment.create({ url, accessToken }, { walletAddress, quoteId })
    },
    payDirectly: (incomingPayment: string, debitAmount: ReturnType<typeof usd>) =>
      client.outgoingPayment.create(
        { url, accessToken },
        { walletAddress, incomingPayment, debitAmount },
      ),
    read: (id: string) => client.outgoingPayment.get({ url: id, accessToken }),
  }
}

/** What each peer of a wallet owes it. */
async function balanceAt({ baseUrl }: RunningWallet): Promise<bigint> {
  const answer = (await (await fetch(`${baseUrl}/ledger/peers`)).json()) as Record<
    string,
    { value: string }
  >
  const [balance] = Object.values(answer)
  return BigInt(balance?.value ?? '')
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
  }, timeout)
  afterAll(() => pair.stop())

  const both = [
    ['one', 'two'],
    ['two', 'one'],
  ] as const

  test.each(both)(
    'pay an invoice from %s to %s in the same currency',
    { timeout },
    async (from, to) => {
      const before = [await balanceAt(pair[from]), await balanceAt(pair[to])]
      const invoice = await invoiceOf(pair[to], 'bob', { incomingAmount: usd('2500') })
      const alice = await payerAt(pair[from], 'alice')
      const payment = await alice.pay(invoice.id)
      expect([payment.debitAmount, payment.receiveAmount]).toEqual([usd('2525'), usd('2500')])
      await expect.poll(async () => (await invoice.read()).completed, patience).toBe(true)
      expect((await invoice.read()).receivedAmount).toEqual(usd('2500'))
      await expect
        .poll(async () => (await alice.read(payment.id)).sentAmount, patience)
        .toEqual(usd('2525'))
      expect((await alice.read(payment.id)).failed).toBe(false)
      // What leaves one wallet arrives at the other, and each of them has it in its books.
      const after = [await balanceAt(pair[from]), await balanceAt(pair[to])]
      expect(after[0]).toBe((before[0] ?? 0n) - 2500n * cent)
      expect(after[1]).toBe((before[1] ?? 0n) + 2500n * cent)
    },
  )

  test.each(both)(
    'pay an invoice from %s to %s in another currency',
    { timeout },
    async (from, to) => {
      const before = [await balanceAt(pair[from]), await balanceAt(pair[to])]
      const invoice = await invoiceOf(pair[to], 'carol', { incomingAmount: eur('2500') })
      const alice = await payerAt(pair[from], 'alice')
      const payment = await alice.pay(invoice.id)
      expect([payment.debitAmount, payment.receiveAmount]).toEqual([usd('2727'), eur('2500')])
      await expect
        .poll(async () => (await alice.read(payment.id)).sentAmount, patience)
        .toEqual(usd('2727'))
      expect(await invoice.read()).toMatchObject({ completed: true, receivedAmount: eur('2500') })
      const [moved, arrived] = [
        (before[0] ?? 0n) - (await balanceAt(pair[from])),
        (await balanceAt(pair[to])) - (before[1] ?? 0n),
      ]
      expect(moved).toBe(arrived)
      // 25 euros are 27 dollars. The packets may cost more by what is rounded, and no more than was debited.
      expect(moved).toBeGreaterThanOrEqual(2700n * cent)
      expect(moved).toBeLessThanOrEqual(2727n * cent)
    },
  )

  test('pay from euros to dollars, a fixed sum that leaves', { timeout }, async () => {
    const receiver = await invoiceOf(pair.one, 'bob')
    const carol = await payerAt(pair.two, 'carol')
    const payment = await carol.payDirectly(receiver.id, eur('1010'))
    expect(payment.receiveAmount).toEqual(usd('1080'))
    await expect
      .poll(async () => (await carol.read(payment.id)).sentAmount, patience)
      .toEqual(eur('1010'))
    expect(await receiver.read()).toMatchObject({ completed: false, receivedAmount: usd('1080') })
  })
})
