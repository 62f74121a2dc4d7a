import type {
  Address,
  FoundDocument,
  FoundPayment,
  Payment,
  Quote,
  Refused,
} from 'open-payments-client'
import { joined, pick, UsageError } from 'open-payments-programs'
import type { AccessItem, Amount } from 'open-payments-server'
import { type KeptGrant, keptGrants } from './files.js'
import {
  type ConsentOptions,
  obtainGrant,
  openForOwner,
  readAddress,
  rotation,
  underGrant,
} from './grants.js'
import { amountIn, amountOf, money, reaches } from './money.js'
import { ClientError, redacted, type Wire } from './wire.js'

export interface PayOptions extends ConsentOptions {
  readonly from: string
  /** A wallet address or an incoming payment. Not needed for a quote. */
  readonly receiver: string | undefined
  /** A quote that exists. */
  readonly quote: string | undefined
  readonly amount: string | undefined
  readonly receive: string | undefined
  readonly description: string | undefined
  /** Whether to pay without asking. */
  readonly isConfirmed: boolean
  /** How long the wallet may take to send the payment. */
  readonly sentWithinMs: number
}

/** The result of a command: for people, and for programs. */
export interface Outcome {
  readonly text: string
  readonly json: object
}

/** Pays from an account, and follows the payment until it is sent. */
export async function pay(wire: Wire, options: PayOptions): Promise<Outcome> {
  const payer = await readAddress(wire, options.from)
  const quote = await quoted(wire, payer, options)
  const { debitAmount, receiveAmount, receiver } = quote
  wire.exists.set('quote', unpaid(quote, payer))
  wire.say(`${money(debitAmount)} is debited from ${payer.id}`)
  wire.say(`${money(receiveAmount)} is received at ${receiver}`)
  if (!options.isConfirmed && (await wire.machine.ask?.('Pay this?')) !== true) {
    throw wire.machine.interrupted.aborted
      ? new ClientError(130, 'confirmation', 'interrupted')
      : new ClientError(1, 'confirmation', 'not confirmed, so nothing is paid')
  }

  const { payment, grant } = await created(wire, payer, quote, options)
  const { id } = payment
  wire.exists.delete('quote')
  wire.exists.set(
    'payment',
    `the outgoing payment ${id}, which the wallet sends. To see it: read ${id}`,
  )
  const done = await sent(wire, grant, id, quote, options.sentWithinMs)
  wire.say(`${money(done.sentAmount)} is sent`)
  return { text: id, json: { payment: done, quote, grant: grant.id } }
}

function unpaid(quote: Quote, payer: Address): string {
  return `the quote ${quote.id}, with no payment. ${toResume(quote, payer)}`
}

/** The codes of a wallet that has decided about a payment: a repeat is refused in the same way. */
const finalCodes = [
  'payment_denied',
  'insufficient_funds',
  'confirmation_declined',
  'confirmation_expired',
  'grant_ended',
]

/** A repeat gets the payment of the quote, if there is one, so it never pays twice. */
function toResume({ id }: Quote, payer: Address): string {
  return `To finish: pay --quote ${id} --from ${payer.id}`
}

async function quoted(wire: Wire, payer: Address, options: PayOptions): Promise<Quote> {
  const { quote: existing } = options
  if (existing !== undefined) {
    const found = await wire.demand('quote', (client, given) =>
      client.getQuote(payer, existing, given),
    )
    return found.quote
  }
  const asked = { walletAddress: payer, ...(await asking(wire, payer, options)) }
  const found = await wire.demand('quote', (client, given) => client.createQuote(asked, given))
  return found.quote
}

interface Asked {
  readonly receiver: string
  readonly debitAmount?: Amount
  readonly receiveAmount?: Amount
}

