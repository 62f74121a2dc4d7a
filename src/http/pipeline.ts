import { ok } from '../core/decision.js'
import type { RequestOutcome } from '../ports/host.js'
import type { SignedMessage } from '../protocol/http-signature/components.js'
import { type Call, newCall, type ServiceContext } from '../service/context.js'
import { failedDependency } from '../service/failed-dependency.js'
import { callHook, hasCode } from '../util/errors.js'
import { published, type Tell } from './diagnostics.js'
import type { Exchange, Serve } from './exchange.js'
import { readMessage } from './fields.js'
import { type Hooks, harmless, type KnownClient, limiter, reportRefusal } from './hooks.js'
import { bodyBytesMax, type Handler, type HttpRequest, type HttpResponse } from './message.js'
import type { ErrorTable, Refusal } from './public-errors.js'
import { type HttpRefusal, type HttpResult, refusalResponse, refuse } from './refusals.js'
import {
  matchRoute,
  type Server,
  type ServerOperation,
  type ServerRoute,
  type UnservedRoutes,
} from './routes.js'
import { doubledPrefix, type PublicUrl, resolveTarget } from './target.js'

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
  readonly unserved?: UnservedRoutes
  /** The refusals that leave the request to the host. Default: of a path without an operation. */
  readonly unmatched?: readonly Refusal[]
  readonly watch: Hooks
}

/**
 * The header of every response at a path that answers signed requests. A cache that ignores `no-store` then gives a
 * response to nobody with another token, or without one.
 */
export const varies: HttpResponse['headers'] = { vary: 'Authorization' }

