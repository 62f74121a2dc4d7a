import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { isForHost } from 'create-open-payments-server/wallet/hosts'
import { described, type RequestLog } from 'create-open-payments-server/wallet/start-page/requests'
import type { ServerOperation } from 'open-payments-server'
import type { HttpRequest, HttpResponse } from 'open-payments-server/adapter'
import { endUnread, headerLines, readNodeBody } from '../../../adapters/node-request.js'
import { walletAddressRoutes } from '../../../src/http/routes.js'
import type { SandboxClock } from './clock.js'
import { SandboxError } from './error.js'
import { type Faults, operationOf, type PlantedFault, responseFaults } from './faults.js'
import type { Gate } from './gate.js'
import type { Seen } from './seen.js'
import { signatureBaseOf } from './signature-base.js'
import type { SandboxWallet } from './wallet.js'

export interface FrontOptions {
  readonly wallet: SandboxWallet
  readonly faults: Faults
  readonly log: RequestLog
  readonly clock: SandboxClock
  readonly gate: Gate
  /** Runs work during which `seen` is what is known of the request. */
  readonly within: <Result>(seen: Seen, work: () => Promise<Result>) => Promise<Result>
  /** Serves the pages of the sandbox, below `/sandbox`. */
  readonly serveControls: (request: IncomingMessage, response: ServerResponse) => Promise<void>
  /** The names under which the pages are served, besides those of this machine. */
  readonly hostNames: readonly string[]
  readonly stopping: AbortSignal
}

type Answer = HttpResponse<string | Uint8Array>
type ResponseFault = PlantedFault & { readonly fault: (typeof responseFaults)[number] }

/** Serves a wallet over HTTP: with the faults that are planted, and a record of each request. */
export function frontOf(
  options: FrontOptions,
): (request: IncomingMessage, response: ServerResponse) => void {
  const { wallet, faults, log, clock, gate, within, serveControls, hostNames, stopping } = options

  async function serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { url = '/', method = '' } = request
    const path = url.split('?', 1)[0] ?? ''
    const headers = headerLines(request)
    const isOwn = /^\/(?:sandbox|consent|confirm|login|apps|keys)?(?:\/|$)/.test(path)
    const operation = isOwn ? undefined : operationOf(method, path)
    if (operation === undefined && !isForHost({ headers }, hostNames)) {
      return send(response, failure(421, 'this is not a host of the sandbox: see --host'))
    }
    if (path === '/sandbox' || path.startsWith('/sandbox/')) return serveControls(request, response)
    if (path === '/' && method === 'GET') {
      response.writeHead(302, { location: '/sandbox' }).end()
      return
    }
    const [arrivedAt, started] = [new Date(), performance.now()]
    const body = await readNodeBody(request, {}, '')
    if (body === undefined) return
    endUnread(request, response, body)
    const message = { method, url, headers, body }
    const planned = operation && faults.next(responseFaults, wallet.baseUrl, operation)
    const seen: Seen = {
      faults: [],
      ...(planned?.fault === 'too-many-requests' && {
        limit: () =>
          use(planned, seen) ? { retryAfterMs: retryAfterOf(planned) * 1000 } : undefined,
      }),
    }
    // These have an effect on every request.
    const isCertain =
      planned !== undefined &&
      planned.fault !== 'too-many-requests' &&
      planned.fault !== 'expired-grant'
    const fault = isCertain && use(planned, seen) ? planned : undefined
    const expires = planned?.fault === 'expired-grant' ? () => use(planned, seen) : undefined
    const work = () => within(seen, () => answerTo(message, fault, expires))
    // The wallets read names and keys while they serve a request, so this must not wait until no request is served.
    const answer = await (isPublic(operation) ? work() : gate.pass(work))
    if (fault?.fault === 'slow') {
      await sleep(fault.delayMs ?? 10_000, undefined, { signal: stopping }).catch(() => undefined)
    }
    const { refusal, decided } = seen
    const isLost = fault?.fault === 'lost-response'
    const denied = decided?.decision === 'deny' ? decided.why : undefined
    const onPage = operation === undefined ? problemOn(answer) : undefined
    const reason = refusal?.reason ?? denied ?? reasonOf(fault) ?? onPage
    const signatureBase =
      refusal?.refusal === 'signature_invalid'
        ? await signatureBaseOf(message, wallet.baseUrl)
        : undefined
    const ms = performance.now() - started
    log.add({
      ...described(message, { wallet: wallet.baseUrl, arrivedAt, ms, refusal }),
      ...(clock.offsetMs() !== 0 && { clock: new Date(clock.now()).toISOString() }),
      ...(operation !== undefined && { operation }),
      ...(!isLost && { status: answer.status }),
      ...(reason !== undefined && { reason }),
      ...(signatureBase !== undefined && { signatureBase }),
      ...(fault?.fault === 'unavailable' && { code: unavailableCode(url) }),
      ...(seen.faults.length > 0 && { fault: seen.faults.join(', ') }),
      ...(decided !== undefined && { consent: decided.why }),
    })
    if (isLost) request.socket.destroy()
    else send(response, answer)
  }

  async function answerTo(
    message: HttpRequest,
    fault: ResponseFault | undefined,
    expires: (() => boolean) | undefined,
  ): Promise<Answer> {
    if (fault?.fault === 'unavailable') return unavailable(message.url, retryAfterOf(fault))
    if (expires !== undefined) {
      const token = /^GNAP +(\S+)$/i.exec(headerOf(message, 'authorization') ?? '')?.[1]
      if (token !== undefined) await wallet.expireGrant(token, expires)
    }
    return wallet.handle(message)
  }

  /** Counts a fault of a request. Returns false if another request has used it up. */
  function use({ id, fault }: ResponseFault, seen: Seen): boolean {
    const isLeft = faults.use(id)
    if (isLeft) seen.faults.push(fault)
    return isLeft
  }

  return (request, response) => {
    serve(request, response).catch((error: unknown) => {
      if (!stopping.aborted) console.error(error)
      response.destroy()
    })
  }
}

