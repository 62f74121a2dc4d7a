import * as v from 'valibot'
import { type Decision, type HostResult, hasChanged, refusedCall } from '../core/decision.js'
import type { ConsentRefusal } from '../core/grant/consent.js'
import { clientId, type Grant, type StoredReference, type SubjectId } from '../core/grant/record.js'
import { sameHash } from '../core/grant/token.js'
import type { Bounded, Subjects } from '../ports/host.js'
import { deriveSecret, newSecret, parsePath } from '../protocol/credential.js'
import { interactionHash, withParameters } from '../protocol/finish.js'
import { type Call, newCall, type ServiceContext } from '../service/context.js'
import { ownerListName } from '../service/grant/lists.js'
import type { Grants } from '../service/grant.js'
import { hashText } from '../util/hash.js'
import { exactly, readInput, string, text } from '../util/input.js'
import { type GrantApproval, readApproval } from './approval.js'
import { type DisplayOf, type InteractionView, interactionView } from './interaction-view.js'

type InteractionResult = HostResult<{ readonly redirect?: string }, ConsentRefusal>

const ownersDenial = exactly({ resourceOwner: v.optional(text) })

/** How the redirect at the end of an interaction is made. */
interface RedirectOptions {
  /** Exactly the string that wallet addresses publish as `authServer`. */
  readonly grantEndpoint: string
  readonly interactionHash: 'base64' | 'base64url'
  readonly denialRedirect: 'open-payments' | 'rfc9635'
}

interface InteractionOptions extends RedirectOptions {
  /** If absent, no subject is disclosed. */
  readonly subjects?: Bounded<Subjects>
  readonly displayOf: DisplayOf
}

/**
 * The operations that the host's consent page calls. Each throws an `InvalidInputError` for an invalid argument, before
 * it reads the store.
 */
export interface Interactions {
  /**
   * Resolves to the view of an interaction, or to `undefined` for an unknown id. In that case show an error page, and
   * do not redirect the browser (RFC 9635 section 4.1.1). Waits for the name of the client for at most 2 s.
   */
  get(id: string): Promise<InteractionView | undefined>
  /**
   * Approves the request on behalf of a resource owner. Repeating the same decision before the client uses the
   * interaction reference returns the same redirect, so a double click or a lost redirect does no harm.
   *
   * Rejects when `subjects` rejects; the interaction then remains undecided. The grant keeps the name of the client
   * that `get` returns. Waits for it for at most 2 s.
   *
   * @returns the URL to redirect the browser to, with status 303. Without one, ask the owner to return to the app.
   */
  approve(
    id: string,
    approval: GrantApproval,
  ): Promise<HostResult<{ readonly redirect?: string }, ConsentRefusal>>
  /**
   * Denies the request permanently. Repeating it returns the same redirect. The grant and its event name the owner of
   * the first denial.
   *
   * @param denial `resourceOwner` is the host's identifier of the owner. Default: the grant does not say who denied it.
   * @returns the URL to redirect the browser to, as of `approve`.
   */
  deny(
    id: string,
    denial?: { readonly resourceOwner?: string },
  ): Promise<HostResult<{ readonly redirect?: string }, ConsentRefusal>>
}

export function createInteractions(
  context: ServiceContext,
  grants: Grants,
  options: InteractionOptions,
): Interactions {
  return {
    async get(id) {
      readInput('id', string, id)
      const { grant } = (await findInteraction(grants, id)) ?? {}
      if (grant?.client.walletAddress === undefined) return undefined
      const display = await options.displayOf(grant.client.walletAddress)
      return interactionView(id, grant, display, context.clock.now())
    },

    async approve(id, approval) {
      readInput('id', text, id)
      const consent = readApproval(approval)
      const found = await findInteraction(grants, id)
      if (found === undefined) return unknownInteraction
      const { grant, secret } = found
      const disclosed = await subjectToDisclose(grant, consent, options.subjects)
      if (disclosed === undefined) return anotherSubject

      const { resourceOwner, sharesSubject: _shares, ...granted } = consent
      const clientName = await nameToKeep(grant, options.displayOf)
      const call = newCall(context)
      const command = {
        type: 'approve',
        commandId: call.commandId,
        resourceOwner,
        ...(clientName !== undefined && { clientName }),
        ...granted,
        ...disclosed,
        listName: await ownerListName(await context.namespace(), resourceOwner),
        ...(await newReference(secret, context)),
      } as const
      const decision = await grants.run(grant, command, call)
      return resultOf(decision, call, (decided) => approvalUrl(decided, secret, options))
    },

    async deny(id, denial = {}) {
      readInput('id', text, id)
      const copy = readInput('denial', ownersDenial, denial)
      const found = await findInteraction(grants, id)
      if (found === undefined) return unknownInteraction
      const { grant, secret } = found
      const call = newCall(context)
      const reference = await newReference(secret, context)
      const command = { ...copy, type: 'deny', commandId: call.commandId, ...reference } as const
      const decision = await grants.run(grant, command, call)
      return resultOf(decision, call, (decided) => denialUrl(decided, secret, options))
    },
  }
}

