import type * as NodeDns from 'node:dns'
import type * as NodeHttp from 'node:http'
import type * as NodeHttps from 'node:https'
import type * as NodeNet from 'node:net'
import * as v from 'valibot'
import { hasCode } from '../util/errors.js'
import {
  boolean,
  callback,
  integerFrom,
  type Members,
  optionsOf,
  readInput,
} from '../util/input.js'
import { InvalidInputError } from '../util/invalid-input.js'
import { isLoopback } from '../util/loopback.js'
import { isCloudflareWorkers, nodeModule } from '../util/runtime.js'
import { timeout, withDeadline } from './deadline.js'
import { addressIn, isLocalName, isLoopbackAddress, isPublicAddress } from './ip-address.js'

/**
 * Fetches a document of at most 64 KiB from a URL that an untrusted party chose. Rejects with a `FetchRefusedError` if
 * the URL or the response breaks a rule, and with another error if a later request may succeed.
 */
export type DocumentFetch = (
  url: URL,
  request: { readonly signal: AbortSignal },
) => Promise<FetchedDocument>

/** A response with its body. */
export interface FetchedDocument {
  readonly status: number
  /** The value of `Content-Type`; empty if the response has none. */
  readonly contentType: string
  readonly body: Uint8Array
  /** The header fields, by their names in lower case. `guardedFetch` always returns them. */
  readonly headers?: Readonly<Record<string, string>>
}

/** Sends a request under the rules of `guardedFetch`; without `request` it is a `DocumentFetch`. */
export type GuardedFetch = (url: URL, request?: GuardedRequest) => Promise<FetchedDocument>

/** A request that `guardedFetch` sends. */
export interface GuardedRequest {
  /** Default: `GET`. */
  readonly method?: string
  /** Default: only `accept: application/json`. */
  readonly headers?: Readonly<Record<string, string>>
  /** The body, which is held in memory. */
  readonly body?: Uint8Array
  /** Cancels the request; the promise rejects with the reason of the signal. */
  readonly signal?: AbortSignal
}

/**
 * A URL or a response that breaks a rule, so that another attempt would fail too.
 *
 * @example
 * ```ts
 * import { FetchRefusedError, guardedFetch } from 'open-payments-server'
 *
 * const receiver = new URL('https://bank.example/incoming-payments/1')
 * const found = await guardedFetch()(receiver).catch((error: unknown) => {
 *   if (error instanceof FetchRefusedError) return undefined // it will never have a price
 *   throw error
 * })
 * ```
 */
export class FetchRefusedError extends Error {
  readonly code = 'ERR_FETCH_REFUSED'
  /** Whether the response breaks the rule, so that the server has received the request. */
  readonly isSent: boolean

  constructor(problem: string, { isSent = false }: { readonly isSent?: boolean } = {}) {
    super(problem)
    this.isSent = isSent
  }
}

/**
 * The host of the URL cannot be reached: its name cannot be resolved, or it accepts no connection.
 *
 * @example
 * ```ts
 * import { guardedFetch, HostUnreachableError } from 'open-payments-server'
 *
 * const receiver = new URL('https://bank.example/incoming-payments/1')
 * const found = await guardedFetch()(receiver).catch((error: unknown) => {
 *   if (error instanceof HostUnreachableError) return undefined // no such wallet, or it is down
 *   throw error
 * })
 * ```
 */
export class HostUnreachableError extends Error {
  readonly code = 'ERR_HOST_UNREACHABLE'
}

/**
 * The host accepted a connection, but sent no complete response, or not in time.
 *
 * @example
 * ```ts
 * import { guardedFetch, NoResponseError } from 'open-payments-server'
 *
 * const receiver = new URL('https://bank.example/incoming-payments/1')
 * const found = await guardedFetch()(receiver).catch((error: unknown) => {
 *   if (error instanceof NoResponseError) return undefined // try again later
 *   throw error
 * })
 * ```
 */
export class NoResponseError extends Error {
  readonly code = 'ERR_NO_RESPONSE'
}

