import type { Context } from './context.js'
import {
  type CompletedReceiver,
  type CreatedReceiver,
  completeReceiverAt,
  createReceiverAt,
  type ReceiverRequest,
} from './created-receiver.js'
import { type Call, withinLimit } from './deadline.js'
import { type FoundDocument, type ReadAccess, readDocument } from './document.js'
import { exchangeWith } from './exchange.js'
import type { GrantState, IssuedGrant, PendingGrant } from './grant.js'
import {
  cancelGrantAt,
  continueGrantWith,
  type Ended,
  type GrantRequest,
  type RotatedToken,
  requestGrantAt,
  revokeTokenAt,
  rotateTokenAt,
} from './grants.js'
import { type ClientOptions, settingsOf } from './options.js'
import {
  createPaymentAt,
  type FoundPayment,
  getPaymentAt,
  type PaymentRequest,
} from './outgoing-payments.js'
import { createQuoteAt, type FoundQuote, getQuoteAt, type QuoteRequest } from './quotes.js'
import {
  type FoundPublicReceiver,
  type FoundReceiver,
  findOwn,
  findReceiver,
  readPublic,
} from './receiver.js'
import { refused } from './refusal.js'
import { tokensWith } from './tokens.js'
import { type Address, type FoundAddress, findAddress } from './wallet-address.js'

/** The options of one call. */
export interface CallOptions {
  /** Ends the call early. */
  readonly signal?: AbortSignal
}

/**
 * A client of other wallets. No call rejects for anything that a server does: it resolves to a refusal with a name.
 * Each call ends within the time limit, with all its requests.
 */
export interface Client {
  /** Reads a wallet address, or a payment pointer, which begins with `$`. */
  addressOf(urlOrPointer: string, options?: CallOptions): Promise<FoundAddress>
  /**
   * Finds the receiver of a payment by its URL: one of the own wallet first, then one of another wallet, which is read
   * under a grant that needs no consent. At most 32 are read at the same time.
   */
  receiverOf(url: string, options?: CallOptions): Promise<FoundReceiver>
  /** Reads what anybody may know of an incoming payment. */
  publicReceiverOf(url: string, options?: CallOptions): Promise<FoundPublicReceiver>
  /**
   * Creates an incoming payment at another wallet. The protocol has no key for it, so the request is sent once: an
   * `outcome_unknown` leaves at most an empty payment, which expires.
   *
   * @throws {InvalidInputError} if `expiresAt` is no instant; nothing is sent.
   */
  createReceiver(request: ReceiverRequest, options?: CallOptions): Promise<CreatedReceiver>
  /** Completes an incoming payment that this client has created. */
  completeReceiver(url: string, options?: CallOptions): Promise<CompletedReceiver>
  /** Requests a grant. It is issued, or waits until its owner has decided. */
  requestGrant(request: GrantRequest, options?: CallOptions): Promise<GrantState>
  /**
   * Continues a grant, with the `interactRef` of `verifyFinish` or, without one, to ask for the decision. Waits as long
   * as the server wants, unless the time limit is shorter: then it is `too_fast`.
   */
  continueGrant(
    pending: PendingGrant,
    options?: CallOptions & { readonly interactRef?: string },
  ): Promise<GrantState>
  /** Cancels a grant with all its tokens. Succeeds for one that has ended before, too. */
  cancelGrant(grant: IssuedGrant | PendingGrant, options?: CallOptions): Promise<Ended>
  /** Replaces the token of a grant. The result must be kept in place of the grant. */
  rotateToken(grant: IssuedGrant, options?: CallOptions): Promise<RotatedToken>
  /** Revokes the token of a grant. */
  revokeToken(grant: IssuedGrant, options?: CallOptions): Promise<Ended>
  /** Creates a quote, and compares it with what was asked for. */
  createQuote(request: QuoteRequest, options?: CallOptions): Promise<FoundQuote>
  /** Reads a quote that this client has created at a wallet address. */
  getQuote(walletAddress: string | Address, url: string, options?: CallOptions): Promise<FoundQuote>
  /**
   * Creates an outgoing payment under a grant, by its quote or with a key. The request is sent once: `repeat` of an
   * `outcome_unknown` says whether the call may be made again.
   */
  createPayment(request: PaymentRequest, options?: CallOptions): Promise<FoundPayment>
  /** Reads an outgoing payment under its grant. */
  getPayment(grant: IssuedGrant, url: string, options?: CallOptions): Promise<FoundPayment>
  /**
   * Reads a document of a wallet as its server wrote it, such as a list or metadata: without a signature, under a
   * grant, or with access that needs no consent. Nothing in it is checked.
   */
  read(
    url: string,
    options?: CallOptions & { readonly access?: ReadAccess },
  ): Promise<FoundDocument>
}

