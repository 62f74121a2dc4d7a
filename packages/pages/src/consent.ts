import type { InteractionView, TokenItem, TokenView } from 'open-payments-server'
import { accessLines, alsoList } from './abilities.js'
import {
  type DescriptionOptions,
  describeItem,
  every,
  outlookOf,
  type SpendingOutlook,
} from './access.js'
import { amountHtml } from './amounts.js'
import { aboutName, addressOf, type OwnKey, shortName } from './app-name.js'
import { limitForAnyAmount, paysAnyAmount } from './consent-limit.js'
import { type Html, html } from './html.js'
import type { Screen } from './layout.js'
import { type LimitProblem, limitAlert, limitField, limitOf } from './limits.js'
import {
  formatDay,
  formatDeadline,
  isolated,
  type Locale,
  plain,
  say,
  timesOf,
  visible,
} from './locale.js'
import { alertOf } from './notice.js'
import {
  accountLine,
  accountsFor,
  balanceHtml,
  isSameUrl,
  type OwnedAccount,
} from './owned-account.js'
import { receiverHtml } from './receivers.js'
import { singlePaymentOf } from './single-payment.js'
import type { TextKey } from './texts.js'

/** The values that the consent page needs in addition to the view of the interaction. */
export interface ConsentOptions extends DescriptionOptions {
  /** The accounts of the signed-in owner. */
  readonly accounts: readonly OwnedAccount[]
  /** The key of the owner with which the app signs, if its address is one of `accounts`. It then names the app. */
  readonly ownKey?: OwnKey | undefined
  /** A hidden field with the token of the form. */
  readonly token: Html
  /** What was wrong with the form that was posted. */
  readonly problem?: 'undecided' | 'choose' | 'stale' | LimitProblem | undefined
  /** What was posted, to show it again. */
  readonly given?: URLSearchParams | undefined
  /** Where owners end the access, such as `/apps`. */
  readonly connectedAppsUrl?: string | undefined
  /** Replaces sections of the page. */
  readonly sections?: Partial<ConsentSections> | undefined
}

/** A part of the consent page. */
export type ConsentSection = (view: InteractionView, options: ConsentOptions) => Html

/** The parts of the consent page, in their order. */
export type ConsentSections = Readonly<
  Record<'who' | 'spending' | 'account' | 'lower' | 'also' | 'details' | 'buttons', ConsentSection>
>

/**
 * Returns the page on which an owner decides. It says everything that is granted: the sums as the largest words, the
 * rest in a line and in the details.
 *
 * @example
 * ```ts
 * import { consentScreen, formTokens, page } from 'open-payments-pages'
 *
 * const tokens = formTokens(crypto.getRandomValues(new Uint8Array(32)))
 * const token = await tokens.field('consent', view.id, 'alice')
 * const accounts = [{ url: 'https://wallet.example/alice', assetCode: 'USD', assetScale: 2 }]
 * const options = { locale, now: Date.now(), accounts, token }
 * const response = page(consentScreen(view, options), { locale })
 * ```
 */
export function consentScreen(view: InteractionView, options: ConsentOptions): Screen {
  const { locale, problem, token, ownKey } = options
  const all = { ...consentSections, ...options.sections }
  const part = (name: keyof ConsentSections) => all[name](view, options)
  // Enter in a field presses the first button. It must not approve more than what stands in the field.
  const content = html`<form method="post" class="card">
    <button class="unseen" tabindex="-1" aria-hidden="true"></button>
    ${problem && problemHtml(problem, locale)}
    ${token}
    ${part('who')}
    ${part('spending')}
    ${part('account')}
    ${part('lower')}
    ${part('also')}
    ${part('details')}
    ${part('buttons')}
    </form>`
  return {
    title: plain(locale, titleOf(view), { app: shortName({ ...view, ownKey }, locale) }),
    content,
    formTarget: view.finishUri,
  }
}

