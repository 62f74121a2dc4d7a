import type * as NodeDns from 'node:dns'
import type * as NodeHttp from 'node:http'
import type * as NodeHttps from 'node:https'
import type * as NodeNet from 'node:net'
import { nodeModule } from '../protocol/node-module.js'
import { invalidOption } from '../protocol/option-error.js'
import { isLoopback } from '../protocol/url.js'
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

/** A URL or an answer that will not get better by asking again. */
export interface FetchRefusal extends Error {
  readonly code: 'ERR_FETCH_REFUSED'
}

export interface GuardedFetchOptions {
  /** Lets http and https reach this machine, for development. Default false. */
  readonly allowLoopback?: boolean
  /** Ports that may be connected to. Default: 443 only, and any on loopback where that is allowed. */
  readonly ports?: readonly number[]
}

const timeoutMs = 2_000
const responseBytesMax = 64 * 1024

interface NodeParts {
  readonly http: typeof NodeHttp
  readonly https: typeof NodeHttps
  readonly lookup: typeof NodeDns.lookup
  readonly guard: AddressGuard
}

/**
 * Fetches from strangers without being their tool: https only, public addresses only, no redirects, 2 s
 * in all and 64 KiB. The address that was checked is the address that is connected to, so that a second
 * look-up cannot lead elsewhere.
 *
 * @throws `TypeError` with code `ERR_INVALID_OPTION` where there is no Node to connect with.
 */
export function guardedFetch({
  allowLoopback = false,
  ports = [443],
}: GuardedFetchOptions): DocumentFetch {
  if (typeof allowLoopback !== 'boolean')
    throw invalidOption('allowLoopback', 'must be true or false')
  if (!ports.every((port) => Number.isInteger(port) && port > 0 && port < 65_536)) {
    throw invalidOption('ports', 'must be port numbers')
  }
  const node = nodeParts()
  return (url) => {
    const local = allowLoopback && isLoopback(url)
    if (url.protocol !== 'https:' && !local) return refuse('only https may be fetched')
    const port = Number(url.port || 443)
    if (!local && !ports.includes(port)) return refuse('the port is not one that may be used')
    return get(url, node, local)
  }
}

function nodeParts(): NodeParts {
  const http = nodeModule<typeof NodeHttp>('node:http')
  const https = nodeModule<typeof NodeHttps>('node:https')
  const dns = nodeModule<typeof NodeDns>('node:dns')
  const net = nodeModule<typeof NodeNet>('node:net')
  if (!http || !https || !dns || !net) {
    throw invalidOption('fetch', 'is required where there is no Node to guard connections with')
  }
  return { http, https, lookup: dns.lookup, guard: addressGuard(net) }
}

function get(url: URL, { http, https, lookup, guard }: NodeParts, local: boolean) {
  const allowed = local ? guard.isLoopback : guard.isPublic
  return new Promise<FetchedDocument>((resolve, reject) => {
    const literal = url.hostname.replace(/^\[|\]$/g, '')
    if (/^[\d.]+$|:/.test(literal) && !allowed(literal)) {
      reject(fetchRefusal('the address is not public'))
      return
    }
    const client = url.protocol === 'https:' ? https : http
    const request = client.get(url, {
      agent: false,
      headers: { accept: 'application/json' },
      lookup: checkedLookup(lookup, allowed),
      signal: AbortSignal.timeout(timeoutMs),
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
        callback(fetchRefusal('the name leads to an address that is not public'), '')
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