const readsMax = 32

/**
 * Creates a client of other wallets, which signs its requests with one key. All requests go through `guardedFetch`:
 * only https to public addresses, no redirects, and a bound for each response.
 *
 * @throws {InvalidInputError} for an invalid option, and on runtimes other than Node without `fetch`.
 *
 * @example
 * ```ts
 * import { createClient } from 'open-payments-client'
 *
 * const client = createClient({
 *   walletAddress: 'https://wallet.example/operator',
 *   keyId: 'operator-1',
 *   privateKey: JSON.parse(process.env['CLIENT_KEY'] ?? ''),
 * })
 * const found = await client.addressOf('$bank.example/bob')
 * console.log(found.ok ? found.address.asset : found.publicReason)
 * ```
 */
export function createClient(options: ClientOptions): Client {
  const { client, own, limitMs, ...exchanging } = settingsOf(options)
  const { clock, newNonce } = exchanging
  const exchange = exchangeWith(exchanging)
  const tokens = tokensWith({ exchange, clock, client, limitMs })
  const context: Context = { exchange, tokens, clock, newNonce, client }
  let reads = 0

  const run = <Value>({ signal }: CallOptions, work: (call: Call) => Promise<Value>) =>
    withinLimit(limitMs, signal, work)

  async function readReceiver(call: Call, url: string): Promise<FoundReceiver> {
    const found = own && (await findOwn(context, call, own, url))
    if (found !== undefined) return found
    if (reads >= readsMax) return refused('busy', `${readsMax} receivers are being read`)
    reads += 1
    return findReceiver(context, call, url).finally(() => {
      reads -= 1
    })
  }

  return {
    addressOf: (url, given = {}) => run(given, (call) => findAddress(context, call, url)),
    receiverOf: (url, given = {}) => run(given, (call) => readReceiver(call, url)),
    publicReceiverOf: (url, given = {}) => run(given, (call) => readPublic(context, call, url)),
    createReceiver: (request, given = {}) =>
      run(given, (call) => createReceiverAt(context, call, request)),
    completeReceiver: (url, given = {}) =>
      run(given, (call) => completeReceiverAt(context, call, url)),
    requestGrant: (request, given = {}) =>
      run(given, (call) => requestGrantAt(context, call, request)),
    continueGrant: (pending, given = {}) =>
      run(given, (call) => continueGrantWith(context, call, pending, given.interactRef)),
    cancelGrant: (grant, given = {}) => run(given, (call) => cancelGrantAt(context, call, grant)),
    rotateToken: (grant, given = {}) => run(given, (call) => rotateTokenAt(context, call, grant)),
    revokeToken: (grant, given = {}) => run(given, (call) => revokeTokenAt(context, call, grant)),
    createQuote: (request, given = {}) =>
      run(given, (call) => createQuoteAt(context, call, request)),
    getQuote: (walletAddress, url, given = {}) =>
      run(given, (call) => getQuoteAt(context, call, walletAddress, url)),
    createPayment: (request, given = {}) =>
      run(given, (call) => createPaymentAt(context, call, request)),
    getPayment: (grant, url, given = {}) =>
      run(given, (call) => getPaymentAt(context, call, grant, url)),
    read: (url, given = {}) => run(given, (call) => readDocument(context, call, url, given.access)),
  }
}
