import type { Instant, Json } from '../core/decision.js'
import type { RequestOutcome, Telemetry } from '../ports/telemetry.js'
import type { SignedMessage } from '../protocol/http-signature/components.js'
import { parseJson } from '../protocol/json.js'
import type { BodyProblem, Parsed } from '../protocol/schema.js'
import type { Call } from '../service/mechanism/context.js'
import { readMessage } from './fields.js'
import { bodyBytesMax, type Handler, type HttpRequest, type HttpResponse } from './message.js'
import { limitedUntil, type RateLimitedCall, type RateLimiting } from './rate-limit.js'
import {
  type HttpRefusal,
  publicError,
  type Refusal,
  type RefusalContext,
  refusalResponse,
  type ServerOperation,
} from './refusals.js'
import { matchRoute, type Route } from './routes.js'
import { type PublicUrl, resolveTarget } from './target.js'

/** What an operator learns of a refused request: which check, and never the request itself. */
export interface RefusalReport {
  /** The precise refusal. */
  readonly refusal: Refusal
  /** Which header, which check: never part of the response. */
  readonly reason: string
  /** Status and code that the client was given. */
  readonly status: number
  readonly code: string
  readonly method: string
  /** The operation that was asked for; absent when there was none at that path. */
  readonly operation?: ServerOperation
  /** The `keyid` that was claimed, once the signature's form had been checked. */
  readonly keyid?: string
  /** The client instance, once its signature has been verified. */
  readonly client?: string
  readonly at: Instant
}

/** How the host watches what a server does. No hook changes an answer, nor may it throw. */
export interface ServerHooks {
  readonly onRefusal?: (report: RefusalReport) => void
  /** Receives what went wrong behind a 500 or 503: a failing store, port or hook. */
  readonly onError?: (error: unknown) => void
  /** Measures requests, store calls and signature verifications. Default: nothing does. */
  readonly telemetry?: Telemetry
}

/** A request on its way through a server, as far as it has been understood. */
export interface Exchange {
  readonly message: SignedMessage
  readonly operation: ServerOperation
  /** The segment of the path that `{id}` stands for. */
  readonly id: string
  readonly call: Call
  /** What is learnt on the way, for the report of a refusal. */
  readonly seen: { keyid?: string; client?: string }
  /** Asks for the host's limits, once it is known who calls, or that it need not be known. */
  readonly limit: (caller?: Caller) => Promise<HttpRefusal | undefined>
  readonly telemetry?: Telemetry | undefined
}

type Caller = Required<Pick<RateLimitedCall, 'client' | 'keyid'>>

export type Serve = (exchange: Exchange) => Promise<HttpResponse | HttpRefusal>

interface Pipeline {
  readonly server: RefusalContext['server']
  readonly url: PublicUrl
  readonly strippedPrefix: string
  readonly routes: readonly Route[]
  readonly serve: { readonly [Name in ServerOperation]?: Serve }
  readonly newCall: () => Call
  /** Value of `WWW-Authenticate`, on every 401. */
  readonly challenge?: string
  /** Headers of every response. Default: none. */
  readonly headers?: HttpResponse['headers']
  readonly watch: ServerHooks & RateLimiting
}

/** Makes the handler of all of a server's routes, and one for each operation alone. */
export function createHandlers<Name extends ServerOperation>(
  pipeline: Pipeline & { readonly serve: Readonly<Record<Name, Serve>> },
) {
  const { routes } = pipeline
  const alone = Object.keys(pipeline.serve).map((operation) => {
    const own = routes.filter((route) => route.operation === operation)
    return [operation, createHandler(pipeline, own)] as const
  })
  const handlers = Object.fromEntries(alone) as Readonly<Record<Name, Handler>>
  return { handle: createHandler(pipeline, routes), handlers, routes }
}

/**
 * Makes a handler of some of a server's routes. The order is the same for every route: size, route and
 * headers here; then signature, token, key, schema and decision in the operation.
 */
function createHandler(pipeline: Pipeline, routes: readonly Route[]): Handler {
  const { server, watch } = pipeline
  const { telemetry } = watch
  if (telemetry === undefined) return (request) => answerTo(request, pipeline, routes)
  return (request) => {
    const activity = { type: 'request', server, method: request.method } as const
    return telemetry.observe(activity, (tell) => answerTo(request, pipeline, routes, tell))
  }
}

async function answerTo(
  request: HttpRequest,
  pipeline: Pipeline,
  routes: readonly Route[],
  tell?: (outcome: RequestOutcome) => void,
): Promise<HttpResponse> {
  const seen: Exchange['seen'] = {}
  let operation: ServerOperation | undefined
  let call: Call | undefined
  let answer: HttpResponse | HttpRefusal
  const { telemetry } = pipeline.watch
  try {
    call = pipeline.newCall()
    const understood = understand(request, routes, pipeline)
    if ('refusal' in understood) {
      answer = understood
    } else {
      const { route, id, message } = understood
      operation = route.operation
      const limit = limiter(pipeline.watch, { operation, method: request.method, at: call.now })
      const serve = pipeline.serve[operation]
      answer = serve
        ? await serve({ message, operation, id, call, seen, limit, telemetry })
        : refuse('internal', 'no such operation')
    }
  } catch (error) {
    answer = refuseError(error)
    report(() => pipeline.watch.onError?.(error))
  }
  const where = operation === undefined ? {} : { operation }
  if ('status' in answer) {
    tell?.({ ...where, status: answer.status })
    return finished(request, answer, pipeline)
  }
  const now = call?.now ?? 0
  const context = { ...pipeline, challenge: pipeline.challenge, operation, now }
  reportRefusal(answer, request, context, seen, pipeline.watch)
  const response = refusalResponse(answer, context)
  tell?.({ ...where, status: response.status, refusal: answer.refusal })
  return finished(request, response, pipeline)
}