/** Returns what is to be quoted. Creates the incoming payment, if the receiver is a wallet address. */
async function asking(wire: Wire, payer: Address, options: PayOptions): Promise<Asked> {
  const { receiver = '', amount, receive, description } = options
  const debitAmount = amount === undefined ? undefined : amountOf(amount, payer.asset, '--amount')
  const debit = debitAmount === undefined ? {} : { debitAmount }
  const payee = await payeeAt(wire, receiver)
  if (payee === undefined) {
    if (receive === undefined) return { receiver, ...debit }
    const { receivedAmount } = await wire.demand('receiver', (client, given) =>
      client.publicReceiverOf(receiver, given),
    )
    if (receivedAmount === undefined) {
      throw new ClientError(1, 'receiver', `${receiver} does not tell its asset`, {
        hint: 'Use --amount.',
      })
    }
    return { receiver, ...debit, receiveAmount: amountOf(receive, receivedAmount, '--receive') }
  }
  const incomingAmount =
    receive === undefined ? undefined : amountOf(receive, payee.asset, '--receive')
  if ((debitAmount ?? incomingAmount) === undefined) {
    throw new UsageError(`--amount or --receive is required, because ${receiver} is an account`)
  }
  const expiresInMs = incomingLifetimeMs
  const { url } = await createIncoming(wire, payee, { incomingAmount, description, expiresInMs })
  return { receiver: url, ...debit }
}

/** Reads a receiver if it is a wallet address. Resolves to `undefined` for another document. */
async function payeeAt(wire: Wire, receiver: string): Promise<Address | undefined> {
  const found = await wire.call('receiver', (client, given) => client.addressOf(receiver, given))
  if (found.ok) return found.address
  if (found.refusal !== 'response_invalid') throw wire.refused('receiver', found)
  const view = await wire.call('receiver', (client, given) =>
    client.publicReceiverOf(receiver, given),
  )
  if (view.ok) return undefined
  throw wire.refused('receiver', found)
}

/** The lifetime of an incoming payment that `pay` creates for itself. */
const incomingLifetimeMs = 24 * 60 * 60 * 1_000

interface Incoming {
  readonly incomingAmount: Amount | undefined
  readonly description: string | undefined
  readonly expiresInMs: number
}

async function createIncoming(wire: Wire, payee: Address, incoming: Incoming) {
  const { incomingAmount, description, expiresInMs } = incoming
  const request = {
    ...{ walletAddress: payee, expiresAt: Date.now() + expiresInMs },
    ...(incomingAmount !== undefined && { incomingAmount }),
    ...(description !== undefined && { metadata: { description } }),
  }
  const created = await wire.demand('incoming payment', (client, given) =>
    client.createReceiver(request, given),
  )
  wire.exists.set('incoming payment', `the incoming payment ${created.url}`)
  return created
}

/** Creates the outgoing payment of a quote with a kept grant that covers it, or with a new one. */
async function created(
  wire: Wire,
  payer: Address,
  quote: Quote,
  options: PayOptions,
): Promise<{ readonly payment: Payment; readonly grant: KeptGrant }> {
  for (const grant of keptGrants(wire.key).filter((each) => covers(each, payer.id, quote))) {
    const payment = await createdWith(wire, payer, quote, options, grant)
    if (!(payment instanceof ClientError)) return { payment, grant }
    const code = payment.more.refusal?.answer?.code
    const isGrants = payment.step === rotation || code === 'insufficient_grant'
    if (!isGrants || grant.quote !== undefined) throw payment
    wire.say(`The kept grant ${grant.id} does not permit this payment: ${payment.message}`)
  }
  const { debitAmount, receiver } = quote
  const limits = { receiver, debitAmount }
  const access: readonly AccessItem[] = [
    { type: 'outgoing-payment', actions: ['create', 'read'], identifier: payer.id, limits },
  ]
  const grant = await obtainGrant(wire, payer, access, options, quote.id)
  const payment = await createdWith(wire, payer, quote, options, grant)
  if (payment instanceof ClientError) throw payment
  return { payment, grant }
}

const outgoing = 'outgoing payment'

