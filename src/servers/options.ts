import { wholeMilliseconds } from '../core/instant.js'
import { harmless, hookOptions, hooksOf, type ServerHooks } from '../http/hooks.js'
import type { Server } from '../http/routes.js'
import { isBelow, type PublicUrl } from '../http/target.js'
import type { Clock, Random } from '../ports/host.js'
import type { Store } from '../ports/store.js'
import { namespaceAt, pooled } from '../protocol/credential.js'
import type { SignatureRules } from '../protocol/http-signature/inspect.js'
import type { ServiceContext } from '../service/context.js'
import { type EventType, recordedEvents } from '../service/event-record.js'
import { namespaceOfServer } from '../service/namespace.js'
import { guardedStore } from '../service/store-guard.js'
import { type ClockError, realPacing, steadyClock } from '../service/time.js'
import { createRunner } from '../service/write/runner.js'
import { callHook } from '../util/errors.js'
import { given } from '../util/given.js'
import { InvalidInputError, requireKnownOptions, requireMethods } from '../util/input.js'
import { type CompatibilityOptions, readCompatibility } from './compatibility.js'

/** Keeps the sum of a time and a duration within the range of `Date`. */
const durationMaxMs = 100 * 366 * 86_400_000

/** Options common to the servers with a store. */
export interface ServerOptions extends ServerHooks {
  /** Keeps all records. Servers of one wallet may share it. */
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
  /** How the signatures of requests are checked. */
  readonly signatures?: SignatureOptions
  readonly compatibility?: CompatibilityOptions
  /**
   * The types of event that commits also record: a list of types, true for all, or false for none. Deliver them with
   * `consumeEvents`: the store keeps every event until its delivery. Default: the types on which a host acts,
   * which docs/events.md lists. An operation without a recorded event writes no event.
   */
  readonly recordsEvents?: boolean | readonly EventType[]
  /**
   * The prefix of the published path that a reverse proxy strips before it forwards a request, such as
   * `/api`. Default: none.
   */
  readonly strippedPrefix?: string
}

/** How HTTP message signatures (RFC 9421) are checked. */
export interface SignatureOptions {
  /** The maximum age of `created`, in milliseconds. Default 300,000. */
  readonly ageMaxMs?: number
  /** How far `created` may be in the future, in milliseconds, to tolerate clock skew. Default 60,000. */
  readonly skewMaxMs?: number
  /**
   * The clock by which `created` and `expires` are judged, for tests that move `clock` while clients sign with the real
   * time. Default: `clock`.
   */
  readonly clock?: Clock
}

export type SharedOptions = Omit<ServerOptions, 'strippedPrefix'>

/**
 * The member of an authorization server with the options that a resource server in the same process takes over, and by
 * which it knows that the grants are in its store. No public type has it, because a host could not name the symbol in
 * its declarations. One symbol for all copies of the library, such as its two formats.
 */
const wiring = Symbol.for('open-payments-server wiring')

/** Adds the options to an authorization server. */
export function wired<Server extends object>(server: Server, options: SharedOptions): Server {
  return { ...server, [wiring]: options }
}

/** Returns the options of an authorization server in this process, whose grants are in its store. */
export function wiringOf(grants: object): SharedOptions | undefined {
  return (grants as { readonly [wiring]?: SharedOptions })[wiring]
}

const sharedOptions: Readonly<Record<keyof SharedOptions, true>> = {
  store: true,
  storeTimeoutMs: true,
  clock: true,
  random: true,
  signatures: true,
  compatibility: true,
  recordsEvents: true,
  ...hookOptions,
}

/** The names of the options common to the servers with a store. */
export const serverOptions: Readonly<Record<keyof ServerOptions, true>> = {
  ...sharedOptions,
  strippedPrefix: true,
}