function retryAfterOf(
  fault: ResponseFault & { readonly fault: 'unavailable' | 'too-many-requests' },
) {
  return fault.retryAfterSeconds ?? 1
}

function isPublic(operation: ServerOperation | undefined): boolean {
  return walletAddressRoutes.some((route) => route.operation === operation)
}

function reasonOf(fault: ResponseFault | undefined): string | undefined {
  if (fault?.fault === 'lost-response')
    return 'a fault: the work was done, and the connection closed'
  if (fault?.fault === 'unavailable') return 'a fault: nothing was done'
  return fault?.fault === 'slow'
    ? `a fault: the response waited for ${fault.delayMs ?? 10_000} ms`
    : undefined
}

/** Returns why a page has refused a request: its alert, or else its heading. */
function problemOn({ status, body }: Answer): string | undefined {
  if (status < 400 || typeof body !== 'string') return undefined
  const [, told] =
    /<div[^>]* role="alert"[^>]*>(.*?)<\/div>/s.exec(body) ??
    /<h1[^>]*>(.*?)<\/h1>/s.exec(body) ??
    []
  const text = told
    ?.replace(/<[^>]*>/g, ' ')
    .replace(/&#(\d+);/g, (_, code: string) => String.fromCharCode(Number(code)))
    .replace(/\s+/g, ' ')
    .trim()
  return text ? `the page says: ${text}` : undefined
}

const unavailableCode = (url: string) => (url.startsWith('/auth') ? 'request_denied' : 'busy')

/** A response as of a wallet whose store does not respond. */
function unavailable(url: string, retryAfterSeconds: number): Answer {
  const code = unavailableCode(url)
  const headers = {
    'content-type': 'application/json',
    'cache-control': 'no-store',
    vary: 'Authorization',
    'retry-after': `${retryAfterSeconds}`,
  }
  const error = { code, description: 'Temporarily unavailable' }
  return { status: 503, headers, body: JSON.stringify({ error }) }
}

function headerOf({ headers }: HttpRequest, name: string): string | undefined {
  return headers.find(([each]) => each.toLowerCase() === name)?.[1]
}

/** A JSON response that must not be cached. */
export function json(status: number, value: object): HttpResponse {
  const headers = { 'content-type': 'application/json', 'cache-control': 'no-store' }
  return { status, headers, body: JSON.stringify(value) }
}

/** An error of the sandbox itself. */
export function failure(
  status: number,
  description: string,
  code = 'sandbox_refused',
): HttpResponse {
  return json(status, { error: { code, description } })
}

export function send(response: ServerResponse, { status, headers, body }: Answer): void {
  response.writeHead(status, { ...headers }).end(body)
}

/** A server that listens, on all of its addresses. */
export interface Listening {
  close(): Promise<void>
}

/**
 * Listens on a port of each address.
 *
 * @param optional addresses that the machine may lack.
 * @throws a `SandboxError` if a program uses the port, or it cannot be used for another reason.
 */
export async function listen(
  handle: (request: IncomingMessage, response: ServerResponse) => void,
  port: number,
  addresses: readonly string[],
  optional: readonly string[],
): Promise<Listening> {
  const servers: Server[] = []
  const close = async () => {
    await Promise.all(servers.map(closed))
  }
  try {
    for (const address of [...addresses, ...optional]) {
      const server = createServer({ keepAliveTimeout }, handle)
      const error = await problemOf(server, port, address)
      const isMissing = error?.code === 'EADDRNOTAVAIL' || error?.code === 'EAFNOSUPPORT'
      if (error === undefined) servers.push(server)
      else if (!(isMissing && optional.includes(address))) throw portError(port, address, error)
    }
  } catch (error) {
    await close()
    throw error
  }
  return { close }
}

/**
 * How long a connection may be idle, in milliseconds. After Node's 5 s, a test that computes for some seconds would
 * send its next request on a connection that is being closed.
 */
const keepAliveTimeout = 120_000

function problemOf(
  server: Server,
  port: number,
  address: string,
): Promise<NodeJS.ErrnoException | undefined> {
  return new Promise((resolve) => {
    server.once('error', resolve)
    server.listen(port, address, () => resolve(undefined))
  })
}

function portError(port: number, address: string, error: NodeJS.ErrnoException): SandboxError {
  if (error.code === 'EADDRINUSE') {
    const message = `another program uses port ${port}: choose another with the option port`
    return new SandboxError('ERR_PORT_IN_USE', message, { cause: error })
  }
  const message = `cannot listen on port ${port} of ${address}: ${error.code ?? error.message}`
  return new SandboxError('ERR_CANNOT_LISTEN', message, { cause: error })
}

function closed(server: Server): Promise<void> {
  return new Promise((resolve) => {
    server.close(() => resolve())
    server.closeAllConnections()
  })
}
