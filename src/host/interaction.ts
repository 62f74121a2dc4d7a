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

/** What a consent page shows: who asks, for what, and until when. */
export interface InteractionView {
  readonly id: string
  readonly grantId: string
  readonly state: 'pending' | 'approved' | 'denied' | 'expired' | 'closed'
  /** Wallet address of the client instance, proved by its signature. */
  readonly client: string
  /** Empty where the client instance asks for a subject alone. */
  readonly access: readonly AccessItem[]
  /**
   * Who the client instance asks the owner to be, and once approved how the owner is named to it. Show it: it
   * is told who has consented. It is text of the client instance, not a link to follow.
   */
  readonly subject?: SubjectId
  /** Where the browser will be sent, if the client instance asked for that; show it to the owner. */
  readonly finishUri?: string
  readonly expiresAt: Instant
}

/** A resource owner's yes. */
export interface GrantApproval {
  /** The host's name for the owner, as it will stand on the grant. */
  readonly resourceOwner: string
  /** The owner's wallet addresses: every `identifier` granted must be one of them. */
  readonly walletAddresses: readonly string[]
  /** What is granted, when it is less than what was asked. Default: all of it. */
  readonly access?: readonly AccessItem[]
  /** False leaves the owner unnamed, where the client instance asked for a subject. Default true. */
  readonly sharesSubject?: boolean
}

/** How a decision ended: where to send the browser next, or why it could not be taken. */
export type InteractionResult =
  | {
      readonly ok: true
      /** Send the browser here with status 303; absent: tell the owner to return to the app. */
      readonly redirect?: string
    }
  | { readonly ok: false; readonly refusal: ConsentRefusal; readonly reason: string }

export interface InteractionOptions {
  /** Exactly the string that is published as `authServer`. */
  readonly grantEndpoint: string
  readonly hashEncoding: InteractionHashEncoding
  readonly denialRedirect: DenialRedirect
  /** Absent: nobody is named to anybody. */
  readonly subjects?: Subjects
}

/**
 * What the redirect after a denial carries: `result=grant_rejected` alone, which is what deployed clients
 * look for, or hash and reference as RFC 9635 section 4.2 has it.
 */
export type DenialRedirect = 'open-payments' | 'rfc9635'

/** What the host's consent page works with. */
export interface Interactions {
  /**
   * Finds what an interaction is about. Answers `undefined` for an unknown id: show an error page then, and
   * send the browser nowhere (RFC 9635 section 4.1.1).
   */
  get(id: string): Promise<InteractionView | undefined>
  /**
   * Grants access in the name of a resource owner. The same decision again, before the reference is used,
   * gives a redirect with a fresh reference, so that a double click or a lost redirect costs nothing.
   *
   * Rejects when `subjects` does; then nothing has been decided.
   */
  approve(id: string, approval: GrantApproval): Promise<InteractionResult>
  /** Declines, once and for all. The same again gives the same redirect. */
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

  /** Asks the host how this owner is called, where somebody wants to know. */
  async function subjectOf(
    { requestedSubject: requested, client }: Grant,
    { resourceOwner, walletAddresses, sharesSubject = true }: GrantApproval,
  ): Promise<{ readonly subject?: SubjectId } | 'somebody else'> {
    if (requested === undefined || !sharesSubject || options.subjects === undefined) return {}
    const query = { resourceOwner, walletAddresses, requested, client: clientId(client) }
    const resolved = await options.subjects.resolve(query)
    if (resolved === undefined) return 'somebody else'
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
      if (named === 'somebody else') return anotherSubject
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
  reason: 'there is no such interaction',
}

const anotherSubject: InteractionResult = {
  ok: false,
  refusal: 'not_the_owner',
  reason: 'the subject asked about is not this owner',
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
