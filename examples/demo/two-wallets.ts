import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import type { AuthenticatedClient } from '@interledger/open-payments'
import { freePort } from 'open-payments-programs'
import type { Amount, ResourceServer } from 'open-payments-server'
import { openEmbedded } from '../created-wallet/embedded-database.js'
import { type FulfilledPacket, ilpAddressOf, linkAsset, peerWallet } from '../ilp/rail.js'
import { createIlpWallet } from '../ilp/wallet.js'
import { accessTo, dollars } from './app.js'
import { approved } from './consent.js'
import { money } from './money.js'
import { payAsOwner } from './owner-pays.js'
import type { Shop } from './shop.js'
import { step, tell } from './story.js'
import { type DemoSettings, startDemoWallet } from './wallet.js'

interface App {
  readonly client: AuthenticatedClient
  readonly shop: Shop
}

/** The origins of two running wallets, and the packets sent between them. */
interface Pair {
  readonly home: string
  readonly away: string
  readonly packets: readonly FulfilledPacket[]
  /** The balances of Alice's account in the first wallet and of Carol's in the other, in cents. */
  accounts(): Promise<readonly (bigint | undefined)[]>
  /** The servers of the first wallet, for its own app. */
  readonly resources: ResourceServer
  /** What the only peer of each wallet owes it. */
  balances(): Promise<readonly Amount[]>
  stop(): Promise<unknown>
}

/**
 * Two wallets are each other's peers: an app of Alice's, who has dollars, pays an invoice of Carol's, in euros; then
 * Alice herself pays Carol.
 */
export async function payAcross(app: App, wallets: DemoSettings): Promise<void> {
  const pair = await startPair(wallets)
  try {
    const invoice = await requestMoney(app, pair)
    const payment = await payInvoice(app, pair, invoice.id)
    await untilSent(payment)
    await compareBooks(pair, await payment.read(), await invoice.read())
    const { home, away, resources } = pair
    const timeoutMs = wallets.outboundTimeoutMs
    await payAsOwner({ resources, from: `${home}/alice`, to: `${away}/carol`, timeoutMs })
  } finally {
    await pair.stop()
  }
}

async function startPair(settings: DemoSettings): Promise<Pair> {
  step('Two wallets start as each other’s peers')
  const home = `http://localhost:${await freePort()}`
  const away = `http://localhost:${await freePort()}`
  const token = randomBytes(32).toString('base64url')
  const packets: FulfilledPacket[] = []
  const start = async (baseUrl: string, peer: string) => {
    const ilpAddress = ilpAddressOf(baseUrl)
    const ilp = {
      ilpAddress,
      peers: [peerWallet(peer, ilpAddress)],
      token,
      assets: ['USD', 'EUR'].map((assetCode) => ({ assetCode, assetScale: 2 })),
      timeoutMs: settings.outboundTimeoutMs,
      allowLoopback: true,
      onPacket: (packet: FulfilledPacket) => void packets.push(packet),
    }
    const database = await openEmbedded()
    const { wallet, stop } = await startDemoWallet({
      ...settings,
      baseUrl,
      database,
      create: (own, database, ports) => createIlpWallet(own, database, ilp, ports),
    })
    return {
      resources: wallet.resources,
      account: async (name: string) => (await wallet.ledger.find(`${baseUrl}/${name}`))?.balance,
      async balance(): Promise<Amount> {
        const [value] = Object.values(await wallet.rail.balances())
        return { value: `${value}`, ...linkAsset }
      },
      stop: () => stop().then(database.close),
    }
  }
  const [first, second] = [await start(home, away), await start(away, home)]
  tell('Alice’s wallet', `${home}, receives packets for ${ilpAddressOf(home)}`)
  tell('Carol’s wallet', `${away}, receives packets for ${ilpAddressOf(away)}`)
  return {
    home,
    away,
    packets,
    resources: first.resources,
    accounts: () => Promise.all([first.account('alice'), second.account('carol')]),
    balances: () => Promise.all([first.balance(), second.balance()]),
    stop: () => Promise.all([first.stop(), second.stop()]),
  }
}

