import type { Account } from 'create-open-payments-server/wallet/ledger'
import type { Wallet } from 'create-open-payments-server/wallet/wallet'
import type { Store } from 'open-payments-server'
import { namespaceOf, parseCredential } from '../../../src/protocol/credential.js'
import { approve, choiceFor, isOf } from './consent.js'
import { invalidOption, requireMember, SandboxError } from './error.js'

/** The decision of the owner of an account about a request for consent, or about one payment. */
export type OwnerDecision = 'approve' | 'deny' | 'confirm' | 'decline'

/** A decision of the owner of an account. */
export interface Decide {
  /** The URL of `interact.redirect`, or the `url` of a payment that its owner has to confirm. */
  readonly url: string
  /** `approve` or `deny` a request for consent; `confirm` or `decline` a payment. */
  readonly decision: OwnerDecision
  /** The name or URL of the account, if the request for consent names none. Default: the first that it fits. */
  readonly account?: string
}

/** The result of a decision. */
export interface Decided {
  /** The URL of the client to which the owner's browser returns, with `interact_ref` and `hash` after an approval. */
  readonly redirect?: string
}

/** Which grants their owner revokes: that of a token, or those of an account. */
export type Revocation =
  /** An access token or continuation token of the grant. */
  | { readonly token: string }
  | {
      /** The name or URL of the account whose owner has approved the grants. */
      readonly account: string
      /** The name or URL of the client. Default: all clients. */
      readonly client?: string
    }

/** The actions of the owners of accounts of a wallet. */
export interface Owners {
  /** @throws a `SandboxError` if the decision has no effect. */
  decide(given: Decide): Promise<Decided>
  /** Revokes the grant of a token. Resolves to `undefined` if the grant is of another wallet. */
  revokeOf(token: string): Promise<number | undefined>
  /** Revokes the grants that an owner has approved, and resolves to their number. */
  revokeAll(owner: string, client?: string): Promise<number>
}

/** Acts as owners do on the pages, through the same calls of the library. */
export function ownersOf(
  { auth, resources }: Pick<Wallet, 'auth' | 'resources'>,
  store: Store,
  accounts: () => readonly Account[],
): Owners {
  const { interactions, grants } = auth
  const { outgoingPayments } = resources

  async function consent(id: string, { decision, account: name }: Decide): Promise<Decided> {
    const view = await interactions.get(id)
    if (view === undefined) throw ineffective('no request for consent has this URL')
    if (view.status === 'interaction-expired') {
      throw ineffective('nobody decided in time: a request for consent expires after 10 minutes')
    }
    const named = name === undefined ? undefined : accounts().find(({ url }) => isOf(name, url))
    if (name !== undefined && named === undefined) {
      throw invalidOption(`this wallet has no account ${name}`)
    }
    const account = named ?? choiceFor(view, {}, accounts()).account
    const resourceOwner = (account ?? accounts()[0])?.owner ?? ''
    const result =
      decision === 'approve'
        ? await approve(view, account, interactions, accounts())
        : await interactions.deny(id, { resourceOwner })
    if (!result.ok) throw ineffective(result.reason)
    return result.redirect === undefined ? {} : { redirect: result.redirect }
  }

  async function confirmation(id: string, { decision }: Decide): Promise<Decided> {
    const payment = await outgoingPayments.toConfirm(id)
    if (payment === undefined) {
      // The library shows no payment that was declined, and the store has the namespace in front of its id.
      const storedId = (await namespaceOf(resources.baseUrl)) + id
      const [found] = await store.load([{ kind: 'outgoing-payment', id: storedId }])
      const record = found as KeptPayment | undefined
      if (decisionOn(record) === decision) return {}
      throw ineffective(whyNotWaiting(record))
    }
    const { walletAddress, receiver, debitAmount, receiveAmount } = payment
    const own = accounts().find(({ url }) => url === walletAddress)?.owner
    const resourceOwner = payment.resourceOwner ?? own ?? ''
    const result = await (decision === 'confirm'
      ? outgoingPayments.confirm(id, { resourceOwner, receiver, debitAmount, receiveAmount })
      : outgoingPayments.decline(id, { resourceOwner }))
    if (!result.ok) throw ineffective(result.reason)
    return {}
  }

  return {
    async decide(given) {
      const { url, decision } = given
      const [, page, id = ''] = /^\/(consent|confirm)\/([^/]+)$/.exec(new URL(url).pathname) ?? []
      if (page === undefined) throw invalidOption(notAPage)
      const isForConsent = page === 'consent'
      const possible = isForConsent ? ['approve', 'deny'] : ['confirm', 'decline']
      if (!possible.includes(decision)) {
        const about = isForConsent ? 'a request for consent' : 'a payment'
        throw invalidOption(`the decision about ${about} must be ${possible.join(' or ')}`)
      }
      return isForConsent ? consent(id, given) : confirmation(id, given)
    },
    async revokeOf(token) {
      const { grantId } = parseCredential('opa_', token) ?? parseCredential('opc_', token) ?? {}
      const grant = grantId === undefined ? undefined : await grants.get(grantId)
      if (grant === undefined) return undefined
      if (grant.status !== 'approved') throw ineffective(`the grant is ${grant.status}`)
      const result = await grants.revoke(grant.grantId)
      return result.ok && result.changed ? 1 : 0
    },
    revokeAll: (resourceOwner, client) =>
      grants.revokeAll({ resourceOwner, ...(client !== undefined && { client }) }),
  }
}

