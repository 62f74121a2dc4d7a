import { randomUUID } from 'node:crypto'
import { type Client, createClient, type Refused } from 'open-payments-client'
import {
  type AccessItem,
  clientFetch,
  exchange,
  joined,
  readWallet,
  type Sender,
  type Token,
  tokenIn,
  type Wallet,
  type WireAnswer,
  type WireRequest,
} from 'open-payments-programs'
import { type FullJwk, jwkOf, type KeyPair, throwAwayKey } from 'open-payments-server-testing'

/** The function that sends a request, with the signature of the global `fetch`. */
export type SendFetch = typeof fetch

/** The owner's decision on the consent page. */
export type ConsentDecision = 'approve' | 'deny'

/**
 * Decides as the resource owner: opens the URL of the interaction, signs in, approves or denies, and resolves to the
 * URL to which the browser is then redirected, without opening it.
 */
export type Consent = (interactUrl: string, decision: ConsentDecision) => Promise<string | URL>

interface SessionOptions extends Sender {
  readonly walletAddress: string
  /** The wallet address of the client, if it has one. */
  readonly clientWalletAddress: string | undefined
  readonly finishUri: string
  readonly receiver: string
  readonly consent: Consent | undefined
}

/** A client that sends requests to the servers of one wallet address. */
export interface Session extends SessionOptions {
  /** The `client` member of a grant request. */
  readonly client: string | { readonly jwk: FullJwk }
  /** Takes the steps on the way to a case whose requests are not what the case is about. */
  readonly steps: Client
  /** A key that the client does not use, with the same `kid`. */
  readonly otherKey: KeyPair
  send(request: WireRequest): Promise<WireAnswer>
  /** Reads the wallet address document once. */
  wallet(): Promise<Wallet>
  /** The URL of a path below the resource server. */
  resource(path: string): Promise<string>
  /** Sends a grant request. */
  askFor(
    access: readonly AccessItem[],
    more?: object,
    sign?: WireRequest['sign'],
  ): Promise<WireAnswer>
  /** Requests a new token that needs no consent. */
  issue(...actions: readonly string[]): Promise<Token>
  /** A token for incoming payments that the cases share. Do not rotate or revoke it. */
  sharedToken(): Promise<string>
  /** Sends a request for an incoming payment of the wallet address, with any token or none. */
  requestIncoming(
    token: string | undefined,
    more?: object,
    sign?: WireRequest['sign'],
  ): Promise<WireAnswer>
  /** Creates an incoming payment with the shared token, and returns the response. */
  createIncoming(more?: object): Promise<WireAnswer>
}

/** How many requests a step sends. */
const requestsMax = 4
/** The most that a client waits. */
const limitMaxMs = 600_000

/** Fails unless a step has succeeded. */
export function taken<Result extends { readonly ok: true } | Refused>(
  result: Result,
): Exclude<Result, Refused> {
  if (!result.ok) throw new Error(`${result.refusal}: ${result.reason}`)
  return result as Exclude<Result, Refused>
}

export const incomingActions = ['create', 'read', 'list', 'complete'] as const

export function createSession(
  options: SessionOptions,
  send: Session['send'] = (request) => exchange(options, request),
): Session {
  const { walletAddress, clientWalletAddress, key, fetch, requestTimeoutMs } = options
  const client = clientWalletAddress ?? { jwk: jwkOf(key) }
  const wallet = once(() => readWallet(walletAddress, send))

  const session: Session = {
    ...options,
    client,
    steps: createClient({
      ...{ keyId: key.kid, privateKey: key.privateKey, fetch: clientFetch(fetch) },
      ...(clientWalletAddress !== undefined && { walletAddress: clientWalletAddress }),
      limitMs: Math.min(requestsMax * requestTimeoutMs, limitMaxMs),
    }),
    otherKey: { ...throwAwayKey(), kid: key.kid },
    send,
    wallet,
    resource: async (path) => joined((await wallet()).resourceServer, path),
    async askFor(access, more = {}, sign = {}) {
      const body = { access_token: { access }, client, ...more }
      return send({ method: 'POST', url: (await wallet()).authServer, body, sign })
    },
    async issue(...actions) {
      const item = { type: 'incoming-payment', actions, identifier: walletAddress }
      return tokenIn(await session.askFor([item]))
    },
    sharedToken: once(async () => (await session.issue(...incomingActions)).value),
    async requestIncoming(token, more = {}, sign = {}) {
      const url = await session.resource('/incoming-payments')
      const body = { walletAddress, ...more }
      return send({ method: 'POST', url, body, sign, ...(token !== undefined && { token }) })
    },
    async createIncoming(more) {
      return session.requestIncoming(await session.sharedToken(), more)
    },
  }
  return session
}

/** A grant that waits for the owner's consent. */
interface Pending {
  readonly answer: WireAnswer
  readonly nonce: string
}

/** Requests access that needs consent. */
export async function requestConsent(session: Session, item: AccessItem): Promise<Pending> {
  const nonce = randomUUID()
  const finish = { method: 'redirect', uri: session.finishUri, nonce }
  const answer = await session.askFor([item], { interact: { start: ['redirect'], finish } })
  return { answer, nonce }
}

/** Runs the work at its first call, and again after a failure. */
export function once<Result>(work: () => Promise<Result>): () => Promise<Result> {
  let result: Promise<Result> | undefined
  return () => {
    result ??= work().catch((error) => {
      result = undefined
      throw error
    })
    return result
  }
}

/**
 * `required` if the specification says MUST or the OpenAPI documents describe the behaviour, `recommended` if the
 * specification says SHOULD, or makes the behaviour optional.
 */
export type ServerRuleLevel = 'required' | 'recommended'

/** A case of the suite for servers. */
export interface ServerCaseDefinition {
  /** Unique and stable. */
  readonly id: string
  /** A sentence that states what the server does. */
  readonly name: string
  /** The section of an RFC or the operation of the OpenAPI documents. */
  readonly rule: string
  /** Default: `required`. */
  readonly level?: ServerRuleLevel
  /** `client` if the client needs a wallet address, `consent` if an owner must decide too. */
  readonly needs?: 'client' | 'consent'
  readonly check: (session: Session) => Promise<void>
}