/** What may be requested besides public https URLs, and within which bounds. */
export interface GuardedFetchOptions {
  /** Allows http and https to loopback addresses, for development. Default: false. */
  readonly allowLoopback?: boolean
  /**
   * Hostnames that may resolve to addresses that are not public, such as in a container network. Only https is
   * allowed, on every port. List only hosts that you operate: any client that names one can make this server connect to
   * it. Default: none.
   */
  readonly privateHosts?: readonly string[]
  /** Allowed ports. Default: 443. All ports of loopback with `allowLoopback`, and of `privateHosts`, are allowed. */
  readonly ports?: readonly number[]
  /** Timeout for the whole exchange, in milliseconds, at most 60,000. Default: 2,000. */
  readonly timeoutMs?: number
  /** The most bytes that a response may have, at most 1 MiB. Default: 65,536. */
  readonly responseBytesMax?: number
  /**
   * Resolves to all IP addresses of a hostname, and ends soon after the signal aborts. `localhost` and addresses are
   * not looked up. Default: queries to the system's name servers, without the hosts file and without `dns.lookup`,
   * which would let slow name servers occupy the threads of the process.
   */
  readonly resolve?: (hostname: string, signal: AbortSignal) => Promise<readonly string[]>
}

export const guardedFetchOptions = {
  allowLoopback: v.optional(boolean, false),
  privateHosts: v.optional(
    v.custom<readonly string[]>(
      (hosts) => Array.isArray(hosts) && hosts.every(isHostname),
      'must be lowercase hostnames without ports',
    ),
    [],
  ),
  ports: v.optional(
    v.custom<readonly number[]>(
      (ports) => Array.isArray(ports) && ports.every(isPort),
      'must be port numbers',
    ),
    [443],
  ),
  timeoutMs: v.optional(timeout, 2_000),
  responseBytesMax: v.optional(integerFrom(1, 1024 * 1024), 64 * 1024),
  resolve: v.optional(callback<NonNullable<GuardedFetchOptions['resolve']>>()),
} satisfies Members<GuardedFetchOptions>

const fetchOptions = optionsOf(guardedFetchOptions)

interface NodeParts {
  readonly http: typeof NodeHttp
  readonly https: typeof NodeHttps
  readonly dns: typeof NodeDns
}

/**
 * Creates a function that sends requests to URLs that untrusted parties chose, such as the receiver of a payment.
 * It connects only over https and to public addresses, does not follow redirects, and reads at most 64 KiB, unless
 * `responseBytesMax` says otherwise, within the timeout. It connects to the address that it checked, so a second DNS
 * lookup cannot return another one.
 *
 * The function resolves for every status. It rejects with a `FetchRefusedError` if the URL or the size of the response
 * breaks a rule. A later request may succeed after the other errors: a `HostUnreachableError` if the name could not be
 * resolved or no connection was made, and a `NoResponseError` if the server did not respond completely in time.
 *
 * @throws {InvalidInputError} for an invalid option, and on runtimes other than Node.
 *
 * @example
 * ```ts
 * import { guardedFetch } from 'open-payments-server'
 *
 * const fetchDocument = guardedFetch()
 * const { status, body } = await fetchDocument(new URL('https://bank.example/incoming-payments/1'))
 * ```
 */
