import type { Clock } from '../ports/clock.js'
import type { Random } from '../ports/random.js'
import type { Store } from '../ports/store.js'
import { namespaceOf } from '../protocol/credential.js'
import type { SignatureRules } from '../protocol/http-signature/inspect.js'
import type { ServiceContext } from '../service/mechanism/context.js'
import type { RepeatRule } from '../service/mechanism/nonces.js'
import { observedStore } from '../service/mechanism/observed-store.js'
import { createQueues } from '../service/mechanism/queues.js'
import { realPacing } from '../service/mechanism/transact.js'
import { invalidOption } from '../util/option-error.js'
import type { ServerHooks } from './pipeline.js'
import type { RateLimiting } from './rate-limit.js'
import type { PublicUrl } from './target.js'

/** What is added to the time must still be a time. */
const durationMaxMs = 100 * 366 * 86_400_000

/** Options that every server with a store has. */
export interface ServerOptions extends ServerHooks, RateLimiting {
  readonly store: Store
  /** Tells the time. Default: `Date`. */
  readonly clock?: Clock
  /** Makes secrets and ids. Default: the global `crypto`. */
  readonly random?: Random
  readonly signatures?: SignatureOptions
  /**
   * The path prefix that a proxy in front takes away, such as `/api`, when the server is published with
   * it. Default: none.
   */
  readonly strippedPrefix?: string
  /**
   * Whether what happens is recorded as events in the commit that it happens by. Default true: deliver them
   * with `consumeEvents`, since an event is kept until then. With false there are none.
   */
  readonly recordsEvents?: boolean
}

/** How strict the check of HTTP message signatures is. */
export interface SignatureOptions {
  /** How old `created` may be. Default 300,000. */
  readonly ageMaxMs?: number
  /** How far in the future `created` may be, for clocks that differ. Default 60,000. */
  readonly skewMaxMs?: number
  /**
   * Whether a byte-identical repeat without a nonce is refused everywhere. It always is where it could
   * do harm: continuation and rotation. Elsewhere two honest requests of one second may be the same to
   * the byte. Default `accept-repeat`.
   */
  readonly repeats?: RepeatRule
  /**
   * Whether `Signature-Input` and `Signature` must be Structured Fields, as RFC 9421 section 4 requires.
   * With false, the forms that the official PHP and Rust SDKs write are accepted as well, on every operation
   * but introspection; docs/deviations.md has them. Default false.
   */
  readonly strict?: boolean
}

/** Builds what the services work with, refusing a setup that could not work before it is relied on. */
export function serviceContext(options: ServerOptions, serverUrl: string): ServiceContext {
  const { store, clock = Date, random = crypto, recordsEvents = true, telemetry } = options
  requireHooks(options)
  requireStore(store)
  requireMethods('clock', clock, ['now'])
  requireMethods('random', random, ['getRandomValues'])
  requireBoolean('recordsEvents', recordsEvents)
  let namespace: Promise<string> | undefined
  return {
    store: telemetry === undefined ? store : observedStore(store, telemetry),
    givenStore: store,
    clock,
    random: pooled(random),
    pacing: realPacing,
    queues: createQueues(),
    signatureRules: signatureRules(options.signatures ?? {}),
    namespace: () => (namespace ??= namespaceOf(serverUrl)),
    recordsEvents,
  }
}

/** The same on another store: one inside a transaction of the host, where nobody may wait for a turn. */
export function contextOn(store: Store, context: ServiceContext): ServiceContext {
  return { ...context, store: requireStore(store), queues: undefined }
}

/** Asks for many bytes at a time, since each question has its price; every byte is handed out once. */
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

/** Reads which signatures are accepted. */
export function signatureRules({
  ageMaxMs = 300_000,
  skewMaxMs = 60_000,
  strict = false,
  ...rest
}: SignatureOptions): SignatureRules {
  requireKnown('signatures', rest, ['repeats'])
  requireDuration('signatures.ageMaxMs', ageMaxMs)
  requireDuration('signatures.skewMaxMs', skewMaxMs)
  requireBoolean('signatures.strict', strict)
  return { ageMaxMs, skewMaxMs, strict }
}

/** Fills durations in with their defaults, refusing anything that is none. */
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
  if (missing !== undefined) throw invalidOption(option, `has no method ${missing}`)
}

/** Checks a store that is given later than the other options. */
export function requireStore(store: Store): Store {
  requireMethods('store', store, ['load', 'commit', 'list', 'due', 'remove'])
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

/** A misspelt option would leave its default standing, unnoticed. */
export function requireKnown(option: string, given: object, known: readonly string[]): void {
  const unknown = Object.keys(given).find((name) => !known.includes(name))
  if (unknown !== undefined) throw invalidOption(`${option}.${unknown}`, 'is not an option')
}

/** A prefix that the configured URL does not have would make every request one for nothing. */
export function requirePrefix(prefix: string, { basePath }: PublicUrl): string {
  if (prefix === '') return prefix
  if (typeof prefix === 'string' && `${basePath}/`.startsWith(`${prefix}/`)) return prefix
  throw invalidOption('strippedPrefix', 'must be what the path of the URL begins with')
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
  throw invalidOption(option, 'must be a whole number of milliseconds, at most a hundred years')
}
