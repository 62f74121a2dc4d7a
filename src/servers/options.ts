import * as v from 'valibot'
import { wholeMilliseconds } from '../core/instant.js'
import { harmless, hookOptions, type ServerHooks } from '../http/hooks.js'
import type { Server } from '../http/routes.js'
import { isBelow, type PublicUrl } from '../http/target.js'
import type { Clock, Random } from '../ports/host.js'
import type { Store } from '../ports/store.js'
import { namespaceAt, pooled } from '../protocol/credential.js'
import { clockOption, randomOption } from '../protocol/host-options.js'
import type { SignatureRules } from '../protocol/http-signature/inspect.js'
import type { ServiceContext } from '../service/context.js'
import { type EventType, eventTypesOption, recordedEvents } from '../service/event-record.js'
import { namespaceOfServer } from '../service/namespace.js'
import { storeOfPublicIds } from '../service/public-ids.js'
import { guardedStore } from '../service/store-guard.js'
import { type ClockError, realPacing, steadyClock } from '../service/time.js'
import { createRunner } from '../service/write/runner.js'
import { callHook } from '../util/errors.js'
import { given } from '../util/given.js'
import {
  duration,
  group,
  type Members,
  optionsOf,
  port,
  positiveDuration,
  readInput,
} from '../util/input.js'
import { InvalidInputError } from '../util/invalid-input.js'
import {
  type Compatibility,
  type CompatibilityOptions,
  compatibilityGroup,
} from './compatibility.js'

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

/** What an authorization server shares with the resource servers in its process. */
export interface Wiring {
  readonly options: SharedOptions
  /** What resource servers do once a grant has ended or allows less, on another store inside a transaction. */
  readonly onNarrowed: ((grantId: string, store?: Store) => Promise<void>)[]
}

/**
 * The member of an authorization server with what a resource server in the same process shares, and by which it knows
 * that the grants are in its store. No public type has it, because a host could not name the symbol in its
 * declarations. One symbol for all copies of the library, such as its two formats.
 */
const wiring = Symbol.for('open-payments-server wiring')

export function wired<Server extends object>(server: Server, shared: Wiring): Server {
  return { ...server, [wiring]: shared }
}

/** Returns what an authorization server in this process shares. Its grants are in its store. */
export function wiringOf(grants: object): Wiring | undefined {
  return (grants as { readonly [wiring]?: Wiring })[wiring]
}

/** The limits of `created` in signatures. */
export const signatureLimits = {
  ageMaxMs: v.optional(duration, 300_000),
  skewMaxMs: v.optional(duration, 60_000),
}

const storeOption = port<Store>('load', 'commit', 'list', 'due', 'remove')

const sharedOptions = {
  store: storeOption,
  storeTimeoutMs: v.optional(positiveDuration, 3_000),
  clock: clockOption,
  random: randomOption,
  signatures: group({
    ...signatureLimits,
    clock: v.optional(port<Clock>('now')),
  } satisfies Members<SignatureOptions>),
  compatibility: compatibilityGroup,
  recordsEvents: v.optional(eventTypesOption),
  ...hookOptions,
} satisfies Members<SharedOptions>

export const sharedGroup = optionsOf(sharedOptions)

/** The names of the shared options, for a server that reads them together with those of another one. */
export const unreadSharedOptions = Object.fromEntries(
  Object.keys(sharedOptions).map((name) => [name, v.unknown()]),
) as Record<keyof SharedOptions, v.UnknownSchema>

const prefixProblem = 'must be a prefix of the path of the URL'
export const strippedPrefixOption = v.optional(v.string(prefixProblem), '')

/** The options common to the servers with a store. */
export const serverOptions = {
  ...sharedOptions,
  strippedPrefix: strippedPrefixOption,
} satisfies Members<ServerOptions>

type SharedSettings = v.InferOutput<typeof sharedGroup>

/** Returns the options that a resource server takes over from its authorization server, without undefined ones. */
export function sharedOf<Options extends Partial<SharedOptions>>(
  options: Options,
): Pick<Options, keyof Options & keyof SharedOptions> {
  const names = Object.keys(sharedOptions) as (keyof SharedOptions)[]
  return given(Object.fromEntries(names.map((name) => [name, options[name]]))) as never
}

/**
 * Creates the context of the services.
 *
 * @param server the name of the server in telemetry activities.
 * @param url of this server. Its canonical form determines the ids of its records, so that all spellings of a
 *   URL are one server.
 * @param grantEndpoint of the server that issues the grants: for an authorization server, the same URL.
 */
export function serviceContext(
  settings: SharedSettings,
  server: Server,
  url: PublicUrl,
  grantEndpoint: PublicUrl = url,
): ServiceContext {
  const { clock, random, store, storeTimeoutMs, signatures, onError } = settings
  const report = (error: ClockError) => void callHook(() => onError(error))
  const steady = steadyClock(wholeMilliseconds(clock), report)
  const telemetry = settings.telemetry && harmless(settings.telemetry, onError)
  const guard = { clock: steady, timeoutMs: storeTimeoutMs, server, telemetry }
  const serverUrl = url.origin + url.basePath
  const { namespace, claim } = namespaceOfServer(serverUrl)
  const running = {
    claim,
    namespace,
    store: guardedStore(recordsOf(server, store, namespace), guard),
    random: pooled(random),
    pacing: realPacing,
    storeTimeoutMs,
    recordsEvents: recordedEvents(settings.recordsEvents),
  }
  return {
    ...running,
    run: createRunner(running),
    clock: steady,
    signatureRules: signatureRules(signatures, settings.compatibility),
    ...(signatures.clock !== undefined && { signatureClock: wholeMilliseconds(signatures.clock) }),
    grantNamespace: namespaceAt(grantEndpoint.origin + grantEndpoint.basePath),
    serverUrl,
  }
}

/**
 * Returns the store as the services of a server use it. An authorization server has no records with public ids, and
 * loads those of a resource server by their stored ids.
 */
function recordsOf(server: Server, store: Store, namespace: () => Promise<string>): Store {
  return server === 'resourceServer' ? storeOfPublicIds(store, namespace) : store
}

/** Returns the context on a store inside a transaction of the host. */
export function contextOn(store: Store, context: ServiceContext, server: Server): ServiceContext {
  const given = readInput('store', storeOption, store)
  const inside = { ...context, store: recordsOf(server, given, context.namespace) }
  return { ...inside, run: createRunner(inside, true) }
}

export function signatureRules(
  { ageMaxMs, skewMaxMs }: Pick<SignatureRules, 'ageMaxMs' | 'skewMaxMs'>,
  { signatureFields }: Pick<Compatibility, 'signatureFields'>,
): SignatureRules {
  return { ageMaxMs, skewMaxMs, strict: signatureFields === 'rfc9421' }
}

/** Checks the stripped prefix against the configured URL: a wrong prefix would make every request a 404. */
export function requirePrefix(prefix: string, { basePath }: PublicUrl): string {
  if (prefix === '' || isBelow(basePath, prefix)) return prefix
  throw new InvalidInputError('strippedPrefix', prefixProblem)
}
