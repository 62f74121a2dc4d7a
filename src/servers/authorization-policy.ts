import type { TokenItem } from '../core/access.js'
import type { GrantPolicy } from '../core/grant/record.js'
import type { MayRequest } from '../ports/host.js'
import { boolean, callback, InvalidInputError, oneOf, requireKnownOptions } from '../util/input.js'
import type { CompatibilityOptions } from './compatibility.js'
import { hostRule } from './host-ports.js'
import { durations } from './options.js'

/** The host's policy for grants. Every member has a default; durations are in milliseconds. */
export interface AuthorizationPolicy {
  readonly accessTokens?: {
    /** The lifetime of an access token. Default 600,000. */
    readonly lifetimeMs?: number
  }
  readonly interactions?: {
    /** How long a resource owner has to decide. Default 600,000. */
    readonly lifetimeMs?: number
  }
  readonly continuation?: {
    /** How long a client must wait between continuation requests. Default 5,000. */
    readonly waitMs?: number
    /**
     * How long a continuation can be repeated if its response was lost. A rotation can be repeated at least this
     * long, and as long as its token is valid. With 0, neither can be repeated. Default 60,000.
     */
    readonly retryMs?: number
  }
  readonly grants?: {
    /**
     * How long a grant without consent remains valid after its last token expired. Tokens that exist keep the value
     * with which they were issued. Default 30 days.
     */
    readonly unusedLifetimeMs?: number
    /** How long the record of an ended grant is kept. Default 30 days. */
    readonly retentionMs?: number
  }
  readonly intervals?: {
    /**
     * The shortest window that an interval may have, in milliseconds, at least 1. A grant request with a shorter one
     * gets 400: the limit applies to each window, so windows of a millisecond would limit nothing. A month counts as
     * 28 days, a year as 365. Default 60,000.
     */
    readonly windowMinMs?: number
  }
  /**
   * Which keys sign for a grant of a client with a wallet address: each that the wallet address publishes at the time
   * of the request (`published`), or only the one that signed the grant request, while it is published (`bound`). A
   * client that sends its key is bound to it in both. Default `published`.
   */
  readonly keyBinding?: 'published' | 'bound'
  /**
   * Whether access requires the consent of a resource owner. Default: true for every action on outgoing
   * payments and for `list-all`. `read-all` on incoming payments requires no consent, because a payer's
   * wallet requests it without a user of this wallet. Outgoing payments without `identifier` always require consent,
   * in which the owner chooses the account.
   */
  readonly requiresConsent?: (item: TokenItem) => boolean
  /** Whether access requires an interaction that ends with a redirect (`finish`). Default: never. */
  readonly requiresFinish?: (item: TokenItem) => boolean
  /**
   * Whether a request for a subject requires an interaction that ends with a redirect (`finish`). The
   * redirect shows the client that the owner who consented is the user who began. Polling does not
   * show this, so a client that polls must not sign a user in with the subject. Default false.
   */
  readonly subjectRequiresFinish?: boolean
  /**
   * Decides whether a client may make a grant request. Called after the signature is verified and
   * the body validated, before anything is granted or shown to a resource owner. Only `{ ok: true }` allows the
   * request. `{ ok: false }` refuses it with 403; any other answer, with 500; an exception or rejection, with 503.
   * Default: every request is allowed.
   */
  readonly mayRequest?: MayRequest
}

const day = 86_400_000

/** The names of the options of the policy. */
export const authorizationPolicyOptions: Readonly<Record<keyof AuthorizationPolicy, unknown>> = {
  accessTokens: true,
  interactions: true,
  continuation: true,
  grants: true,
  intervals: true,
  keyBinding: true,
  requiresConsent: true,
  requiresFinish: true,
  subjectRequiresFinish: true,
  mayRequest: true,
}

const keyBindings = { published: true, bound: true }

/** Validates the policy, and fills in defaults. */
export function authorizationRules(
  policy: AuthorizationPolicy,
  compatibility: Required<CompatibilityOptions>,
) {
  requireKnownOptions('policy', policy, authorizationPolicyOptions)
  const {
    keyBinding = 'published',
    requiresConsent = needsConsentByDefault,
    requiresFinish = () => false,
    subjectRequiresFinish = false,
    mayRequest = () => ({ ok: true }),
  } = policy
  callback('policy.requiresConsent', requiresConsent)
  callback('policy.requiresFinish', requiresFinish)
  callback('policy.mayRequest', mayRequest)
  boolean('policy.subjectRequiresFinish', subjectRequiresFinish)
  oneOf(keyBindings)('policy.keyBinding', keyBinding)
  const accessTokens = durations(
    'policy.accessTokens',
    { lifetimeMs: 600_000 },
    policy.accessTokens,
  )
  const interactions = durations(
    'policy.interactions',
    { lifetimeMs: 600_000 },
    policy.interactions,
  )
  const grantPolicy: GrantPolicy = {
    accessTokenLifetimeMs: accessTokens.lifetimeMs,
    interactionLifetimeMs: interactions.lifetimeMs,
    ...durations('policy.continuation', { waitMs: 5_000, retryMs: 60_000 }, policy.continuation),
    ...durations(
      'policy.grants',
      { unusedLifetimeMs: 30 * day, retentionMs: 30 * day },
      policy.grants,
    ),
    intervalCounting: compatibility.intervalCounting,
  }
  const { windowMinMs } = durations('policy.intervals', { windowMinMs: 60_000 }, policy.intervals)
  if (windowMinMs === 0)
    throw new InvalidInputError('policy.intervals.windowMinMs', 'must be positive')
  return {
    intervalMinMs: windowMinMs,
    grantPolicy,
    keyBinding,
    requiresConsent: hostRule('policy.requiresConsent', requiresConsent),
    requiresFinish: hostRule('policy.requiresFinish', requiresFinish),
    subjectRequiresFinish,
    mayRequest,
    interactionHash: compatibility.interactionHash,
    denialRedirect: compatibility.denialRedirect,
  }
}

function needsConsentByDefault({ type, actions }: TokenItem): boolean {
  return type === 'outgoing-payment' || actions.includes('list-all')
}
