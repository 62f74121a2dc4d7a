import type * as NodeDns from 'node:dns'
import type * as NodeHttp from 'node:http'
import type * as NodeHttps from 'node:https'
import type * as NodeNet from 'node:net'
import { isLoopback } from '../protocol/url.js'
import { hasCode } from '../util/error-code.js'
import { requireKnownOptions } from '../util/known-options.js'
import { nodeModule } from '../util/node-module.js'
import { invalidOption } from '../util/option-error.js'
import { type AddressGuard, addressGuard } from './addresses.js'

/** A response of at most 64 KiB. */
export interface FetchedDocument {
  readonly status: number
  readonly contentType: string
  readonly body: Uint8Array
}

/**
 * Fetches a document from a URL that an untrusted party chose. Rejects with a `FetchRefusedError` if the URL or the
 * response breaks a rule, and with another error if a later request may succeed.
 */
export type DocumentFetch = (url: URL) => Promise<FetchedDocument>

/** A request to a URL that an untrusted party chose. */
export interface GuardedRequest {
  /** Default: `GET`. */
  readonly method?: string
  /** Default: only `accept: application/json`. */
  readonly headers?: Readonly<Record<string, string>>
  /** The body, which is held in memory. */
  readonly body?: Uint8Array
  /** Cancels the request; the promise rejects. */
  readonly signal?: AbortSignal
}

/** Sends a request under the rules of `guardedFetch`; without `request` it is a `DocumentFetch`. */
export type GuardedFetch = (url: URL, request?: GuardedRequest) => Promise<FetchedDocument>

/** A URL or a response that breaks a rule, so that another attempt would fail too. */
export class FetchRefusedError extends Error {
  readonly code = 'ERR_FETCH_REFUSED'
}

export interface GuardedFetchOptions {
  /** Allows http and https to loopback addresses, for development. Default: false. */
  readonly allowLoopback?: boolean
  /** Allowed ports. Default: 443. With `allowLoopback`, all ports on loopback are allowed. */
  readonly ports?: readonly number[]
  /** Timeout for the whole exchange, in milliseconds, at most 60,000. Default: 2,000. */
  readonly timeoutMs?: number
}

export const guardedFetchOptions: Readonly<Record<keyof GuardedFetchOptions, true>> = {
  allowLoopback: true,
  ports: true,
  timeoutMs: true,
}

const timeoutMaxMs = 60_000
const responseBytesMax = 64 * 1024

interface NodeParts {
  readonly http: typeof NodeHttp
  readonly https: typeof NodeHttps
  readonly lookup: typeof NodeDns.lookup
  readonly guard: AddressGuard
}

/**
 * Creates a function that sends requests to URLs that untrusted parties chose, such as the receiver of a payment.
 * It connects only over https and to public addresses, does not follow redirects, and reads at most 64 KiB within
 * the timeout. It connects to the address that it checked, so a second DNS lookup cannot return another one.
 *
 * The function resolves for every status. It rejects with a `FetchRefusedError` (`code` is `ERR_FETCH_REFUSED`)
 * if the URL or the size of the response breaks a rule, and with another error if the server cannot be reached or
 * does not respond in time.
 *
 * @throws {OptionError} for an invalid option, and on runtimes other than Node.
 */
export function guardedFetch(options: GuardedFetchOptions = {}): GuardedFetch {
  requireKnownOptions('', options, guardedFetchOptions)
  const { allowLoopback = false, ports = [443], timeoutMs = 2_000 } = options
  if (typeof allowLoopback !== 'boolean')
    throw invalidOption('allowLoopback', 'must be true or false')
  if (!ports.every((port) => Number.isInteger(port) && port > 0 && port < 65_536)) {
    throw invalidOption('ports', 'must be port numbers')
  }
  if (!Number.isInteger(timeoutMs) || timeoutMs < 1 || timeoutMs > timeoutMaxMs) {
    throw invalidOption('timeoutMs', `must be an integer from 1 to ${timeoutMaxMs}`)
  }
  const node = nodeParts()
  return (url, request = {}) => {
    const local = allowLoopback && isLoopback(url)
    if (url.protocol !== 'https:' && !local) return refuse('the URL must use https')
    const port = Number(url.port || 443)
    if (!local && !ports.includes(port)) return refuse('the port is not allowed')
    const signals = request.signal === undefined ? [] : [request.signal]
    const signal = AbortSignal.any([AbortSignal.timeout(timeoutMs), ...signals])
    return exchange(url, { ...request, signal }, node, local)
  }
}