/** Resolves to the grant with this interaction, and to the secret in the path of the interaction. */
async function findInteraction({ load }: Pick<Grants, 'load'>, id: string) {
  const path = parsePath(id)
  if (path === undefined) return undefined
  const grant = await load(path.grantId)
  const { pathHash } = grant?.interaction ?? {}
  if (grant === undefined || pathHash === undefined) return undefined
  const isFound = sameHash(pathHash, await hashText(path.own))
  return isFound ? { grant, secret: path.own } : undefined
}

/** Derives a new interaction reference. The commit that decides stores it; a repeated decision does not use it. */
async function newReference(secret: string, { random }: ServiceContext): Promise<StoredReference> {
  const refSalt = newSecret(random)
  return { refSalt, refHash: await hashText(await deriveSecret(secret, refSalt)) }
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
 * Resolves to the owner's subject identifier, if the client requested one and the owner shares it, and to `undefined`
 * if the owner is not the requested subject.
 */
async function subjectToDisclose(
  { requestedSubject: requested, client }: Grant,
  { resourceOwner, walletAddresses, sharesSubject = true }: ReturnType<typeof readApproval>,
  subjects: Bounded<Subjects> | undefined,
): Promise<{ readonly subject?: SubjectId } | undefined> {
  if (requested === undefined || !sharesSubject || subjects === undefined) return {}
  const query = { resourceOwner, walletAddresses, requested, client: clientId(client) }
  const resolved = await subjects.resolve(query)
  if (resolved === undefined) return undefined
  const { id, format } = resolved
  return { subject: { id, format } }
}

/** Resolves to the name of the client, unless a consent has it already. */
async function nameToKeep({ client, consent }: Grant, displayOf: DisplayOf) {
  if (client.walletAddress === undefined || consent !== undefined) return undefined
  return (await displayOf(client.walletAddress)).name
}

async function resultOf(
  decision: Decision<Grant, unknown, ConsentRefusal>,
  { commandId }: Call,
  redirectOf: (grant: Grant) => Promise<string | undefined>,
): Promise<InteractionResult> {
  if (!decision.ok) return refusedCall(decision)
  const redirect = await redirectOf(decision.record)
  const changed = hasChanged(decision, commandId)
  return redirect === undefined ? { ok: true, changed } : { ok: true, changed, redirect }
}

/** Returns the URL to which the browser is redirected after an approval (RFC 9635 section 4.2.1). */
async function approvalUrl(
  { interaction }: Grant,
  secret: string,
  { grantEndpoint, interactionHash: encoding }: RedirectOptions,
): Promise<string | undefined> {
  const { finish, nonce: serverNonce, refSalt } = interaction ?? {}
  if (finish === undefined || serverNonce === undefined || refSalt === undefined) return undefined
  const interactRef = await deriveSecret(secret, refSalt)
  const input = { clientNonce: finish.nonce, serverNonce, interactRef, grantEndpoint }
  const hash = await interactionHash(input, finish.hashMethod, encoding)
  return withParameters(finish.uri, [
    ['hash', hash],
    ['interact_ref', interactRef],
  ])
}

async function denialUrl(
  grant: Grant,
  secret: string,
  options: RedirectOptions,
): Promise<string | undefined> {
  if (options.denialRedirect === 'rfc9635') return approvalUrl(grant, secret, options)
  const uri = grant.interaction?.finish?.uri
  return uri && withParameters(uri, [['result', 'grant_rejected']])
}