/**
 * The members that the sandbox reads from the record of an outgoing payment, because no public call returns how it
 * ended.
 */
interface KeptPayment {
  readonly state: string
  readonly confirmation?: { readonly given?: object }
  readonly refusal?: { readonly refusal: string; readonly reason: string }
}

/** Returns what the owner has decided about a payment, if it took effect. */
function decisionOn(payment: KeptPayment | undefined): OwnerDecision | undefined {
  if (payment?.state === 'declined') {
    return payment.refusal?.refusal === 'confirmation_declined' ? 'decline' : undefined
  }
  const isCreated = payment !== undefined && payment.state !== 'reserved'
  return isCreated && payment.confirmation?.given !== undefined ? 'confirm' : undefined
}

function whyNotWaiting(payment: KeptPayment | undefined): string {
  if (payment === undefined) return 'no payment waits for its owner at this URL'
  if (decisionOn(payment) === 'confirm') return 'the owner has confirmed the payment'
  if (payment.refusal !== undefined) return payment.refusal.reason
  return 'the time to confirm the payment is over, or its grant has ended'
}

export const notAPage = 'url must be that of interact.redirect, or of a payment to confirm'

const decisions = ['approve', 'deny', 'confirm', 'decline']

/** @throws a `SandboxError` for an invalid decision. */
export function readDecide(value: unknown): Decide {
  const { url, decision, account } = membersOf(value, 'a decision', ['url', 'decision', 'account'])
  if (typeof url !== 'string' || !URL.canParse(url)) throw invalidOption(notAPage)
  if (!decisions.includes(String(decision))) {
    throw invalidOption(`decision must be one of ${decisions.join(', ')}`)
  }
  if (account !== undefined && typeof account !== 'string') {
    throw invalidOption('account must be a string')
  }
  return value as Decide
}

/** @throws a `SandboxError` for an invalid revocation. */
export function readRevocation(value: unknown): Revocation {
  const members = membersOf(value, 'a revocation', ['token', 'account', 'client'])
  for (const [name, member] of Object.entries(members)) {
    if (typeof member !== 'string') throw invalidOption(`${name} must be a string`)
  }
  if ((members['token'] === undefined) === (members['account'] === undefined)) {
    throw invalidOption('a revocation has either token or account')
  }
  if (members['token'] !== undefined && members['client'] !== undefined) {
    throw invalidOption('client belongs to account, not to token')
  }
  return value as Revocation
}

function membersOf(
  value: unknown,
  what: string,
  known: readonly string[],
): Readonly<Record<string, unknown>> {
  if (typeof value !== 'object' || value === null) throw invalidOption(`${what} is an object`)
  for (const name of Object.keys(value)) requireMember(what, name, known)
  return value as Readonly<Record<string, unknown>>
}

/** The error of a decision that an owner cannot make, or no longer. */
export function ineffective(message: string): SandboxError {
  return new SandboxError('ERR_NO_EFFECT', message)
}
