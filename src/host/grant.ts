import * as v from 'valibot'
import { type GrantedItem, type TokenItem, tokenItem } from '../core/access.js'
import { type HostResult, hasChanged, refusedCall } from '../core/decision.js'
import type { AmendRefusal } from '../core/grant/amendment.js'
import { type EndedGrant, endOf } from '../core/grant/ended.js'
import {
  type Amendment,
  type ClientKeyId,
  clientId,
  clientKeyOf,
  type EarlierConditions,
  type Grant,
  type SubjectId,
} from '../core/grant/record.js'
import { type GrantStatus, grantStatus } from '../core/grant/status.js'
import type { Instant } from '../core/instant.js'
import type { GrantConditions } from '../core/limits.js'
import { canonicalUrl } from '../protocol/url.js'
import { newCall, type ServiceContext } from '../service/context.js'
import { clientListName, ownerListName } from '../service/grant/lists.js'
import type { Grants } from '../service/grant.js'
import {
  iterateList,
  type ListPage,
  mergedSource,
  type PageQuery,
  readPage,
  type Source,
  sourceOf,
} from '../service/lists.js'
import { exactly, listOf, type Members, oneOf, readInput, string, text } from '../util/input.js'
import { InvalidInputError } from '../util/invalid-input.js'
import { type GrantAmendment, type ItemView, readAmendment } from './approval.js'
import type { DisplayOf, InteractionView } from './interaction-view.js'
import { pageMembers, requirePage, scopeOf } from './payments.js'

/**
 * The part of a grant that may be shown to its resource owner, without the hashes and nonces of the record.
 */
export interface GrantView {
  readonly grantId: string
  /** Wallet address of the client, or the URN of its key's thumbprint. */
  readonly client: string
  /**
   * The key of the client that signed the request, or the last continuation or rotation that was recorded: its `kid`
   * and its thumbprint (RFC 7638). If `client` is an account of your owner, name the app by the owner's name for this
   * key.
   */
  readonly clientKey: ClientKeyId
  /**
   * The name of the client when the owner consented, as in `InteractionView.display`. Absent if it had none, or the
   * approval was inside a transaction.
   */
  readonly clientName?: string
  /** The current status. The client can use the grant while it is `approved`. */
  readonly status: GrantStatus
  /** The granted access of all tokens; before the decision, the requested access. */
  readonly access: readonly ItemView[]
  /** The owner's conditions for payments; absent if there are none. */
  readonly conditions?: GrantConditions
  /**
   * The changes of access and conditions by `grants.amend`, oldest first; absent if there are none. More than 50, and
   * large ones, are joined: then the first says what applied before several of them.
   */
  readonly amendments?: readonly AmendmentView[]
  /** The subject identifier that the client receives; before the decision, the requested one. */
  readonly subject?: SubjectId
  /** When the client requested it. */
  readonly createdAt: Instant
  /** The host's identifier of the owner who consented, or who denied the request, if the denial named one. */
  readonly resourceOwner?: string
  /** When the owner consented. */
  readonly approvedAt?: Instant
  /** When the client first received the granted access or subject. */
  readonly issuedAt?: Instant
  /**
   * When the approved grant expires if it does not change; this can be in the past. Absent if the grant does not
   * expire, or has been cancelled or revoked.
   */
  readonly expiresAt?: Instant
  /** When the grant ended; absent while it is `pending` or `approved`. */
  readonly endedAt?: Instant
  /**
   * Who ended the grant: the client, or the `host`, for its owner or for reasons of its own. Absent if it has not ended
   * or has expired.
   */
  readonly endedBy?: 'client' | 'host'
}

/** A change of a grant by `grants.amend`: what applied before it. */
export interface AmendmentView {
  /** When it was changed. */
  readonly at: Instant
  readonly before: {
    /** All granted access; absent if it did not change. */
    readonly access?: readonly ItemView[]
    /** The conditions that changed, `null` for one that did not exist; absent if none changed. */
    readonly conditions?: EarlierConditions
  }
}

/** A query for a page of the grants of a resource owner that have ended. */
export interface GrantHistoryQuery extends PageQuery {
  /** The host's identifier of the owner, as passed to `approve`. */
  readonly resourceOwner: string
}

/** A query for a page of a resource owner's grants. */
export interface GrantListQuery extends PageQuery {
  /** The host's identifier of the owner, as passed to `approve`. */
  readonly resourceOwner: string
  /** Returns only grants with one of these statuses, such as `['approved']`. Default: all grants. */
  readonly statuses?: readonly GrantStatus[]
  /** Returns only grants with access to this wallet address. Default: those to any of the owner's. */
  readonly walletAddress?: string
}

