import { type AccessItem, publicItem } from '../core/access.js'
import type { Decision, Instant } from '../core/decision.js'
import type { ConsentRefusal } from '../core/grant/consent.js'
import { clientId, type Grant, type GrantPolicy, grantStatus } from '../core/grant/record.js'
import type { SubjectId } from '../core/grant/subject.js'
import type { Subjects } from '../ports/subjects.js'
import { formatPath, hashSecret, newSecret, parsePath } from '../protocol/credential.js'
import { withParameters } from '../protocol/finish-uri.js'
import { type InteractionHashEncoding, interactionHash } from '../protocol/interaction-hash.js'
import { canonicalUrl } from '../protocol/url.js'
import type { Grants } from '../service/grant.js'
import { newCall, type ServiceContext } from '../service/mechanism/context.js'
import { ownerListName } from './grant.js'

/** The content of a consent page: the client instance, the requested access and the deadline. */
export interface InteractionView {
  readonly id: string
  readonly grantId: string
  readonly state: 'pending' | 'approved' | 'denied' | 'expired' | 'closed'
  /** Wallet address of the client instance, verified by its signature. */
  readonly client: string
  /** The requested access; once approved, the granted access. Empty if only a subject is requested. */
  readonly access: readonly AccessItem[]
  /**
   * The subject identifier that the client instance requests; once approved, the one that it receives. Show
   * it to the owner, because the client instance learns who consented. Until then it is text that the
   * client instance chose: do not render it as a link.
   */
  readonly subject?: SubjectId
  /** The client instance's finish URI, to which the browser is redirected, if any. Show it to the owner. */
  readonly finishUri?: string
  readonly expiresAt: Instant
}

/** The consent of a resource owner. */
export interface GrantApproval {
  /** The host's identifier of the owner, stored on the grant. */
  readonly resourceOwner: string
  /** The owner's wallet addresses. Every granted `identifier` must be one of them. */
  readonly walletAddresses: readonly string[]
  /** The granted access, if less than the requested access. Default: all requested access. */
  readonly access?: readonly AccessItem[]
  /** When false, the client instance does not receive the subject that it requested. Default true. */
  readonly sharesSubject?: boolean
}

/** The result of a decision: the URL to redirect the browser to, or the reason for the refusal. */
export type InteractionResult =
  | {
      readonly ok: true
      /** Redirect the browser to this URL with status 303. If absent, ask the owner to return to the app. */
      readonly redirect?: string
    }
  | { readonly ok: false; readonly refusal: ConsentRefusal; readonly reason: string }

export interface InteractionOptions {
  /** Exactly the string that wallet addresses publish as `authServer`. */
  readonly grantEndpoint: string
  readonly hashEncoding: InteractionHashEncoding
  readonly denialRedirect: DenialRedirect
  /** If absent, no subject is disclosed. */
  readonly subjects?: Subjects
}

/**
 * The query parameters of the redirect after a denial: only `result=grant_rejected`, which deployed clients
 * expect, or hash and interaction reference as in RFC 9635 section 4.2.
 */
export type DenialRedirect = 'open-payments' | 'rfc9635'

/** The operations that the host's consent page calls. */
export interface Interactions {
  /**
   * Resolves to the view of an interaction, or to `undefined` for an unknown id. In that case show an error
   * page, and do not redirect the browser (RFC 9635 section 4.1.1).
   */
  get(id: string): Promise<InteractionView | undefined>
  /**
   * Approves the request on behalf of a resource owner. Repeating the same decision before the client
   * instance uses the interaction reference returns a redirect with a new reference, so a double click or a
   * lost redirect does no harm.
   *
   * Rejects when `subjects` rejects; the interaction then remains undecided.
   */
  approve(id: string, approval: GrantApproval): Promise<InteractionResult>
  /** Denies the request permanently. Repeating it returns a redirect again. */
  deny(id: string): Promise<InteractionResult>
}

