import type { LimitStatus, SpendingLimit } from 'open-payments-server'
import { type Html, html } from './html.js'
import type { Screen } from './layout.js'
import { type LimitProblem, limitAlert } from './limits.js'
import { isolated, type Locale, plain, say } from './locale.js'
import { alertOf } from './notice.js'
import type { OwnedAccount } from './owned-account.js'
import { accountLimitsHtml } from './owner-limits.js'

/** Where the host keeps the limits that owners set for all payments from an account: see `policy.accountLimits`. */
export interface AccountLimitSettings {
  /** Resolves to the limits of an account, as `policy.accountLimits` does. */
  of(walletAddress: string): Promise<readonly SpendingLimit[]>
  /**
   * Replaces the limits of an account, if they still equal `before`, even if others are set at the same time. Resolves
   * to whether it did.
   */
  set(
    walletAddress: string,
    limits: readonly SpendingLimit[],
    before: readonly SpendingLimit[],
  ): Promise<boolean>
}

/** An account with the limits that its owner has set for all payments from it. */
export interface LimitedAccount {
  readonly account: OwnedAccount
  readonly limits: readonly SpendingLimit[]
  /** What is left of each of `limits`: see `outgoingPayments.limitsOf`. */
  readonly statuses?: readonly LimitStatus[] | undefined
}

/** The values that the page of limits for all apps needs in addition to the accounts. */
export interface AccountLimitsOptions {
  readonly locale: Locale
  /** Why a form has changed nothing. */
  readonly outcome?: 'stale' | 'unchanged' | 'limitsChanged' | LimitProblem | undefined
  /** The fields of the link or of the form. */
  readonly given: URLSearchParams
  /** A hidden field with the token of the forms. */
  readonly token: Html
  /** Whether the owner can also raise and remove limits, after a new sign-in. Default: false. */
  readonly mayWiden?: boolean | undefined
}

/**
 * Returns the page on which an owner sees the limits for all payments from each account, with what is left, lowers
 * them, and adds one.
 *
 * @example
 * ```ts
 * import { accountLimitsScreen, html, page } from 'open-payments-pages'
 *
 * const account = { url: 'https://wallet.example/alice', assetCode: 'USD', assetScale: 2 }
 * const screen = accountLimitsScreen([{ account, limits: [{ payments: 5 }] }], {
 *   locale,
 *   given: new URLSearchParams(),
 *   token: html`<input type="hidden" name="token" value="…">`,
 * })
 * const response = page(screen, { locale })
 * ```
 */
export function accountLimitsScreen(
  accounts: readonly LimitedAccount[],
  options: AccountLimitsOptions,
): Screen {
  const { locale, outcome, given } = options
  const changed = accounts.find(({ account }) => account.url === given.get('account'))
  const isSaved = outcome === undefined && given.get('done') === 'saved'
  const content = html`${outcome && problemHtml(outcome, locale)}
    <p><a href="?">${say(locale, 'appsAll')}</a></p>
    <h1>${say(locale, 'accountLimits')}</h1>
    ${isSaved && changed && html`<p class="done" role="status">${say(locale, 'accountLimitsSaved', { account: nameOf(changed) })}</p>`}
    <p>${say(locale, 'accountLimitsPurpose')}</p>
    ${accounts.map((each, index) => accountHtml(each, index, options))}`
  return { title: plain(locale, 'accountLimits'), content }
}

function problemHtml(outcome: NonNullable<AccountLimitsOptions['outcome']>, locale: Locale): Html {
  if (typeof outcome === 'object') return limitAlert(outcome, locale)
  return alertOf(outcome === 'unchanged' ? 'notNarrower' : outcome, locale)
}

function accountHtml(
  limited: LimitedAccount,
  index: number,
  { locale, outcome, given, token, mayWiden = false }: AccountLimitsOptions,
): Html {
  const { account, limits, statuses } = limited
  const id = sectionOf(index)
  return html`<section class="card" aria-labelledby="${id}">
    <h2 id="${id}">${isolated(nameOf(limited))}</h2>
    ${account.publicName && html`<p class="address">${account.url}</p>`}
    ${accountLimitsHtml({
      locale,
      id,
      limits,
      statuses,
      asset: account,
      mayWiden,
      fields: html`${token}<input type="hidden" name="account" value="${account.url}">`,
      outcome,
      given: given.get('account') === account.url ? given : undefined,
    })}</section>`
}

function nameOf({ account }: LimitedAccount): string {
  return account.publicName || account.url
}

/** Returns the prefix of the ids of the fields of an account. */
export function sectionOf(index: number): string {
  return `account-${index}`
}