/** Selects grants of a resource owner. */
export type GrantQuery = Pick<GrantListQuery, 'resourceOwner' | 'statuses' | 'walletAddress'>

/** Selects grants by their owner, their client, or both. */
export interface GrantsToRevoke {
  /** The host's identifier of the owner, as passed to `approve`. */
  readonly resourceOwner?: string
  /** Wallet address of the client, or the URN of its key's thumbprint, as in `GrantView.client`. */
  readonly client?: string
}

/**
 * The operations on grants that the host calls. Each throws an `InvalidInputError` for an invalid argument, before it
 * reads the store.
 */
export interface GrantServices {
  /** Resolves to the record of a grant, or to `undefined` if the id is unknown. */
  getRecord(grantId: string): Promise<Grant | undefined>
  /**
   * Resolves to the view of a grant, including a grant in the history, or to `undefined` if the id is unknown. Compare
   * its `resourceOwner` with the signed-in user before you show or revoke the grant.
   */
  get(grantId: string): Promise<GrantView | undefined>
  /**
   * Resolves to a page of the grants that an owner has consented to, in the order of consent, such as for a page of
   * connected apps. Finalized grants are included until their records are removed, unless `statuses` excludes them:
   * `['approved']` selects the grants that the client can use. A query with `statuses` or `walletAddress` looks at 200
   * grants of the owner at most: its page may be empty, and say that there are more.
   *
   * @throws {InvalidInputError} for an invalid query.
   */
  list(query: GrantListQuery): Promise<ListPage<GrantView>>
  /**
   * Returns all grants that an owner has consented to, in the order of consent, for a `for await` loop. The
   * library reads them in pages of 100 as the loop proceeds, and holds one page in memory. Each grant that the
   * owner had consented to when the loop began appears exactly once; a later one may or may not appear.
   *
   * @throws {InvalidInputError} for an invalid query.
   */
  iterate(query: GrantQuery): AsyncIterable<GrantView>
  /**
   * Resolves to a page of the grants that an owner has consented to and that have ended: cancelled by the client,
   * revoked or expired, in the order of consent. They stay for `policy.grants.historyMs` after their end, two years by
   * default, longer than in `list`; each is in the history once. One call looks at 200 grants of `list` at most: its
   * page may be empty, and say that there are more.
   *
   * @throws {InvalidInputError} for an invalid query.
   */
  history(query: GrantHistoryQuery): Promise<ListPage<GrantView>>
  /**
   * Returns the whole history of an owner as JSON lines, such as to answer a request for the owner's data: each is the
   * JSON of a `GrantView`, in the order of consent, and ends with a line feed. The library reads them in pages of 100
   * as the loop proceeds.
   *
   * @throws {InvalidInputError} for an invalid query.
   */
  exportHistory(query: Pick<GrantHistoryQuery, 'resourceOwner'>): AsyncIterable<string>
  /**
   * Resolves to how a page can name the client of a grant, as in `InteractionView`, or to `undefined` if it has no
   * wallet address. Waits for the name for at most 2 s.
   *
   * @param client as in `GrantView.client`.
   */
  displayOf(client: string): Promise<InteractionView['display'] | undefined>
  /**
   * Revokes a grant together with its access tokens. A grant that is finalized stays unchanged.
   */
  revoke(grantId: string): Promise<HostResult<object, 'grant_unknown'>>
  /**
   * Narrows an approved grant for its owner: lowers amounts, removes actions or items, and changes conditions. Its
   * tokens stay valid, except one whose last item is removed; every request that follows is subject to the amended
   * grant. What was spent stays counted: if a limit is lower than that, nothing is left to spend. Payments that exist
   * are not changed. A refused amendment changes nothing.
   *
   * @throws {InvalidInputError} for an invalid amendment.
   */
  amend(
    grantId: string,
    amendment: GrantAmendment,
  ): Promise<HostResult<object, 'grant_unknown' | AmendRefusal>>
  /**
   * Revokes all grants of a resource owner, such as when the account is closed; all grants and open requests of a
   * client, such as when its key is stolen; or, with both members, the grants of an owner for one client. Resolves to
   * the number of grants that this call ended. Call it again after an error.
   *
   * Each grant ends in a commit of its own. The call may miss a grant that is requested or approved while it runs. To
   * prevent this, first make `policy.mayRequest` refuse the client, or make your consent page refuse the owner.
   *
   * @throws {InvalidInputError} for an invalid query, and for one without a member.
   */
  revokeAll(query: GrantsToRevoke): Promise<number>
}

