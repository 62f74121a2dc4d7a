import { wholeMilliseconds } from '../core/instant.js'
import type { Clock } from '../ports/clock.js'
import type { Random } from '../ports/random.js'
import type { Store } from '../ports/store.js'
import { namespaceAt, pooled } from '../protocol/credential.js'
import type { SignatureRules } from '../protocol/http-signature/inspect.js'
import type { ServiceContext } from '../service/context.js'
import { type EventType, recordedEvents } from '../service/events/record.js'
import type { RepeatRule } from '../service/replay.js'
import { guardedStore } from '../service/store-guard.js'
import { type ClockError, realPacing, steadyClock } from '../service/time.js'
import { createRunner } from '../service/write.js'
import { callHook } from '../util/call-hook.js'
import { requireKnownOptions } from '../util/known-options.js'
import { invalidOption } from '../util/option-error.js'
import { harmless, type RateLimiting, type ServerHooks } from './pipeline.js'
import type { Server } from './routes.js'
import type { PublicUrl } from './target.js'

/** Keeps the sum of a time and a duration within the range of `Date`. */
const durationMaxMs = 100 * 366 * 86_400_000

/** Options common to the servers with a store. */
export interface ServerOptions extends ServerHooks, RateLimiting {
  readonly store: Store
  /** The source of the current time. Default: `Date`. */
  readonly clock?: Clock
  /** The source of random bytes for secrets and ids. Default: the global `crypto`. */
  readonly random?: Random
  /**
   * How long one call of `store` may take, and how long an operation waits for its commits and retries, in
   * milliseconds. A request that takes longer gets 503, so that a frozen database does not hold requests. Calls
   * inside a transaction of the host are not limited. Default 3,000.
   */
  readonly storeTimeoutMs?: number
  readonly signatures?: SignatureOptions
  /**
   * The prefix of the published path that a reverse proxy strips before it forwards a request, such as
   * `/api`. Default: none.
   */
  readonly strippedPrefix?: string
  /**
   * The types of event that commits also record: a list of types, true for all, or false for none. Deliver them with
   * `consumeEvents`: the store keeps every event until its delivery. Default: the types on which a host acts,
   * which docs/events.md lists. An operation without a recorded event writes no event.
   */
  readonly recordsEvents?: boolean | readonly EventType[]
}

/** How HTTP message signatures (RFC 9421) are checked. */
export interface SignatureOptions {
  /** The maximum age of `created`, in milliseconds. Default 300,000. */
  readonly ageMaxMs?: number
  /** How far `created` may be in the future, in milliseconds, to tolerate clock skew. Default 60,000. */
  readonly skewMaxMs?: number
  /**
   * Whether every operation refuses a byte-identical repeat of a request without a nonce. Continuation,
   * rotation and payments without a quote or `Idempotency-Key` always refuse it. In other operations, two
   * legitimate requests in the same second can be byte-identical. Default `accept-repeat`.
   */
  readonly repeats?: RepeatRule
  /**
   * Whether `Signature-Input` and `Signature` must be Structured Fields, as RFC 9421 section 4 requires.
   * If false, every operation except introspection also accepts the forms that the official PHP and Rust SDKs
   * send; see docs/deviations.md. Default false.
   */
  readonly strict?: boolean
}

/** The names of the options of every server. */
export const hookOptions: Readonly<Record<keyof (ServerHooks & RateLimiting), true>> = {
  onRefusal: true,
  onError: true,
  telemetry: true,
  rateLimit: true,
}

/** The names of the options common to the servers with a store. */
export const serverOptions: Readonly<Record<keyof ServerOptions, true>> = {
  store: true,
  storeTimeoutMs: true,
  clock: true,
  random: true,
  signatures: true,
  strippedPrefix: true,
  recordsEvents: true,
  ...hookOptions,
}

/**
 * Validates the common options, and creates the context of the services.
 *
 * @param server the name of the server in telemetry activities.
 * @param url of this server. Its canonical form determines the ids of its records, so that all spellings of a
 *   URL are one server.
 * @param grantEndpoint of the server that issues the grants: for an authorization server, the same URL.
 */
export function serviceContext(
  options: ServerOptions,
  server: Server,
  url: PublicUrl,
  grantEndpoint: PublicUrl = url,
): ServiceContext {
  const { clock = Date, random = crypto, storeTimeoutMs = 3_000, onError } = options
  requireHooks(options)
  const store = requireStore(options.store)
  requireMethods('clock', clock, ['now'])
  requireMethods('random', random, ['getRandomValues'])
  requireDuration('storeTimeoutMs', storeTimeoutMs)
  if (storeTimeoutMs === 0) throw invalidOption('storeTimeoutMs', 'must be positive')
  const report = (error: ClockError) => void callHook(() => onError?.(error))
  const steady = steadyClock(wholeMilliseconds(clock), report)
  const telemetry = options.telemetry && harmless(options.telemetry, onError)
  const guard = { clock: steady, timeoutMs: storeTimeoutMs, server, telemetry }
  const running = {
    store: guardedStore(store, guard),
    random: pooled(random),
    pacing: realPacing,
    storeTimeoutMs,
    recordsEvents: recordedEvents(options.recordsEvents),
  }
  return {
    ...running,
    run: createRunner(running),
    givenStore: store,
    clock: steady,
    signatureRules: signatureRules(options.signatures ?? {}),
    namespace: namespaceAt(url.origin + url.basePath),
    grantNamespace: namespaceAt(grantEndpoint.origin + grantEndpoint.basePath),
    serverUrl: url.origin + url.basePath,
  }
}

