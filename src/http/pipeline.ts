import { type Ok, ok } from '../core/decision.js'
import type { Instant } from '../core/instant.js'
import type { Json } from '../core/stored.js'
import type { RequestOutcome, Telemetry, TelemetryActivity } from '../ports/host.js'
import type { SignedMessage } from '../protocol/http-signature/components.js'
import { parseJson } from '../protocol/json.js'
import type { BodyProblem, Parsed } from '../protocol/schema.js'
import { type Call, newCall, type ServiceContext } from '../service/context.js'
import { countOnce, type Proof, type RepeatRule, type SignedCall } from '../service/signed-call.js'
import { failedDependency } from '../service/store-guard.js'
import { callHook, hasCode, type OnError } from '../util/errors.js'
import { readMessage } from './fields.js'
import { bodyBytesMax, type Handler, type HttpRequest, type HttpResponse } from './message.js'
import type { ErrorTable, Refusal } from './public-errors.js'
import {
  type HttpRefusal,
  type HttpResult,
  publicError,
  type RefusalContext,
  refusalResponse,
} from './refusals.js'
import { matchRoute, type Server, type ServerOperation, type ServerRoute } from './routes.js'
import { type PublicUrl, resolveTarget } from './target.js'

/** The report of a refused request for the operator. It contains the failed check, not the request. */
export interface RefusalReport {
  /** The precise refusal. */
  readonly refusal: Refusal
  /** The failed check in words; never part of the response. */
  readonly reason: string
  /** The status and error code of the response. */
  readonly status: number
  readonly code: string
  readonly method: string
  /** The requested operation; absent if the request was refused before its operation was known. */
  readonly operation?: ServerOperation
  /** The claimed `keyid`; present once the form of the signature has been checked. */
  readonly keyid?: string
  /** The client instance; present once its signature has been verified. */
  readonly client?: string
  readonly at: Instant
}

/**
 * Hooks by which the host observes a server and limits its clients. A hook may be asynchronous; no response waits for it, except for
 * `rateLimit`, and its error does not change a response.
 */
export interface ServerHooks {
  /** Receives each refused request, with the precise reason, which the client does not see. Default: none. */
  readonly onRefusal?: (report: RefusalReport) => void
  /**
   * Receives the error of a failing store, port, `onRefusal` or telemetry, such as the cause of a 500 or 503. Its own
   * errors are ignored.
   */
  readonly onError?: (error: unknown) => void
  /** Measures requests, store calls and signature verifications. Default: none. */
  readonly telemetry?: Telemetry
  /**
   * Counts calls; a call over the limit gets 429 with `Retry-After`. A signed operation awaits it right after
   * the signature is verified, before it acts for the client; an operation that needs no signature awaits it
   * first. It does not see requests with an invalid signature: limit those by IP address in front of the
   * server. If it throws, the call is served and `onError` receives the error. Default: no limit.
   */
  readonly rateLimit?: RateLimit
}

/**
 * Counts a call, before it is served. Returns or resolves to `undefined` if the call is within the limit, and otherwise to
 * the time after which the caller may retry, in milliseconds.
 */
export type RateLimit = (
  call: RateLimitedCall,
) =>
  | { readonly retryAfterMs: number }
  | undefined
  | Promise<{ readonly retryAfterMs: number } | undefined>

/** A call that a rate limit counts. */
export interface RateLimitedCall {
  /**
   * The client instance: its wallet address, or the URN of its key's thumbprint. Its signature has been
   * verified, so no client can use up the limit of another. Absent for a call that needs no signature.
   */
  readonly client?: string
  /** The `kid` of the key that signed; absent if `client` is absent. */
  readonly keyid?: string
  readonly operation: ServerOperation
  readonly method: string
  readonly at: Instant
}

const retryAfterDefaultMs = 1_000

/** Resolves to the time when the caller may retry, or to `undefined` if the call is within the limit. */
async function limitedUntil(
  rateLimit: RateLimit,
  call: RateLimitedCall,
): Promise<Instant | undefined> {
  const exceeded = await rateLimit(call)
  // A host without types may return null or false.
  if (!exceeded) return undefined
  const { retryAfterMs } = exceeded
  return call.at + (Number.isFinite(retryAfterMs) ? retryAfterMs : retryAfterDefaultMs)
}

