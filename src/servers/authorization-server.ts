import * as v from 'valibot'
import { createGrantServices, type GrantServices } from '../host/grant.js'
import { createInteractions, type Interactions } from '../host/interaction.js'
import {
  grantOperations,
  introspectionOperations,
} from '../http/authorization-server/operations.js'
import {
  type RegisteredResourceServer,
  resourceServerRegistry,
  resourceServersOption,
} from '../http/authorization-server/resource-server-registry.js'
import { hooksOf } from '../http/hooks.js'
import type { Handler } from '../http/message.js'
import { createHandlers, varies } from '../http/pipeline.js'
import { authorizationErrors } from '../http/public-errors.js'
import {
  grantRoutes,
  introspectionRoutes,
  type ServerHandlers,
  type ServerRoute,
  withoutResourceServers,
} from '../http/routes.js'
import { publicUrl, serverUrl } from '../http/target.js'
import type { ClientKeys, Introspect, Introspection, Subjects } from '../ports/host.js'
import type { Store } from '../ports/store.js'
import type { ServiceContext } from '../service/context.js'
import { createServerEvents, type ServerEvents } from '../service/events/server-events.js'
import { sweptGrants } from '../service/grant/sweep.js'
import { createGrants, type Grants } from '../service/grant.js'
import { createIntrospect } from '../service/introspection.js'
import { retired, type SweepOptions, type SweepResult, sweepKinds } from '../service/sweep.js'
import { group, type Members, optionsOf, port, readInput } from '../util/input.js'
import {
  type AuthorizationPolicy,
  authorizationPolicyOptions,
  authorizationRules,
} from './authorization-policy.js'
import { hostClientKeys, hostDisplayOf, hostSubjects } from './host-ports.js'
import {
  contextOn,
  requirePrefix,
  type ServerOptions,
  serverOptions,
  serviceContext,
  sharedOf,
  type Wiring,
  wired,
} from './options.js'

/** Options of `createAuthorizationServer`. */
export interface AuthorizationServerOptions extends ServerOptions {
  /**
   * URL of the grant endpoint, exactly the string that wallet addresses publish as `authServer`: it is
   * part of what clients sign and hash.
   */
  readonly grantEndpoint: string
  /** URL of the host's consent page; the interaction's id is appended as one more path segment. */
  readonly consentUrl: string
  /** Finds the keys of clients, such as `remoteClientKeys`. */
  readonly clientKeys: ClientKeys
  /**
   * Determines the subject that clients receive when they request one, such as `walletAddressSubjects`. It always
   * requires the owner's consent. Default: such requests are refused.
   */
  readonly subjects?: Subjects
  /** The rules of this server: lifetimes, consent, and what the host allows. */
  readonly policy?: AuthorizationPolicy
  /**
   * Resource servers in other processes, which introspect access tokens at `{grantEndpoint}/introspect`, as
   * `remoteGrants` does. Default: none; the route is not served.
   */
  readonly resourceServers?: readonly RegisteredResourceServer[]
}

/** Finds the keys of clients, and perhaps their names. */
export const clientKeysOption = v.pipe(
  port<ClientKeys>('find'),
  v.check(
    ({ displayOf }) => displayOf === undefined || typeof displayOf === 'function',
    'must have a function displayOf, or none',
  ),
)

const authorizationServerOptions = optionsOf({
  ...serverOptions,
  grantEndpoint: serverUrl,
  consentUrl: serverUrl,
  clientKeys: clientKeysOption,
  subjects: v.optional(port<Subjects>('resolve')),
  policy: group(authorizationPolicyOptions),
  resourceServers: v.optional(resourceServersOption),
} satisfies Members<AuthorizationServerOptions>)

/** The services for the host's own code. `AuthorizationServer.within` returns them on another store. */
export interface AuthorizationServices {
  /** The operations that the host's consent page calls. */
  readonly interactions: Interactions
  readonly grants: GrantServices
}

/** An authorization server: its routes for clients (GNAP, RFC 9635), and what the host calls. */
export interface AuthorizationServer extends AuthorizationServices {
  /** Serves every route below the grant endpoint. */
  readonly handle: Handler
  /**
   * One handler for each operation, for hosts with their own router. `introspectToken` is absent without
   * `resourceServers`.
   */
  readonly handlers: ServerHandlers<'authorizationServer'>
  /** The routes that this server serves. */
  readonly routes: readonly ServerRoute[]
  /** The events of grants, for the host to consume. */
  readonly events: ServerEvents
  /**
   * Returns the same services on another store, such as one inside a transaction of the host, so that their
   * writes commit or roll back together with the host's own rows.
   */
  within(store: Store): AuthorizationServices
  /**
   * Removes records past their retention: ended grants and used signatures. Before it removes a grant that an owner
   * consented to, it writes the record that stays in `grants.history`.
   *
   * Run it periodically, in any number of processes, and call it again immediately while `more` is true.
   *
   * @throws the store's first error, after it has processed the records of the other kind.
   * @throws {InvalidInputError} for an invalid `limit`.
   */
  sweep(options?: SweepOptions): Promise<SweepResult>
  /** URL of the grant endpoint, exactly as given. */
  readonly grantEndpoint: string
  /** Introspects an access token, as a resource server in the same process does (RFC 9767 section 3.3). */
  introspect(query: {
    readonly accessToken: string
    readonly keyid?: string
  }): Promise<Introspection>
}