export function guardedFetch(options: GuardedFetchOptions = {}): GuardedFetch {
  const settings = readInput('', fetchOptions, options)
  const { allowLoopback, privateHosts, ports, timeoutMs, responseBytesMax } = settings
  const { dns, ...clients } = nodeParts()
  const resolve = settings.resolve ?? dnsResolve(dns)

  return async (url, request = {}) => {
    const local = allowLoopback && isLoopback(url)
    const isPrivate = privateHosts.includes(url.hostname)
    if (!allowLoopback && isLocal(url)) throw fetchRefusal(loopbackRefused)
    if (url.protocol !== 'https:' && !local) throw fetchRefusal('the URL must use https')
    const port = Number(url.port || 443)
    if (!local && !isPrivate && !ports.includes(port)) throw fetchRefusal('the port is not allowed')
    const client = url.protocol === 'https:' ? clients.https : clients.http
    let connected = false
    const send = async (signal: AbortSignal) => {
      const addresses = await addressesOf(url.hostname, resolve, signal)
      if (!isPrivate && !addresses.every(local ? isLoopbackAddress : isPublicAddress)) {
        throw fetchRefusal(privateRefused)
      }
      signal.throwIfAborted()
      const connectMs = Math.max(connectMinMs, Math.ceil(timeoutMs / addresses.length))
      const limits = { connectMs, responseBytesMax }
      const sent = { client, request: { ...request, signal }, addresses, ...limits }
      return exchange(url, sent, () => {
        connected = true
      })
    }
    try {
      return await withDeadline(timeoutMs, send, request.signal)
    } catch (error) {
      request.signal?.throwIfAborted()
      if (isFetchRefusal(error)) throw error
      throw connected ? noResponse(error) : hostUnreachable(error)
    }
  }
}

const loopbackRefused = 'the host is this machine, which needs the option allowLoopback'
const privateRefused = 'the address of the host is not public, which needs the option privateHosts'

function isLocal(url: URL): boolean {
  const address = addressIn(url.hostname)
  return address === undefined ? isLocalName(url.hostname) : isLoopbackAddress(address)
}

function isPort(port: unknown): boolean {
  return Number.isInteger(port) && Number(port) > 0 && Number(port) < 65_536
}

function isHostname(host: unknown): boolean {
  const url = `https://${host}/`
  return typeof host === 'string' && URL.canParse(url) && new URL(url).hostname === host
}

function nodeParts(): NodeParts {
  const http = nodeModule<typeof NodeHttp>('node:http')
  const https = nodeModule<typeof NodeHttps>('node:https')
  const dns = nodeModule<typeof NodeDns>('node:dns')
  if (!http || !https || !dns || isCloudflareWorkers()) {
    throw new InvalidInputError('fetch', 'is required on runtimes other than Node')
  }
  return { http, https, dns }
}

/** The addresses of names that are never looked up. */
const loopback = ['127.0.0.1', '::1']

async function addressesOf(
  hostname: string,
  resolve: NonNullable<GuardedFetchOptions['resolve']>,
  signal: AbortSignal,
): Promise<readonly string[]> {
  const address = addressIn(hostname)
  if (address !== undefined) return [address]
  if (isLocalName(hostname)) return loopback
  const addresses = await resolve(hostname, signal)
  if (addresses.length === 0) throw new Error('the name has no address')
  return addresses
}

/** How long to wait for a name server before the query is sent again, to the next one if there are several. */
const queryTimeoutMs = 500
const queriesMax = 2

/** The part of `node:dns` that the resolver needs. */
interface Dns {
  readonly promises: Pick<typeof NodeDns.promises, 'Resolver'>
}

/**
 * Creates a resolver that sends queries to the system's name servers. `dns.lookup` would occupy one of the few threads
 * that the process shares with file access and cryptography, for as long as the name servers do not respond, and cannot
 * be cancelled. Unlike it, this resolver does not read the hosts file.
 */
export function dnsResolve({
  promises: { Resolver },
}: Dns): NonNullable<GuardedFetchOptions['resolve']> {
  return async (hostname, signal) => {
    signal.throwIfAborted()
    const resolver = new Resolver({ timeout: queryTimeoutMs, tries: queriesMax })
    const cancel = () => resolver.cancel()
    signal.addEventListener('abort', cancel, { once: true })
    const [ipv4, ipv6] = await Promise.allSettled([
      resolver.resolve4(hostname),
      resolver.resolve6(hostname),
    ])
    signal.removeEventListener('abort', cancel)
    const addresses = [ipv4, ipv6].flatMap((answer) =>
      answer.status === 'fulfilled' ? answer.value : [],
    )
    if (addresses.length === 0 && ipv4.status === 'rejected') throw ipv4.reason
    return addresses
  }
}

