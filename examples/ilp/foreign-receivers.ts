import type { AuthenticatedClient, OpenPaymentsClientError } from '@interledger/open-payments'
import type { GuardedFetch } from 'open-payments-server'
import { type FoundReceiver, noReceiver, type Receivers, receiverFrom } from './receivers.js'

/** A client that signs what it sends, such as `guardedClient`, and rejects with an `OpenPaymentsClientError`. */
export interface ReceiverClient {
  readonly grant: Pick<AuthenticatedClient['grant'], 'request'>
  readonly incomingPayment: Pick<AuthenticatedClient['incomingPayment'], 'get'>
}

export interface ForeignReceiversOptions {
  /** The origin of this wallet, which this module never fetches. */
  readonly baseUrl: string
  readonly fetch: GuardedFetch
  /** Creates the client when the first receiver is read, because it compiles the schemas of all responses. */
  readonly openClient: () => Promise<ReceiverClient>
  /** The time limit for one receiver in milliseconds, for all requests together. */
  readonly deadlineMs: number
  /** The time by which receivers expire. Default: `Date.now`. */
  readonly now?: () => number
}

/** The maximum number of concurrent reads. */
const readsMax = 32

/**
 * Reads receivers in other wallets, in three steps: the public view of the incoming payment names its
 * authorization server; that server grants `read-all` without consent; the payment is read with the token,
 * and says how it can be paid.
 *
 * The URL comes from an untrusted client, and the authorization server's URL from an untrusted server: all
 * requests go through `fetch`, which limits the addresses, the time and the size of each. Rejects if too many
 * reads are running.
 */
export function foreignReceivers({
  baseUrl,
  fetch,
  openClient,
  deadlineMs,
  now = () => Date.now(),
}: ForeignReceiversOptions): Receivers {
  const tokens = tokenCache(async (authServer) => requestToken(await client(), authServer))
  let opening: Promise<ReceiverClient> | undefined
  let reads = 0

  function client(): Promise<ReceiverClient> {
    opening ??= openClient().catch((error) => {
      opening = undefined
      throw error
    })
    return opening
  }

  async function read(url: string, { incomingPayment }: ReceiverClient): Promise<FoundReceiver> {
    const { origin } = new URL(url)
    const authServer = await authServerOf(new URL(url), fetch)
    const payment = await tokens.use(authServer, origin, (accessToken) =>
      incomingPayment.get({ url, accessToken }),
    )
    const found = receiverOf(url, payment, now())
    if (!found.ok) return found
    const walletAddress = await ownerOf(url, payment.walletAddress, fetch)
    return walletAddress === undefined
      ? found
      : { ...found, receiver: { ...found.receiver, walletAddress } }
  }

  return async (url) => {
    if (!URL.canParse(url) || new URL(url).origin === new URL(baseUrl).origin) {
      return noReceiver('the incoming payment does not exist')
    }
    const opened = await client()
    if (reads >= readsMax) throw new Error('too many receivers are being read at the same time')
    reads += 1
    return within(deadlineMs, read(url, opened).catch(failedRead)).finally(() => {
      reads -= 1
    })
  }
}

/** Resolves within the deadline. A late read continues unobserved until the limits of `fetch` end it. */
async function within(deadlineMs: number, reading: Promise<FoundReceiver>): Promise<FoundReceiver> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<FoundReceiver>((resolve) => {
    const reason = `the other wallet did not respond within ${deadlineMs} ms`
    timer = setTimeout(
      () => resolve({ ...noReceiver(unreachable, reason), temporary: true }),
      deadlineMs,
    )
  })
  return Promise.race([reading, late]).finally(() => clearTimeout(timer))
}

/** @see Open Payments OpenAPI, schema `public-incoming-payment` */
async function authServerOf(url: URL, fetch: GuardedFetch): Promise<string> {
  const { status, body } = await fetch(url)
  if (status !== 200) throw unreadable(`the receiver responded with status ${status}`, status)
  let view: unknown
  try {
    view = JSON.parse(new TextDecoder().decode(body))
  } catch {
    throw unreadable('the receiver did not respond with JSON', status)
  }
  const { authServer } = (view ?? {}) as { readonly authServer?: unknown }
  if (typeof authServer !== 'string' || !URL.canParse(authServer)) {
    throw unreadable('the receiver names no authorization server', status)
  }
  return authServer
}

type Payment = Awaited<ReturnType<ReceiverClient['incomingPayment']['get']>>

/** Converts a payment that the client has validated against the OpenAPI document, except for formats. */
function receiverOf(url: string, payment: Payment, now: number): FoundReceiver {
  const { id, completed, incomingAmount, receivedAmount, expiresAt, methods } = payment
  if (id !== url) return noReceiver('the receiver returned another incoming payment')
  const expiry = expiresAt === undefined ? undefined : Date.parse(expiresAt)
  if (Number.isNaN(expiry)) return noReceiver('the receiver has an invalid expiresAt')
  const terms = {
    completed,
    receivedAmount,
    ...(incomingAmount && { incomingAmount }),
    ...(expiry !== undefined && { expiresAt: expiry }),
  }
  const found = receiverFrom(terms, now)
  if (!found.ok) return found
  const ilp = methods.find(({ type }) => type === 'ilp')
  if (ilp === undefined) return noReceiver('the receiver cannot be paid over Interledger')
  const { ilpAddress, sharedSecret } = ilp
  return { ok: true, receiver: { ...found.receiver, ilp: { ilpAddress, sharedSecret } } }
}

