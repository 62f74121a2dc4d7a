import * as v from 'valibot'
import type { TokenItem } from '../core/access.js'
import type { GrantPolicy } from '../core/grant/record.js'
import type { MayRequest } from '../ports/host.js'
import {
  boolean,
  callback,
  duration,
  group,
  type Members,
  oneOf,
  optionsOf,
  positiveDuration,
} from '../util/input.js'
import type { Compatibility } from './compatibility.js'
import { hostFunction, hostRule } from './host-ports.js'

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
    /**
     * How long an ended grant stays readable for the owner who consented to it, in `grants.history`, from its end. Once
     * the record of the grant is removed, a smaller one remains, without keys, tokens and hashes. With 0, none remains.
     * Default 2 years (730 days).
     */
    readonly historyMs?: number
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
   * request. `{ ok: false }` refuses it with 403; any other answer, with 500; an exception, a rejection, or no answer
   * within `hostTimeoutMs`, with 503.
   * Default: every request is allowed.
   */
  readonly mayRequest?: MayRequest
}

const day = 86_400_000

type Rule = (item: TokenItem) => boolean

export const authorizationPolicyOptions = {
  accessTokens: group({ lifetimeMs: v.optional(duration, 600_000) }),
  interactions: group({ lifetimeMs: v.optional(duration, 600_000) }),
  continuation: group({
    waitMs: v.optional(duration, 5_000),
    retryMs: v.optional(duration, 60_000),
  }),
  grants: group({
    unusedLifetimeMs: v.optional(duration, 30 * day),
    retentionMs: v.optional(duration, 30 * day),
    historyMs: v.optional(duration, 730 * day),
  }),
  intervals: group({ windowMinMs: v.optional(positiveDuration, 60_000) }),
  keyBinding: v.optional(oneOf('published', 'bound'), 'published'),
  requiresConsent: v.optional(callback<Rule>(), () => needsConsentByDefault),
  requiresFinish: v.optional(callback<Rule>(), () => () => false),
  subjectRequiresFinish: v.optional(boolean, false),
  mayRequest: v.optional(callback<MayRequest>(), () => () => ({ ok: true })),
} satisfies Members<AuthorizationPolicy>

const policyOptions = optionsOf(authorizationPolicyOptions)

export type AuthorizationPolicySettings = v.InferOutput<typeof policyOptions>

/** Splits the policy by the parts of the server that use it. */
export function authorizationRules(
  policy: AuthorizationPolicySettings,
  { intervalCounting, interactionHash, denialRedirect }: Compatibility,
  hostTimeoutMs: number,
) {
  const { accessTokens, interactions, continuation, intervals, keyBinding } = policy
  const { historyMs, ...grants } = policy.grants
  const { requiresConsent, requiresFinish, subjectRequiresFinish, mayRequest } = policy
  const grantPolicy: GrantPolicy = {
    accessTokenLifetimeMs: accessTokens.lifetimeMs,
    interactionLifetimeMs: interactions.lifetimeMs,
    ...continuation,
    ...grants,
    intervalCounting,
  }
  return {
    intervalMinMs: intervals.windowMinMs,
    grantPolicy,
    historyMs,
    keyBinding,
    requiresConsent: hostRule('policy.requiresConsent', requiresConsent),
    requiresFinish: hostRule('policy.requiresFinish', requiresFinish),
    subjectRequiresFinish,
    mayRequest: hostFunction('mayRequest', hostTimeoutMs, mayRequest),
    interactionHash,
    denialRedirect,
  }
}

function needsConsentByDefault({ type, actions }: TokenItem): boolean {
  return type === 'outgoing-payment' || actions.includes('list-all')
}
