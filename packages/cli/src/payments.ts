import {
  joined,
  pick,
  readWallet,
  textAt,
  UsageError,
  type WireAnswer,
} from 'open-payments-programs'
import { type KeptGrant, keptGrants } from './files.js'
import {
  type Account,
  type ConsentOptions,
  latest,
  obtainGrant,
  openForOwner,
  readAccount,
  sendWith,
  simpleToken,
} from './grants.js'
import { type Amount, amountIn, amountOf, isSameAsset, money, reaches } from './money.js'
import { ownersPage, urlAtServer } from './urls.js'
import { ClientError, codeOf, redacted, refused, type Wire } from './wire.js'

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

interface Quote {
  readonly id: string
  readonly receiver: string
  readonly debitAmount: Amount
  readonly receiveAmount: Amount
  readonly body: unknown
}

/** Pays from an account, and follows the payment until it is sent. */
export async function pay(wire: Wire, options: PayOptions): Promise<Outcome> {
  const payer = await readAccount(wire, options.from)
  const quote = await quoted(wire, payer, options)
  const { debitAmount, receiveAmount, receiver } = quote
  wire.exists.set('quote', unpaid(quote, payer))
  wire.say(`${money(debitAmount)} is debited from ${payer.walletAddress}`)
  wire.say(`${money(receiveAmount)} is received at ${receiver}`)
  if (!options.isConfirmed && (await wire.machine.ask?.('Pay this?')) !== true) {
    throw wire.machine.interrupted.aborted
      ? new ClientError(130, 'confirmation', 'interrupted')
      : new ClientError(1, 'confirmation', 'not confirmed, so nothing is paid')
  }

  const { answer, grant } = await created(wire, payer, quote, options)
  const payment = urlAtServer(answer, payer.resourceServer, 'id')
  wire.exists.delete('quote')
  wire.exists.set(
    'payment',
    `the outgoing payment ${payment}, which the wallet sends. To see it: read ${payment}`,
  )
  const body = await sent(wire, grant, payment, quote, options.sentWithinMs)
  wire.say(`${money(amountIn(body, 'sentAmount'))} is sent`)
  return { text: payment, json: { payment: body, quote: quote.body, grant: grant.id } }
}