async function requestMoney({ client, shop }: App, { away }: Pair) {
  step('Carol’s wallet creates an invoice of EUR 25.00')
  const receiving = await accessTo({ client, shop, baseUrl: away }, [
    { type: 'incoming-payment', actions: ['create', 'read'] },
  ])
  const { id } = await client.incomingPayment.create(receiving, {
    walletAddress: `${away}/carol`,
    incomingAmount: { value: '2500', assetCode: 'EUR', assetScale: 2 },
  })
  tell('incoming payment', id)
  const { accessToken } = receiving
  return { id, read: () => client.incomingPayment.get({ url: id, accessToken }) }
}

async function payInvoice(app: App, { home }: Pair, receiver: string) {
  const { client, shop } = app
  step('Alice’s wallet reads the invoice at the other wallet and quotes its cost')
  const walletAddress = `${home}/alice`
  const quoting = await accessTo({ client, shop, baseUrl: home }, [
    { type: 'quote', actions: ['create', 'read'] },
  ])
  const quote = await client.quote.create(quoting, { walletAddress, receiver, method: 'ilp' })
  assert.equal(quote.receiveAmount.value, '2500')
  assert.deepEqual(quote.debitAmount, dollars('2727'))
  tell('quote', `${money(quote.receiveAmount)} arrives, ${money(quote.debitAmount)} is debited`)
  tell('rate', 'EUR 1.00 is USD 1.08, and the wallet charges 1 %')

  step('Alice approves, and the app pays')
  const accessToken = await approved({ ...app, baseUrl: home }, walletAddress, {
    debitAmount: dollars('3000'),
  })
  const paying = { url: quoting.url, accessToken }
  const { id } = await client.outgoingPayment.create(paying, { walletAddress, quoteId: quote.id })
  tell('outgoing payment', id)
  return { read: () => client.outgoingPayment.get({ url: id, accessToken }) }
}

type OutgoingPayment = Awaited<ReturnType<AuthenticatedClient['outgoingPayment']['get']>>
type IncomingPayment = Awaited<ReturnType<AuthenticatedClient['incomingPayment']['get']>>

async function untilSent({ read }: { readonly read: () => Promise<OutgoingPayment> }) {
  // The wallet ends each payment: a payment that cannot be sent fails.
  for (;;) {
    const { failed, sentAmount, debitAmount } = await read()
    assert.equal(failed, false, 'the payment must not fail')
    if (sentAmount.value === debitAmount.value) return
    await sleep(100)
  }
}

async function compareBooks(
  { packets, accounts, balances }: Pair,
  outgoing: OutgoingPayment,
  incoming: IncomingPayment,
): Promise<void> {
  step('Alice’s wallet sends the payment automatically, in packets')
  assert(packets.length > 1, 'the payment needs several packets')
  for (const [index, packet] of packets.entries()) tell(`packet ${index + 1}`, money(packet))

  step('The balances of both wallets agree')
  assert.deepEqual([incoming.completed, incoming.receivedAmount.value], [true, '2500'])
  tell('Alice', `${money(outgoing.sentAmount)} was debited from her account`)
  tell('Carol', `${money(incoming.receivedAmount)} has arrived, and her invoice is paid`)
  assert.deepEqual(await accounts(), [7_273n, 12_500n])
  const [owing, owed] = await balances()
  assert(owing && owed)
  const sum = packets.reduce((total, { value }) => total + BigInt(value), 0n)
  assert.deepEqual([BigInt(owing.value), BigInt(owed.value)], [-sum, sum])
  tell('Alice’s wallet', `owes the other ${money({ ...owing, value: `${sum}` })}`)
  tell('Carol’s wallet', `is owed ${money(owed)} by the other`)
}
