import type { Decision } from '../core/decision.js'
import type { ConsentRefusal } from '../core/grant/consent.js'
import { clientId, type Grant, type GrantPolicy, type SubjectId } from '../core/grant/record.js'
import type { Subjects } from '../ports/subjects.js'
import { hashSecret, newSecret, parsePath } from '../protocol/credential.js'
import { newCall, type ServiceContext } from '../service/context.js'
import type { Grants } from '../service/grant.js'
import { exactly, optional, string, text } from '../util/arguments.js'
import { type GrantApproval, readApproval } from './approval.js'
import { ownerListName } from './grant.js'
import { approvalUrl, denialUrl, type RedirectOptions } from './interaction-redirect.js'
import { type InteractionView, interactionView } from './interaction-view.js'

/** The result of a decision: the URL to redirect the browser to, or the reason for the refusal. */
export type InteractionResult =
  | {
      readonly ok: true
      /** Redirect the browser to this URL with status 303. If absent, ask the owner to return to the app. */
      readonly redirect?: string
    }
  | { readonly ok: false; readonly refusal: ConsentRefusal; readonly reason: string }

/** The refusal of a resource owner. */
export interface GrantDenial {
  /** The host's identifier of the owner, stored on the grant. Default: the grant does not say who denied it. */
  readonly resourceOwner?: string
}

const isDenial = exactly<GrantDenial>({ resourceOwner: optional(text) })

export interface InteractionOptions extends RedirectOptions {
  /** If absent, no subject is disclosed. */
  readonly subjects?: Subjects
}

/**
 * The operations that the host's consent page calls. Each throws an `ArgumentError` for an invalid argument, before
 * it reads the store.
 */
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
  /**
   * Denies the request permanently. Repeating it returns a redirect again. The grant and its event name the owner of
   * the first denial.
   */
  deny(id: string, denial?: GrantDenial): Promise<InteractionResult>
}

export function createInteractions(
  context: ServiceContext,
  grants: Grants,
  policy: GrantPolicy,
  options: InteractionOptions,
): Interactions {
  return {
    async get(id) {
      string('id', id)
      const grant = await findGrant(grants, id)
      return grant && interactionView(grant, context.clock.now(), policy)
    },

    async approve(id, approval) {
      text('id', id)
      const consent = readApproval(approval)
      const grant = await findGrant(grants, id)
      if (grant === undefined) return unknownInteraction
      const disclosed = await subjectToDisclose(grant, consent, options.subjects)
      if (disclosed === undefined) return anotherSubject

      const { resourceOwner, sharesSubject: _shares, ...granted } = consent
      const interactRef = newSecret(context.random)
      const call = newCall(context)
      const command = {
        type: 'approve',
        commandId: call.commandId,
        resourceOwner,
        ...granted,
        ...disclosed,
        listName: await ownerListName(await context.namespace(), resourceOwner),
        refHash: await hashSecret(interactRef),
      } as const
      const decision = await grants.run(grant, command, call)
      return resultOf(decision, (decided) => approvalUrl(decided, interactRef, options))
    },

    async deny(id, denial = {}) {
      text('id', id)
      isDenial('denial', denial)
      const grant = await findGrant(grants, id)
      if (grant === undefined) return unknownInteraction
      const interactRef = newSecret(context.random)
      const call = newCall(context)
      const command = { ...denial, type: 'deny', commandId: call.commandId } as const
      const decision = await grants.run(grant, command, call)
      return resultOf(decision, (decided) => denialUrl(decided, interactRef, options))
    },
  }
}

/** Resolves to the grant with this interaction. */
async function findGrant({ load }: Pick<Grants, 'load'>, id: string): Promise<Grant | undefined> {
  const path = parsePath(id)
  if (path === undefined) return undefined
  const grant = await load(path.grantId)
  return grant?.interaction?.path === path.own ? grant : undefined
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

/**
 * Resolves to the owner's subject identifier, if the client instance requested one and the owner shares it, and
 * to `undefined` if the owner is not the requested subject.
 */
async function subjectToDisclose(
  { requestedSubject: requested, client }: Grant,
  { resourceOwner, walletAddresses, sharesSubject = true }: GrantApproval,
  subjects: Subjects | undefined,
): Promise<{ readonly subject?: SubjectId } | undefined> {
  if (requested === undefined || !sharesSubject || subjects === undefined) return {}
  const query = { resourceOwner, walletAddresses, requested, client: clientId(client) }
  const resolved = await subjects.resolve(query)
  if (resolved === undefined) return undefined
  const { id, format } = resolved
  return { subject: { id, format } }
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
