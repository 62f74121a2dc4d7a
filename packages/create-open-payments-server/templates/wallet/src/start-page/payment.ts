import { randomUUID } from 'node:crypto'
import { lookup } from 'node:dns/promises'
import { setTimeout as sleep } from 'node:timers/promises'
import {
  type Client,
  type ClientOptions,
  createClient,
  type IssuedGrant,
  type PendingGrant,
  type Refused,
  verifyFinish,
} from 'open-payments-client'
import { type Amount, guardedFetch } from 'open-payments-server'

/** A client instance: its wallet address, and the key that it publishes there. */
export type ClientInstance = Pick<ClientOptions, 'keyId' | 'privateKey'> & {
  readonly walletAddress: string
}

/** A payment between two wallet addresses. */
export interface Order {
  readonly from: string
  readonly to: string
  /** What arrives. */
  readonly amount: Amount
}

/** What has become of a payment. The wallet knows it by its quote, which is paid once, however often. */
export type Outcome =
  | { readonly status: 'paid' | 'denied' | 'declined' | 'unanswered' }
  | { readonly status: 'failed'; readonly reason: string }
  | OpenOutcome

/** What the next attempt can change. */
type OpenOutcome =
  /** The payment exists, and is not sent yet. */
  | { readonly status: 'pending' }
  /** It waits until the owner has answered at this URL. */
  | { readonly status: 'confirming'; readonly url: string; readonly until?: number }
  /** The wallet could not answer, or the owner has paused payments. */
  | { readonly status: 'delayed'; readonly reason: string }

/** The payments of a client, which the owner of the account approves on the consent page. */
export interface ClientPayments {
  /** Prepares a payment, and resolves to the URL of the consent page. Rejects if a server refuses it. */
  begin(order: Order): Promise<string>
  /** Pays after the owner has decided. Resolves to `undefined` if the redirect is not for a payment. */
  finish(query: URLSearchParams): Promise<Outcome | undefined>
  /**
   * Resolves to what has become of a payment, or to `undefined` if the owner has not decided. The next call attempts
   * an open one again.
   */
  outcomeOf(id: string): Promise<Outcome | undefined>
  /** Returns the latest payment that the next attempt can change. */
  latestOpen(): string | undefined
}

/** What the client remembers of a payment. */
interface Waiting {
  readonly from: string
  readonly quote: string
  readonly pending: PendingGrant
  /** Proves that the browser has returned from the owner's approval. */
  interactRef?: string
  /** A redirect has said that the owner denied. It has no hash, so anybody may have sent it. */
  isSaidDenied?: true
  /** An interaction reference gets the grant once. */
  grant?: IssuedGrant
  attempt?: Promise<Outcome>
  /** What the latest attempt has led to. */
  latest?: Outcome
}

const waitingMax = 100
const readsMax = 20
const pauseMs = 250
const receiverLifetimeMs = 24 * 60 * 60 * 1_000

/**
 * Pays as an app does: an incoming payment and a quote, so that the owner sees who gets how much; a grant for exactly
 * this payment; and the outgoing payment.
 *
 * @param finishUri where the consent page leads, to which `payment` is added.
 */
export function clientPayments(client: () => ClientInstance, finishUri: string): ClientPayments {
  const payments = new Map<string, Waiting>()
  const fetch = fetchAt(finishUri)
  const app = () => createClient({ ...client(), fetch })

  async function begin({ from, to, amount }: Order): Promise<string> {
    const paying = app()
    const expiresAt = Date.now() + receiverLifetimeMs
    const { url: receiver } = done(
      await paying.createReceiver({ walletAddress: to, incomingAmount: amount, expiresAt }),
    )
    const { quote } = done(await paying.createQuote({ walletAddress: from, receiver }))
    const id = randomUUID()
    const limits = { receiver, debitAmount: quote.debitAmount }
    const asked = await paying.requestGrant({
      walletAddress: from,
      access: [{ type: 'outgoing-payment', actions: ['create', 'read'], identifier: from, limits }],
      interact: { finishUri: `${finishUri}?payment=${id}` },
    })
    const state = done(asked)
    if (state.status === 'issued') throw new Error('the wallet did not ask for consent')
    const { pending } = state
    payments.set(id, { from, quote: quote.id, pending })
    for (const oldest of payments.keys()) {
      if (payments.size <= waitingMax) break
      payments.delete(oldest)
    }
    return pending.redirect ?? ''
  }

  async function finish(query: URLSearchParams): Promise<Outcome | undefined> {
    const waiting = payments.get(query.get('payment') ?? '')
    if (waiting === undefined) return undefined
    const verified = await verifyFinish(waiting.pending, query)
    if (verified.ok) waiting.interactRef ??= verified.interactRef
    else if (verified.refusal === 'consent_denied') waiting.isSaidDenied = true
    else return undefined
    return outcomeIn(waiting)
  }

  /** What a redirect with a hash has led to counts, before or after one that says that the owner denied. */
  async function outcomeIn(waiting: Waiting): Promise<Outcome | undefined> {
    const { interactRef, isSaidDenied } = waiting
    if (interactRef === undefined) return isSaidDenied && { status: 'denied' }
    waiting.attempt ??= attempt(app(), waiting, interactRef).catch(failed)
    waiting.latest = await waiting.attempt
    return waiting.latest
  }

  async function outcomeOf(id: string): Promise<Outcome | undefined> {
    const waiting = payments.get(id)
    if (waiting === undefined) return undefined
    const outcome = await outcomeIn(waiting)
    if (isOpen(waiting.latest)) delete waiting.attempt
    return outcome
  }

  function latestOpen(): string | undefined {
    const open = [...payments].filter(([, { latest }]) => isOpen(latest))
    return open.at(-1)?.[0]
  }

  return { begin, finish, outcomeOf, latestOpen }
}