/** Returns the options that a resource server takes over from its authorization server, without undefined ones. */
export function sharedOf<Options extends Partial<SharedOptions>>(
  options: Options,
): Pick<Options, keyof Options & keyof SharedOptions> {
  const names = Object.keys(sharedOptions) as (keyof SharedOptions)[]
  return given(Object.fromEntries(names.map((name) => [name, options[name]]))) as never
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
  const { clock = Date, random = crypto, storeTimeoutMs = 3_000 } = options
  const { onError, telemetry: measured } = hooksOf(options)
  const store = requireStore(options.store)
  requireMethods('clock', clock, ['now'])
  requireMethods('random', random, ['getRandomValues'])
  requireDuration('storeTimeoutMs', storeTimeoutMs)
  if (storeTimeoutMs === 0) throw new InvalidInputError('storeTimeoutMs', 'must be positive')
  const report = (error: ClockError) => void callHook(() => onError(error))
  const steady = steadyClock(wholeMilliseconds(clock), report)
  const telemetry = measured && harmless(measured, onError)
  const guard = { clock: steady, timeoutMs: storeTimeoutMs, server, telemetry }
  const serverUrl = url.origin + url.basePath
  const { namespace, claim } = namespaceOfServer(serverUrl)
  const running = {
    claim,
    store: guardedStore(store, guard),
    random: pooled(random),
    pacing: realPacing,
    storeTimeoutMs,
    recordsEvents: recordedEvents(options.recordsEvents),
  }
  const { clock: signatureClock, ...signatures } = options.signatures ?? {}
  if (signatureClock !== undefined) requireMethods('signatures.clock', signatureClock, ['now'])
  return {
    ...running,
    run: createRunner(running),
    clock: steady,
    signatureRules: signatureRules(signatures, readCompatibility(options.compatibility)),
    ...(signatureClock && { signatureClock: wholeMilliseconds(signatureClock) }),
    namespace,
    grantNamespace: namespaceAt(grantEndpoint.origin + grantEndpoint.basePath),
    serverUrl,
  }
}

/** Returns the context on a store inside a transaction of the host. */
export function contextOn(store: Store, context: ServiceContext): ServiceContext {
  const inside = { ...context, store: requireStore(store) }
  return { ...inside, run: createRunner(inside, true) }
}

/** Reads the signature options. */
export function signatureRules(
  signatures: Omit<SignatureOptions, 'clock'>,
  { signatureFields }: Pick<CompatibilityOptions, 'signatureFields'>,
): SignatureRules {
  const { ageMaxMs = 300_000, skewMaxMs = 60_000 } = signatures
  requireKnownOptions('signatures', signatures, { ageMaxMs: true, skewMaxMs: true })
  requireDuration('signatures.ageMaxMs', ageMaxMs)
  requireDuration('signatures.skewMaxMs', skewMaxMs)
  return { ageMaxMs, skewMaxMs, strict: signatureFields === 'rfc9421' }
}

/** Validates a group of durations in milliseconds, and fills in defaults. */
export function durations<Name extends string>(
  option: string,
  defaults: Readonly<Record<Name, number>>,
  given?: Readonly<Partial<Record<NoInfer<Name>, number>>>,
): Readonly<Record<Name, number>> {
  if (given !== undefined) requireKnownOptions(option, given, defaults)
  const filled: Record<Name, number> = { ...defaults }
  for (const name of Object.keys(defaults) as Name[]) {
    const value = given?.[name]
    filled[name] = value === undefined ? defaults[name] : value
    requireDuration(`${option}.${name}`, filled[name])
  }
  return filled
}

/** Checks that a store has all methods of the contract. */
function requireStore(store: Store): Store {
  requireMethods('store', store, ['load', 'commit', 'list', 'due', 'remove'])
  return store
}

/** Checks the stripped prefix against the configured URL: a wrong prefix would make every request a 404. */
export function requirePrefix(prefix: string, { basePath }: PublicUrl): string {
  if (prefix === '') return prefix
  if (typeof prefix === 'string' && isBelow(basePath, prefix)) return prefix
  throw new InvalidInputError('strippedPrefix', 'must be a prefix of the path of the URL')
}

function requireDuration(option: string, value: unknown): void {
  const whole = typeof value === 'number' && Number.isSafeInteger(value)
  if (whole && value >= 0 && value <= durationMaxMs) return
  throw new InvalidInputError(
    option,
    'must be an integer number of milliseconds, at most 100 years',
  )
}
