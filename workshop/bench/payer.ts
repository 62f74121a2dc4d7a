import { createHash, randomUUID } from 'node:crypto'
import { isDeepStrictEqual } from 'node:util'
import type { Amount } from 'open-payments-server'
import type { HttpRequest, Stored } from 'open-payments-server/adapter'
import type { Budget, OutgoingPayment } from 'open-payments-server/core'
import { underGrant } from '../../test/support/under-grant.js'
import { type BenchWallet, bob, client, grantEndpoint, resourceServer, signed } from './fixtures.js'

const receiver = 'https://bank.example/incoming-payments/7f3c'
const day = 86_400_000

/** A client that may pay by quotes, under a monthly limit. */
export interface Payer {
  readonly wallet: BenchWallet
  readonly token: string
  readonly grantId: string
  /** The account that pays. */
  readonly walletAddress: string
}

/** Requests the grant, has the resource owner approve it, and gets the token. */
export async function newPayer(wallet: BenchWallet, walletAddress = bob): Promise<Payer> {
  // The current window began 25 days ago, so that it also contains the earlier payments.
  const interval = `R/${new Date(Date.now() - 25 * day).toISOString()}/P1M`
  const access = [
    { type: 'quote', actions: ['create', 'read'] },
    {
      type: 'outgoing-payment',
      actions: ['create', 'read', 'list'],
      identifier: walletAddress,
      limits: { interval, debitAmount: usd('1000000000000') },
    },
  ]
  const finish = { method: 'redirect', uri: `${client}/back`, nonce: 'nonce-of-the-client' }
  const interact = { start: ['redirect'], finish }
  const asked = { client, access_token: { access }, interact }
  const requested = await send(wallet, 'POST', grantEndpoint, asked)
  const interaction = requested.interact.redirect.slice(
    requested.interact.redirect.lastIndexOf('/') + 1,
  )
  const approved = await wallet.auth.interactions.approve(interaction, {
    resourceOwner: 'bob',
    walletAddresses: [walletAddress],
  })
  if (!approved.ok) throw new Error(approved.reason)
  const interactRef = new URL(approved.redirect ?? '').searchParams.get('interact_ref')
  const { uri, access_token: continuation } = requested.continue
  const issued = await send(wallet, 'POST', uri, { interact_ref: interactRef }, continuation.value)
  const [grantId = ''] = interaction.split('.')
  return { wallet, token: issued.access_token.value, grantId, walletAddress }
}

/** Creates quotes for this client and returns their ids; each pays for one payment. */
export async function newQuotes(
  { wallet, token, walletAddress }: Payer,
  count: number,
): Promise<string[]> {
  const asked = { walletAddress, receiver, method: 'ilp', debitAmount: usd('2500') }
  const { id: url } = await send(wallet, 'POST', `${resourceServer}/quotes`, asked, token)
  const quote = await load(wallet, 'quote', idOf(url))
  const copies = Array.from({ length: count }, () => ({ ...quote, id: newId(quote) }))
  await create(wallet, 'quote', copies)
  // An earlier library stores the ids of its URLs as they are.
  return copies.map(({ id }) => (quote.id === idOf(url) ? id : publicIdOf(id)))
}

/** Returns signed requests, each of which creates a payment from its own quote. */
export async function paymentRequests(payer: Payer, count: number): Promise<HttpRequest[]> {
  const requests: HttpRequest[] = []
  const { walletAddress } = payer
  for (const id of await newQuotes(payer, count)) {
    const body = JSON.stringify({ walletAddress, quoteId: `${resourceServer}/quotes/${id}` })
    const url = `${resourceServer}/outgoing-payments`
    requests.push(await signed(payer.wallet.key, { method: 'POST', url, token: payer.token, body }))
  }
  return requests
}

export async function pay({ resources }: BenchWallet, request: HttpRequest): Promise<string> {
  const { status, body = '' } = await resources.handle(request)
  if (status !== 201) throw new Error(body)
  return body
}

/**
 * Adds completed payments to the current window: one through the library, the others as copies of its records
 * with their own ids and times. The budget has the same version as if every payment had been completed. All
 * events are delivered and the quotes removed.
 */
