import { type Clock, wholeMilliseconds } from '../ports/clock.js'
import type { Random } from '../ports/random.js'
import type { Store } from '../ports/store.js'
import { namespaceOf } from '../protocol/credential.js'
import type { SignatureRules } from '../protocol/http-signature/inspect.js'
import { clockWatch } from '../service/mechanism/clock-watch.js'
import { createCombiner } from '../service/mechanism/combiner.js'
import type { ServiceContext } from '../service/mechanism/context.js'
import { type EventType, eventConsumers, recordedEvents } from '../service/mechanism/event-types.js'
import type { RepeatRule } from '../service/mechanism/nonces.js'
import { observedStore } from '../service/mechanism/observed-store.js'
import { realPacing } from '../service/mechanism/pacing.js'
import { createQueues } from '../service/mechanism/queues.js'
import { type ClockError, steadyClock } from '../service/mechanism/steady-clock.js'
import { storeTimeoutDefaultMs, timedStore } from '../service/mechanism/timed-store.js'
import { callHook } from '../util/call-hook.js'
import { requireKnownOptions } from '../util/known-options.js'
import { invalidOption } from '../util/option-error.js'
import { harmless } from './hooks.js'
import type { Server } from './operations.js'
import type { ServerHooks } from './pipeline.js'
import type { RateLimiting } from './rate-limit.js'
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
  /**
   * The names of consumers that each receive every recorded event, such as `['ledger', 'webhooks']`: at most 8. A
   * commit then writes an event once for each of them. Consume the events of `events.consumer(name)`. Default: one
   * consumer without a name, which consumes `events`.
   */
  readonly eventConsumers?: readonly string[]
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
  eventConsumers: true,
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
  const { clock = Date, random = crypto, storeTimeoutMs = storeTimeoutDefaultMs } = options
  requireDuration('storeTimeoutMs', storeTimeoutMs)
  if (storeTimeoutMs === 0) throw invalidOption('storeTimeoutMs', 'must be positive')
  requireHooks(options)
  const store = requireStore(options.store)
  const consumers = eventConsumers(options.eventConsumers)
  requireMethods('clock', clock, ['now'])
  requireMethods('random', random, ['getRandomValues'])
  const report = (error: ClockError) => void callHook(() => options.onError?.(error))
  const steady = steadyClock(wholeMilliseconds(clock), report)
  return {
    store: clockWatch(storeOf(options, server, storeTimeoutMs), steady, report),
    givenStore: store,
    clock: steady,
    random: pooled(random),
    pacing: realPacing,
    storeTimeoutMs,
    queues: createQueues(),
    combiner: createCombiner(realPacing, storeTimeoutMs),
    signatureRules: signatureRules(options.signatures ?? {}),
    namespace: namespaceAt(url),
    grantNamespace: namespaceAt(grantEndpoint),
    serverUrl: url.origin + url.basePath,
    recordsEvents: recordedEvents(options.recordsEvents),
    eventConsumers: consumers,
  }
}

/** Wraps the store: limits the time of each call, and measures the calls if there is telemetry. */
function storeOf(
  { store, telemetry, onError }: ServerOptions,
  server: Server,
  storeTimeoutMs: number,
): Store {
  const timed = timedStore(store, storeTimeoutMs)
  return telemetry === undefined
    ? timed
    : observedStore(timed, server, harmless(telemetry, onError))
}

/** Returns a function that resolves to the prefix of all ids of the server at a URL. */
function namespaceAt({ origin, basePath }: PublicUrl): () => Promise<string> {
  let namespace: Promise<string> | undefined
  return () => (namespace ??= namespaceOf(origin + basePath))
}

/**
 * Returns the context on another store, such as one inside a transaction of the host. It has no queues and no combiner,
 * because the first operation in one of them may wait for a lock that this transaction holds.
 */
export function contextOn(store: Store, context: ServiceContext): ServiceContext {
  return { ...context, store: requireStore(store), queues: undefined, combiner: undefined }
}

/** Reads random bytes in batches, because each call has a fixed cost. Each byte is used once. */
function pooled(random: Random): Random {
  const pool = new Uint8Array(1_024)
  let used = pool.length
  return {
    getRandomValues(array) {
      if (array.length > pool.length) return random.getRandomValues(array)
      if (used + array.length > pool.length) {
        random.getRandomValues(pool)
        used = 0
      }
      array.set(pool.subarray(used, used + array.length))
      pool.fill(0, used, used + array.length)
      used += array.length
      return array
    },
  }
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