/** A request whose size, route and headers have been checked, with its operation. */
export interface Exchange {
  readonly server: Server
  readonly message: SignedMessage
  readonly operation: ServerOperation
  /** The part of the path that matches the `{id}` or `{path}` of the route. */
  readonly id: string
  readonly call: Call
  /** Notes what is known of the caller, for the report of a refusal. */
  readonly note: (caller: KnownCaller) => void
  /**
   * Applies the host's rate limit: after the signature is verified, or immediately for unsigned operations.
   */
  readonly limit: (caller?: Caller) => Promise<HttpRefusal | undefined>
  readonly telemetry?: Telemetry | undefined
}

type Caller = Required<Pick<RateLimitedCall, 'client' | 'keyid'>>

/** The caller of a request as far as it is known: the claimed `keyid`, then the client. */
type KnownCaller = Partial<Caller>

export type Serve = (exchange: Exchange) => Promise<HttpResult<HttpResponse>>

interface Pipeline {
  readonly server: Server
  readonly errors: ErrorTable
  readonly url: PublicUrl
  readonly strippedPrefix: string
  readonly routes: readonly ServerRoute[]
  readonly serve: { readonly [Name in ServerOperation]?: Serve }
  readonly context: Pick<ServiceContext, 'clock' | 'random'>
  /** The value of `WWW-Authenticate` on every 401 response. */
  readonly challenge?: string
  /** Additional headers of every response. Default: none. */
  readonly headers?: HttpResponse['headers']
  /** The refusals that leave the path to the host. Default: of a path without an operation. */
  readonly unmatched?: readonly Refusal[]
  readonly watch: ServerHooks
}

type ObservedPipeline = Pipeline & Pick<ServerHooks, 'telemetry'>

/** Creates the handler of all routes of a server, and one handler for each operation. */
export function createHandlers<Served extends Pipeline['serve']>(
  pipeline: Pipeline & { readonly serve: Served },
) {
  const { routes, watch } = pipeline
  const telemetry = watch.telemetry && harmless(watch.telemetry, watch.onError)
  const observed = { ...pipeline, ...(telemetry && { telemetry }) }
  const alone = Object.keys(pipeline.serve).map((operation) => {
    const own = routes.filter((route) => route.operation === operation)
    return [operation, createHandler(observed, own)] as const
  })
  const handlers = Object.fromEntries(alone) as { readonly [Name in keyof Served]: Handler }
  return { handle: createHandler(observed, routes), handlers, routes }
}

/**
 * Creates a handler of some routes of a server. The order of the checks is the same for every route: size,
 * route and headers here; then signature, token, key, schema and decision in the operation.
 */
function createHandler(pipeline: ObservedPipeline, routes: readonly ServerRoute[]): Handler {
  const { server, telemetry } = pipeline
  if (telemetry === undefined) return (request) => answerTo(request, pipeline, routes)
  return (request) => {
    const activity = { type: 'request', server, method: request.method } as const
    return telemetry.observe(activity, (tell) => answerTo(request, pipeline, routes, tell))
  }
}

async function answerTo(
  request: HttpRequest,
  pipeline: ObservedPipeline,
  routes: readonly ServerRoute[],
  tell?: (outcome: RequestOutcome) => void,
): Promise<HttpResponse> {
  let caller: KnownCaller = {}
  const note: Exchange['note'] = (known) => {
    caller = { ...caller, ...known }
  }
  let operation: ServerOperation | undefined
  let call: Call | undefined
  let answer: HttpResult<HttpResponse>
  const { server, telemetry } = pipeline
  try {
    call = newCall(pipeline.context)
    const understood = understand(request, routes, pipeline)
    if (!understood.ok) {
      answer = understood
    } else {
      const { route, id, message } = understood.value
      operation = route.operation
      const limit = limiter(pipeline.watch, { operation, method: request.method, at: call.now })
      const serve = pipeline.serve[operation]
      answer = serve
        ? await serve({ server, message, operation, id, call, note, limit, telemetry })
        : refuse('internal', 'the operation has no implementation')
    }
  } catch (error) {
    answer = refuseError(error)
    void callHook(() => pipeline.watch.onError?.(error))
  }
  const where = operation === undefined ? {} : { operation }
  if (answer.ok) {
    tell?.({ ...where, status: answer.value.status })
    return finished(request, answer.value, pipeline)
  }
  const now = call?.now ?? 0
  const context = { ...pipeline, challenge: pipeline.challenge, operation, now }
  reportRefusal(answer, request, context, caller, pipeline.watch)
  const response = refusalResponse(answer, context)
  tell?.({ ...where, status: response.status, refusal: answer.refusal })
  const isUnmatched = (pipeline.unmatched ?? ['route_unknown']).includes(answer.refusal)
  return finished(request, isUnmatched ? { ...response, unmatched: true } : response, pipeline)
}