/** Creates the payment of a quote, once, however often. Resolves to why there is none. */
async function createdWith(
  wire: Wire,
  payer: Address,
  quote: Quote,
  options: PayOptions,
  grant: KeptGrant,
): Promise<Payment | ClientError> {
  const { id } = quote
  const { description } = options
  const metadata = description === undefined ? {} : { metadata: { description } }
  const create = (isQuiet: boolean) =>
    underGrant(
      wire,
      grant,
      outgoing,
      (client, current, given) =>
        client.createPayment(
          { ...{ walletAddress: payer, quote: id, grant: current }, ...metadata },
          given,
        ),
      { isQuiet },
    )
  wire.exists.set('quote', `the quote ${id}, whose payment may exist. ${toResume(quote, payer)}`)
  try {
    const first = await create(false)
    const isWaiting = !first.ok && first.refusal === 'confirmation_required'
    const result = isWaiting ? await confirmed(wire, first.url, () => create(true), options) : first
    if (result.ok) return result.payment
    if (finalCodes.includes(result.answer?.code ?? '')) {
      wire.exists.set('quote', `the quote ${id}, whose payment was refused for good`)
    } else if (result.refusal !== 'outcome_unknown') wire.exists.set('quote', unpaid(quote, payer))
    return wire.refused(outgoing, result)
  } catch (error) {
    if (!(error instanceof ClientError) || error.step !== rotation) throw error
    wire.exists.set('quote', unpaid(quote, payer))
    return error
  }
}

/** Opens the page on which the owner confirms a payment, and repeats the call until the owner has decided. */
async function confirmed(
  wire: Wire,
  page: string,
  repeat: () => Promise<FoundPayment>,
  { opensBrowser, waitMs }: ConsentOptions,
): Promise<FoundPayment> {
  wire.say('The owner of the account must confirm this payment.')
  openForOwner(wire, page, opensBrowser)
  const deadline = Date.now() + waitMs
  for (let pauseMs = firstPollMs; ; pauseMs = Math.min(pauseMs * 2, lastPollMs)) {
    await wire.pause(Math.min(pauseMs, Math.max(deadline - Date.now(), 0)))
    const result = await repeat()
    if (result.ok || result.refusal !== 'confirmation_required') return result
    if (Date.now() < deadline) continue
    const { until } = result
    const message = `the owner did not confirm the payment within ${Math.round(waitMs / 1_000)} s`
    const hint =
      until === undefined
        ? undefined
        : `The owner can confirm it until ${new Date(until).toISOString()}.`
    throw new ClientError(3, outgoing, message, { refusal: result, hint })
  }
}

/** Whether the access of a kept grant allows a quote. Only the server can tell whether the limit is already spent. */
function covers(
  { access, walletAddress, quote: only }: KeptGrant,
  from: string,
  quote: Quote,
): boolean {
  if (walletAddress !== from) return false
  if (only !== undefined) return only === quote.id
  return access.some((item) => {
    const { type } = item
    const identifier = pick(item, 'identifier') ?? from
    const debit = pick(item, 'limits', 'debitAmount')
    const receive = pick(item, 'limits', 'receiveAmount')
    const receiver = pick(item, 'limits', 'receiver')
    return (
      type === 'outgoing-payment' &&
      identifier === from &&
      permits(item, 'create') &&
      permits(item, 'read') &&
      (debit === undefined || reaches(debit as Amount, quote.debitAmount)) &&
      (receive === undefined || reaches(receive as Amount, quote.receiveAmount)) &&
      (receiver === undefined || receiver === quote.receiver)
    )
  })
}

function permits(item: object, action: string): boolean {
  const actions = pick(item, 'actions')
  return (
    Array.isArray(actions) && actions.some((each) => each === action || each === `${action}-all`)
  )
}

const firstPollMs = 250
const lastPollMs = 5_000

