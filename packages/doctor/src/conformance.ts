import { createPrivateKey, type KeyObject } from 'node:crypto'
import { joined } from 'open-payments-programs'
import { InvalidInputError } from 'open-payments-server'
import { requireKnownOptions } from 'open-payments-server/adapter'
import { type KeyPair, keyPairOf, throwAwayKey } from 'open-payments-server-testing'
import { consentCases } from './conformance/consent.js'
import { grantCases } from './conformance/grant.js'
import { incomingPaymentCases } from './conformance/incoming-payment.js'
import { listCases } from './conformance/lists.js'
import { outgoingPaymentCases } from './conformance/outgoing-payment.js'
import {
  type Consent,
  createSession,
  type SendFetch,
  type ServerCaseDefinition,
  type ServerRuleLevel,
  type Session,
} from './conformance/session.js'
import { signatureCases } from './conformance/signatures.js'
import { tokenCases } from './conformance/token.js'
import { discoveryCases, walletAddressCases } from './conformance/wallet-address.js'

/** A client whose key set the servers can fetch. */
export interface ConformanceClient {
  readonly walletAddress: string
  /** The `kid` of its key in `{walletAddress}/jwks.json`. */
  readonly keyId: string
  /** Its Ed25519 private key, as a `KeyObject` or in PEM. */
  readonly privateKey: KeyObject | string
}

/** The servers to test, and the client that sends the requests. */
export interface ServerConformanceOptions {
  /** The URL of an account at the servers to test. */
  readonly walletAddress: string
  /**
   * The client that sends the requests. Default: a new key that the requests contain (directed identity), which can
   * only request access that needs no consent. Cases that need more are then left out.
   */
  readonly client?: ConformanceClient
  /**
   * Decides as the owner of the account. Default: none; leaves out the cases that need consent, among them all cases of
   * quotes and outgoing payments. Needs `client`.
   */
  readonly consent?: Consent
  /** Where the browser returns after consent. Default: `{client.walletAddress}/finish?state=conformance`. */
  readonly finishUri?: string
  /** The wallet address that receives the outgoing payments. Default: `walletAddress`. */
  readonly receiver?: string
  /** Sends the requests. Default: the global `fetch`. */
  readonly fetch?: SendFetch
  /** How long the servers may take for a response, in milliseconds. Default 10000. */
  readonly requestTimeoutMs?: number
  /** How long a case may run before it fails, in milliseconds. Default 60000. */
  readonly timeoutMs?: number
}

/** One case of the suite, for any test runner. */
export interface ServerConformanceCase {
  /** Unique and stable, such as `grant-no-store`. */
  readonly id: string
  /** A sentence that states what the servers do, unique within the suite. */
  readonly name: string
  /** The section of an RFC or the operation of the Open Payments OpenAPI documents that the case checks. */
  readonly rule: string
  /**
   * `required` if the specification says MUST or the OpenAPI documents describe the behaviour, `recommended` if the
   * specification says SHOULD, or makes the behaviour optional.
   */
  readonly level: ServerRuleLevel
  /** The time limit to give to the test runner, in milliseconds. The case itself ends earlier. */
  readonly timeoutMs: number
  /** Runs the case. Rejects with an `Error` that names the rule, the response and what was expected. */
  readonly run: () => Promise<void>
}

/** The cases that need no owner. */
export const unattendedCases: readonly ServerCaseDefinition[] = [
  ...walletAddressCases,
  ...discoveryCases,
  ...signatureCases,
  ...grantCases,
  ...tokenCases,
  ...incomingPaymentCases,
  ...listCases,
]

/** All cases, in the order in which a new server is usually written. */
const serverCases: readonly ServerCaseDefinition[] = [
  ...unattendedCases,
  ...consentCases,
  ...outgoingPaymentCases,
]

const knownOptions: Readonly<Record<keyof ServerConformanceOptions, true>> = {
  walletAddress: true,
  client: true,
  consent: true,
  finishUri: true,
  receiver: true,
  fetch: true,
  requestTimeoutMs: true,
  timeoutMs: true,
}