function unpaid(quote: Quote, payer: Account): string {
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
function toResume({ id }: Quote, { walletAddress }: Account): string {
  return `To finish: pay --quote ${id} --from ${walletAddress}`
}

async function quoted(wire: Wire, payer: Account, options: PayOptions): Promise<Quote> {
  const asked = options.quote === undefined ? await asking(wire, payer, options) : undefined
  const token = await simpleToken(wire, payer.authServer, 'quote', ['create', 'read'])
  const answer =
    asked === undefined
      ? await wire.send('quote', { method: 'GET', url: options.quote ?? '', token })
      : await wire.send(
          'quote',
          { method: 'POST', url: joined(payer.resourceServer, '/quotes'), token, body: asked },
          { statuses: [200, 201] },
        )
  const { body } = answer
  const quote = {
    id: textAt(answer, 'id'),
    receiver: textAt(answer, 'receiver'),
    debitAmount: amountIn(body, 'debitAmount'),
    receiveAmount: amountIn(body, 'receiveAmount'),
    body,
  }
  const wrong = differenceOf(quote, payer, asked)
  if (wrong !== undefined)
    throw new ClientError(1, 'quote', `the quote ${quote.id} ${wrong}`, { answer })
  return quote
}

/** Describes how a quote differs from what was requested. With `--yes`, nobody compares them before the payment. */
function differenceOf(
  { receiver, debitAmount }: Quote,
  { asset }: Account,
  asked: Asked | undefined,
): string | undefined {
  const most = asked?.debitAmount
  if (asked !== undefined && asked.receiver !== receiver)
    return `pays ${receiver}, not ${asked.receiver}`
  if (!isSameAsset(debitAmount, asset))
    return `debits ${money(debitAmount)}, which is not the asset of the account`
  if (most !== undefined && !reaches(most, debitAmount))
    return `debits ${money(debitAmount)}, more than ${money(most)}`
  return undefined
}

interface Asked {
  readonly walletAddress: string
  readonly method: string
  readonly receiver: string
  readonly debitAmount?: Amount
  readonly receiveAmount?: Amount
}

/** Returns the body of a request for a quote. Creates the incoming payment, if the receiver is a wallet address. */
async function asking(wire: Wire, payer: Account, options: PayOptions): Promise<Asked> {
  const { receiver = '', amount, receive } = options
  const debitAmount = amount === undefined ? undefined : amountOf(amount, payer.asset, '--amount')
  const found = await wire.send('receiver', { method: 'GET', url: receiver, sign: false })
  const isAccount = pick(found.body, 'resourceServer') !== undefined
  const payee = isAccount
    ? { ...(await readWallet(receiver, async () => found)), walletAddress: receiver }
    : undefined
  const receiveAmount =
    receive === undefined
      ? undefined
      : amountOf(receive, payee?.asset ?? amountIn(found.body, 'receivedAmount'), '--receive')
  if (isAccount && (debitAmount ?? receiveAmount) === undefined)
    throw new UsageError(`--amount or --receive is required, because ${receiver} is an account`)
  const common = {
    walletAddress: payer.walletAddress,
    method: 'ilp',
    ...(debitAmount !== undefined && { debitAmount }),
  }
  if (payee === undefined)
    return { ...common, receiver, ...(receiveAmount !== undefined && { receiveAmount }) }
  const { id } = await createIncoming(wire, payee, {
    ...(receiveAmount !== undefined && { incomingAmount: receiveAmount }),
    ...(options.description !== undefined && { metadata: { description: options.description } }),
    expiresAt: new Date(Date.now() + incomingLifetimeMs).toISOString(),
  })
  return { ...common, receiver: id }
}

/** The lifetime of an incoming payment that `pay` creates for itself. */
const incomingLifetimeMs = 24 * 60 * 60 * 1_000

async function createIncoming(wire: Wire, payee: Account, asked: object) {
  const token = await simpleToken(wire, payee.authServer, 'incoming-payment', ['create', 'read'])
  const url = joined(payee.resourceServer, '/incoming-payments')
  const body = { walletAddress: payee.walletAddress, ...asked }
  const answer = await wire.send(
    'incoming payment',
    { method: 'POST', url, token, body },
    { statuses: [200, 201] },
  )
  const id = urlAtServer(answer, payee.resourceServer, 'id')
  wire.exists.set('incoming payment', `the incoming payment ${id}`)
  return { id, token, answer }
}

/** Creates the outgoing payment of a quote with a kept grant that covers it, or with a new one. */
async function created(
  wire: Wire,
  payer: Account,
  quote: Quote,
  options: PayOptions,
): Promise<{ readonly answer: WireAnswer; readonly grant: KeptGrant }> {
  const { walletAddress } = payer
  const { description } = options
  const metadata = description !== undefined && { metadata: { description } }
  const body = { walletAddress, quoteId: quote.id, ...metadata }
  const request = { method: 'POST', url: joined(payer.resourceServer, '/outgoing-payments'), body }

  async function createWith(grant: KeptGrant): Promise<WireAnswer | undefined> {
    try {
      const { id } = quote
      wire.exists.set(
        'quote',
        `the quote ${id}, whose payment may exist. ${toResume(quote, payer)}`,
      )
      const send = (isQuiet = false) =>
        sendWith(wire, latest(wire.key, grant), 'outgoing payment', request, {
          repeats: true,
          isQuiet,
        })
      const first = await send()
      const answer = waitsForOwner(first)
        ? await confirmed(wire, first, () => send(true), options)
        : first
      if (answer.status === 201 || answer.status === 200) return answer
      if (finalCodes.includes(codeOf(answer) ?? ''))
        wire.exists.set('quote', `the quote ${id}, whose payment was refused for good`)
      else if (answer.status < 500) wire.exists.set('quote', unpaid(quote, payer))
      throw refused('outgoing payment', answer)
    } catch (error) {
      const isGrants =
        error instanceof ClientError &&
        error.answer !== undefined &&
        (error.step === 'rotate token' || codeOf(error.answer) === 'insufficient_grant')
      if (!isGrants || grant.quote !== undefined) throw error
      wire.say(`The kept grant ${grant.id} does not permit this payment: ${error.message}`)
      return undefined
    }
  }

  for (const grant of keptGrants(wire.key).filter((each) => covers(each, walletAddress, quote))) {
    const answer = await createWith(grant)
    if (answer !== undefined) return { answer, grant }
  }
  const { debitAmount, receiver } = quote
  const limits = { receiver, debitAmount }
  const access = [
    { type: 'outgoing-payment', actions: ['create', 'read'], identifier: walletAddress, limits },
  ]
  const grant = await obtainGrant(wire, payer, access, options, quote.id)
  const answer = await createWith(grant)
  return { answer: answer as WireAnswer, grant }
}

/** The code of a payment that waits until the owner of its account confirms it, at the page of `details.url`. */
const waitsForOwner = (answer: WireAnswer) => codeOf(answer) === 'confirmation_required'

/** Opens the page on which the owner confirms a payment, and repeats the request until the owner has decided. */
async function confirmed(
  wire: Wire,
  first: WireAnswer,
  repeat: () => Promise<WireAnswer>,
  { opensBrowser, waitMs }: ConsentOptions,
): Promise<WireAnswer> {
  wire.say('The owner of the account must confirm this payment.')
  openForOwner(wire, ownersPage(first, 'error', 'details', 'url'), opensBrowser)
  const deadline = Date.now() + waitMs
  for (let pauseMs = firstPollMs; ; pauseMs = Math.min(pauseMs * 2, lastPollMs)) {
    await wire.pause(Math.min(pauseMs, Math.max(deadline - Date.now(), 0)))
    const answer = await repeat()
    if (!waitsForOwner(answer)) return answer
    if (Date.now() < deadline) continue
    const until = pick(answer.body, 'error', 'details', 'until')
    const message = `the owner did not confirm the payment within ${Math.round(waitMs / 1_000)} s`
    const hint = typeof until === 'string' ? `The owner can confirm it until ${until}.` : undefined
    throw new ClientError(3, 'outgoing payment', message, { answer, hint })
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
    const { type, identifier = from } = item
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
): Promise<unknown> {
  const deadline = Date.now() + waitMs
  let shown = '0'
  for (let pauseMs = firstPollMs; ; pauseMs = Math.min(pauseMs * 2, lastPollMs)) {
    const polled = { repeats: true, isQuiet: pauseMs > firstPollMs }
    const answer = await sendWith(
      wire,
      latest(wire.key, grant),
      'outgoing payment',
      { method: 'GET', url },
      polled,
    )
    if (answer.status !== 200) throw refused('outgoing payment', answer)
    const amount = amountIn(answer.body, 'sentAmount')
    if (pick(answer.body, 'failed') === true) {
      wire.exists.set('payment', `the outgoing payment ${url}, which failed`)
      throw new ClientError(
        1,
        'outgoing payment',
        `the payment failed; ${money(amount)} was sent`,
        { answer },
      )
    }
    if (reaches(amount, quote.debitAmount)) return answer.body
    const isChanging = amount.value === '0' || amount.value !== shown
    // The receiver may have everything before the sender has counted everything, or for less than the debit amount.
    if (!isChanging && (await received(wire, quote))) return answer.body
    if (amount.value !== shown) wire.say(`${money(amount)} of ${money(quote.debitAmount)} is sent`)
    shown = amount.value
    if (Date.now() >= deadline) {
      throw new ClientError(
        3,
        'outgoing payment',
        `the wallet has sent ${money(amount)} of ${money(quote.debitAmount)} by now`,
        { answer },
      )
    }
    await wire.pause(pauseMs)
  }
}

/** Whether the receiver got it: some wallets do not count their fees as sent. */
async function received(wire: Wire, { receiver, receiveAmount }: Quote): Promise<boolean> {
  const request = { method: 'GET', url: receiver, sign: false } as const
  const answer = await wire.send('receiver', request, {
    statuses: 'any',
    repeats: true,
    isQuiet: true,
  })
  const amount = pick(answer.body, 'receivedAmount')
  return amount !== undefined && reaches(amountIn(answer.body, 'receivedAmount'), receiveAmount)
}

export interface RequestOptions {
  readonly walletAddress: string
  readonly amount: string | undefined
  readonly description: string | undefined
  readonly expiresInMs: number | undefined
  /** How long to follow the payment, if at all. */
  readonly watchMs: number | undefined
}

/** Creates an incoming payment. */
export async function requestMoney(wire: Wire, options: RequestOptions): Promise<Outcome> {
  const { walletAddress, amount, description, expiresInMs, watchMs } = options
  const payee = await readAccount(wire, walletAddress)
  const { id, token, answer } = await createIncoming(wire, payee, {
    ...(amount !== undefined && { incomingAmount: amountOf(amount, payee.asset, '--amount') }),
    ...(expiresInMs !== undefined && {
      expiresAt: new Date(Date.now() + expiresInMs).toISOString(),
    }),
    ...(description !== undefined && { metadata: { description } }),
  })
  if (watchMs === undefined) return { text: id, json: { incomingPayment: answer.body } }
  wire.say(`To pay it: pay ${id} --from <wallet address>`)
  return { text: id, json: { incomingPayment: await watched(wire, payee, id, token, watchMs) } }
}

/** Follows an incoming payment until it is completed, and returns it. */
async function watched(
  wire: Wire,
  payee: Account,
  url: string,
  first: string,
  watchMs: number,
): Promise<unknown> {
  const deadline = Date.now() + watchMs
  let token = first
  let shown = '0'
  for (let pauseMs = firstPollMs; ; pauseMs = Math.min(pauseMs * 2, lastPollMs)) {
    const answer = await wire.send(
      'incoming payment',
      { method: 'GET', url, token },
      { statuses: [200, 401], repeats: true, isQuiet: true },
    )
    if (answer.status === 401) {
      token = await simpleToken(wire, payee.authServer, 'incoming-payment', ['read'])
    } else {
      const amount = amountIn(answer.body, 'receivedAmount')
      if (amount.value !== shown) wire.say(`${money(amount)} is received`)
      shown = amount.value
      if (pick(answer.body, 'completed') === true) return answer.body
    }
    const expiresAt = Date.parse(String(pick(answer.body, 'expiresAt')))
    if (Date.now() >= Math.min(deadline, expiresAt || deadline)) {
      throw new ClientError(3, 'incoming payment', 'the incoming payment is not completed', {
        answer,
      })
    }
    await wire.pause(pauseMs)
  }
}

const kinds = new Map([
  ['incoming-payments', 'incoming-payment'],
  ['quotes', 'quote'],
  ['outgoing-payments', 'outgoing-payment'],
])

/** Reads a wallet address, an incoming payment, a quote or an outgoing payment. */
export async function readResource(wire: Wire, url: string): Promise<Outcome> {
  const open = await wire.send(
    'read',
    { method: 'GET', url, sign: false },
    { statuses: [200, 401] },
  )
  const type = kinds.get(new URL(url).pathname.split('/').at(-2) ?? '')
  if (type === undefined) return shown(open)
  const named =
    pick(open.body, 'authServer') ??
    /as_uri="?([^\s",;]{1,2000})/.exec(open.headers.get('www-authenticate') ?? '')?.[1]
  if (type === 'outgoing-payment') return shown(await readOutgoing(wire, url))
  if (typeof named !== 'string') return shown(open)
  const action = type === 'incoming-payment' ? 'read-all' : 'read'
  const token = await simpleToken(wire, named, type, [action])
  return shown(await wire.send('read', { method: 'GET', url, token }))
}

