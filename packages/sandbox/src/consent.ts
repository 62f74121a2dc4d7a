import type { Account } from 'create-open-payments-server/wallet/ledger'
import type { Interactions, InteractionView } from 'open-payments-server'
import { fitsAccount } from 'open-payments-server/core'

/** Which requests for consent are decided without a page. A rule is `all`, or a client or account by name or URL. */
export interface ConsentRules {
  /** Default: none. */
  readonly approve?: readonly string[]
  /** Default: none. */
  readonly deny?: readonly string[]
}

type Decision = 'approve' | 'deny'

/**
 * Returns what the rules decide, or `undefined` if the owner decides on the page. A rule that names the client or the
 * account outweighs `all`; of two such rules, the denial counts.
 *
 * @param urls the wallet addresses of the client and of the account.
 */
export function decisionOf(
  { approve = [], deny = [] }: ConsentRules,
  urls: readonly string[],
): Decision | undefined {
  const isNamed = (rules: readonly string[]) =>
    rules.some((rule) => urls.some((url) => isOf(rule, url)))
  if (isNamed(deny)) return 'deny'
  if (isNamed(approve)) return 'approve'
  if (deny.includes('all')) return 'deny'
  return approve.includes('all') ? 'approve' : undefined
}

/** Whether a rule or reference names this wallet address, by its URL or its last segment. */
export function isOf(name: string, url: string): boolean {
  return name === url || url.endsWith(`/${name}`)
}

/**
 * Decides a pending request by the rules, and denies what they approve and no owner can. Resolves to the URL of the
 * client to which the browser returns, to `null` if there is none, and to `undefined` if the page has to answer.
 */
export async function decideByRule(
  id: string,
  rules: ConsentRules,
  interactions: Interactions,
  accounts: readonly Account[],
): Promise<string | null | undefined> {
  const view = await interactions.get(id)
  if (view === undefined || (view.status !== 'pending' && view.status !== 'approved'))
    return undefined
  const account = accountOf(view, accounts)
  const decision = decisionOf(rules, [view.client, ...(account ? [account.url] : [])])
  if (decision === undefined) return undefined
  if (decision === 'approve' && account !== undefined) {
    const { owner: resourceOwner, url } = account
    const approved = await interactions.approve(id, {
      resourceOwner,
      walletAddresses: accounts.filter(({ owner }) => owner === resourceOwner),
      ...(view.needAccount.length > 0 && { account: url }),
    })
    if (approved.ok) return approved.redirect ?? null
  }
  // Nobody waits at the page, so what no owner can approve is denied.
  const resourceOwner = ownerFor(view, accounts)
  const denied = await interactions.deny(id, { resourceOwner })
  return denied.ok ? (denied.redirect ?? null) : undefined
}

/** The owner who decides on the page: of the account that the request names, or that it fits. */
export function ownerFor(view: InteractionView, accounts: readonly Account[]): string {
  return (accountOf(view, accounts) ?? accounts[0])?.owner ?? ''
}

/** The account that the request names, or the first that it fits. */
function accountOf(view: InteractionView, all: readonly Account[]): Account | undefined {
  const { access, subject, needAccount } = view
  const named = all.find(
    ({ url }) => url === subject?.id || access.some(({ identifier }) => identifier === url),
  )
  return named ?? all.find((each) => needAccount.every((item) => fitsAccount(item, each)))
}
