import { type AccessItem, publicItem } from '../core/access.js'
import type { Instant } from '../core/decision.js'
import {
  clientId,
  endOf,
  type Grant,
  type GrantPolicy,
  type GrantStatus,
  grantStatus,
} from '../core/grant/record.js'
import type { SubjectId } from '../core/grant/subject.js'
import type { Grants } from '../service/grant.js'
import { newCall, type ServiceContext } from '../service/mechanism/context.js'
import { iterateList, type Page, type PageQuery, readPage } from '../service/mechanism/pages.js'
import { exactly, string, text } from '../util/arguments.js'
import { hashText } from '../util/hash.js'
import { pageMembers, requirePage } from './payments.js'

/**
 * The part of a grant that may be shown to its resource owner, without the hashes and nonces of the record.
 */
export interface GrantView {
  readonly grantId: string
  /** Wallet address of the client instance, or the URN of its key's thumbprint. */
  readonly client: string
  /** The current status. The client instance can use the grant while it is `approved` or `issued`. */
  readonly status: GrantStatus
  /** The granted access; before the decision, the requested access. */
  readonly access: readonly AccessItem[]
  /** The subject identifier that the client instance receives; before the decision, the requested one. */
  readonly subject?: SubjectId
  readonly createdAt: Instant
  /** The host's identifier of the owner who consented. */
  readonly resourceOwner?: string
  /** When the owner consented. */
  readonly approvedAt?: Instant
  /** When the grant expires if it does not change; absent if it does not expire or has already ended. */
  readonly endsAt?: Instant
}

/** A query for a page of a resource owner's grants. */
export interface GrantListQuery extends PageQuery {
  /** The host's identifier of the owner, as passed to `approve`. */
  readonly resourceOwner: string
}

/**
 * The operations on grants that the host calls. Each throws an `ArgumentError` for an invalid argument, before it
 * reads the store.
 */
export interface GrantServices {
  /** Resolves to the record of a grant, or to `undefined` if the id is unknown. */
  getRecord(grantId: string): Promise<Grant | undefined>
  /**
   * Resolves to the view of a grant, or to `undefined` if the id is unknown. Compare its `resourceOwner` with
   * the signed-in user before you show or revoke the grant.
   */
  get(grantId: string): Promise<GrantView | undefined>
  /**
   * Resolves to a page of the grants that an owner has consented to, in the order of consent, such as for a
   * page of connected apps. Grants that have ended are included until their records are removed; their
   * `status` identifies them.
   *
   * @throws {ArgumentError} for an invalid query.
   */
  list(query: GrantListQuery): Promise<Page<GrantView>>
  /**
   * Returns all grants that an owner has consented to, in the order of consent, for a `for await` loop. The
   * library reads them in pages of 100 as the loop proceeds, and holds one page in memory. Each grant that the
   * owner had consented to when the loop began appears exactly once; a later one may or may not appear.
   *
   * @throws {ArgumentError} for an invalid query.
   */
  iterate(query: Pick<GrantListQuery, 'resourceOwner'>): AsyncIterable<GrantView>
  /** Revokes a grant together with its access token. Resolves to false if the id is unknown. */
  revoke(grantId: string): Promise<boolean>
}

const queryOfGrants = exactly<Pick<GrantListQuery, 'resourceOwner'>>({ resourceOwner: text })
const pageQueryOfGrants = exactly<GrantListQuery>({ resourceOwner: text, ...pageMembers })

export function createGrantServices(
  context: ServiceContext,
  grants: Grants,
  policy: GrantPolicy,
): GrantServices {
  const { store } = context
  const seen = (grant: Grant) => grantView(grant, context.clock.now(), policy)

  async function listOf({ resourceOwner }: Pick<GrantListQuery, 'resourceOwner'>) {
    const list = await ownerListName(await context.namespace(), resourceOwner)
    return { kind: 'grant', list } as const
  }

  return {
    async getRecord(grantId) {
      string('grantId', grantId)
      return grants.load(grantId)
    },
    async get(grantId) {
      string('grantId', grantId)
      const grant = await grants.load(grantId)
      return grant && seen(grant)
    },
    async list(query) {
      pageQueryOfGrants('query', query)
      const page = requirePage(query)
      const { pagination, result } = await readPage<Grant>(store, await listOf(query), page)
      return { pagination, result: result.map(seen) }
    },
    iterate(query) {
      queryOfGrants('query', query)
      return iterateList(store, () => listOf(query), seen)
    },
    async revoke(grantId) {
      text('grantId', grantId)
      const grant = await grants.load(grantId)
      if (grant === undefined) return false
      const call = newCall(context)
      await grants.run(grant, { type: 'revoke', commandId: call.commandId }, call)
      return true
    },
  }
}

/**
 * Returns the name of the list of an owner's grants. The owner's identifier can be any string, so it is
 * hashed to a fixed length. It is hashed as JSON, because UTF-8 does not distinguish lone surrogates.
 */
export async function ownerListName(namespace: string, resourceOwner: string): Promise<string> {
  return `${namespace} owner ${await hashText(JSON.stringify(resourceOwner))}`
}

function grantView(grant: Grant, now: Instant, policy: GrantPolicy): GrantView {
  const { id: grantId, client, createdAt, consent, granted, requested } = grant
  const subject = granted === undefined ? grant.requestedSubject : grant.subject
  const endsAt = grant.finalized === undefined ? endOf(grant, policy) : undefined
  return {
    grantId,
    client: clientId(client),
    status: grantStatus(grant, now, policy),
    access: (granted ?? requested).map(publicItem),
    ...(subject === undefined ? {} : { subject }),
    createdAt,
    ...(consent && { resourceOwner: consent.resourceOwner, approvedAt: consent.at }),
    ...(endsAt === undefined ? {} : { endsAt }),
  }
}