function problemHtml(problem: NonNullable<ConsentOptions['problem']>, locale: Locale): Html {
  if (typeof problem === 'object') return limitAlert(problem, locale)
  return alertOf(problem, locale, problem === 'choose' ? '#account' : '#decision')
}

function titleOf({ totals, access }: InteractionView): TextKey {
  if (totals.length > 0) return 'asksToPay'
  return access.length > 0 ? 'asksForAccess' : 'asksWhoYouAre'
}

/**
 * The sections of the consent page, to wrap or to replace.
 *
 * @example
 * ```ts
 * import { type ConsentSections, consentSections, html } from 'open-payments-pages'
 *
 * const sections: Partial<ConsentSections> = {
 *   who: (view, options) => html`${consentSections.who(view, options)}<p>Is this your shop?</p>`,
 * }
 * ```
 */
export const consentSections: ConsentSections = {
  who,
  spending,
  account,
  lower,
  also,
  details,
  buttons,
}

function who(view: InteractionView, { locale, ownKey }: ConsentOptions): Html {
  const app = { ...view, ownKey }
  return html`<h1>${say(locale, titleOf(view), { app: shortName(app, locale) })}</h1>
    <p class="address">${addressOf(view)}</p>
    ${aboutName(app, locale)}`
}

function spending({ totals, access, subject }: InteractionView, options: ConsentOptions): Html {
  const { locale } = options
  const blocks = totals.map((total) => spendingBlock(total, access, options))
  const sums = html`<div class="${blocks.length > 1 ? 'several' : 'single'}">${blocks}</div>`
  const learns =
    subject !== undefined && html`<li>${say(locale, 'learns', { id: subject.id })}</li>`
  if (totals.length > 0) return html`${sums}${learns && html`<ul>${learns}</ul>`}`
  const accounts = [...new Set(access.flatMap(({ identifier }) => identifier ?? []))]
  return html`<p>${say(locale, 'asksTo')}</p><ul>${accessLines(access, locale)}
    ${accounts.map((account) => html`<li>${say(locale, 'onlyFor', { account })}</li>`)}${learns}</ul>`
}

function spendingBlock(
  total: InteractionView['totals'][number],
  access: readonly TokenItem[],
  options: ConsentOptions,
): Html {
  const { locale } = options
  const outlook = outlookOf(total, access, options)
  const { limit, isReceived, windows, receivers } = outlook
  const amount =
    limit === undefined
      ? say(locale, 'anyAmount')
      : say(locale, isReceived ? 'upToReceived' : 'upTo', { amount: amountHtml(limit, locale) })
  const row = (key: TextKey, value: Html | string | false | undefined) =>
    value && html`<div><dt>${say(locale, key)}</dt><dd>${value}</dd></div>`
  const payer = options.accounts.find(({ url }) => isSameUrl(url, total.identifier))
  const once = singlePaymentOf(total, access, options)
  const often = oftenOf(total.interval, outlook, options)
  return html`<p class="amount"><span>${once ?? amount}</span> <span>${once === undefined && often}</span></p>
    ${windows === 0 && html`<p class="warning">${say(locale, 'outOfTime')}</p>`}
    ${limit === undefined && html`<p class="warning">${say(locale, 'anyAmountWarning')}</p>`}
    ${limit && html`<p class="quiet">${say(locale, isReceived ? 'receivedWarning' : 'feesIncluded')}</p>`}
    <dl>
    ${row('rowTotal', totalOf(outlook, options))}
    ${row('rowAccount', total.identifier !== undefined && accountLine(total.identifier, payer, locale))}
    ${receivers.length === 0 ? row('rowAnyReceiver', say(locale, 'anyReceiver')) : row('rowReceiver', html`${receivers.map((each) => html`<div>${receiverHtml(each, options.receivers)}</div>`)}`)}
    ${row('rowStart', startOf(outlook, options))}
    ${once === undefined && row('rowEnd', endOf(outlook, options))}
    ${row('rowTogether', total.items > 1 && say(locale, 'together', { count: new Intl.NumberFormat(locale.tag).format(total.items) }))}
    </dl>`
}

