import type * as NodeDns from 'node:dns'
import type * as NodeHttp from 'node:http'
import type * as NodeHttps from 'node:https'
import type * as NodeNet from 'node:net'
import { isLoopback } from '../protocol/url.js'
import { nodeModule } from '../util/node-module.js'
import { invalidOption } from '../util/option-error.js'
import { type AddressGuard, addressGuard } from './addresses.js'

/** What came back: the status, and the body if it is JSON of a bearable size. */
export interface FetchedDocument {
  readonly status: number
  readonly contentType: string
  readonly body: Uint8Array
}

/**
 * Gets a document from a URL that a stranger named. Rejects with a `FetchRefusal` when the URL or its
 * answer is not acceptable and never will be, and with any other error when it may be later.
 */
export type DocumentFetch = (url: URL) => Promise<FetchedDocument>

/** A request other than a plain GET, to a URL that a stranger named. */
export interface GuardedRequest {
  /** Default: `GET`. */
  readonly method?: string
  /** Default: `accept: application/json` and nothing else. */
  readonly headers?: Readonly<Record<string, string>>
  /** At most what the host itself has composed: it is held in memory. */
  readonly body?: Uint8Array
  /** Ends the request when aborted; the promise rejects. */
  readonly signal?: AbortSignal
}

/** Sends a request under the rules of `guardedFetch`; without `request` it is a `DocumentFetch`. */
export type GuardedFetch = (url: URL, request?: GuardedRequest) => Promise<FetchedDocument>

/** A URL or an answer that will not get better by asking again. */
export interface FetchRefusal extends Error {
  readonly code: 'ERR_FETCH_REFUSED'
}

export interface GuardedFetchOptions {
  /** Lets http and https reach this machine, for development. Default false. */
  readonly allowLoopback?: boolean
  /** Ports that may be connected to. Default: 443 only, and any on loopback where that is allowed. */
  readonly ports?: readonly number[]
  /** Time for the whole exchange in milliseconds, at most 60,000. Default 2,000. */
  readonly timeoutMs?: number
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
 * Makes a function that sends requests to URLs which strangers named, such as the receiver of a payment. It
 * connects over https to public addresses only, follows no redirects, and reads at most 64 KiB within the
 * timeout. It connects to the very address that it checked, so that a second look-up cannot lead elsewhere.
 *
 * The function resolves for every status. It rejects with a `FetchRefusal` (`code` is `ERR_FETCH_REFUSED`)
 * when the URL or the size of the answer breaks a rule, and with another error when the server cannot be
 * reached or takes too long.
 *
 * @throws `TypeError` with code `ERR_INVALID_OPTION` for options that cannot work, and without Node.
 */
export function guardedFetch({
  allowLoopback = false,
  ports = [443],
  timeoutMs = 2_000,
}: GuardedFetchOptions = {}): GuardedFetch {
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
    // A server may change protocols, or hang up, without either a response or an error.
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

/** Resolves a name itself and hands on what it has checked, all of it: one bad address spoils the name. */
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

export function fetchRefusal(problem: string): FetchRefusal {
  return Object.assign(new Error(problem), { code: 'ERR_FETCH_REFUSED' as const })
}

export function isFetchRefusal(error: unknown): error is FetchRefusal {
  return error instanceof Error && 'code' in error && error.code === 'ERR_FETCH_REFUSED'
}

async function refuse(problem: string): Promise<never> {
  throw fetchRefusal(problem)
}