/** Reads a payment until it is sent, and returns it. */
async function sent(
  wire: Wire,
  grant: KeptGrant,
  url: string,
  quote: Quote,
  waitMs: number,
): Promise<Payment> {
  const deadline = Date.now() + waitMs
  let shown = '0'
  for (let pauseMs = firstPollMs; ; pauseMs = Math.min(pauseMs * 2, lastPollMs)) {
    const found = await underGrant(
      wire,
      grant,
      outgoing,
      (client, current, given) => client.getPayment(current, url, given),
      { repeats: true, isQuiet: pauseMs > firstPollMs },
    )
    if (!found.ok) throw wire.refused(outgoing, found)
    const { payment } = found
    const { sentAmount: amount, failed } = payment
    if (failed) {
      wire.exists.set('payment', `the outgoing payment ${url}, which failed`)
      throw new ClientError(1, outgoing, `the payment failed; ${money(amount)} was sent`)
    }
    if (reaches(amount, quote.debitAmount)) return payment
    const isChanging = amount.value === '0' || amount.value !== shown
    // The receiver may have everything before the sender has counted everything, or for less than the debit amount.
    if (!isChanging && (await received(wire, quote))) return payment
    if (amount.value !== shown) wire.say(`${money(amount)} of ${money(quote.debitAmount)} is sent`)
    shown = amount.value
    if (Date.now() >= deadline) {
      const message = `the wallet has sent ${money(amount)} of ${money(quote.debitAmount)} by now`
      throw new ClientError(3, outgoing, message)
    }
    await wire.pause(pauseMs)
  }
}

/** Whether the receiver got it: some wallets do not count their fees as sent. */
async function received(wire: Wire, { receiver, receiveAmount }: Quote): Promise<boolean> {
  const view = await wire.call(
    'receiver',
    (client, given) => client.publicReceiverOf(receiver, given),
    { repeats: true, isQuiet: true },
  )
  return view.ok && view.receivedAmount !== undefined && reaches(view.receivedAmount, receiveAmount)
}

export interface RequestOptions {
  readonly walletAddress: string
  readonly amount: string | undefined
  readonly description: string | undefined
  readonly expiresInMs: number
  /** How long to follow the payment, if at all. */
  readonly watchMs: number | undefined
}

/** Creates an incoming payment. */
export async function requestMoney(wire: Wire, options: RequestOptions): Promise<Outcome> {
  const { walletAddress, amount, description, expiresInMs, watchMs } = options
  const payee = await readAddress(wire, walletAddress)
  const incomingAmount =
    amount === undefined ? undefined : amountOf(amount, payee.asset, '--amount')
  const { url, receiver } = await createIncoming(wire, payee, {
    ...{ incomingAmount, description, expiresInMs },
  })
  if (watchMs === undefined)
    return { text: url, json: { incomingPayment: { id: url, ...receiver } } }
  wire.say(`To pay it: pay ${url} --from <wallet address>`)
  return { text: url, json: { incomingPayment: await watched(wire, payee, url, watchMs) } }
}

/** Follows an incoming payment until it is completed, and returns it. */
async function watched(
  wire: Wire,
  { authServer }: Address,
  url: string,
  watchMs: number,
): Promise<unknown> {
  const access = { authServer, type: 'incoming-payment', actions: ['read'] } as const
  const deadline = Date.now() + watchMs
  let shown = '0'
  for (let pauseMs = firstPollMs; ; pauseMs = Math.min(pauseMs * 2, lastPollMs)) {
    const { document } = await wire.demand(
      'incoming payment',
      (client, given) => client.read(url, { ...given, access }),
      { repeats: true, isQuiet: true },
    )
    const amount = amountIn(document, 'receivedAmount')
    if (amount.value !== shown) wire.say(`${money(amount)} is received`)
    shown = amount.value
    if (pick(document, 'completed') === true) return document
    const expiresAt = Date.parse(String(pick(document, 'expiresAt')))
    if (Date.now() >= Math.min(deadline, expiresAt || deadline)) {
      throw new ClientError(3, 'incoming payment', 'the incoming payment is not completed')
    }
    await wire.pause(pauseMs)
  }
}

const kinds: ReadonlyMap<string, 'incoming-payment' | 'quote' | 'outgoing-payment'> = new Map([
  ['incoming-payments', 'incoming-payment'],
  ['quotes', 'quote'],
  ['outgoing-payments', 'outgoing-payment'],
] as const)

