import type { Asset, InteractionView } from 'open-payments-server'
import { fitsAccount } from 'open-payments-server/core'
import { amountHtml } from './amounts.js'
import { type Html, html } from './html.js'
import { isolated, type Locale, say } from './locale.js'

/** An account of the owner. Other members, such as those of a `WalletAddress`, are ignored. */
export interface OwnedAccount extends Asset {
  /** The wallet address. */
  readonly url: string
  /** How the owner knows the account. */
  readonly publicName?: string
  /** The balance that pages show to the owner, in the smallest units of the asset. Default: they show none. */
  readonly balance?: bigint
  /** The keys of the account. A key that the owner registers cannot have the `kid` of one of them. */
  readonly keys?: readonly { readonly kid: string }[]
}

/** Whether two URLs of wallet addresses are the same, as the library compares them. */
export function isSameUrl(one: string, other: string | undefined): boolean {
  if (one === other) return true
  if (other === undefined || !URL.canParse(one) || !URL.canParse(other)) return false
  const canonical = (text: string) => new URL(text).href.replace(/\/$/, '')
  return canonical(one) === canonical(other)
}

/** Returns an account as its owner knows it, with its balance. */
export function accountLine(url: string, known: OwnedAccount | undefined, locale: Locale): Html {
  return html`${accountHtml(url, known)}
    ${known && balanceHtml(known, locale)}`
}

/** Returns an account as its owner knows it. */
export function accountHtml(url: string, { publicName }: Partial<OwnedAccount> = {}): Html {
  return publicName
    ? html`${isolated(publicName)} <span class="quiet small">${isolated(url)}</span>`
    : html`<span>${isolated(url)}</span>`
}

export function balanceHtml(
  { balance, assetCode, assetScale }: OwnedAccount,
  locale: Locale,
): Html {
  if (balance === undefined) return html``
  const amount = amountHtml({ value: balance.toString(), assetCode, assetScale }, locale)
  return html`<small class="quiet">${say(locale, 'balance', { amount })}</small>`
}

/** Returns the accounts to which all items that need an account can apply. */
export function accountsFor<Account extends OwnedAccount>(
  needAccount: InteractionView['needAccount'],
  accounts: readonly Account[],
): readonly Account[] {
  return accounts.filter((each) => needAccount.every((item) => fitsAccount(item, each)))
}
