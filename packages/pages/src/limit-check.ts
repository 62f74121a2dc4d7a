import type { SpendingLimit } from 'open-payments-server'
import { type Html, html } from './html.js'
import type { Screen } from './layout.js'
import { isolated, type Locale, plain, say } from './locale.js'
import type { OwnedAccount } from './owned-account.js'
import { accountLimitTerms } from './owner-limits.js'

/** A change of one of the limits for all payments from an account. */
export interface LimitChange {
  readonly account: OwnedAccount
  /** Absent if the limit is new. */
  readonly before?: SpendingLimit | undefined
  /** Absent if the limit is removed. */
  readonly after?: SpendingLimit | undefined
}

/** The values that the page that checks a limit needs in addition to the change. */
export interface LimitCheckOptions {
  readonly locale: Locale
  /** Hidden fields with what is shown, and the token of the form. */
  readonly fields: Html
  /** Where the owner goes back, and changes nothing. */
  readonly backUrl: string
}

/**
 * Returns the page on which an owner checks a limit for all apps before it is saved.
 *
 * @example
 * ```ts
 * import { html, limitCheckScreen, page } from 'open-payments-pages'
 *
 * const account = { url: 'https://wallet.example/alice', assetCode: 'USD', assetScale: 2 }
 * const fields = html`<input type="hidden" name="token" value="…">`
 * const change = { account, before: { payments: 5 }, after: { payments: 9 } }
 * const response = page(limitCheckScreen(change, { locale, fields, backUrl: '?limits' }), { locale })
 * ```
 */
export function limitCheckScreen(
  { account, before, after }: LimitChange,
  { locale, fields, backUrl }: LimitCheckOptions,
): Screen {
  const terms = (limit: SpendingLimit | undefined) =>
    limit === undefined ? say(locale, 'checkNone') : accountLimitTerms(limit, locale)
  const content = html`<form method="post" class="card">${fields}
    <h1>${say(locale, 'checkTitle')}</h1>
    <p class="address">${isolated(account.publicName || account.url)}</p>
    <dl><div><dt>${say(locale, 'checkAfter')}</dt><dd><strong>${terms(after)}</strong></dd></div>
    <div><dt>${say(locale, 'checkBefore')}</dt><dd>${terms(before)}</dd></div></dl>
    <div class="buttons"><button class="primary" name="do" value="save">${say(locale, 'save')}</button></div>
    <p><a href="${backUrl}">${say(locale, 'checkBack')}</a></p></form>`
  return { title: plain(locale, 'checkTitle'), content }
}
