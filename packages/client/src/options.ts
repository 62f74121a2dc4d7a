import {
  type Clock,
  type GuardedFetch,
  guardedFetch,
  InvalidInputError,
  type PrivateJwk,
  type Random,
  requestSigner,
} from 'open-payments-server'
import { requireKnownOptions } from 'open-payments-server/adapter'
import type { ExchangeOptions } from './exchange.js'
import type { OwnReceivers } from './receiver.js'

/** A key of Node.js, which can be exported as a JWK. */
export interface ExportableKey {
  export(options: { readonly format: 'jwk' }): PrivateJwk
}

/** Who the client is, how it sends requests, and how long a call may take. */
export interface ClientOptions {
  /**
   * The wallet address by which the client names itself, and which publishes its key. Without it, the client presents
   * its key, with which no owner can be asked for consent. Default: none.
   */
  readonly walletAddress?: string
  /** The `kid` of the key. */
  readonly keyId: string
  /** An Ed25519 key, as a JWK with `x` and `d`, or as a `KeyObject` of Node.js. */
  readonly privateKey: PrivateJwk | ExportableKey
  /** The wallet that the client belongs to: its incoming payments are looked up, not requested. Default: none. */
  readonly own?: OwnReceivers
  /** How long a call may take, with all its requests and bodies, in milliseconds, at most 600,000. Default: 10,000. */
  readonly limitMs?: number
  /** Sends the requests. Default: `guardedFetch` with the time limit of a call, at most a minute, and 1 MiB. */
  readonly fetch?: GuardedFetch
  /** Allows http and https to loopback addresses, for development, if `fetch` is absent. Default: false. */
  readonly allowLoopback?: boolean
  /** Clock of the signatures and of what expires. Default: `Date`. */
  readonly clock?: Clock
  /** Source of nonces. Default: the global `crypto`. */
  readonly random?: Random
}

const known = {
  ...{ walletAddress: true, keyId: true, privateKey: true, own: true, limitMs: true },
  ...{ fetch: true, allowLoopback: true, clock: true, random: true },
}
const limitMaxMs = 600_000
const requestMaxMs = 60_000

/** What a client is made of. */
export interface Settings extends ExchangeOptions {
  readonly client: string | object
  readonly own: OwnReceivers | undefined
  readonly limitMs: number
}

/** Reads the options. Throws an `InvalidInputError`. */
export function settingsOf(options: ClientOptions): Settings {
  requireKnownOptions('', options, known)
  const { walletAddress, keyId, own, limitMs = 10_000, allowLoopback = false } = options
  if (!Number.isSafeInteger(limitMs) || limitMs < 1 || limitMs > limitMaxMs) {
    throw new InvalidInputError('limitMs', `must be an integer from 1 to ${limitMaxMs}`)
  }
  if (walletAddress !== undefined && !URL.canParse(walletAddress)) {
    throw new InvalidInputError('walletAddress', 'must be a URL')
  }
  const privateKey = jwkOf(options.privateKey)
  const timeoutMs = Math.min(limitMs, requestMaxMs)
  const {
    fetch = guardedFetch({ allowLoopback, timeoutMs, responseBytesMax: 1024 * 1024 }),
    clock = { now: () => Date.now() },
    random = crypto,
  } = options
  return {
    ...{ sign: requestSigner({ keyId, privateKey }), fetch, clock, own, limitMs },
    client: walletAddress ?? { jwk: publicJwkOf(keyId, privateKey) },
    newNonce: () => [...random.getRandomValues(new Uint8Array(16))].map(hex).join(''),
  }
}

const hex = (byte: number) => byte.toString(16).padStart(2, '0')

function jwkOf(key: PrivateJwk | ExportableKey | undefined): PrivateJwk {
  if (typeof key !== 'object' || key === null) {
    throw new InvalidInputError('privateKey', 'must be a JWK or a KeyObject')
  }
  return 'export' in key ? key.export({ format: 'jwk' }) : key
}

function publicJwkOf(kid: string, { x }: PrivateJwk) {
  return { kid, kty: 'OKP', crv: 'Ed25519', alg: 'EdDSA', use: 'sig', x }
}
