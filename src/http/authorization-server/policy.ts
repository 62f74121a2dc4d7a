import type { AccessItem } from '../../core/access.js'
import type { GrantPolicy } from '../../core/grant/record.js'
import type { IntervalCounting } from '../../core/interval.js'
import type { DenialRedirect } from '../../host/interaction.js'
import type { InteractionHashEncoding } from '../../protocol/interaction-hash.js'
import {
  durations,
  requireBoolean,
  requireFunction,
  requireKnown,
  requireOneOf,
} from '../options.js'
import type { MayRequest } from './may-request.js'

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
   * Whether a resource owner has to consent to this access. Default: to every action on outgoing payments, and
   * to `list-all`. `read-all` on incoming payments needs no consent, because the wallet of a payer asks for it
   * without any user of this wallet.
   */
  readonly requiresConsent?: (item: AccessItem) => boolean
  /** Whether the interaction must end with a redirect to the client instance. Default: never. */
  readonly requiresFinish?: (item: AccessItem) => boolean
  /**
   * Whether an interaction that names the resource owner must end with a redirect to the client instance. With
   * the redirect a client instance knows that who consented is who began; by polling alone it does not, and
   * must not sign anybody in by what it learns. Default false.
   */
  readonly subjectRequiresFinish?: boolean
  /**
   * Who may ask for what at all, decided once a grant request is known to come from its client and before
   * anything is granted or shown to a resource owner. Anything but `true` refuses with 403; when it throws,
   * the request fails with 500. Default: everybody may ask.
   */
  readonly mayRequest?: MayRequest
  /** How the interaction hash is written. Default `base64`, which deployed clients compare. */
  readonly interactionHash?: InteractionHashEncoding
  /** What the redirect after a denial carries. Default `open-payments`. */
  readonly denialRedirect?: DenialRedirect
  /**
   * What the count of an interval means: `R3/…` is 3 windows (`occurrences`), or 3 repetitions of the first
   * and so 4 (`repetitions`). A change holds for grants made after it; those made before keep their windows.
   * Default `occurrences`.
   */
  readonly intervalCounting?: IntervalCounting
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

/** Reads a policy, filling in what it leaves out. */
export function authorizationRules(policy: AuthorizationPolicy) {
  const {
    requiresConsent = needsConsentByDefault,
    requiresFinish = () => false,
    subjectRequiresFinish = false,
    mayRequest = () => true,
    interactionHash = 'base64',
    denialRedirect = 'open-payments',
    intervalCounting = 'occurrences',
    ...rest
  } = policy
  requireKnown('policy', rest, Object.keys(defaultDurations))
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
  return {
    grantPolicy,
    requiresConsent,
    requiresFinish,
    subjectRequiresFinish: requireBoolean('policy.subjectRequiresFinish', subjectRequiresFinish),
    mayRequest,
    hashEncoding: requireOneOf('policy.interactionHash', interactionHash, ['base64', 'base64url']),
    denialRedirect: requireOneOf('policy.denialRedirect', denialRedirect, [
      'open-payments',
      'rfc9635',
    ]),
  }
}

function needsConsentByDefault({ type, actions }: AccessItem): boolean {
  return type === 'outgoing-payment' || actions.includes('list-all')
}