export function createInteractions(
  context: ServiceContext,
  grants: Grants,
  policy: GrantPolicy,
  options: InteractionOptions,
): Interactions {
  async function find(id: string): Promise<Grant | undefined> {
    const path = parsePath(id)
    if (path === undefined) return undefined
    const grant = await grants.load(path.grantId)
    return grant?.interaction?.path === path.own ? grant : undefined
  }

  async function finishUrl(grant: Grant, interactRef: string): Promise<string | undefined> {
    const { finish, nonce: serverNonce } = grant.interaction ?? {}
    if (finish === undefined || serverNonce === undefined) return undefined
    const { grantEndpoint, hashEncoding } = options
    const input = { clientNonce: finish.nonce, serverNonce, interactRef, grantEndpoint }
    const hash = await interactionHash(input, finish.hashMethod, hashEncoding)
    const parameters = [
      ['hash', hash],
      ['interact_ref', interactRef],
    ] as const
    return withParameters(finish.uri, parameters)
  }

  async function rejectedUrl(grant: Grant, interactRef: string): Promise<string | undefined> {
    if (options.denialRedirect === 'rfc9635') return finishUrl(grant, interactRef)
    const uri = grant.interaction?.finish?.uri
    return uri && withParameters(uri, [['result', 'grant_rejected']])
  }

  /**
   * Resolves the owner's subject identifier, if the client instance requested one and the owner shares it, and
   * to `undefined` if the owner is not the requested subject.
   */
  async function subjectOf(
    { requestedSubject: requested, client }: Grant,
    { resourceOwner, walletAddresses, sharesSubject = true }: GrantApproval,
  ): Promise<{ readonly subject?: SubjectId } | undefined> {
    if (requested === undefined || !sharesSubject || options.subjects === undefined) return {}
    const query = { resourceOwner, walletAddresses, requested, client: clientId(client) }
    const resolved = await options.subjects.resolve(query)
    if (resolved === undefined) return undefined
    const { id, format } = resolved
    return { subject: { id, format } }
  }

  return {
    async get(id) {
      const grant = await find(id)
      return grant && view(grant, context.clock.now(), policy)
    },

    async approve(id, approval) {
      const grant = await find(id)
      if (grant === undefined) return unknownInteraction
      const walletAddresses = [
        ...new Set(approval.walletAddresses.map((url) => canonicalUrl(url) ?? url)),
      ]
      const named = await subjectOf(grant, { ...approval, walletAddresses })
      if (named === undefined) return anotherSubject
      const interactRef = newSecret(context.random)
      const { resourceOwner, access } = approval
      const call = newCall(context)
      const command = {
        type: 'approve',
        commandId: call.commandId,
        resourceOwner,
        walletAddresses,
        ...(access === undefined ? {} : { access: access.map(canonicalItem) }),
        ...named,
        listName: await ownerListName(await context.namespace(), resourceOwner),
        refHash: await hashSecret(interactRef),
      } as const
      return resultOf(await grants.run(grant, command, call), (decided) =>
        finishUrl(decided, interactRef),
      )
    },

    async deny(id) {
      const grant = await find(id)
      if (grant === undefined) return unknownInteraction
      const interactRef = newSecret(context.random)
      const call = newCall(context)
      return resultOf(
        await grants.run(grant, { type: 'deny', commandId: call.commandId }, call),
        (decided) => rejectedUrl(decided, interactRef),
      )
    },
  }
}

const unknownInteraction: InteractionResult = {
  ok: false,
  refusal: 'interaction_unknown',
  reason: 'the interaction does not exist',
}

const anotherSubject: InteractionResult = {
  ok: false,
  refusal: 'not_the_owner',
  reason: 'the requested subject is not this owner',
}

async function resultOf(
  decision: Decision<Grant, unknown, ConsentRefusal>,
  redirectOf: (grant: Grant) => Promise<string | undefined>,
): Promise<InteractionResult> {
  if (decision.outcome === 'refused') {
    const { refusal, reason } = decision
    return { ok: false, refusal, reason }
  }
  const redirect = await redirectOf(decision.record)
  return redirect === undefined ? { ok: true } : { ok: true, redirect }
}

function canonicalItem(item: AccessItem): AccessItem {
  const { identifier } = item
  return identifier === undefined
    ? publicItem(item)
    : publicItem({ ...item, identifier: canonicalUrl(identifier) ?? identifier })
}

function view(grant: Grant, now: Instant, policy: GrantPolicy): InteractionView | undefined {
  const { interaction, client } = grant
  const subject = grant.granted === undefined ? grant.requestedSubject : grant.subject
  if (interaction === undefined || client.walletAddress === undefined) return undefined
  const { path, finish, expiresAt } = interaction
  return {
    id: formatPath(grant.id, path),
    grantId: grant.id,
    state: viewState(grant, now, policy),
    client: client.walletAddress,
    access: (grant.granted ?? grant.requested).map(publicItem),
    ...(subject === undefined ? {} : { subject }),
    ...(finish === undefined ? {} : { finishUri: finish.uri }),
    expiresAt,
  }
}

function viewState(grant: Grant, now: Instant, policy: GrantPolicy): InteractionView['state'] {
  const status = grantStatus(grant, now, policy)
  switch (status) {
    case 'pending':
    case 'approved':
    case 'denied':
      return status
    case 'interaction-expired':
      return 'expired'
    default:
      return 'closed'
  }
}
