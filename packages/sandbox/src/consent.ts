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

/** The decision of the rules, and the rule that made it. */
interface Ruling {
  readonly decision: 'approve' | 'deny'
  readonly rule: string
}

/**
 * Returns what the rules decide, or `undefined` if the owner decides on the page. A rule that names the client or the
 * account takes precedence over `all`; of two such rules, the denial applies.
 *
 * @param urls the wallet addresses of the client and of the account.
 */
export function rulingOf(
  { approve = [], deny = [] }: ConsentRules,
  urls: readonly string[],
): Ruling | undefined {
  const naming = (rules: readonly string[]) =>
    rules.find((rule) => urls.some((url) => isOf(rule, url)))
  const [denying, approving] = [naming(deny), naming(approve)]
  if (denying !== undefined) return { decision: 'deny', rule: denying }
  if (approving !== undefined) return { decision: 'approve', rule: approving }
  if (deny.includes('all')) return { decision: 'deny', rule: 'all' }
  return approve.includes('all') ? { decision: 'approve', rule: 'all' } : undefined
}

/** Whether a rule or reference names this wallet address, by its URL or its last segment. */
export function isOf(name: string, url: string): boolean {
  return name === url || url.endsWith(`/${name}`)
}

/** An account whose owner can decide, and what the rules decide for it. */
interface Choice {
  readonly account: Account | undefined
  readonly ruling: Ruling | undefined
}

/**
 * Returns the account that the request names. Otherwise, of those that it fits: the first that a rule approves by name,
 * the first that a rule approves, the first about which no rule decides, or the first.
 */
export function choiceFor(
  view: InteractionView,
  rules: ConsentRules,
  all: readonly Account[],
): Choice {
  const { access, subject, needAccount, client } = view
  const named = all.find(
    ({ url }) => url === subject?.id || access.some(({ identifier }) => identifier === url),
  )
  const possible = named
    ? [named]
    : all.filter((each) => needAccount.every((item) => fitsAccount(item, each)))
  const choices = possible.map((account) => ({
    account,
    ruling: rulingOf(rules, [client, account.url]),
  }))
  const approved = choices.filter(({ ruling }) => ruling?.decision === 'approve')
  // A rule with the name of the client says nothing about which account pays.
  const isNamed = ({ account: { url } }: { readonly account: Account }) =>
    url !== client && rules.approve?.some((rule) => isOf(rule, url))
  const chosen =
    approved.find(isNamed) ??
    approved[0] ??
    choices.find(({ ruling }) => ruling === undefined) ??
    choices[0]
  return chosen ?? { account: undefined, ruling: rulingOf(rules, [client]) }
}

/** The decision of a rule. */
export interface DecidedByRule {
  /** The URL of the client to which the browser returns, if there is one. */
  readonly redirect?: string
  readonly decision: 'approve' | 'deny'
  /** Which rule decided what, or why no owner can approve what it approves. */
  readonly why: string
}

/**
 * Decides a pending request by the rules, and denies what they approve and no owner can. Resolves to `undefined` if the
 * page has to answer.
 */
export async function decideByRule(
  id: string,
  rules: ConsentRules,
  interactions: Interactions,
  accounts: readonly Account[],
): Promise<DecidedByRule | undefined> {
  const view = await interactions.get(id)
  if (view === undefined || (view.status !== 'pending' && view.status !== 'approved'))
    return undefined
  const { account, ruling } = choiceFor(view, rules, accounts)
  if (ruling === undefined) return undefined
  let why = `denied by rule: ${ruling.rule}`
  if (ruling.decision === 'approve') {
    const approved = await approve(view, account, interactions, accounts)
    if (approved.ok) {
      const about = account === undefined ? '' : `, for ${account.url}`
      return { ...approved, decision: 'approve', why: `approved by rule: ${ruling.rule}${about}` }
    }
    why = `denied, although the rule ${ruling.rule} approves: ${approved.reason}`
  }
  // Nobody waits at the page, so what no owner can approve is denied.
  const resourceOwner = (account ?? accounts[0])?.owner ?? ''
  const denied = await interactions.deny(id, { resourceOwner })
  return denied.ok ? { ...denied, decision: 'deny', why } : undefined
}

/** Approves a request as the owner of an account. */
export async function approve(
  view: InteractionView,
  account: Account | undefined,
  interactions: Interactions,
  accounts: readonly Account[],
): Promise<
  | { readonly ok: true; readonly redirect?: string }
  | { readonly ok: false; readonly reason: string }
> {
  if (account === undefined) return { ok: false, reason: noneFits(view) }
  const { owner: resourceOwner, url } = account
  return interactions.approve(view.id, {
    resourceOwner,
    walletAddresses: accounts.filter(({ owner }) => owner === resourceOwner),
    ...(view.needAccount.length > 0 && { account: url }),
  })
}

function noneFits({ needAccount }: InteractionView): string {
  const assets = needAccount.flatMap(({ limits: { debitAmount } = {} }) =>
    debitAmount === undefined
      ? []
      : [`${debitAmount.assetCode} with scale ${debitAmount.assetScale}`],
  )
  return `no account of this wallet is in ${[...new Set(assets)].join(' and ')}`
}