export function createHandlers<Served extends Pipeline['serve']>(
  pipeline: Pipeline & { readonly serve: Served },
) {
  const { routes, watch } = pipeline
  const telemetry = watch.telemetry && harmless(watch.telemetry, watch.onError)
  const observed =
    telemetry === undefined ? pipeline : { ...pipeline, watch: { ...watch, telemetry } }
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
function createHandler(pipeline: Pipeline, routes: readonly ServerRoute[]): Handler {
  const { server, watch, url } = pipeline
  const { telemetry } = watch
  const scheme = new URL(url.origin).protocol.slice(0, -1)
  const answer = (request: HttpRequest, tell?: Tell) =>
    published(server, request, tell, (told) => answerTo(request, pipeline, routes, told))
  const serve: Handler = (request) => {
    if (telemetry === undefined) return answer(request)
    const activity = { type: 'request', server, method: request.method, scheme } as const
    return telemetry.observe(activity, (tell) => answer(request, tell))
  }
  return Object.assign(serve, {
    mayMatch(request: Pick<HttpRequest, 'method' | 'url'>): boolean {
      const found = findRoute(request, routes, pipeline)
      return found.ok || !isUnmatched(found, pipeline)
    },
  })
}

function isUnmatched(
  { refusal }: Pick<HttpRefusal, 'refusal'>,
  { unmatched = ['route_unknown'] }: Pipeline,
): boolean {
  return unmatched.includes(refusal)
}

async function answerTo(
  request: HttpRequest,
  pipeline: Pipeline,
  routes: readonly ServerRoute[],
  tell?: Tell,
): Promise<HttpResponse> {
  const client: KnownClient = {}
  const note: Exchange['note'] = (known) => {
    Object.assign(client, known)
  }
  let operation: ServerOperation | undefined
  let where: Pick<RequestOutcome, 'operation' | 'route'> = {}
  let call: Call | undefined
  let answer: HttpResult<HttpResponse>
  const { server, watch } = pipeline
  const { telemetry } = watch
  try {
    call = newCall(pipeline.context)
    const understood = understand(request, routes, pipeline)
    if (!understood.ok) {
      answer = understood
    } else {
      const { route, id, message } = understood.value
      operation = route.operation
      where = { operation, route: pipeline.url.basePath + route.path || '/' }
      const limit = limiter(watch, { operation, method: request.method, at: call.now })
      const serve = pipeline.serve[operation]
      answer = serve
        ? await serve({ server, message, operation, id, call, note, limit, telemetry })
        : refuse('internal', 'the operation has no implementation')
    }
  } catch (error) {
    answer = refuseError(error)
    void callHook(() => watch.onError(error))
  }
  if (answer.ok) {
    tell?.({ ...where, status: answer.value.status })
    return finished(request, answer.value, pipeline)
  }
  const now = call?.now ?? 0
  const { errors, challenge } = pipeline
  const refusalContext = { errors, challenge, operation, now }
  const explained = withHints(answer, request, pipeline)
  reportRefusal(server, explained, request.method, refusalContext, client, watch)
  const response = refusalResponse(answer, refusalContext)
  tell?.({ ...where, status: response.status, refusal: answer.refusal })
  const isForHost = isUnmatched(answer, pipeline)
  return finished(request, isForHost ? { ...response, unmatched: true } : response, pipeline)
}

/** Adds the server's headers, and removes the content of a response to HEAD (RFC 9110 section 9.3.2). */
function finished(
  { method }: HttpRequest,
  response: HttpResponse,
  { headers: own }: Pipeline,
): HttpResponse {
  const headers = own === undefined ? response.headers : Object.assign({}, response.headers, own)
  if (method !== 'HEAD') return { ...response, headers }
  const { body: _body, ...withoutBody } = response
  return { ...withoutBody, headers }
}

/** The refusals of a path at which nothing is. */
const nowhere: readonly Refusal[] = ['route_unknown', 'method_unknown', 'resource_unknown']

/** Tells the operator of a prefix that is there twice, and of an option that is absent. */
function withHints(answer: HttpRefusal, request: HttpRequest, pipeline: Pipeline): HttpRefusal {
  if (!nowhere.includes(answer.refusal)) return answer
  const hints = [
    answer.reason,
    doubledPrefix(request.url, pipeline.strippedPrefix),
    neededOption(request, pipeline),
  ]
  return { ...answer, reason: hints.filter((each) => each !== undefined).join('; ') }
}

function neededOption(request: HttpRequest, pipeline: Pipeline): string | undefined {
  const { option, routes } = pipeline.unserved ?? {}
  const found = routes && findRoute(request, routes, pipeline)
  return found?.ok ? `${found.value.route.operation} needs the option ${option}` : undefined
}

interface Understood {
  readonly route: ServerRoute
  readonly id: string
  readonly message: SignedMessage
}

function understand(
  request: HttpRequest,
  routes: readonly ServerRoute[],
  pipeline: Pipeline,
): HttpResult<Understood> {
  if (request.body.length > bodyBytesMax) {
    return refuse('body_too_large', `the body has more than ${bodyBytesMax} bytes`)
  }
  const found = findRoute(request, routes, pipeline)
  if (!found.ok) return found
  const { route, id, target } = found.value
  const message = readMessage(request, pipeline.url.origin, target)
  return message.ok ? ok({ route, id, message: message.value }) : message
}

interface Found {
  readonly route: ServerRoute
  readonly id: string
  readonly target: string
}

function findRoute(
  { method, url: received }: Pick<HttpRequest, 'method' | 'url'>,
  routes: readonly ServerRoute[],
  { url, strippedPrefix }: Pipeline,
): HttpResult<Found> {
  const resolved = resolveTarget(received, url, strippedPrefix)
  if (!resolved.ok) return resolved
  const { target, path } = resolved.value
  const match = matchRoute(routes, method, path)
  return match.ok ? ok({ target, ...match.value }) : match
}

function refuseError(error: unknown): HttpRefusal {
  if (hasCode(error, 'ERR_STORE_TIMEOUT')) return refuse('busy', 'the store did not respond')
  const dependency = failedDependency(error)
  const isLate = hasCode(error, 'ERR_HOST_TIMEOUT')
  if (dependency !== undefined) {
    return refuse('busy', `${dependency} ${isLate ? 'did not answer in time' : 'failed'}`)
  }
  return hasCode(error, 'ERR_CONTENTION')
    ? refuse('busy', (error as Error).message)
    : refuse('internal', error instanceof Error ? error.name : 'the thrown value is not an Error')
}
