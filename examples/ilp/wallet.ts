import { createPublicKey, generateKeyPairSync, randomUUID } from 'node:crypto'
import {
  type Background,
  handle,
  startBackground,
} from 'create-open-payments-server/wallet/background'
import { rateOf } from 'create-open-payments-server/wallet/exchange'
import { type Account, ledgerOn } from 'create-open-payments-server/wallet/ledger'
import { ownReceivers } from 'create-open-payments-server/wallet/pricing'
import type { WalletSettings } from 'create-open-payments-server/wallet/settings'
import type { Database } from 'create-open-payments-server/wallet/sql'
import {
  createWallet,
  type Wallet,
  type WalletPorts,
} from 'create-open-payments-server/wallet/wallet'
import { createClient } from 'open-payments-client'
import {
  createPacketTables,
  type PaymentSender,
  type PaymentSenderOptions,
  paymentSender,
  type Rail,
  railPaymentMethods,
  sqlBook,
  sqlSendingBook,
} from 'open-payments-ilp'
import {
  type Asset,
  type EventHandler,
  guardedFetch,
  type ResourceServices,
} from 'open-payments-server'
import { createWalletRail, type RailSettings } from './rail.js'

export interface IlpSettings extends RailSettings {
  /** The currencies of the accounts. */
  readonly assets: readonly Asset[]
  /** The time limit for a request to another wallet. A receiver there has four times as long. */
  readonly timeoutMs: number
  /** Whether other wallets may be on this machine. */
  readonly allowLoopback: boolean
}

/** A created wallet that also pays, and is paid by, other wallets over Interledger. */
export interface IlpWallet extends Wallet {
  readonly rail: Rail
  /** Sends the payments to other wallets, and lists what is in doubt. */
  readonly sender: PaymentSender
}

/** Creates the wallet with a rail to its peers, and what it does between requests. */
export async function createIlpWallet(
  settings: WalletSettings,
  database: Database,
  ilp: IlpSettings,
  ports: WalletPorts = {},
): Promise<{ readonly wallet: IlpWallet; readonly work: () => Background }> {
  await createPacketTables(database)
  const { baseUrl, paymentDetailsSecret } = settings
  const { ilpAddress, assets } = ilp
  const book = sqlBook(database)
  const onError = ports.onError ?? console.error
  const paymentMethods = railPaymentMethods({ ilpAddress, secret: paymentDetailsSecret }, assets)
  const operator = operatorOf(baseUrl)
  const ledger = ports.ledger ?? ledgerOn(database)
  const find: typeof ledger.find = async (url) =>
    url === operator.account.url ? operator.account : ledger.find(url)
  const own = () => created.resources.incomingPayments
  const elsewhere = receiversElsewhere(settings, ilp, { operator, own, rail: () => rail })
  const created = createWallet(settings, database, {
    ...ports,
    ledger: { ...ledger, find },
    paymentMethods,
    receivers: (url) => ownReceivers(created.resources.incomingPayments, elsewhere)(url),
  })
  const { resources } = created
  const rail = createWalletRail({ ...ilp, paymentMethods, wallet: () => created, book, onError })
  const sender = paymentSender({
    rail,
    rateOf: ilp.rateOf ?? rateOf,
    book,
    sendings: sqlSendingBook(database),
    outgoingPayments: debiting(created),
    receivers: elsewhere,
  })
  const wallet = {
    ...created,
    rail,
    sender,
    handle: async (request) =>
      request.url.startsWith('/ilp/') ? rail.handle(request) : created.handle(request),
  } satisfies IlpWallet
  return {
    wallet,
    work() {
      const stopping = new AbortController()
      const sendElsewhere = sender.handler(stopping.signal)
      const handler: EventHandler = (event, delivery) =>
        event.type === 'outgoing-payment.created' &&
        resources.incomingPayments.idOf(event.receiver) === undefined
          ? sendElsewhere(event, delivery)
          : handle(wallet, event)
      const background = startBackground(wallet, handler)
      const recovering = setInterval(() => rail.recover().catch(onError), 60_000)
      return {
        async stop() {
          clearInterval(recovering)
          stopping.abort()
          await background.stop()
        },
      }
    },
  }
}

interface Operator {
  readonly account: Account
  readonly keyId: string
  readonly privateKey: ReturnType<typeof generateKeyPairSync>['privateKey']
}

/** The wallet's own client, which reads receivers in other wallets. Its key is new in each process. */
function operatorOf(baseUrl: string): Operator {
  const { privateKey } = generateKeyPairSync('ed25519')
  const { x = '' } = createPublicKey(privateKey).export({ format: 'jwk' })
  const keyId = randomUUID()
  const named = { url: `${baseUrl}/operator`, owner: 'operator', publicName: 'Wallet' }
  const asset = { assetCode: 'USD', assetScale: 2, balance: 0n }
  return { account: { ...named, ...asset, keys: [{ kid: keyId, x }] }, keyId, privateKey }
}

interface Elsewhere {
  readonly operator: Operator
  readonly own: () => ResourceServices['incomingPayments']
  readonly rail: () => Pick<Rail, 'peerFor'>
}

/** The most that a client waits. */
const limitMaxMs = 60_000

/** Finds receivers in other wallets that a peer has a route to: others cannot be paid, so they have no price. */
function receiversElsewhere(
  { baseUrl }: WalletSettings,
  { allowLoopback, timeoutMs }: IlpSettings,
  { operator: { account, keyId, privateKey }, own, rail }: Elsewhere,
) {
  const client = createClient({
    ...{ walletAddress: account.url, keyId, privateKey },
    own: {
      baseUrl,
      incomingPayments: { idOf: (url) => own().idOf(url), get: (id) => own().get(id) },
    },
    fetch: guardedFetch({ allowLoopback, timeoutMs }),
    limitMs: Math.min(4 * timeoutMs, limitMaxMs),
  })
  return async (url: string) => {
    const found = await client.receiverOf(url)
    const { ilp } = found.ok ? found.receiver : {}
    if (ilp === undefined || rail().peerFor(ilp.ilpAddress) !== undefined) return found
    const reason = `no peer has a route to ${ilp.ilpAddress}`
    return { ok: false, reason, publicReason: 'this wallet has no route to it' } as const
  }
}

/** The services of the wallet, which debit the account in the transaction in which a payment ends. */
function debiting({
  database,
  ledger,
  resources,
}: Wallet): PaymentSenderOptions['outgoingPayments'] {
  type Outgoing = ResourceServices['outgoingPayments']
  type Ended = Awaited<ReturnType<Outgoing['fail' | 'reportSent']>>

  function debited<Result extends Ended>(end: (payments: Outgoing) => Promise<Result>) {
    return database.transaction(async (sql, store) => {
      const ended: Ended = await end(resources.within(store).outgoingPayments)
      // Also a report of progress ends the payment, if everything has been sent.
      if (ended.ok && ended.changed && ended.payment.endedAt !== undefined) {
        const { paymentId, walletAddress: from, sentAmount } = ended.payment
        const values = { debit: sentAmount.value, credit: '0' }
        await ledger.move(sql, { paymentId, from, to: 'outside', ...values })
      }
      return ended as Result
    })
  }

  const { outgoingPayments } = resources
  return {
    ...outgoingPayments,
    fail: (id, report) => debited((payments) => payments.fail(id, report)),
    reportSent: (id, report) => debited((payments) => payments.reportSent(id, report)),
  }
}