export async function completePayments(payer: Payer, count: number): Promise<void> {
  const { wallet } = payer
  const { outgoingPayments } = wallet.resources
  const payment = await completedPayment(payer)
  const copies = Array.from({ length: count - 1 }, (_, i) => earlier(payment, (i + 1) * 20_000))
  for (let i = 0; i < copies.length; i += 1_000) {
    await create(wallet, 'outgoing-payment', copies.slice(i, i + 1_000))
  }
  const budget = (await load(wallet, 'budget', underGrant(payment).budgetId)) as Budget
  const times = (value: string) => String(BigInt(value) * BigInt(count))
  const spent = {
    debitAmount: { ...payment.debitAmount, value: times(payment.sent) },
    receiveAmount: { ...payment.receiveAmount, value: times(payment.delivered) },
  }
  const next = { ...budget, version: budget.version + count - 1, spent }
  await commit(wallet, [{ kind: 'budget', next, expectedVersion: budget.version }])

  const { result } = await outgoingPayments.list({ walletAddress: payer.walletAddress, first: 1 })
  const oldest = await load(wallet, 'outgoing-payment', result[0]?.paymentId ?? '')
  if (!isDeepStrictEqual(oldest, copies.at(-1))) throw new Error('a copied payment differs')
  const url = `${resourceServer}/outgoing-payment-grant`
  const { spentDebitAmount } = await send(wallet, 'GET', url, undefined, payer.token)
  if (spentDebitAmount?.value !== spent.debitAmount.value)
    throw new Error('the spent amount differs')
}

async function completedPayment(payer: Payer): Promise<OutgoingPayment> {
  const { outgoingPayments } = payer.wallet.resources
  const [request] = await paymentRequests(payer, 1)
  if (request === undefined) throw new Error('the request is missing')
  const paymentId = idOf(JSON.parse(await pay(payer.wallet, request)).id)
  await outgoingPayments.begin(paymentId)
  const amount = usd('2500')
  const totals = { sentAmount: amount, deliveredAmount: amount }
  const completed = await outgoingPayments.reportSent(paymentId, totals)
  if (!completed.ok) throw new Error(completed.reason)
  return (await load(payer.wallet, 'outgoing-payment', paymentId)) as OutgoingPayment
}

/** Returns the same payment with a new id at an earlier time. */
function earlier(payment: OutgoingPayment, byMs: number): OutgoingPayment {
  const {
    createdAt,
    updatedAt,
    holdUntil,
    endedAt = 0,
    dueAt = 0,
    retainUntil = 0,
    lists = [],
  } = payment
  const id = newId(payment)
  return {
    ...payment,
    id,
    quoteId: publicIdOf(id),
    createdAt: createdAt - byMs,
    updatedAt: updatedAt - byMs,
    holdUntil: holdUntil - byMs,
    endedAt: endedAt - byMs,
    dueAt: dueAt - byMs,
    retainUntil: retainUntil - byMs,
    lists: lists.map(({ list: wanted, at }) => ({ list: wanted, at: at - byMs })),
  }
}

/** Sends a signed request and parses the response. */
async function send(
  { auth, resources, key }: BenchWallet,
  method: string,
  url: string,
  content: object | undefined,
  token?: string,
) {
  const body = content && JSON.stringify(content)
  const authorized = token === undefined ? {} : { token }
  const request = await signed(key, { method, url, ...authorized, ...(body && { body }) })
  const { handle } = url.startsWith(resourceServer) ? resources : auth
  const response = await handle(request)
  if (response.status >= 300) throw new Error(response.body)
  return JSON.parse(response.body ?? '')
}

type Kind = Parameters<BenchWallet['store']['load']>[0][number]['kind']
type Changes = Parameters<BenchWallet['store']['commit']>[0]['changes']

/** What the store has in front of the public ids of payments and quotes. */
const namespace = createHash('sha256').update(resourceServer).digest('base64url').slice(0, 8)

async function load({ store }: BenchWallet, kind: Kind, id: string): Promise<Stored> {
  const ids = kind === 'quote' || kind === 'outgoing-payment' ? [namespace + id, id] : [id]
  const records = await store.load(ids.map((each) => ({ kind, id: each })))
  const record = records.find((each) => each !== undefined)
  if (record === undefined) throw new Error(`no ${kind} has this id`)
  return record
}

function create(wallet: BenchWallet, kind: Kind, records: readonly Stored[]): Promise<void> {
  return commit(
    wallet,
    records.map((next) => ({ kind, next, expectedVersion: 0 })),
  )
}

async function commit({ store }: BenchWallet, changes: Changes): Promise<void> {
  if (!(await store.commit({ changes, guards: [] }))) throw new Error('the commit failed')
}

/** Returns a stored id in the library's format, with the namespace of another record. */
function newId({ id }: Stored): string {
  const uuid = randomUUID()
  return id.slice(0, 8) + (id.length === 8 + uuid.length ? uuid : uuid.slice(-(id.length - 8)))
}

/** Returns a stored id without the namespace. */
function publicIdOf(id: string): string {
  return id.slice(8)
}

function idOf(url: string): string {
  return url.slice(url.lastIndexOf('/') + 1)
}

function usd(value: string): Amount {
  return { value, assetCode: 'USD', assetScale: 2 }
}