const grantStatuses = [
  'pending',
  'approved',
  'denied',
  'cancelled',
  'revoked',
  'interaction-expired',
  'expired',
] as const satisfies readonly GrantStatus[]

const ofOwner = {
  resourceOwner: text,
  statuses: v.optional(listOf(oneOf(...grantStatuses))),
  walletAddress: v.optional(text),
} satisfies Members<GrantQuery>
const queryOfGrants = exactly(ofOwner)
const pageQueryOfGrants = exactly({
  ...ofOwner,
  ...pageMembers,
} satisfies Members<GrantListQuery>)
const queryOfHistory = exactly({ resourceOwner: text } satisfies Members<Owned>)
const pageQueryOfHistory = exactly({
  resourceOwner: text,
  ...pageMembers,
} satisfies Members<GrantHistoryQuery>)
const grantsToRevoke = exactly({
  resourceOwner: v.optional(text),
  client: v.optional(text),
} satisfies Members<GrantsToRevoke>)

export function createGrantServices(
  context: ServiceContext,
  grants: Grants,
  displayOf: DisplayOf,
): GrantServices {
  const seen = (grant: Grant | EndedGrant) => grantView(grant, context.clock.now())

  function keptBy(query: GrantQuery): ((grant: Grant) => boolean) | undefined {
    const { statuses } = query
    const account = query.walletAddress && scopeOf({ walletAddress: query.walletAddress })
    if (statuses === undefined && account === undefined) return undefined
    return (grant) =>
      (!statuses || statuses.includes(grantStatus(grant, context.clock.now()))) &&
      (!account || opens(grant, account.walletAddress))
  }

  return {
    async getRecord(grantId) {
      readInput('grantId', string, grantId)
      return grants.load(grantId)
    },
    async get(grantId) {
      readInput('grantId', string, grantId)
      const grant = await grants.loadReadable(grantId)
      return grant && seen(grant)
    },
    async list(query) {
      readInput('query', pageQueryOfGrants, query)
      const page = requirePage(query)
      const source = sourceOf(context.store, await ownersList(context, query), keptBy(query))
      const { pagination, result } = await readPage(source, page)
      return { pagination, result: result.map(seen) }
    },
    iterate(query) {
      readInput('query', queryOfGrants, query)
      const source = async () => sourceOf<Grant>(context.store, await ownersList(context, query))
      return iterateList(source, seen, keptBy(query))
    },
    async history(query) {
      readInput('query', pageQueryOfHistory, query)
      const page = requirePage(query)
      const { pagination, result } = await readPage(await historyOf(context, query), page)
      return { pagination, result: result.map(seen) }
    },
    exportHistory(query) {
      readInput('query', queryOfHistory, query)
      const line = (grant: Grant | EndedGrant) => `${JSON.stringify(seen(grant))}\n`
      return iterateList(() => historyOf(context, query), line)
    },
    async displayOf(client) {
      readInput('client', string, client)
      const walletAddress = canonicalUrl(client)
      return walletAddress === undefined ? undefined : displayOf(walletAddress)
    },
    async revoke(grantId) {
      readInput('grantId', text, grantId)
      const grant = await grants.load(grantId)
      if (grant === undefined) return unknownGrant
      return { ok: true, changed: await revoke(context, grants, grant) }
    },
    async amend(grantId, amendment) {
      readInput('grantId', text, grantId)
      const changes = readAmendment(amendment)
      const grant = await grants.load(grantId)
      if (grant === undefined) return unknownGrant
      const call = newCall(context)
      const command = { type: 'amend', commandId: call.commandId, ...changes } as const
      const decision = await grants.run<'amend'>(grant, command, call)
      if (!decision.ok) return refusedCall(decision)
      return { ok: true, changed: hasChanged(decision, call.commandId) }
    },
    async revokeAll(query) {
      readInput('query', grantsToRevoke, query)
      return revokeAll(context, grants, query)
    },
  }
}

const unknownGrant = {
  ok: false,
  refusal: 'grant_unknown',
  reason: 'the grant does not exist',
} as const

type Owned = Pick<GrantQuery, 'resourceOwner'>

async function ownersList({ namespace }: ServiceContext, { resourceOwner }: Owned) {
  return { kind: 'grant', list: await ownerListName(await namespace(), resourceOwner) } as const
}