async function readOutgoing(wire: Wire, url: string): Promise<WireAnswer> {
  const grant = keptGrants(wire.key).find(
    ({ access, resourceServer }) =>
      url.startsWith(joined(resourceServer, '/')) &&
      access.some((item) => item['type'] === 'outgoing-payment' && permits(item, 'read')),
  )
  if (grant === undefined) throw noGrant('read')
  const answer = await sendWith(wire, grant, 'read', { method: 'GET', url })
  if (answer.status === 200) return answer
  throw refused('read', answer)
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
  const { walletAddress, type, first, cursor } = options
  const account = await readAccount(wire, walletAddress)
  const query = new URLSearchParams({
    'wallet-address': walletAddress,
    first: `${first}`,
    ...(cursor !== undefined && { cursor }),
  })
  const request = { method: 'GET', url: `${joined(account.resourceServer, `/${type}s`)}?${query}` }
  if (type === 'incoming-payment') {
    const token = await simpleToken(wire, account.authServer, type, ['list'])
    return listed(await wire.send('list', { ...request, token }))
  }
  const grant = keptGrants(wire.key).find(
    (each) =>
      each.walletAddress === walletAddress &&
      each.access.some((item) => item['type'] === type && permits(item, 'list')),
  )
  if (grant === undefined) throw noGrant('list')
  const answer = await sendWith(wire, grant, 'list', request)
  if (answer.status !== 200) throw refused('list', answer)
  return listed(answer)
}

function listed({ body }: WireAnswer): Outcome {
  const result = pick(body, 'result')
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
  return { text: lines.join('\n'), json: body as object }
}

function shown({ body }: WireAnswer): Outcome {
  return { text: JSON.stringify(redacted(body), undefined, 2), json: body as object }
}
