import { lookup } from 'node:dns/promises'
import { isIP } from 'node:net'
import { isPublicAddress } from 'open-payments-server'
import type { SendFetch } from './exchange.js'

/** Why a server was not reached. */
type ReachFailure = 'private' | 'tls' | 'unreachable'

/** A server was not reached. */
export class ReachError extends Error {
  readonly failure: ReachFailure
  readonly hostname: string
  /** Whether it is known that no server has received the request. */
  readonly isUnsent: boolean

  constructor(
    failure: ReachFailure,
    { hostname }: Pick<URL, 'hostname'>,
    message: string,
    isUnsent = failure === 'private',
  ) {
    super(message)
    this.failure = failure
    this.hostname = hostname
    this.isUnsent = isUnsent
  }
}

/** What a program uses of the network. */
export interface Network {
  readonly fetch: SendFetch
  /** Resolves to the IPv4 and IPv6 addresses of a host. */
  addresses(hostname: string): Promise<readonly string[]>
}

export const internet: Network = { fetch, addresses }

/**
 * Returns a `fetch` that rejects with a `ReachError`. Unless private addresses are allowed, it reaches public ones over
 * https only.
 */
export function reachingFetch(
  allowPrivate: boolean,
  timeoutMs: number,
  { fetch: send, addresses }: Network,
): SendFetch {
  const checked = new Map<string, Promise<void>>()
  return async (input, init) => {
    const url = new URL(String(input))
    const known = checked.get(url.origin) ?? requirePublic(url, allowPrivate, addresses)
    checked.set(url.origin, known)
    await known
    const { method = 'GET' } = init ?? {}
    try {
      return await send(input, init)
    } catch (error) {
      throw reachError(url, error, `${method} ${url.href} within ${timeoutMs / 1000} s`)
    }
  }
}

async function requirePublic(url: URL, allowPrivate: boolean, lookUp: Network['addresses']) {
  if (allowPrivate) return
  const { hostname, protocol, host } = url
  if (protocol !== 'https:') {
    throw new ReachError('private', url, `${host} has a URL that does not use https`)
  }
  const own = addressIn(hostname)
  const found =
    own === undefined
      ? await lookUp(hostname).catch((error) => {
          throw reachError(url, error)
        })
      : [own]
  if (!found.every(isPublicAddress)) {
    throw new ReachError('private', url, `${host} has the address ${found.join(', ')}`)
  }
}

/** Returns the IP address in the host of a URL, or `undefined` for a name. */
export function addressIn(hostname: string): string | undefined {
  const text = hostname.replace(/^\[|\]$/g, '')
  return isIP(text) === 0 ? undefined : text
}

async function addresses(hostname: string): Promise<readonly string[]> {
  return (await lookup(hostname, { all: true })).map(({ address }) => address)
}

/**
 * Names the cause of an error of `fetch` or of a DNS lookup.
 *
 * @param late What did not happen, if the error is a time-out.
 */
export function reachError(url: URL, error: unknown, late = 'in time'): ReachError {
  const { host } = url
  const { name, cause } = error as Error
  if (name === 'TimeoutError') {
    const what = late === 'in time' ? late : `to ${late}`
    return new ReachError('unreachable', url, `${host} did not respond ${what}`)
  }
  const { code = '', message } = (cause ?? error) as { code?: string; message: string }
  const known = causes[code]
  if (known !== undefined) {
    return new ReachError('unreachable', url, `${host} ${known}`, unconnected.has(code))
  }
  const isTls = /CERT|TLS|SSL|ERR_SSL|SELF_SIGNED|UNABLE_TO_(GET|VERIFY)/.test(code)
  return new ReachError(isTls ? 'tls' : 'unreachable', url, `${host}: ${message} (${code || name})`)
}

const causes: Readonly<Record<string, string>> = {
  ENOTFOUND: 'has no address in DNS',
  EAI_AGAIN: 'could not be looked up in DNS',
  ECONNREFUSED: 'refuses connections',
  ECONNRESET: 'closed the connection',
  EHOSTUNREACH: 'cannot be reached: there is no route to it',
  ENETUNREACH: 'cannot be reached: there is no route to it, as from a network without IPv6',
  UND_ERR_CONNECT_TIMEOUT: 'did not accept a connection in time',
  UND_ERR_SOCKET: 'closed the connection',
}

/** The causes that occur before a connection. */
const unconnected: ReadonlySet<string> = new Set([
  ...['ENOTFOUND', 'EAI_AGAIN', 'ECONNREFUSED', 'EHOSTUNREACH', 'ENETUNREACH'],
  'UND_ERR_CONNECT_TIMEOUT',
])
