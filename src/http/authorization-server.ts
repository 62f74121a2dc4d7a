import type { AccessItem } from '../core/access.js'
import type { Grant, GrantPolicy } from '../core/grant/record.js'
import type { ClientKeys } from '../ports/client-keys.js'
import type { Introspect } from '../ports/introspect.js'
import type { Store } from '../ports/store.js'
import type { InteractionHashEncoding } from '../protocol/interaction-hash.js'
import { newCall, type ServiceContext } from '../service/context.js'
import type { EventSource } from '../service/delivery.js'
import { createGrants, type Grants } from '../service/grants.js'
import {
  createInteractions,
  type DenialRedirect,
  type Interactions,
} from '../service/interactions.js'
import { createIntrospect } from '../service/introspection.js'
import { createOutbox } from '../service/outbox.js'
import { purge } from '../service/sweeps.js'
import {
  cancelGrant,
  continueGrant,
  type GrantDependencies,
  requestGrant,
  revokeToken,
  rotateToken,
} from './grant-operations.js'
import type { Handler } from './message.js'
import {
  durations,
  repeatRule,
  requireFunction,
  requireKnown,
  requireMethods,
  requireOneOf,
  requirePrefix,
  requireStore,
  type ServerOptions,
  serviceContext,
} from './options.js'
import { createHandlers } from './pipeline.js'
import type { Route } from './routes.js'
import { publicUrl } from './target.js'

/** What the host decides about grants. Every part has a default; durations are in milliseconds. */
export interface AuthorizationPolicy {
  /** Life of an access token. Default 600,000. */
  readonly accessTokenLifetimeMs?: number
  /** How long a resource owner has to decide. Default 600,000. */
  readonly interactionLifetimeMs?: number
  /** How long a client instance waits between continuation calls. Default 5,000. */
  readonly waitMs?: number
  /** How long a lost response of a continuation or rotation can be asked for again. Default 60,000. */
  readonly retryMs?: number
  /** How long a grant without consent lives after its last token has expired. Default 30 days. */
  readonly unusedLifetimeMs?: number
  /** How long the record of a finished grant is kept. Default 30 days. */
  readonly retentionMs?: number
  /**
   * Whether a resource owner has to consent to this access. Default: to outgoing payments, `read-all` and
   * `list-all`.
   */
  readonly requiresConsent?: (item: AccessItem) => boolean
  /** Whether the interaction must end with a redirect to the client instance. Default: never. */
  readonly requiresFinish?: (item: AccessItem) => boolean
  /** How the interaction hash is written. Default `base64`, which deployed clients compare. */
  readonly interactionHash?: InteractionHashEncoding
  /** What the redirect after a denial carries. Default `open-payments`. */
  readonly denialRedirect?: DenialRedirect
}

export interface AuthorizationServerOptions extends ServerOptions {
  /**
   * URL of the grant endpoint, exactly the string that wallet addresses publish as `authServer`: it is
   * part of what clients sign and hash.
   */
  readonly grantEndpoint: string
  /** URL of the host's consent page; the interaction's id is appended as one more path segment. */
  readonly consentUrl: string
  readonly clientKeys: ClientKeys
  readonly policy?: AuthorizationPolicy
}

/** What the host can do with grants from its own code. */
export interface GrantServices {
  /** Reads a grant, or answers `undefined` if there is none of this id. */
  get(grantId: string): Promise<Grant | undefined>
  /** Withdraws a grant and with it its token. Answers false if there is none of this id. */
  revoke(grantId: string): Promise<boolean>
}

export type AuthorizationOperation =
  | 'requestGrant'
  | 'continueGrant'
  | 'cancelGrant'
  | 'rotateToken'
  | 'revokeToken'

/** What the host can do on a store of its choice: see `AuthorizationServer.within`. */
export interface AuthorizationServices {
  /** What the host's consent page works with. */
  readonly interactions: Interactions
  readonly grants: GrantServices
}

export interface AuthorizationServer extends AuthorizationServices {
  /** Serves every route below the grant endpoint. */
  readonly handle: Handler
  /** The same operation by operation, for hosts that route for themselves. */
  readonly handlers: Readonly<Record<AuthorizationOperation, Handler>>
  readonly routes: readonly Route[]
  /** What happened to grants, for the host to hear of. */
  readonly events: EventSource
  /**
   * The same services on another store: one inside a transaction that the host holds, so that they commit
   * or roll back together with the host's own rows.
   */
  within(store: Store): AuthorizationServices
  /**
   * Removes records past their retention: finished grants and used signatures.
   *
   * @param limit the most records that it looks at. Default 1,000.
   * @returns how many it has removed; call again at once until there is none.
   */
  purge(limit?: number): Promise<number>
  /** Tells a resource server in the same process about an access token. */
  readonly introspect: Introspect
}

