import { createHash, randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Amount } from 'open-payments-server'
import { type ClientInstance, send } from './client.js'

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

interface Wallet {
  readonly authServer: string
  readonly resourceServer: string
}

interface Token {
  readonly access_token: { readonly value: string }
}

interface PendingGrant {
  readonly interact: { readonly redirect: string; readonly finish: string }
  readonly continue: Token & { readonly uri: string }
}

interface Payment {
  readonly id: string
  readonly debitAmount: Amount
  readonly sentAmount: Amount
  readonly failed?: boolean
}

/** What the client remembers while the owner decides. */
interface Waiting {
  readonly from: string
  readonly wallet: Wallet
  readonly quoteId: string
  readonly nonce: string
  readonly grant: PendingGrant
  outcome?: Promise<Outcome>
  /** A redirect has said that the owner denied. It has no hash, so anybody may have sent it. */
  isSaidDenied?: true
}

const waitingMax = 100
const readsMax = 20
const pauseMs = 250

/**
 * Pays as an app does: an incoming payment and a quote, so that the owner sees who gets how much; a grant for exactly
 * this payment; and the outgoing payment.
 *
 * @param finishUri where the consent page leads, to which `payment` is added.
 */
export function clientPayments(client: () => ClientInstance, finishUri: string): ClientPayments {
  const payments = new Map<string, Waiting>()

  async function begin({ from, to, amount }: Order): Promise<string> {
    const [payer, payee] = await Promise.all([walletAt(from), walletAt(to)])
    const { id: receiver } = await post<{ id: string }>(
      `${payee.resourceServer}/incoming-payments`,
      await tokenFor(payee, { type: 'incoming-payment', actions: ['create'] }),
      { walletAddress: to, incomingAmount: amount },
    )
    const quote = await post<{ id: string; debitAmount: Amount }>(
      `${payer.resourceServer}/quotes`,
      await tokenFor(payer, { type: 'quote', actions: ['create'] }),
      { walletAddress: from, receiver, method: 'ilp' },
    )
    const [id, nonce] = [randomUUID(), randomUUID()]
    const finish = { method: 'redirect', uri: `${finishUri}?payment=${id}`, nonce }
    const limits = { receiver, debitAmount: quote.debitAmount }
    const item = { type: 'outgoing-payment', actions: ['create', 'read'], identifier: from, limits }
    const grant = await requestGrant<PendingGrant>(payer, item, { start: ['redirect'], finish })
    payments.set(id, { from, wallet: payer, quoteId: quote.id, nonce, grant })
    for (const oldest of payments.keys()) {
      if (payments.size <= waitingMax) break
      payments.delete(oldest)
    }
    return grant.interact.redirect
  }

  async function finish(query: URLSearchParams): Promise<Outcome | undefined> {
    const waiting = payments.get(query.get('payment') ?? '')
    if (waiting === undefined) return undefined
    const reference = query.get('interact_ref')
    if (reference === null) {
      waiting.isSaidDenied = true
      return outcomeIn(waiting)
    }
    if (!hashOf(waiting, reference).equals(bytesOf(query.get('hash')))) return undefined
    waiting.outcome ??= complete(waiting, reference).catch(failed)
    return waiting.outcome
  }

  /** What a redirect with a hash has led to counts, before or after one that says that the owner denied. */
  async function outcomeIn({ outcome, isSaidDenied }: Waiting): Promise<Outcome | undefined> {
    return outcome ?? (isSaidDenied && { status: 'denied' })
  }

  async function complete(waiting: Waiting, reference: string): Promise<Outcome> {
    const { from, wallet, quoteId, grant } = waiting
    const { uri, access_token: continuation } = grant.continue
    const issued = await post<Token>(uri, continuation.value, { interact_ref: reference })
    const { value: token } = issued.access_token
    const url = `${wallet.resourceServer}/outgoing-payments`
    const { id } = await post<Payment>(url, token, { walletAddress: from, quoteId })
    for (let reads = 0; reads < readsMax; reads += 1) {
      const payment = await send<Payment>(client(), { method: 'GET', url: id, token })
      if (payment.failed) return { status: 'failed', reason: 'The wallet could not send it.' }
      if (payment.sentAmount.value === payment.debitAmount.value) return { status: 'paid' }
      await sleep(pauseMs)
    }
    return { status: 'pending' }
  }

  const walletAt = (url: string) => send<Wallet>(client(), { method: 'GET', url })

  const post = <Answer>(url: string, token: string, body: object) =>
    send<Answer>(client(), { method: 'POST', url, token, body })

  function requestGrant<Answer>({ authServer: url }: Wallet, item: object, interact?: object) {
    const app = client()
    const access = { access_token: { access: [item] }, client: app.walletAddress }
    const body = { ...access, ...(interact && { interact }) }
    return send<Answer>(app, { method: 'POST', url, body })
  }

  /** Requests access that needs no consent. */
  async function tokenFor(wallet: Wallet, item: object): Promise<string> {
    return (await requestGrant<Token>(wallet, item)).access_token.value
  }

  async function outcomeOf(id: string): Promise<Outcome | undefined> {
    const waiting = payments.get(id)
    return waiting && outcomeIn(waiting)
  }

  return { begin, finish, outcomeOf }
}

/** The hash by which a client knows that the redirect is from the authorization server (RFC 9635 section 4.2.3). */
function hashOf({ nonce, grant, wallet }: Waiting, reference: string): Buffer {
  const base = [nonce, grant.interact.finish, reference, wallet.authServer].join('\n')
  return createHash('sha256').update(base).digest()
}

/** Reads base64, which deployed servers send, and base64url, as in the RFC. */
function bytesOf(hash: string | null): Buffer {
  return Buffer.from(hash ?? '', 'base64')
}

/** The outcome of a payment that met an error. */
export function failed(error: unknown): Outcome {
  return { status: 'failed', reason: error instanceof Error ? error.message : String(error) }
}