/** Returns the context on a store inside a transaction of the host. */
export function contextOn(store: Store, context: ServiceContext): ServiceContext {
  const inside = { ...context, store: requireStore(store) }
  return { ...inside, run: createRunner(inside, true) }
}

export function repeatRule({ signatures }: ServerOptions): RepeatRule {
  const repeats = signatures?.repeats ?? 'accept-repeat'
  return requireOneOf('signatures.repeats', repeats, ['accept-repeat', 'refuse-repeat'])
}

/** The names of the signature options that do not need a store. */
export const ruleOptions: Readonly<Record<keyof SignatureRules, true>> = {
  ageMaxMs: true,
  skewMaxMs: true,
  strict: true,
}

/** Reads the signature options. */
export function signatureRules(signatures: SignatureOptions): SignatureRules {
  const { ageMaxMs = 300_000, skewMaxMs = 60_000, strict = false } = signatures
  requireKnownOptions('signatures', signatures, { ...ruleOptions, repeats: true })
  requireDuration('signatures.ageMaxMs', ageMaxMs)
  requireDuration('signatures.skewMaxMs', skewMaxMs)
  requireBoolean('signatures.strict', strict)
  return { ageMaxMs, skewMaxMs, strict }
}

/** Validates durations in milliseconds, and fills in defaults. */
export function durations<Name extends string>(
  option: string,
  defaults: Readonly<Record<Name, number>>,
  given: Readonly<Partial<Record<NoInfer<Name>, number>>>,
): Readonly<Record<Name, number>> {
  const filled: Record<Name, number> = { ...defaults }
  for (const name of Object.keys(defaults) as Name[]) {
    filled[name] = given[name] === undefined ? defaults[name] : given[name]
    requireDuration(`${option}.${name}`, filled[name])
  }
  return filled
}

export function requireMethods(option: string, value: unknown, methods: readonly string[]): void {
  if (value === undefined || value === null) throw invalidOption(option, 'is required')
  const missing = methods.find(
    (method) => typeof (value as Record<string, unknown>)[method] !== 'function',
  )
  if (missing !== undefined) throw invalidOption(option, `must have a method ${missing}`)
}

/** Checks that a store has all methods of the contract. */
export function requireStore(store: Store): Store {
  requireMethods('store', store, ['load', 'commit', 'list', 'due', 'remove'])
  if (store.loadAll !== undefined) requireMethods('store', store, ['loadAll'])
  return store
}

export function requireFunction(option: string, value: unknown): void {
  if (typeof value !== 'function') throw invalidOption(option, 'must be a function')
}

export function requireBoolean(option: string, value: unknown): boolean {
  if (typeof value === 'boolean') return value
  throw invalidOption(option, 'must be a boolean')
}

export function requireOneOf<Value extends string>(
  option: string,
  value: Value,
  allowed: readonly Value[],
): Value {
  if (allowed.includes(value)) return value
  throw invalidOption(option, `must be one of ${allowed.join(', ')}`)
}

/** Checks the stripped prefix against the configured URL: a wrong prefix would make every request a 404. */
export function requirePrefix(prefix: string, { basePath }: PublicUrl): string {
  if (prefix === '') return prefix
  if (typeof prefix === 'string' && `${basePath}/`.startsWith(`${prefix}/`)) return prefix
  throw invalidOption('strippedPrefix', 'must be a prefix of the path of the URL')
}

export function requireHooks(hooks: ServerHooks & RateLimiting): void {
  const { onRefusal, onError, rateLimit, telemetry } = hooks
  if (onRefusal !== undefined) requireFunction('onRefusal', onRefusal)
  if (onError !== undefined) requireFunction('onError', onError)
  if (rateLimit !== undefined) requireFunction('rateLimit', rateLimit)
  if (telemetry !== undefined) requireMethods('telemetry', telemetry, ['observe'])
}

function requireDuration(option: string, value: unknown): void {
  const whole = typeof value === 'number' && Number.isSafeInteger(value)
  if (whole && value >= 0 && value <= durationMaxMs) return
  throw invalidOption(option, 'must be an integer number of milliseconds, at most 100 years')
}
