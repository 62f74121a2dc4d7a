import { ilpAddressOf, type PeerWallet, peerWallet, type RailSettings } from '../ilp/rail.js'
import { type Fee, noFee } from './prices.js'
import { type AdapterName, adapters } from './start.js'
import type { Role } from './wallet.js'

/** The wallet's settings from the environment. */
export interface Settings {
  readonly adapter: AdapterName
  readonly port: number
  /** The published origin, without a trailing slash. */
  readonly baseUrl: string
  /** The side of the wallet that this process serves, if it does not serve both. */
  readonly role?: Role
  /** Whether the wallet sends outgoing payments automatically, or waits for reports to its ledger. */
  readonly settle: 'auto' | 'manual'
  readonly fee: Fee
  readonly rail: RailSettings
  /** The time limit for a request to another server. */
  readonly outboundTimeoutMs?: number
  readonly databaseUrl?: string
  readonly dataDir?: string
  /** The URL for events, and the secret that signs them. */
  readonly webhook?: { readonly url: string; readonly secret: string }
}

/** @throws an error that names the invalid variable. */
export function readSettings(environment: NodeJS.ProcessEnv): Settings {
  const { PORT = '3000', ADAPTER = 'express' } = environment
  const { DATABASE_URL, DATA_DIR, WEBHOOK_URL, WEBHOOK_SECRET } = environment
  if (!isAdapter(ADAPTER)) {
    throw new Error(`ADAPTER must be one of ${Object.keys(adapters).join(', ')}`)
  }
  if (!/^\d{1,5}$/.test(PORT) || Number(PORT) > 65_535) {
    throw new Error('PORT must be a port number')
  }
  if (DATABASE_URL && !URL.canParse(DATABASE_URL)) {
    throw new Error('DATABASE_URL must be a URL, such as postgres://user@localhost:5432/wallet')
  }
  if (DATABASE_URL && !/^postgres(?:ql)?:$/.test(new URL(DATABASE_URL).protocol)) {
    throw new Error(
      'DATABASE_URL must begin with postgres:// or postgresql://, because this wallet knows no other database',
    )
  }
  if (DATABASE_URL && DATA_DIR) {
    throw new Error('set DATABASE_URL for PostgreSQL or DATA_DIR for PGlite, not both')
  }
  if (!WEBHOOK_URL !== !WEBHOOK_SECRET) {
    throw new Error('WEBHOOK_URL and WEBHOOK_SECRET must be set together')
  }
  const served = readRole(environment, `http://localhost:${PORT}`)
  const { SETTLE, FEE, PEERS, ILP_ADDRESS, ILP_TOKEN } = environment
  if (served.role?.name === 'auth' && (SETTLE || FEE || PEERS || ILP_ADDRESS || ILP_TOKEN)) {
    throw new Error('SETTLE, FEE, PEERS, ILP_ADDRESS and ILP_TOKEN cannot be used with ROLE=auth')
  }
  return {
    adapter: ADAPTER,
    port: Number(PORT),
    ...served,
    settle: readSettle(environment),
    fee: readFee(environment),
    rail: readRail(environment, served.baseUrl),
    ...readOutboundTimeout(environment),
    ...(DATABASE_URL && { databaseUrl: DATABASE_URL }),
    ...(DATA_DIR && { dataDir: DATA_DIR }),
    ...(WEBHOOK_URL && WEBHOOK_SECRET && { webhook: { url: WEBHOOK_URL, secret: WEBHOOK_SECRET } }),
  }
}

function readSettle({ SETTLE = 'auto' }: NodeJS.ProcessEnv): Settings['settle'] {
  if (SETTLE !== 'auto' && SETTLE !== 'manual') throw new Error('SETTLE must be auto or manual')
  return SETTLE
}

function readFee({ FEE }: NodeJS.ProcessEnv): Fee {
  if (!FEE) return noFee
  const [, whole = '', hundredths = '', percent] = /^(\d{1,2})(?:\.(\d{1,2}))?(%?)$/.exec(FEE) ?? []
  if (whole === '') {
    throw new Error(
      'FEE must be a percentage such as 1% or 0.25%, or an amount such as 0.30, below 100',
    )
  }
  const value = BigInt(whole + hundredths.padEnd(2, '0'))
  return percent === '%' ? { ...noFee, basisPoints: value } : { ...noFee, fixed: value }
}