/** Reads a wallet address, an incoming payment, a quote or an outgoing payment. */
export async function readResource(wire: Wire, url: string): Promise<Outcome> {
  const open = await wire.call('read', (client, given) => client.read(url, given))
  if (!open.ok && open.answer?.status !== 401) throw wire.refused('read', open)
  const type = kinds.get(new URL(url).pathname.split('/').at(-2) ?? '')
  if (type === 'outgoing-payment') return shown(await readOutgoing(wire, url))
  const authServer = open.ok ? pick(open.document, 'authServer') : serverIn(wire)
  if (type === undefined || typeof authServer !== 'string') {
    if (open.ok) return shown(open)
    throw wire.refused('read', open)
  }
  const actions = [type === 'incoming-payment' ? 'read-all' : 'read']
  const access = { authServer, type, actions }
  return shown(await wire.demand('read', (client, given) => client.read(url, { ...given, access })))
}

/** The authorization server that the last response names (RFC 9635 section 9.1). */
function serverIn(wire: Wire): string | undefined {
  const challenge = wire.lastHeaders()['www-authenticate'] ?? ''
  return /as_uri="?([^\s",;]{1,2000})/.exec(challenge)?.[1]
}

async function readOutgoing(wire: Wire, url: string) {
  const grant = keptGrants(wire.key).find(
    ({ access, resourceServer }) =>
      url.startsWith(joined(resourceServer, '/')) &&
      access.some((item) => item.type === 'outgoing-payment' && permits(item, 'read')),
  )
  if (grant === undefined) throw noGrant('read')
  return readUnder(wire, grant, 'read', url)
}

async function readUnder(wire: Wire, grant: KeptGrant, step: string, url: string) {
  const found = await underGrant(wire, grant, step, (client, current, given) =>
    client.read(url, { ...given, access: { grant: current } }),
  )
  if (found.ok) return found
  throw wire.refused(step, found)
}

function noGrant(action: string): ClientError {
  return new ClientError(1, action, `no kept grant permits to ${action} outgoing payments here`, {
    hint: 'Get one with `grant <wallet address> --access outgoing-payment`.',
  })
}

export interface ListOptions {
  readonly walletAddress: string
  readonly type: 'incoming-payment' | 'outgoing-payment'
  readonly first: number
  readonly cursor: string | undefined
}

/** Lists the payments of an account that this client created. */
export async function listPayments(wire: Wire, options: ListOptions): Promise<Outcome> {
  const { type, first, cursor } = options
  const { id, authServer, resourceServer } = await readAddress(wire, options.walletAddress)
  const query = new URLSearchParams({
    'wallet-address': id,
    first: `${first}`,
    ...(cursor !== undefined && { cursor }),
  })
  const url = `${joined(resourceServer, `/${type}s`)}?${query}`
  if (type === 'incoming-payment') {
    const access = { authServer, type, actions: ['list'] }
    return listed(
      await wire.demand('list', (client, given) => client.read(url, { ...given, access })),
    )
  }
  const grant = keptGrants(wire.key).find(
    (each) =>
      each.walletAddress === id &&
      each.access.some((item) => item.type === type && permits(item, 'list')),
  )
  if (grant === undefined) throw noGrant('list')
  return listed(await readUnder(wire, grant, 'list', url))
}

type Document = Exclude<FoundDocument, Refused>

function listed({ document }: Document): Outcome {
  const result = pick(document, 'result')
  const lines = (Array.isArray(result) ? result : []).map((each: unknown) => {
    const name = pick(each, 'sentAmount') === undefined ? 'receivedAmount' : 'sentAmount'
    const goal = ['incomingAmount', 'debitAmount'].find(
      (member) => pick(each, member) !== undefined,
    )
    const state =
      pick(each, 'failed') === true ? 'failed' : pick(each, 'completed') === true ? 'completed' : ''
    const amounts = [amountIn(each, name), ...(goal === undefined ? [] : [amountIn(each, goal)])]
    return `${String(pick(each, 'id'))}  ${amounts.map(money).join(' of ')}  ${state}`.trimEnd()
  })
  return { text: lines.join('\n'), json: document as object }
}

function shown({ document }: Document): Outcome {
  return { text: JSON.stringify(redacted(document), undefined, 2), json: document as object }
}