function nodeParts(): NodeParts {
  const http = nodeModule<typeof NodeHttp>('node:http')
  const https = nodeModule<typeof NodeHttps>('node:https')
  const dns = nodeModule<typeof NodeDns>('node:dns')
  const net = nodeModule<typeof NodeNet>('node:net')
  if (!http || !https || !dns || !net) {
    throw invalidOption('fetch', 'is required on runtimes other than Node')
  }
  return { http, https, lookup: dns.lookup, guard: addressGuard(net) }
}

function exchange(
  url: URL,
  { method = 'GET', headers = { accept: 'application/json' }, body, signal }: GuardedRequest,
  { http, https, lookup, guard }: NodeParts,
  local: boolean,
) {
  const allowed = local ? guard.isLoopback : guard.isPublic
  return new Promise<FetchedDocument>((resolve, reject) => {
    const literal = url.hostname.replace(/^\[|\]$/g, '')
    if (/^[\d.]+$|:/.test(literal) && !allowed(literal)) {
      reject(fetchRefusal('the address is not public'))
      return
    }
    const client = url.protocol === 'https:' ? https : http
    const request = client.request(url, {
      method,
      agent: false,
      headers,
      lookup: checkedLookup(lookup, allowed),
      signal,
    })
    request.on('error', reject)
    // A server can upgrade the connection, or close it, without a response or an error event.
    let responded = false
    request.on('upgrade', (_response, socket) => socket.destroy())
    request.on('close', () => {
      if (!responded) reject(new Error('the connection ended without a response'))
    })
    request.on('response', (response) => {
      responded = true
      readResponse(response).then(resolve, (error) => {
        request.destroy()
        reject(error)
      })
    })
    request.end(body)
  })
}

/** Resolves a name and checks all its addresses. A name with one forbidden address is refused. */
function checkedLookup(
  lookup: typeof NodeDns.lookup,
  allowed: (address: string) => boolean,
): NodeNet.LookupFunction {
  return (hostname, options, callback) => {
    lookup(hostname, { ...options, all: true }, (error, addresses) => {
      const [first] = addresses ?? []
      if (error !== null || first === undefined) {
        callback(error ?? new Error('the name has no address'), '')
      } else if (!addresses.every(({ address }) => allowed(address))) {
        callback(fetchRefusal('the name resolves to an address that is not public'), '')
      } else if (options.all === true) {
        callback(null, addresses)
      } else {
        callback(null, first.address, first.family)
      }
    })
  }
}

async function readResponse(response: NodeHttp.IncomingMessage): Promise<FetchedDocument> {
  const status = response.statusCode ?? 0
  const contentType = response.headers['content-type'] ?? ''
  const chunks: Buffer[] = []
  let length = 0
  for await (const chunk of response as AsyncIterable<Buffer>) {
    length += chunk.length
    if (length > responseBytesMax) throw fetchRefusal('the document is too large')
    chunks.push(chunk)
  }
  const [first] = chunks
  const body = first === undefined || chunks.length === 1 ? first : Buffer.concat(chunks)
  return { status, contentType, body: body ?? new Uint8Array() }
}

export function fetchRefusal(problem: string): FetchRefusedError {
  return new FetchRefusedError(problem)
}

export function isFetchRefusal(error: unknown): error is FetchRefusedError {
  return hasCode(error, 'ERR_FETCH_REFUSED')
}

async function refuse(problem: string): Promise<never> {
  throw fetchRefusal(problem)
}
