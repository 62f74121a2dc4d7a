import { randomUUID } from 'node:crypto'
import { lookup } from 'node:dns/promises'
import { setTimeout as sleep } from 'node:timers/promises'
import {
  type Client,
  type ClientOptions,
  createClient,
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

/** How a payment has ended. */
export type Outcome =
  | { readonly status: 'paid' | 'denied' | 'pending' }
  | { readonly status: 'failed'; readonly reason: string }

/** The payments of a client, which the owner of the account approves on the consent page. */
export interface ClientPayments {
  /** Prepares a payment, and resolves to the URL of the consent page. Rejects if a server refuses it. */
  begin(order: Order): Promise<string>
  /**
   * Completes the payment after the owner has decided. Resolves to `undefined` if the redirect is not for a payment.
   */
  finish(query: URLSearchParams): Promise<Outcome | undefined>
  /** Resolves to how a payment has ended, or to `undefined` if it has not. */
  outcomeOf(id: string): Promise<Outcome | undefined>
}

/** What the client remembers while the owner decides. */
interface Waiting {
  readonly from: string
  readonly quote: string
  readonly pending: PendingGrant
  outcome?: Promise<Outcome>
  /** A redirect has said that the owner denied. It has no hash, so anybody may have sent it. */
  isSaidDenied?: true
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
    if (verified.ok) {
      waiting.outcome ??= complete(app(), waiting, verified.interactRef).catch(failed)
      return waiting.outcome
    }
    if (verified.refusal !== 'consent_denied') return undefined
    waiting.isSaidDenied = true
    return outcomeIn(waiting)
  }

  /** What a redirect with a hash has led to counts, before or after one that says that the owner denied. */
  async function outcomeIn({ outcome, isSaidDenied }: Waiting): Promise<Outcome | undefined> {
    return outcome ?? (isSaidDenied && { status: 'denied' })
  }

  async function outcomeOf(id: string): Promise<Outcome | undefined> {
    const waiting = payments.get(id)
    return waiting && outcomeIn(waiting)
  }

  return { begin, finish, outcomeOf }
}

async function complete(
  app: Client,
  { from, quote, pending }: Waiting,
  interactRef: string,
): Promise<Outcome> {
  const issued = done(await app.continueGrant(pending, { interactRef }))
  if (issued.status === 'pending') return { status: 'pending' }
  const { grant } = issued
  const created = done(await app.createPayment({ walletAddress: from, grant, quote }))
  for (let reads = 0; reads < readsMax; reads += 1) {
    const { payment } = done(await app.getPayment(grant, created.payment.id))
    if (payment.failed) return { status: 'failed', reason: 'The wallet could not send it.' }
    if (payment.sentAmount.value === payment.debitAmount.value) return { status: 'paid' }
    await sleep(pauseMs)
  }
  return { status: 'pending' }
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
export function failed(error: unknown): Outcome {
  return { status: 'failed', reason: error instanceof Error ? error.message : String(error) }
}