interface Sent {
  readonly client: typeof NodeHttp | typeof NodeHttps
  readonly request: GuardedRequest
  readonly addresses: readonly string[]
  /** How long the connection to one address may take while others are left. */
  readonly connectMs: number
  readonly responseBytesMax: number
}

/**
 * The default of Node. On its own it is too short for a host on another continent, and for a process that is busy while
 * it connects: the address that answers is given up for one that does not exist here, such as an IPv6 address.
 */
const connectMinMs = 250

function exchange(url: URL, sent: Sent, onConnect: () => void) {
  const { client, addresses, connectMs, responseBytesMax } = sent
  const { method = 'GET', headers = { accept: 'application/json' }, body, signal } = sent.request
  return new Promise<FetchedDocument>((resolve, reject) => {
    const lookup = fixedLookup(addresses)
    const request = client.request(url, {
      ...{ method, agent: false, headers, lookup, autoSelectFamilyAttemptTimeout: connectMs },
      ...(signal !== undefined && { signal }),
    })
    request.on('socket', (socket) => {
      socket.once(url.protocol === 'https:' ? 'secureConnect' : 'connect', onConnect)
    })
    request.on('error', reject)
    // A server can upgrade the connection, or close it, without a response or an error event.
    let responded = false
    request.on('upgrade', (_response, socket) => socket.destroy())
    request.on('close', () => {
      if (!responded) reject(new Error('the connection was closed'))
    })
    request.on('response', (response) => {
      responded = true
      readResponse(response, responseBytesMax).then(resolve, (error) => {
        request.destroy()
        reject(error)
      })
    })
    request.end(body)
  })
}

/** Returns the addresses that were checked, whatever the name. */
function fixedLookup(addresses: readonly string[]): NodeNet.LookupFunction {
  const found = addresses.map((address) => ({ address, family: address.includes(':') ? 6 : 4 }))
  const [first] = found
  return (_hostname, { all }, callback) => {
    if (all === true) callback(null, found)
    else callback(null, first?.address ?? '', first?.family)
  }
}

async function readResponse(
  response: NodeHttp.IncomingMessage,
  bytesMax: number,
): Promise<FetchedDocument> {
  const status = response.statusCode ?? 0
  const contentType = response.headers['content-type'] ?? ''
  const chunks: Buffer[] = []
  let length = 0
  for await (const chunk of response as AsyncIterable<Buffer>) {
    length += chunk.length
    if (length > bytesMax)
      throw new FetchRefusedError('the document is too large', { isSent: true })
    chunks.push(chunk)
  }
  const [first] = chunks
  const body = first === undefined || chunks.length === 1 ? first : Buffer.concat(chunks)
  const headers = Object.fromEntries(
    Object.entries(response.headers).map(([name, value]) => [name, [value].flat().join(', ')]),
  )
  return { status, contentType, body: body ?? new Uint8Array(), headers }
}

export function fetchRefusal(problem: string): FetchRefusedError {
  return new FetchRefusedError(problem)
}

export function isFetchRefusal(error: unknown): error is FetchRefusedError {
  return hasCode(error, 'ERR_FETCH_REFUSED')
}

function hostUnreachable(cause: unknown): HostUnreachableError {
  return new HostUnreachableError(`the host cannot be reached${detailOf(cause)}`, { cause })
}

function noResponse(cause: unknown): NoResponseError {
  return new NoResponseError(`the host sent no complete response${detailOf(cause)}`, { cause })
}

/** Returns the system's error code, or that the time was over. */
function detailOf(cause: unknown): string {
  const { code, name } = (cause ?? {}) as { readonly code?: unknown; readonly name?: unknown }
  if (name === 'TimeoutError' || code === 'ABORT_ERR') return ' in time'
  return typeof code === 'string' ? ` (${code})` : ''
}

export function isHostUnreachable(error: unknown): error is HostUnreachableError {
  return hasCode(error, 'ERR_HOST_UNREACHABLE')
}