/** Fails open: if the host's `rateLimit` throws, the call is served, so that its outage does not spread. */
function limiter(
  { rateLimit, onError }: Pipeline['watch'],
  call: Omit<RateLimitedCall, keyof Caller>,
): Exchange['limit'] {
  return async (caller) => {
    if (rateLimit === undefined) return undefined
    try {
      const retryAt = await limitedUntil(rateLimit, { ...call, ...caller })
      if (retryAt === undefined) return undefined
      return { ...refuse('rate_limited', 'the call exceeds the rate limit of the host'), retryAt }
    } catch (error) {
      void callHook(() => onError?.(error))
      return undefined
    }
  }
}

/** Serves an operation that needs no signature, after the rate limit. */
export function unsigned(serve: Serve): Serve {
  return async (exchange) => (await exchange.limit()) ?? serve(exchange)
}

/** A request whose signature has been verified. */
interface SignedExchange extends Exchange {
  readonly call: SignedCall
}

export type ServeSigned<Caller> = (
  exchange: SignedExchange,
  caller: Caller,
) => Promise<HttpResult<HttpResponse>>

interface SignedOptions<Caller> {
  readonly context: ServiceContext
  readonly repeats: RepeatRule | ((caller: Caller) => RepeatRule)
  /** Whether repeating this answer is harmless, so that nothing is recorded. Default: never. */
  readonly isHarmless?: (answer: HttpResult<HttpResponse>) => boolean
}

/** Serves a signed operation: authenticates its caller, and runs it once. */
export function signed<Caller extends { readonly proof: Proof }>(
  { context, repeats, isHarmless = () => false }: SignedOptions<Caller>,
  authenticate: (exchange: Exchange) => Promise<HttpResult<Caller>>,
  serve: ServeSigned<Caller>,
): Serve {
  return async (exchange) => {
    const caller = await authenticate(exchange)
    if (!caller.ok) return caller
    const rule = typeof repeats === 'function' ? repeats(caller.value) : repeats
    const operation = (call: SignedCall) => serve({ ...exchange, call }, caller.value)
    return countOnce(context, exchange.call, caller.value.proof, rule, operation, isHarmless)
  }
}

/** Adds the server's headers, and removes the content of a response to HEAD (RFC 9110 section 9.3.2). */
function finished(
  { method }: HttpRequest,
  response: HttpResponse,
  { headers: own }: Pipeline,
): HttpResponse {
  const headers = own === undefined ? response.headers : { ...response.headers, ...own }
  if (method !== 'HEAD') return { ...response, headers }
  const { body: _body, ...withoutBody } = response
  return { ...withoutBody, headers }
}

interface Understood {
  readonly route: ServerRoute
  readonly id: string
  readonly message: SignedMessage
}

function understand(
  request: HttpRequest,
  routes: readonly ServerRoute[],
  { url, strippedPrefix }: Pipeline,
): HttpResult<Understood> {
  if (request.body.length > bodyBytesMax) {
    return refuse('body_too_large', `the body has more than ${bodyBytesMax} bytes`)
  }
  const target = resolveTarget(request.url, url, strippedPrefix)
  if (!target.ok) return target
  const match = matchRoute(routes, request.method, target.value.path)
  if (!match.ok) return match
  const message = readMessage(request, url.origin, target.value.target)
  return message.ok ? ok({ message: message.value, ...match.value }) : message
}

