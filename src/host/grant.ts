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
import { type Page, type PageQuery, readPage, readPageQuery } from '../service/mechanism/pages.js'
import { hashText } from '../util/hash.js'
import { invalidOption } from '../util/option-error.js'

/** A grant as its resource owner may see it: without the hashes and nonces of its record. */
export interface GrantView {
  readonly grantId: string
  /** Wallet address of the client instance, or the URN of its key's thumbprint. */
  readonly client: string
  /** What the grant is now: it is of use to its client instance while `approved` or `issued`. */
  readonly status: GrantStatus
  /** What was granted, and before that what was asked for. */
  readonly access: readonly AccessItem[]
  /** How the owner is named to the client instance, and before that who it asked the owner to be. */
  readonly subject?: SubjectId
  readonly createdAt: Instant
  /** The host's name for the owner who consented. */
  readonly resourceOwner?: string
  /** When the owner consented. */
  readonly approvedAt?: Instant
  /** When it ends by itself, as things stand; absent when it does not, or was ended. */
  readonly endsAt?: Instant
}

/** Whose grants the host wants to see, and which page of them. */
export interface GrantListQuery extends PageQuery {
  /** The host's name for the owner, as it was given to `approve`. */
  readonly resourceOwner: string
}

/** What the host can do with grants from its own code. */
export interface GrantServices {
  /** Reads the record of a grant, or answers `undefined` if there is none of this id. */
  getRecord(grantId: string): Promise<Grant | undefined>
  /**
   * A grant as it can be shown, or `undefined` if there is none of this id. Compare its `resourceOwner` with
   * who is signed in before you show or revoke it.
   */
  get(grantId: string): Promise<GrantView | undefined>
  /**
   * The grants that an owner has consented to, page by page in the order of consent: what a page of connected
   * apps shows. Those that are over are among them for as long as their records are kept; tell them by
   * `standing`.
   *
   * @throws `TypeError` with code `ERR_INVALID_OPTION` for a number or a cursor that is none.
   */
  list(query: GrantListQuery): Promise<Page<GrantView>>
  /** Withdraws a grant and with it its token. Answers false if there is none of this id. */
  revoke(grantId: string): Promise<boolean>
}

export function createGrantServices(
  context: ServiceContext,
  grants: Grants,
  policy: GrantPolicy,
): GrantServices {
  const seen = (grant: Grant) => grantView(grant, context.clock.now(), policy)

  return {
    getRecord: grants.load,
    async get(grantId) {
      const grant = await grants.load(grantId)
      return grant && seen(grant)
    },
    async list({ resourceOwner, ...query }) {
      const page = readPageQuery(query)
      if (!('value' in page)) throw invalidOption(page.path, page.problem)
      const wanted = await ownerListName(await context.namespace(), resourceOwner)
      const list = { kind: 'grant', list: wanted } as const
      const { pagination, result } = await readPage<Grant>(context.store, list, page.value)
      return { pagination, result: result.map(seen) }
    },
    async revoke(grantId) {
      const grant = await grants.load(grantId)
      if (grant === undefined) return false
      const call = newCall(context)
      await grants.run(grant, { type: 'revoke', commandId: call.commandId }, call)
      return true
    },
  }
}

/**
 * The list of the grants of an owner, whose name is any text of the host: hashed, for the list to have a name
 * of one form and one length, and as JSON, since UTF-8 has but one way to write all lone surrogates.
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
