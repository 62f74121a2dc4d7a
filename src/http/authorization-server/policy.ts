import type { TokenItem } from '../../core/access.js'
import type { GrantPolicy } from '../../core/grant/record.js'
import type { IntervalCounting } from '../../core/interval.js'
import type { DenialRedirect } from '../../host/interaction-redirect.js'
import type { InteractionHashEncoding } from '../../protocol/interaction-hash.js'
import { requireKnownOptions } from '../../util/known-options.js'
import { invalidOption } from '../../util/option-error.js'
import { hostRule } from '../host-ports.js'
import { durations, requireBoolean, requireFunction, requireOneOf } from '../options.js'
import type { MayRequest } from './may-request.js'

/** The host's policy for grants. Every member has a default; durations are in milliseconds. */
export interface AuthorizationPolicy {
  /** The lifetime of an access token. Default 600,000. */
  readonly accessTokenLifetimeMs?: number
  /** How long a resource owner has to decide. Default 600,000. */
  readonly interactionLifetimeMs?: number
  /** How long a client instance must wait between continuation requests. Default 5,000. */
  readonly waitMs?: number
  /**
   * How long a continuation can be repeated if its response was lost. A rotation can be repeated at least this
   * long, and as long as its token is valid. With 0, neither can be repeated. Default 60,000.
   */
  readonly retryMs?: number
  /** How long a grant without consent remains valid after its last token expired. Default 30 days. */
  readonly unusedLifetimeMs?: number
  /** How long the record of an ended grant is kept. Default 30 days. */
  readonly retentionMs?: number
  /**
   * Whether access requires the consent of a resource owner. Default: true for every action on outgoing
   * payments and for `list-all`. `read-all` on incoming payments requires no consent, because a payer's
   * wallet requests it without a user of this wallet.
   */
  readonly requiresConsent?: (item: TokenItem) => boolean
  /** Whether access requires an interaction that ends with a redirect (`finish`). Default: never. */
  readonly requiresFinish?: (item: TokenItem) => boolean
  /**
   * Whether a request for a subject requires an interaction that ends with a redirect (`finish`). The
   * redirect shows the client instance that the owner who consented is the user who began. Polling does not
   * show this, so a client instance that polls must not sign a user in with the subject. Default false.
   */
  readonly subjectRequiresFinish?: boolean
  /**
   * Decides whether a client instance may make a grant request. Called after the signature is verified and
   * the body validated, before anything is granted or shown to a resource owner. Only `{ ok: true }` allows the
   * request. `{ ok: false }` refuses it with 403; any other answer, with 500; an exception or rejection, with 503.
   * Default: every request is allowed.
   */
  readonly mayRequest?: MayRequest
  /** The encoding of the interaction hash. Default `base64`, which deployed clients expect. */
  readonly interactionHash?: InteractionHashEncoding
  /** The query parameters of the redirect after a denial. Default `open-payments`. */
  readonly denialRedirect?: DenialRedirect
  /**
   * The meaning of the count of an interval: `R3/…` is 3 windows (`occurrences`), or the first window and 3
   * repetitions of it, so 4 windows (`repetitions`). A change applies to new grants; existing grants keep
   * their windows. Default `occurrences`.
   */
  readonly intervalCounting?: IntervalCounting
  /**
   * The shortest window that an interval may have, in milliseconds, at least 1. A grant request with a shorter one gets
   * 400: the limit applies to each window, so windows of a millisecond would limit nothing. A month counts as 28 days,
   * a year as 365. Default 60,000.
   */
  readonly intervalMinMs?: number
}

const day = 86_400_000

const defaultDurations: Omit<GrantPolicy, 'intervalCounting'> = {
  accessTokenLifetimeMs: 600_000,
  interactionLifetimeMs: 600_000,
  waitMs: 5_000,
  retryMs: 60_000,
  unusedLifetimeMs: 30 * day,
  retentionMs: 30 * day,
}

const knownOptions: Readonly<Record<keyof AuthorizationPolicy, unknown>> = {
  ...defaultDurations,
  requiresConsent: true,
  requiresFinish: true,
  subjectRequiresFinish: true,
  mayRequest: true,
  interactionHash: true,
  denialRedirect: true,
  intervalCounting: true,
  intervalMinMs: true,
}

/** Validates the policy, and fills in defaults. */
export function authorizationRules(policy: AuthorizationPolicy) {
  requireKnownOptions('policy', policy, knownOptions)
  const {
    requiresConsent = needsConsentByDefault,
    requiresFinish = () => false,
    subjectRequiresFinish = false,
    mayRequest = () => ({ ok: true }),
    interactionHash = 'base64',
    denialRedirect = 'open-payments',
    intervalCounting = 'occurrences',
  } = policy
  requireFunction('policy.requiresConsent', requiresConsent)
  requireFunction('policy.requiresFinish', requiresFinish)
  requireFunction('policy.mayRequest', mayRequest)
  const grantPolicy: GrantPolicy = {
    ...durations('policy', defaultDurations, policy),
    intervalCounting: requireOneOf('policy.intervalCounting', intervalCounting, [
      'occurrences',
      'repetitions',
    ]),
  }
  const shortest = durations('policy', { intervalMinMs: 60_000 }, policy)
  if (shortest.intervalMinMs === 0) throw invalidOption('policy.intervalMinMs', 'must be positive')
  return {
    ...shortest,
    grantPolicy,
    requiresConsent: hostRule('policy.requiresConsent', requiresConsent),
    requiresFinish: hostRule('policy.requiresFinish', requiresFinish),
    subjectRequiresFinish: requireBoolean('policy.subjectRequiresFinish', subjectRequiresFinish),
    mayRequest,
    hashEncoding: requireOneOf('policy.interactionHash', interactionHash, ['base64', 'base64url']),
    denialRedirect: requireOneOf('policy.denialRedirect', denialRedirect, [
      'open-payments',
      'rfc9635',
    ]),
  }
}

function needsConsentByDefault({ type, actions }: TokenItem): boolean {
  return type === 'outgoing-payment' || actions.includes('list-all')
}