const notJson = { path: '', problem: 'the body is not JSON, or exceeds a limit for JSON' }

/** The problem of content where none is allowed. */
export const notEmpty = { path: '', problem: 'the body must be empty' }

/** Parses the JSON of a request's body. `value` is `undefined` if the body is empty. */
export function readBody({ body }: SignedMessage): HttpResult<Json | undefined> {
  if (body.length === 0) return ok(undefined)
  const value = parseJson(body)
  return value === undefined ? refuseProblem('body_invalid', notJson) : ok(value)
}

export function refuse(refusal: Refusal, reason: string): HttpRefusal {
  return { ok: false, outcome: 'refused', refusal, reason }
}

/** Parses and validates a request's body. */
export function readContent<Content>(
  message: SignedMessage,
  read: (value: Json | undefined) => Parsed<Content>,
): HttpResult<Content> {
  const body = readBody(message)
  if (!body.ok) return body
  const content = read(body.value)
  return content.ok ? content : refuseProblem('body_invalid', content)
}

/** Refuses a part of a request; the response's `details` contain the path and the problem. */
export function refuseProblem(
  refusal: 'body_invalid' | 'query_invalid' | 'idempotency_key_invalid',
  { path, problem }: Omit<BodyProblem, 'ok'>,
): HttpRefusal {
  const details = path === '' ? { problem } : { path, problem }
  return { ...refuse(refusal, `${path} ${problem}`.trim()), details }
}

/** Creates a response with a JSON body. Caches must not store any response. */
export function json(status: number, value: object): Ok<HttpResponse> {
  const headers = { 'content-type': 'application/json', 'cache-control': 'no-store' }
  return ok({ status, headers, body: JSON.stringify(value) })
}

export const noContent: Ok<HttpResponse> = ok({
  status: 204,
  headers: { 'cache-control': 'no-store' },
})

function refuseError(error: unknown): HttpRefusal {
  if (hasCode(error, 'ERR_STORE_TIMEOUT')) return refuse('busy', 'the store did not respond')
  const dependency = failedDependency(error)
  if (dependency !== undefined) return refuse('busy', `${dependency} failed`)
  return hasCode(error, 'ERR_CONTENTION')
    ? refuse('busy', 'other writers kept changing the same records')
    : refuse('internal', error instanceof Error ? error.name : 'the thrown value is not an Error')
}

function reportRefusal(
  refused: HttpRefusal,
  { method }: HttpRequest,
  context: RefusalContext,
  caller: KnownCaller,
  watch: ServerHooks,
): void {
  if (watch.onRefusal === undefined) return
  const { refusal, reason } = refused
  const { operation, now: at } = context
  const { status, code } = publicError(refusal, context)
  const where = operation === undefined ? {} : { operation }
  const report = { refusal, reason, status, code, method, ...where, ...caller, at }
  void callHook(() => watch.onRefusal?.(report), watch.onError)
}

/**
 * Returns telemetry that cannot change what it measures: the work runs exactly once, its own result is returned, and
 * errors of the telemetry go to `onError`.
 */
export function harmless(telemetry: Telemetry, onError: OnError): Telemetry {
  return {
    observe<Result>(
      activity: TelemetryActivity,
      work: (tell: (outcome: RequestOutcome) => void) => Promise<Result>,
    ): Promise<Result> {
      let result: Promise<Result> | undefined
      let failure: { readonly error: unknown } | undefined
      const run = (tell?: (outcome: RequestOutcome) => void): Promise<Result> => {
        if (result !== undefined) return result
        // An async function also turns a thrown error into a rejection.
        const started = async () => work((outcome) => void callHook(() => tell?.(outcome), onError))
        result = started()
        result.catch((error: unknown) => {
          failure = { error }
        })
        return result
      }
      const isNew = (error: unknown) => failure === undefined || failure.error !== error
      const reportNew = (error: unknown) => (isNew(error) ? onError?.(error) : undefined)
      void callHook(() => telemetry.observe(activity, run), reportNew)
      return run()
    },
  }
}