const day = 86_400_000

const defaultPolicy: GrantPolicy = {
  accessTokenLifetimeMs: 600_000,
  interactionLifetimeMs: 600_000,
  waitMs: 5_000,
  retryMs: 60_000,
  unusedLifetimeMs: 30 * day,
  retentionMs: 30 * day,
}

const routes: readonly Route[] = [
  { operation: 'requestGrant', method: 'POST', path: '' },
  { operation: 'continueGrant', method: 'POST', path: '/continue/{id}' },
  { operation: 'cancelGrant', method: 'DELETE', path: '/continue/{id}' },
  { operation: 'rotateToken', method: 'POST', path: '/token/{id}' },
  { operation: 'revokeToken', method: 'DELETE', path: '/token/{id}' },
]

/**
 * Creates the authorization server: grant requests, interaction, continuation and tokens of GNAP
 * (RFC 9635) as Open Payments profiles it.
 *
 * @throws `TypeError` with code `ERR_INVALID_OPTION` and the name of the `option` that could not work.
 */
export function createAuthorizationServer(
  options: AuthorizationServerOptions,
): AuthorizationServer {
  const { grantEndpoint, clientKeys, policy = {} } = options
  const url = publicUrl('grantEndpoint', grantEndpoint)
  const consent = publicUrl('consentUrl', options.consentUrl)
  requireMethods('clientKeys', clientKeys, ['find'])
  const rules = consentRules(policy)
  const lifetimes = durations('policy', defaultPolicy, policy)
  const context = serviceContext(options, grantEndpoint)
  const grants = createGrants(context, lifetimes)

  function servicesIn(context: ServiceContext, grants: Grants): AuthorizationServices {
    return {
      interactions: createInteractions(context, grants, lifetimes, { grantEndpoint, ...rules }),
      grants: grantServices(context, grants),
    }
  }

  const deps: GrantDependencies = {
    context,
    grants,
    clientKeys,
    baseUrl: url.origin + url.basePath,
    consentUrl: consent.origin + consent.basePath,
    repeats: repeatRule(options),
    requiresConsent: rules.requiresConsent,
    requiresFinish: rules.requiresFinish,
  }
  const handlers = createHandlers({
    server: 'authorizationServer',
    url,
    strippedPrefix: requirePrefix(options.strippedPrefix ?? '', url),
    routes,
    serve: {
      requestGrant: requestGrant(deps),
      continueGrant: continueGrant(deps),
      cancelGrant: cancelGrant(deps),
      rotateToken: rotateToken(deps),
      revokeToken: revokeToken(deps),
    },
    newCall: () => newCall(context),
    challenge: `GNAP as_uri=${grantEndpoint}`,
    watch: options,
  })
  return {
    ...handlers,
    ...servicesIn(context, grants),
    events: createOutbox(context),
    within(store) {
      const inside = { ...context, store: requireStore(store) }
      return servicesIn(inside, createGrants(inside, lifetimes))
    },
    purge: (limit = 1_000) => purge(context, ['grant', 'replay'], limit),
    introspect: createIntrospect(context, grants, clientKeys, lifetimes),
  }
}

function grantServices(context: ServiceContext, grants: Grants): GrantServices {
  return {
    get: grants.load,
    async revoke(grantId) {
      const grant = await grants.load(grantId)
      if (grant === undefined) return false
      const call = newCall(context)
      await grants.run(grant, { type: 'revoke', by: call.by }, call)
      return true
    },
  }
}

function consentRules(policy: AuthorizationPolicy) {
  const {
    requiresConsent = needsConsentByDefault,
    requiresFinish = () => false,
    interactionHash = 'base64',
    denialRedirect = 'open-payments',
    ...rest
  } = policy
  requireKnown('policy', rest, Object.keys(defaultPolicy))
  requireFunction('policy.requiresConsent', requiresConsent)
  requireFunction('policy.requiresFinish', requiresFinish)
  return {
    requiresConsent,
    requiresFinish,
    hashEncoding: requireOneOf('policy.interactionHash', interactionHash, ['base64', 'base64url']),
    denialRedirect: requireOneOf('policy.denialRedirect', denialRedirect, [
      'open-payments',
      'rfc9635',
    ]),
  }
}

function needsConsentByDefault({ type, actions }: AccessItem): boolean {
  return type === 'outgoing-payment' || actions.includes('read-all') || actions.includes('list-all')
}