function isOpen({ status }: Partial<Outcome> = {}): boolean {
  return status === 'pending' || status === 'confirming' || status === 'delayed'
}

async function attempt(app: Client, waiting: Waiting, interactRef: string): Promise<Outcome> {
  const { from: walletAddress, quote, pending } = waiting
  if (waiting.grant === undefined) {
    const issued = await app.continueGrant(pending, { interactRef })
    if (!issued.ok) return outcomeFor(issued)
    if (issued.status === 'pending') throw new Error('the wallet has not issued the access')
    waiting.grant = issued.grant
  }
  const pay = (grant: IssuedGrant) => app.createPayment({ walletAddress, grant, quote })
  let created = await pay(waiting.grant)
  if (!created.ok && created.refusal === 'unauthenticated') {
    // The token has expired while the owner made up their mind.
    const rotated = await app.rotateToken(waiting.grant)
    if (!rotated.ok) return outcomeFor(rotated)
    waiting.grant = rotated.grant
    created = await pay(waiting.grant)
  }
  if (!created.ok) return outcomeFor(created)
  const { id } = created.payment
  // Only the first page waits for a payment that takes long.
  const most = waiting.latest?.status === 'pending' ? 1 : readsMax
  for (let reads = 0; reads < most; reads += 1) {
    const found = await app.getPayment(waiting.grant, id)
    if (!found.ok) return outcomeFor(found)
    const { failed, sentAmount, debitAmount } = found.payment
    if (failed) return { status: 'failed', reason: 'The wallet could not send it.' }
    if (sentAmount.value === debitAmount.value) return { status: 'paid' }
    await sleep(pauseMs)
  }
  return { status: 'pending' }
}

/** Tells a payment that was refused for good from one for which the same request may succeed later. */
function outcomeFor(refused: Refused): Outcome {
  const { refusal, reason, isTemporary, answer } = refused
  if (refusal === 'confirmation_required') {
    const { url, until } = refused
    return { status: 'confirming', url, ...(until !== undefined && { until }) }
  }
  if (refusal === 'consent_denied') return { status: 'denied' }
  if (answer?.code === 'confirmation_declined') return { status: 'declined' }
  if (answer?.code === 'confirmation_expired') return { status: 'unanswered' }
  const mayRepeat = refusal === 'outcome_unknown' ? refused.repeat === 'same_quote' : isTemporary
  return { status: mayRepeat ? 'delayed' : 'failed', reason }
}

/** Sends requests to the own wallet, which may have a private address and a name in the hosts file. */
function fetchAt(url: string) {
  return guardedFetch({
    allowLoopback: true,
    privateHosts: [new URL(url).hostname],
    timeoutMs: 10_000,
    async resolve(name) {
      return (await lookup(name, { all: true })).map(({ address }) => address)
    },
  })
}

/** Returns a result. Throws a refusal as an error that names the code and the description of the response. */
function done<Result extends { readonly ok: true }>(result: Result | Refused): Result {
  if (result.ok) return result
  throw new Error(result.reason)
}

/** The outcome of a payment that met an error. */
function failed(error: unknown): Outcome {
  return { status: 'failed', reason: reasonOf(error) }
}

export function reasonOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