/** How often, after the amount. */
function oftenOf(
  text: string | undefined,
  { limit, interval, windows, end }: SpendingOutlook,
  { locale }: ConsentOptions,
): Html {
  if (interval === undefined) {
    if (text !== undefined) return isolated(text)
    return limit === undefined ? html`` : say(locale, 'inAll')
  }
  if (windows === 1 && end !== undefined) {
    return say(locale, 'oneWindow', { end: formatDay(end, locale) })
  }
  const times = windows === undefined ? '' : locale.texts.comma + timesOf(windows, locale)
  return html`${every(interval, locale)}${times}`
}

function totalOf({ interval, end, total, windows }: SpendingOutlook, { locale }: ConsentOptions) {
  if (interval === undefined || windows === 1) return undefined
  if (total !== undefined) return say(locale, 'totalAtMost', { amount: amountHtml(total, locale) })
  return end === undefined && say(locale, 'totalEndless')
}

function startOf({ first }: SpendingOutlook, { locale, now }: ConsentOptions) {
  return first !== undefined && first.start > now && isolated(formatDay(first.start, locale))
}

function endOf({ end, windows }: SpendingOutlook, { locale }: ConsentOptions): Html {
  if (end === undefined || windows === 0) return say(locale, 'endsWithYou')
  return isolated(formatDay(end, locale))
}

/** The question for which account the access is, where the app has not said it. */
function account({ needAccount, totals }: InteractionView, options: ConsentOptions): Html {
  const { accounts, locale, given } = options
  if (needAccount.length === 0) return html``
  const fitting = accountsFor(needAccount, accounts)
  const misfits = accounts
    .filter((each) => !fitting.includes(each))
    .map((each) => html`<p class="quiet small">${misfit(each, needAccount, options)}</p>`)
  if (fitting.length === 0) {
    return html`<p class="warning">${say(locale, 'noAccount')}</p>${misfits}`
  }
  const chosen = fitting.find(({ url }) => url === given?.get('account')) ?? fitting[0]
  const choices = fitting.map(
    (each, index) => html`<label class="choice"><input type="radio" name="account" required
      value="${each.url}"${index === 0 && html` id="account"`}${each === chosen && html` checked`}>
      <span>${isolated(each.publicName || each.url)} (${isolated(each.assetCode)})
      ${each.publicName && html`<small>${isolated(each.url)}</small>`}
      ${balanceHtml(each, locale)}</span></label>`,
  )
  const question = totals.length > 0 ? 'accountQuestion' : 'accountQuestionForAccess'
  return html`<fieldset><legend>${say(locale, question)}</legend>${choices}</fieldset>${misfits}`
}

function misfit(
  { url, publicName, assetCode }: OwnedAccount,
  needAccount: InteractionView['needAccount'],
  { locale }: ConsentOptions,
): Html {
  const other = needAccount.find(({ limits }) => limits?.debitAmount?.assetCode !== assetCode)
  const limit = other?.limits?.debitAmount?.assetCode ?? assetCode
  return say(locale, 'misfit', { account: publicName || url, limit, asset: assetCode })
}

/** The fields by which an owner approves less. A request for any amount needs them most: they are open. */
function lower(view: InteractionView, { given, problem, ...options }: ConsentOptions): Html {
  const { locale, accounts } = options
  const { totals, access } = view
  const limitProblem = typeof problem === 'object' ? problem : undefined
  const open = paysAnyAmount(view) && { locale, accounts, given, problem: limitProblem }
  return html`${open && limitForAnyAmount(view, open)}
    ${!totals.some((total) => singlePaymentOf(total, access, options)) && lowerFields(access, { given, problem: limitProblem, ...options })}`
}