/**
 * Returns the wallet address of a payment if its own document names the resource server of the payment. Otherwise, the
 * server at the receiver's URL, which the client chose, could name any wallet address, such as one that the owner of
 * the paying account permits.
 */
async function ownerOf(
  url: string,
  claimed: string,
  fetch: GuardedFetch,
): Promise<string | undefined> {
  try {
    const { status, body } = await fetch(new URL(claimed))
    const { id, resourceServer } = JSON.parse(new TextDecoder().decode(body))
    const isOwner =
      status === 200 &&
      id === claimed &&
      typeof resourceServer === 'string' &&
      url.startsWith(`${resourceServer.replace(/\/$/, '')}/incoming-payments/`)
    return isOwner ? claimed : undefined
  } catch {
    return undefined
  }
}

interface Token {
  readonly value: string
  /** Milliseconds since 1970. */
  usableUntil: number
  /** Whether the wallet that has the receivers has accepted it. */
  accepted: boolean
}

const tokensMax = 1_000
const tokenAgeMaxMs = 600_000
const tokenMarginMs = 30_000
/** How long a wallet that refuses a new token waits for another. */
const refusedTokenMs = 30_000

async function requestToken({ grant }: ReceiverClient, authServer: string): Promise<Token> {
  const answer = await grant.request(
    { url: authServer },
    { access_token: { access: [{ type: 'incoming-payment', actions: ['read-all'] }] } },
  )
  if (!('access_token' in answer)) {
    throw unreadable('the other wallet requires consent to read an incoming payment', 403)
  }
  const { value, expires_in } = answer.access_token
  const ageMs = Math.min((expires_in ?? tokenAgeMaxMs / 1_000) * 1_000, tokenAgeMaxMs)
  return { value, usableUntil: Date.now() + ageMs - tokenMarginMs, accepted: false }
}

/**
 * Keeps one token for each authorization server and origin of receivers, with one request for it at a time. A hostile
 * wallet can name the authorization server of another: it gets a token of its own, and its refusals cost only this one.
 */
function tokenCache(request: (authServer: string) => Promise<Token>) {
  const kept = new Map<string, Promise<Token>>()

  function keep(holder: string, authServer: string): Promise<Token> {
    const requested = request(authServer)
    requested.catch(() => kept.delete(holder))
    kept.set(holder, requested)
    const [oldest] = kept.keys()
    if (kept.size > tokensMax && oldest !== undefined) kept.delete(oldest)
    return requested
  }

  async function get(authServer: string, origin: string): Promise<Token> {
    const holder = `${origin} ${authServer}`
    const token = await kept.get(holder)
    if (token !== undefined && Date.now() < token.usableUntil) return token
    return keep(holder, authServer)
  }

  /** Sends a request with the token. If a token that worked before is refused, requests another and sends it again. */
  async function use<Answer>(
    authServer: string,
    origin: string,
    send: (accessToken: string) => Promise<Answer>,
  ): Promise<Answer> {
    const token = await get(authServer, origin)
    try {
      const answer = await send(token.value)
      token.accepted = true
      return answer
    } catch (error) {
      if (!isUnauthorized(error)) throw error
      const usableMs = token.accepted ? 0 : refusedTokenMs
      token.usableUntil = Math.min(token.usableUntil, Date.now() + usableMs)
      if (!token.accepted) throw error
      return use(authServer, origin, send)
    }
  }
  return { use }
}

/** An error for a response that makes the receiver unreadable, with its status. */
function unreadable(message: string, status: number): Error {
  return Object.assign(new Error(message), { status })
}

function isUnauthorized(error: unknown): boolean {
  const { status } = error as Partial<OpenPaymentsClientError>
  return status === 401 || status === 403
}

/**
 * Decides whether a retry may help: not after a refusal of the guard, a client error or an invalid response.
 * The client reports a refusal of the guard as a broken connection.
 */
function failedRead(error: unknown): FoundReceiver {
  const { message, description, status, validationErrors, code } =
    error as Partial<OpenPaymentsClientError>
  const reason = [message, description, ...(validationErrors ?? [])].filter(Boolean).join(': ')
  const lasting =
    code === 'ERR_FETCH_REFUSED' ||
    validationErrors !== undefined ||
    (status !== undefined && status < 500 && status !== 408 && status !== 429)
  // The app must not learn from which private network or host there was no answer.
  const publicReason =
    status === 404
      ? 'the incoming payment does not exist'
      : validationErrors !== undefined || status === 200
        ? 'its server did not respond with an incoming payment'
        : unreachable
  const failed = noReceiver(publicReason, reason)
  return lasting ? failed : { ...failed, temporary: true }
}

const unreachable = 'its server cannot be reached, or does not let this wallet read it'