/** Where the host's counting fails, calls are served: an outage of it must not become one of the server. */
function limiter(
  { rateLimit, onError }: Pipeline['watch'],
  call: Omit<RateLimitedCall, keyof Caller>,
): Exchange['limit'] {
  return async (caller) => {
    if (rateLimit === undefined) return undefined
    try {
      const retryAt = await limitedUntil(rateLimit, { ...call, ...caller })
      if (retryAt === undefined) return undefined
      return { ...refuse('rate_limited', 'over the limits of the host'), retryAt }
    } catch (error) {
      report(() => onError?.(error))
      return undefined
    }
  }
}

/** Serves an operation that anybody may call without a signature. */
export function unsigned(serve: Serve): Serve {
  return async (exchange) => (await exchange.limit()) ?? serve(exchange)
}

/** Adds the server's own headers. A response to HEAD has no content (RFC 9110 section 9.3.2). */
function finished(
  { method }: HttpRequest,
  response: HttpResponse,
  { headers: own }: Pipeline,
): HttpResponse {
  const { status } = response
  const headers = own === undefined ? response.headers : { ...response.headers, ...own }
  return method === 'HEAD' ? { status, headers } : { ...response, headers }
}

interface Understood {
  readonly route: Route
  readonly id: string
  readonly message: SignedMessage
}

function understand(
  request: HttpRequest,
  routes: readonly Route[],
  { url, strippedPrefix }: Pipeline,
): Understood | HttpRefusal {
  if (request.body.length > bodyBytesMax) {
    return refuse('body_too_large', `the body has more than ${bodyBytesMax} bytes`)
  }
  const target = resolveTarget(request.url, url, strippedPrefix)
  if ('refusal' in target) return refuse(target.refusal, target.reason)
  const match = matchRoute(routes, request.method, target.path)
  if ('refusal' in match) {
    return match.refusal === 'route_unknown'
      ? refuse(match.refusal, 'no operation has this path')
      : { ...refuse(match.refusal, 'no operation has this method'), allow: match.allow }
  }
  const read = readMessage(request, url.origin, target.target)
  return 'refusal' in read ? refuse(read.refusal, read.reason) : { ...match, ...read }
}

/** The JSON of a request's body: `value` is `undefined` when there was no body. */
export function readBody({ body }: SignedMessage): { value: Json | undefined } | HttpRefusal {
  if (body.length === 0) return { value: undefined }
  const value = parseJson(body)
  return value === undefined ? refuse('body_invalid', 'the body is not JSON') : { value }
}

export function refuse(refusal: Refusal, reason: string): HttpRefusal {
  return { ok: false, outcome: 'refused', refusal, reason }
}

/** Reads a request's body by its schema. */
export function readContent<Content>(
  message: SignedMessage,
  read: (value: Json | undefined) => Parsed<Content>,
): { value: Content } | HttpRefusal {
  const body = readBody(message)
  if ('outcome' in body) return body
  const content = read(body.value)
  return 'value' in content ? content : refuseProblem('body_invalid', content)
}

/** Refuses a body or a query, telling the client where it is wrong. */
export function refuseProblem(
  refusal: 'body_invalid' | 'query_invalid',
  { path, problem }: BodyProblem,
): HttpRefusal {
  const details = path === '' ? { problem } : { path, problem }
  return { ...refuse(refusal, `${path} ${problem}`.trim()), details }
}

/** A response with a JSON body. Nothing that is served here may be kept by a cache. */
export function json(status: number, value: object): HttpResponse {
  const headers = { 'content-type': 'application/json', 'cache-control': 'no-store' }
  return { status, headers, body: JSON.stringify(value) }
}

export const noContent: HttpResponse = { status: 204, headers: { 'cache-control': 'no-store' } }

function refuseError(error: unknown): HttpRefusal {
  const busy = error instanceof Error && 'code' in error && error.code === 'ERR_CONTENTION'
  return busy
    ? refuse('busy', 'other writers kept winning')
    : refuse('internal', error instanceof Error ? error.name : 'something else than an error')
}

function reportRefusal(
  refused: HttpRefusal,
  { method }: HttpRequest,
  context: RefusalContext,
  seen: Exchange['seen'],
  watch: ServerHooks,
): void {
  if (watch.onRefusal === undefined) return
  const { refusal, reason } = refused
  const { operation, now: at } = context
  const { status, code } = publicError(refusal, context)
  const where = operation === undefined ? {} : { operation }
  report(() => watch.onRefusal?.({ refusal, reason, status, code, method, ...where, ...seen, at }))
}

/** A hook that throws must not turn one answer into another. */
function report(hook: () => void): void {
  try {
    hook()
  } catch {
    // There is nobody left to tell.
  }
}