function lowerFields(
  access: readonly TokenItem[],
  {
    given,
    problem: limitProblem,
    ...options
  }: Omit<ConsentOptions, 'problem'> & {
    readonly problem: LimitProblem | undefined
  },
): Html {
  const { locale } = options
  const fields = limitFieldsOf(access)
  if (fields.length === 0) return html``
  const isOpen = fields.some(({ field }) => given?.get(field)) || limitProblem !== undefined
  const shown = fields.map(({ field, item, limit }) => {
    const lines = fields.length > 1 ? describeItem(item, options) : []
    const label = item.label !== undefined && [say(locale, 'token', { label: item.label })]
    const about = html`${[...(label || []), ...lines].map((line) => html`${line}<br>`)}`
    const typed = given?.get(field)
    return limitField({ field, limit, about, typed, problem: limitProblem }, locale)
  })
  return html`<details${isOpen && html` open`}><summary>${say(locale, 'change')}</summary>${shown}</details>`
}

/** Returns the items with a limit that can be lowered, each with the name of its field. */
export function limitFieldsOf(access: readonly TokenItem[]) {
  return access.flatMap((item, index) => {
    const limit = limitOf(item)
    return limit === undefined ? [] : [{ field: `limit-${index}`, item, limit }]
  })
}

function also({ access, totals }: InteractionView, { locale }: ConsentOptions): Html {
  return totals.length === 0 ? html`` : alsoList('also', access, locale)
}

/** Everything that is granted, item by item, and what the owner may want to know besides. */
function details(view: InteractionView, options: ConsentOptions): Html {
  const { locale } = options
  const { tokens, subject, expiresAt, conditions } = view
  const time = formatDeadline(expiresAt, locale)
  return html`<details><summary>${say(locale, 'details')}</summary>
    ${tokens.map((token) => tokenDetails(token, options))}
    <ul>${subject && html`<li>${say(locale, 'learns', { id: subject.id })}</li>`}
    ${conditions?.paymentMax && html`<li>${say(locale, 'paymentMax', { amount: amountHtml(conditions.paymentMax, locale) })}</li>`}
    ${conditions?.receivers?.map((receiver) => html`<li>${say(locale, 'onlyTo', { receiver })}</li>`)}
    </ul>
    <p class="quiet small">${say(locale, 'addressVerified', { address: view.client })}</p>
    <p class="quiet small">${say(locale, 'decideBy', { time })}</p>
    </details>`
}

/** The label of one of several tokens is text that the app chose. */
function tokenDetails({ label, access }: TokenView, options: ConsentOptions): Html {
  return html`${label !== undefined && html`<h3>${say(options.locale, 'token', { label })}</h3>`}
    ${access.map((item) => html`<ul>${describeItem(item, options).map((line) => html`<li>${line}</li>`)}</ul>`)}`
}

function buttons(view: InteractionView, options: ConsentOptions): Html {
  const { locale, accounts, connectedAppsUrl, ownKey } = options
  const { needAccount, finishUri } = view
  const canApprove = needAccount.length === 0 || accountsFor(needAccount, accounts).length > 0
  const approve =
    canApprove &&
    html`<button class="primary" id="decision" name="decision" value="approve">${say(locale, 'approve')}</button>`
  const place = finishUri && placeOf(finishUri)
  const apps =
    connectedAppsUrl && html`<a href="${connectedAppsUrl}">${say(locale, 'appsTitle')}</a>`
  return html`<div class="buttons">${approve}
    <button${!canApprove && html` id="decision"`} name="decision" value="deny">${say(locale, 'deny')}</button></div>
    <p class="quiet small">${place ? say(locale, 'returnsTo', { place }) : say(locale, 'returns', { app: shortName({ ...view, ownKey }, locale) })}
    ${apps && say(locale, 'endAnytime', { apps })}</p>`
}

/** A native app has a scheme of its own and no host. */
export function placeOf(url: string): string {
  if (!URL.canParse(url)) return visible(url)
  const { host, protocol } = new URL(url)
  return host || protocol
}