const knownClient: Readonly<Record<keyof ConformanceClient, true>> = {
  walletAddress: true,
  keyId: true,
  privateKey: true,
}

/**
 * Returns the rules of Open Payments for servers as test cases, which send requests to deployed servers over HTTP as a
 * client does.
 *
 * The cases check the specifications and the published OpenAPI documents, so they apply to every server. They create
 * incoming payments, tokens and, with `consent`, outgoing payments, which remain, so use an account for tests. They
 * share one token, and may run in any order or concurrently.
 *
 * @throws {InvalidInputError} for an invalid or unknown option.
 *
 * @example
 * ```ts
 * import { serverConformance } from 'open-payments-doctor'
 * import { test } from 'vitest'
 *
 * const walletAddress = 'http://localhost:3000/alice'
 * for (const { name, level, run, timeoutMs } of serverConformance({ walletAddress })) {
 *   test.runIf(level === 'required')(name, run, timeoutMs)
 * }
 * ```
 */
export function serverConformance(
  options: ServerConformanceOptions,
): readonly ServerConformanceCase[] {
  const session = createConformanceSession(options)
  const { timeoutMs = 60_000 } = options
  const has = { client: options.client !== undefined, consent: options.consent !== undefined }
  return serverCases
    .filter(({ needs }) => needs === undefined || has[needs])
    .map(({ id, name, rule, level = 'required', check }) => ({
      id,
      name,
      rule,
      level,
      timeoutMs: timeoutMs + 1_000,
      async run() {
        try {
          await within(timeoutMs, check(session))
        } catch (error) {
          throw new Error(`${rule}: ${messageOf(error)}`, { cause: error })
        }
      },
    }))
}

function createConformanceSession(options: ServerConformanceOptions): Session {
  requireKnownOptions('', options, knownOptions)
  const { walletAddress, client, consent, receiver = walletAddress } = options
  const key = client === undefined ? throwAwayKey() : keyOf(client)
  const {
    finishUri = joined(client?.walletAddress ?? walletAddress, '/finish?state=conformance'),
  } = options
  for (const [name, url] of Object.entries({ walletAddress, finishUri, receiver })) {
    if (!URL.canParse(url)) throw new InvalidInputError(name, 'must be an absolute URL')
  }
  if (consent !== undefined && client === undefined) {
    throw new InvalidInputError('client', 'is required with consent')
  }
  return createSession({
    walletAddress,
    clientWalletAddress: client?.walletAddress,
    key,
    finishUri,
    receiver,
    consent,
    fetch: options.fetch ?? fetch,
    requestTimeoutMs: options.requestTimeoutMs ?? 10_000,
    now: () => Date.now(),
  })
}

function keyOf(client: ConformanceClient): KeyPair {
  requireKnownOptions('client', client, knownClient)
  const { walletAddress, keyId, privateKey } = client
  if (!URL.canParse(walletAddress)) {
    throw new InvalidInputError('client.walletAddress', 'must be an absolute URL')
  }
  const key = typeof privateKey === 'string' ? createPrivateKey(privateKey) : privateKey
  if (key.asymmetricKeyType !== 'ed25519' || key.type !== 'private') {
    throw new InvalidInputError('client.privateKey', 'must be an Ed25519 private key')
  }
  return keyPairOf(key, keyId)
}

function messageOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  // The global fetch hides the reason in the cause.
  const { cause } = error
  return cause instanceof Error ? `${error.message}: ${cause.message}` : error.message
}

/** Rejects after this time, if the work has not finished. */
function within<Result>(timeoutMs: number, work: Promise<Result>): Promise<Result> {
  let timer: ReturnType<typeof setTimeout> | undefined
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => {
      reject(new Error(`within ${timeoutMs} ms the case did not finish`))
    }, timeoutMs)
  })
  return Promise.race([work, late]).finally(() => clearTimeout(timer))
}