/**
 * Creates the authorization server: grant requests, interaction, continuation and token management of GNAP
 * (RFC 9635) in the profile of Open Payments.
 *
 * @throws {InvalidInputError} for an invalid or unknown option.
 *
 * @example
 * ```ts
 * import { createAuthorizationServer, remoteClientKeys } from 'open-payments-server'
 *
 * const auth = createAuthorizationServer({
 *   grantEndpoint: 'https://auth.wallet.example',
 *   consentUrl: 'https://wallet.example/consent',
 *   clientKeys: remoteClientKeys(),
 *   store,
 * })
 * ```
 */
export function createAuthorizationServer(
  options: AuthorizationServerOptions,
): AuthorizationServer {
  const settings = readSettings(options)
  const { context, grantPolicy, historyMs } = settings
  const onNarrowed: Wiring['onNarrowed'] = []
  const narrowedOn = (store?: Store) => async (grantId: string) => {
    for (const follow of onNarrowed) await follow(grantId, store)
  }
  const grants = createGrants(context, grantPolicy, narrowedOn())
  const introspect = createIntrospect(context, settings.keys)
  const swept = [sweptGrants(context, historyMs), retired('ended-grant'), retired('replay')]
  const server: AuthorizationServer = {
    ...createHandlers(pipelineOf(settings, grants, introspect)),
    ...servicesIn(context, settings, grants),
    events: createServerEvents(context),
    within(store) {
      const inside = contextOn(store, context, 'authorizationServer')
      // A transaction must not stay open while a stranger's server responds.
      const display = { displayOf: hostDisplayOf() }
      return servicesIn(
        inside,
        { ...settings, ...display },
        createGrants(inside, grantPolicy, narrowedOn(store)),
      )
    },
    sweep: (options) => sweepKinds(context, swept, options),
    grantEndpoint: options.grantEndpoint,
    introspect,
  }
  return wired(server, { options: sharedOf(options), onNarrowed })
}

type Settings = ReturnType<typeof readSettings>

function readSettings(options: AuthorizationServerOptions) {
  const settings = readInput('', authorizationServerOptions, options)
  const { clientKeys, subjects, policy, compatibility, hostTimeoutMs } = settings
  const url = publicUrl(settings.grantEndpoint)
  const consent = publicUrl(settings.consentUrl)
  const { grantPolicy, historyMs, keyBinding, ...rules } = authorizationRules(
    policy,
    compatibility,
    hostTimeoutMs,
  )
  return {
    options: settings,
    keys: { clientKeys: hostClientKeys(clientKeys, hostTimeoutMs), keyBinding },
    displayOf: hostDisplayOf(clientKeys),
    ...(subjects !== undefined && { subjects: hostSubjects(subjects, hostTimeoutMs) }),
    url,
    consentUrl: consent.origin + consent.basePath,
    strippedPrefix: requirePrefix(settings.strippedPrefix, url),
    grantPolicy,
    historyMs,
    rules,
    context: serviceContext(settings, 'authorizationServer', url),
    repeats: compatibility.repeatedRequests,
    registry: resourceServerRegistry(settings.resourceServers),
  }
}

function servicesIn(
  context: ServiceContext,
  { options, subjects, rules, displayOf }: Settings,
  grants: Grants,
): AuthorizationServices {
  const { grantEndpoint } = options
  return {
    interactions: createInteractions(context, grants, {
      grantEndpoint,
      ...rules,
      displayOf,
      ...(subjects !== undefined && { subjects }),
    }),
    grants: createGrantServices(context, grants, displayOf),
  }
}

function pipelineOf(settings: Settings, grants: Grants, introspect: Introspect) {
  const { context, options, url, consentUrl, strippedPrefix, rules, repeats, registry } = settings
  const { grantEndpoint, resourceServers } = options
  const namesSubjects = settings.subjects !== undefined
  const baseUrl = url.origin + url.basePath
  const urls = { baseUrl, consentUrl }
  const deps = { ...urls, ...rules, context, grants, ...settings.keys, repeats, namesSubjects }
  return {
    server: 'authorizationServer',
    errors: authorizationErrors,
    url,
    strippedPrefix,
    routes: resourceServers === undefined ? grantRoutes : [...grantRoutes, ...introspectionRoutes],
    ...(resourceServers === undefined && { unserved: withoutResourceServers }),
    serve: {
      ...grantOperations({ ...deps, grantEndpoint }),
      ...(resourceServers !== undefined &&
        introspectionOperations({ context, repeats, introspect, grantEndpoint, registry })),
    },
    context,
    challenge: `GNAP as_uri=${grantEndpoint}`,
    headers: varies,
    watch: hooksOf(options),
  } as const
}