function readOutboundTimeout({
  OUTBOUND_TIMEOUT_MS: text,
}: NodeJS.ProcessEnv): Pick<Settings, 'outboundTimeoutMs'> {
  if (!text) return {}
  if (!/^[1-9]\d{0,4}$/.test(text) || Number(text) > 60_000) {
    throw new Error('OUTBOUND_TIMEOUT_MS must be a number of milliseconds, at most 60000')
  }
  return { outboundTimeoutMs: Number(text) }
}

const ilpAddress = /^test(?:\.[a-zA-Z0-9_~-]+)+$/

function readRail(
  { ILP_ADDRESS, ILP_TOKEN: token = '', PEERS = '' }: NodeJS.ProcessEnv,
  baseUrl: string,
): RailSettings {
  const ownAddress = ILP_ADDRESS || ilpAddressOf(baseUrl)
  if (!ilpAddress.test(ownAddress) || ownAddress.length > 500) {
    throw new Error(
      'ILP_ADDRESS must be an ILP address such as test.wallet, of at most 500 characters',
    )
  }
  const peers = PEERS.split(',')
    .map((text) => text.trim())
    .filter((text) => text !== '')
    .map((text) => readPeer(text, ownAddress))
  if (peers.length > 0 && token.length < 16) {
    throw new Error(
      'PEERS needs ILP_TOKEN: a secret of at least 16 characters, the same in all wallets',
    )
  }
  const addresses = new Set([ownAddress, ...peers.map((peer) => peer.ilpAddress)])
  if (addresses.size <= peers.length) {
    throw new Error('PEERS must list each other wallet once, and not this one')
  }
  return { ilpAddress: ownAddress, peers, token }
}

/**
 * Reads a peer: the URL of its wallet, or its ILP address and endpoint, such as
 * `test.bank=https://bank.example/ilp`.
 */
function readPeer(text: string, ownAddress: string): PeerWallet {
  const [, address = '', url = ''] = /^([^=/]+)=(.*)$/.exec(text) ?? []
  if (address === '') return peerWallet(originOf('each entry of PEERS', text), ownAddress)
  if (!ilpAddress.test(address) || !URL.canParse(url) || !/^https?:$/.test(new URL(url).protocol)) {
    throw new Error('each entry of PEERS must be an origin, or an ILP address, = and a URL')
  }
  return { ilpAddress: address, url }
}

/** @param ownUrl the origin on which this process listens. */
function readRole(
  environment: NodeJS.ProcessEnv,
  ownUrl: string,
): Pick<Settings, 'baseUrl' | 'role'> {
  const { ROLE, BASE_URL, AUTH_URL, RESOURCE_SERVER_KEY: key } = environment
  const baseUrl = originOf('BASE_URL', BASE_URL || ownUrl)
  if (!ROLE) {
    if (AUTH_URL || key) {
      throw new Error('AUTH_URL and RESOURCE_SERVER_KEY need ROLE=auth or ROLE=resource')
    }
    return { baseUrl }
  }
  if (ROLE === 'resource') {
    if (!AUTH_URL) {
      throw new Error('ROLE=resource needs AUTH_URL: the origin of the process with ROLE=auth')
    }
    return { baseUrl, role: { name: ROLE, authUrl: originOf('AUTH_URL', AUTH_URL) } }
  }
  if (ROLE !== 'auth')
    throw new Error('ROLE must be auth or resource; without it one process serves both')
  if (!BASE_URL) {
    throw new Error('ROLE=auth needs BASE_URL: the origin of the process with ROLE=resource')
  }
  if (!key || !/^[\w-]{43}$/.test(key)) {
    throw new Error(
      'ROLE=auth needs RESOURCE_SERVER_KEY: the key that the process with ROLE=resource prints',
    )
  }
  const authUrl = originOf('AUTH_URL', AUTH_URL || ownUrl)
  return { baseUrl, role: { name: ROLE, authUrl, resourceServerKey: key } }
}

/** Published URLs begin with the origin, so it must not have a path. */
function originOf(name: string, text: string): string {
  const origin = text.replace(/\/$/, '')
  if (!URL.canParse(origin) || new URL(origin).origin !== origin) {
    throw new Error(`${name} must be an origin, such as https://wallet.example`)
  }
  return origin
}

function isAdapter(name: string): name is AdapterName {
  return Object.hasOwn(adapters, name)
}
