import type { GrantView, ItemView } from 'open-payments-server'
import { describeItem } from './access.js'
import { addressOf, type OwnKey, shortName } from './app-name.js'
import { type AppOptions, accountsOf, signedWithHtml } from './connected-apps.js'
import { type Html, html } from './html.js'
import type { Screen } from './layout.js'
import { formatDay, isolated, plain, say } from './locale.js'
import type { TextKey } from './texts.js'

/** The values that the page of ended apps needs in addition to their grants. */
export interface EndedAppsOptions extends Omit<AppOptions, 'token'> {
  /** By the id of its grant, the key of the owner with which an app signed that used an account of the owner. */
  readonly ownKeys?: ReadonlyMap<string, OwnKey> | undefined
  /** The URL of the page with apps that were approved before these. */
  readonly olderUrl?: string | undefined
}

/**
 * Returns the page on which an owner sees the apps whose access has ended: which access each had, when it ended, and
 * who ended it.
 *
 * @param grants of `grants.history`, the latest first.
 *
 * @example
 * ```ts
 * import { endedAppsScreen, page } from 'open-payments-pages'
 *
 * const { result } = await wallet.auth.grants.history({ resourceOwner: 'alice', last: 20 })
 * const options = { locale, now: Date.now(), accounts: [] }
 * const response = page(endedAppsScreen(result.toReversed(), options), { locale })
 * ```
 */
export function endedAppsScreen(grants: readonly GrantView[], options: EndedAppsOptions): Screen {
  const { locale, olderUrl } = options
  // A page of the history may be empty although there are older apps.
  const isNone = grants.length === 0 && olderUrl === undefined
  const content = html`<p><a href="?">${say(locale, 'appsAll')}</a></p>
    <h1>${say(locale, 'endedApps')}</h1>
    ${isNone && html`<p class="card">${say(locale, 'endedNone')}</p>`}
    ${grants.map((grant) => endedAppHtml(grant, options))}
    ${olderUrl && html`<p><a href="${olderUrl}">${say(locale, 'appsOlder')}</a></p>`}`
  return { title: plain(locale, 'endedApps'), content }
}

/** An app under the name that it had when the owner consented. */
function endedAppHtml(grant: GrantView, options: EndedAppsOptions): Html {
  const { grantId, client, clientName, access, subject, approvedAt, endedAt } = grant
  const { locale } = options
  const id = `app-${grantId}`
  const ownKey = options.ownKeys?.get(grantId)
  const display = clientName === undefined ? {} : { name: clientName }
  return html`<article class="card" aria-labelledby="${id}">
    <h2 id="${id}">${isolated(shortName({ client, display, ownKey }, locale))}</h2>
    <p class="address">${addressOf({ client })}</p>
    ${signedWithHtml({ ownKey }, options)}
    <p class="quiet">${say(locale, 'appAccount', { account: accountsOf(grant, options) })}</p>
    ${approvedAt !== undefined && html`<p class="quiet">${say(locale, 'since', { date: formatDay(approvedAt, locale) })}</p>`}
    ${endedAt !== undefined && html`<p>${say(locale, endingOf(grant), { date: formatDay(endedAt, locale) })}</p>`}
    <h3>${say(locale, 'endedAccess')}</h3>
    ${access.map((item) => itemHtml(item, options))}
    ${subject && html`<ul><li>${say(locale, 'learns', { id: subject.id })}</li></ul>`}
  </article>`
}

function itemHtml(item: ItemView, options: EndedAppsOptions): Html {
  const { label } = item
  const lines = describeItem(item, options).map((line) => html`<li>${line}</li>`)
  return html`${label !== undefined && html`<p class="quiet small">${say(options.locale, 'token', { label })}</p>`}
    <ul>${lines}</ul>`
}

function endingOf({ endedBy }: GrantView): TextKey {
  if (endedBy === undefined) return 'endedByTime'
  return endedBy === 'client' ? 'endedByApp' : 'endedByOwner'
}
