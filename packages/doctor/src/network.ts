import { lookup } from 'node:dns/promises'
import { connect } from 'node:tls'
import { addressIn, isPublicAddress } from '../../../src/protocol/ip-address.js'
import type { SendFetch } from './conformance/exchange.js'

/** Why a server was not reached. */
type ReachFailure = 'private' | 'tls' | 'unreachable'

/** A server was not reached. */
export class ReachError extends Error {
  readonly failure: ReachFailure

  constructor(failure: ReachFailure, message: string) {
    super(message)
    this.failure = failure
  }
}

/** What the doctor uses of the network. */
export interface Network {
  readonly fetch: SendFetch
  /** Resolves to the number of whole days for which the certificate of an https origin remains valid. */
  certificateDays(origin: string, timeoutMs: number): Promise<number>
}

export const internet: Network = { fetch, certificateDays }

/**
 * Returns a `fetch` that rejects with a `ReachError`. Unless private addresses are allowed, it reaches public ones over
 * https only.
 */
export function reachingFetch(allowPrivate: boolean, send: SendFetch): SendFetch {
  const checked = new Map<string, Promise<void>>()
  return async (input, init) => {
    const url = new URL(String(input))
    const known = checked.get(url.origin) ?? requirePublic(url, allowPrivate)
    checked.set(url.origin, known)
    await known
    try {
      return await send(input, init)
    } catch (error) {
      throw reachError(url, error)
    }
  }
}

async function requirePublic({ hostname, protocol, host }: URL, allowPrivate: boolean) {
  if (allowPrivate) return
  if (protocol !== 'https:') {
    throw new ReachError('private', `${host} has a URL that does not use https`)
  }
  const addresses = await addressesOf(hostname, host)
  if (!addresses.every(isPublicAddress)) {
    throw new ReachError('private', `${host} has the address ${addresses.join(', ')}`)
  }
}

async function addressesOf(hostname: string, host: string): Promise<readonly string[]> {
  const own = addressIn(hostname)
  if (own !== undefined) return [own]
  try {
    return (await lookup(hostname, { all: true })).map(({ address }) => address)
  } catch (error) {
    throw reachError({ host }, error)
  }
}

/** Names the cause of an error of `fetch` or of a DNS lookup. */
export function reachError({ host }: { readonly host: string }, error: unknown): ReachError {
  const { name, cause } = error as Error
  if (name === 'TimeoutError')
    return new ReachError('unreachable', `${host} did not respond in time`)
  const { code = '', message } = (cause ?? error) as { code?: string; message: string }
  const known = causes[code]
  if (known !== undefined) return new ReachError('unreachable', `${host} ${known}`)
  const isTls = /CERT|TLS|SSL|ERR_SSL|SELF_SIGNED|UNABLE_TO_(GET|VERIFY)/.test(code)
  return new ReachError(isTls ? 'tls' : 'unreachable', `${host}: ${message} (${code || name})`)
}

const causes: Readonly<Record<string, string>> = {
  ENOTFOUND: 'has no address in DNS',
  EAI_AGAIN: 'could not be looked up in DNS',
  ECONNREFUSED: 'refuses connections',
  ECONNRESET: 'closed the connection',
  EHOSTUNREACH: 'cannot be reached: there is no route to it',
  UND_ERR_CONNECT_TIMEOUT: 'did not accept a connection in time',
  UND_ERR_SOCKET: 'closed the connection',
}

const dayMs = 24 * 60 * 60 * 1000

function certificateDays(origin: string, timeoutMs: number): Promise<number> {
  const { hostname, port } = new URL(origin)
  const host = hostname.replace(/^\[|\]$/g, '')
  const servername = addressIn(hostname) === undefined ? { servername: host } : {}
  return new Promise((resolve, reject) => {
    const socket = connect(
      { host, port: Number(port || 443), ...servername, rejectUnauthorized: false },
      () => {
        const { valid_to } = socket.getPeerCertificate()
        socket.destroy()
        resolve(Math.floor((Date.parse(valid_to) - Date.now()) / dayMs))
      },
    )
    socket.setTimeout(timeoutMs, () => socket.destroy(new Error('timeout')))
    socket.on('error', reject)
  })
}