/** The ended grants of an owner: those that have ended, and what remains of those that were removed since. */
async function historyOf(
  context: ServiceContext,
  owned: Owned,
): Promise<Source<Grant | EndedGrant>> {
  const { store, clock } = context
  const { kind, list } = await ownersList(context, owned)
  const hasEnded = (grant: Grant) => endOf(grant, clock.now()) !== undefined
  const removed = sourceOf<EndedGrant>(store, { kind: 'ended-grant', list })
  return mergedSource(sourceOf(store, { kind, list }, hasEnded), removed)
}

async function clientsList({ namespace }: ServiceContext, client: string) {
  return { kind: 'grant', list: clientListName(await namespace(), client) } as const
}

/** Resolves to whether this call revoked the grant. */
async function revoke(context: ServiceContext, grants: Grants, grant: Grant): Promise<boolean> {
  const call = newCall(context)
  const command = { type: 'revoke', commandId: call.commandId } as const
  const decision = await grants.run<'revoke'>(grant, command, call)
  return decision.ok && hasChanged(decision, call.commandId)
}

async function revokeAll(
  context: ServiceContext,
  grants: Grants,
  { resourceOwner, client: given }: GrantsToRevoke,
): Promise<number> {
  const client = given && (canonicalUrl(given) ?? given)
  if (resourceOwner === undefined && client === undefined) {
    throw new InvalidInputError('query', 'must contain resourceOwner or client')
  }
  const list =
    resourceOwner === undefined
      ? clientsList(context, client ?? '')
      : ownersList(context, { resourceOwner })
  const source = async () => sourceOf<Grant>(context.store, await list)
  const isMeant = (grant: Grant) => client === undefined || clientId(grant.client) === client
  const all = iterateList(source, (grant) => grant, isMeant)
  let count = 0
  for await (const grant of all) {
    if (await revoke(context, grants, grant)) count += 1
  }
  return count
}

export function grantView(grant: Grant | EndedGrant, now: Instant): GrantView {
  const { id: grantId, createdAt, issuedAt, consent, conditions, amendments, finalized } = grant
  const { resourceOwner } = consent ?? finalized ?? {}
  const expiresAt = finalized === undefined ? grant.expiresAt : undefined
  const { status, endedAt, access, subject } = isRemoved(grant)
    ? ofRemoved(grant)
    : ofGrant(grant, now)
  return {
    grantId,
    client: clientId(grant.client),
    clientKey: clientKeyOf(grant),
    ...(consent?.clientName !== undefined && { clientName: consent.clientName }),
    status,
    access,
    ...(conditions !== undefined && { conditions }),
    ...(amendments !== undefined && { amendments: amendments.map(amendmentView) }),
    ...(subject !== undefined && { subject }),
    createdAt,
    ...(consent !== undefined && { approvedAt: consent.at }),
    ...(resourceOwner !== undefined && { resourceOwner }),
    ...(issuedAt !== undefined && { issuedAt }),
    ...(expiresAt !== undefined && { expiresAt }),
    ...(endedAt !== undefined && { endedAt }),
    ...(finalized !== undefined && { endedBy: finalized.by }),
  }
}

/** Whether a grant has access to a wallet address. */
function opens({ granted, requested }: Grant, walletAddress: string): boolean {
  const items: readonly TokenItem[] = granted ?? requested
  return items.some(({ identifier }) => identifier === walletAddress)
}

/** Whether this is what remains of a grant whose own record is removed. */
function isRemoved(grant: Grant | EndedGrant): grant is EndedGrant {
  return !('requested' in grant)
}

function ofGrant(grant: Grant, now: Instant) {
  const { granted, requested, requestedSubject } = grant
  return {
    status: grantStatus(grant, now),
    endedAt: endOf(grant, now),
    access: granted?.map(itemView) ?? requested.map(tokenItem),
    subject: granted === undefined ? requestedSubject : grant.subject,
  }
}

function ofRemoved({ finalized, endedAt, granted, subject }: EndedGrant) {
  return {
    status: finalized?.reason ?? ('expired' as const),
    endedAt,
    access: granted.map(itemView),
    subject,
  }
}

function amendmentView({ at, before: { access, conditions } }: Amendment): AmendmentView {
  return {
    at,
    before: {
      ...(access !== undefined && { access: access.map(itemView) }),
      ...(conditions !== undefined && { conditions }),
    },
  }
}

export function itemView({ itemId, ...item }: GrantedItem): ItemView {
  return { ...tokenItem(item), itemId }
}
