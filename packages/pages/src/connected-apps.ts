import type {
  Amount,
  GrantView,
  ItemBudget,
  ItemView,
  OutgoingPaymentView,
} from 'open-payments-server'
import { parseInterval } from 'open-payments-server/core'
import { alsoLine } from './abilities.js'
import { type DescriptionOptions, describeItem, every } from './access.js'
import { amountHtml, formatAmount } from './amounts.js'
import { addressOf, shortName } from './app-name.js'
import { type Html, html } from './html.js'
import type { Screen } from './layout.js'
import type { LimitProblem } from './limits.js'
import { formatDay, formatInstant, isolated, plain, say, visible } from './locale.js'
import { alertOf } from './notice.js'
import type { TextKey } from './texts.js'

/** An app with access, and what it has done with it. */
export interface ConnectedApp {
  readonly grant: GrantView
  /** How the app can be named: see `grants.displayOf`. */
  readonly display?: { readonly name?: string } | undefined
  /** What was spent and is left: see `outgoingPayments.budgetsOf`. */
  readonly budgets?: readonly ItemBudget[] | undefined
  /** The latest payment, or `null` if there is none; absent if it is not known. */
  readonly lastPayment?: OutgoingPaymentView | null | undefined
}

/** What the page of connected apps needs besides the apps. */
export interface ConnectedAppsOptions extends DescriptionOptions {
  /** A hidden field with the token of the forms. */
  readonly token: Html
  /** What a form has done, or why it has changed nothing. */
  readonly outcome?: 'changed' | 'removed' | LimitProblem['name'] | 'stale' | undefined
  /** Where the apps are that were approved before these. */
  readonly olderUrl?: string | undefined
  /** Replaces the part of the page about one app. */
  readonly renderApp?: ((app: ConnectedApp, options: ConnectedAppsOptions) => Html) | undefined
}

type CountedAmount = keyof ItemBudget['spent']

/**
 * Returns the page on which an owner sees the connected apps, and narrows, pauses or ends their access.
 *
 * @example
 * ```ts
 * import { connectedAppsScreen, formTokens, page } from 'open-payments-pages'
 *
 * const tokens = formTokens(crypto.getRandomValues(new Uint8Array(32)))
 * const token = await tokens.field('apps', 'alice')
 * const screen = connectedAppsScreen(apps, { locale, now: Date.now(), token })
 * const response = page(screen, { locale })
 * ```
 */
export function connectedAppsScreen(
  apps: readonly ConnectedApp[],
  options: ConnectedAppsOptions,
): Screen {
  const { locale, outcome, olderUrl, renderApp = connectedAppHtml } = options
  const content = html`<h1>${say(locale, 'appsTitle')}</h1>
    ${outcome && outcomeHtml(outcome, options)}
    ${apps.length === 0 && html`<p class="card">${say(locale, 'appsNone')}</p>`}
    ${apps.map((app) => renderApp(app, options))}
    ${olderUrl && html`<p><a href="${olderUrl}">${say(locale, 'appsOlder')}</a></p>`}`
  return { title: plain(locale, 'appsTitle'), content }
}

function outcomeHtml(
  outcome: NonNullable<ConnectedAppsOptions['outcome']>,
  { locale }: ConnectedAppsOptions,
): Html {
  if (outcome === 'changed' || outcome === 'removed') {
    return html`<p class="done" role="status">${say(locale, outcome)}</p>`
  }
  const example = formatAmount({ value: '1250', assetCode: '', assetScale: 2 }, locale).trim()
  return alertOf(outcome, locale, undefined, { example })
}

/**
 * Returns the part of the page about one app.
 *
 * @example
 * ```ts
 * import { connectedAppHtml, connectedAppsScreen, html } from 'open-payments-pages'
 *
 * const screen = connectedAppsScreen(apps, {
 *   locale,
 *   now: Date.now(),
 *   token: html`<input type="hidden" name="token" value="…">`,
 *   renderApp: (app, options) => html`${connectedAppHtml(app, options)}<p>Approved by phone.</p>`,
 * })
 * ```
 */
export function connectedAppHtml(app: ConnectedApp, options: ConnectedAppsOptions): Html {
  const { grant, display } = app
  const { grantId, client, access, subject, conditions, approvedAt } = grant
  const { locale, now, token } = options
  const id = `app-${grantId}`
  const name = shortName({ client, display })
  const pausedUntil = conditions?.pausedUntil ?? 0
  const isPaused = pausedUntil > now
  const isPaying = (item: ItemView) =>
    item.type === 'outgoing-payment' && item.actions.includes('create')
  const fields = html`${token}<input type="hidden" name="grant" value="${grantId}">`
  const act = isPaused ? 'resume' : 'pause'
  // A name for screen readers begins with the visible words, by which speech control finds it.
  const named = (key: TextKey) => `${plain(locale, key)}: ${visible(name)}`
  const date = approvedAt !== undefined && formatDay(approvedAt, locale)
  return html`<article class="card" aria-labelledby="${id}">
    <h2 id="${id}">${isolated(name)}</h2>
    <p class="address">${addressOf({ client })}</p>
    ${isPaused && html`<p><span class="badge">${pausedText(pausedUntil, options)}</span></p>`}
    ${access.filter(isPaying).map((item) => limitHtml(item, app, fields, options))}
    <p class="quiet">${lastPaymentHtml(app, options)}</p>
    ${alsoLine(access.some(isPaying) ? 'also' : 'appsMay', access, locale)}
    ${subject && html`<ul><li>${say(locale, 'learns', { id: subject.id })}</li></ul>`}
    <details><summary aria-label="${named('details')}">${say(locale, 'details')}</summary>
      ${access.map((item) => html`<ul>${describeItem(item, options).map((line) => html`<li>${line}</li>`)}</ul>${access.length > 1 && removeItemForm(item, fields, options)}`)}
      ${conditionsHtml(grant, options)}
      ${date && html`<p class="quiet small">${say(locale, 'since', { date })}</p>`}
    </details>
    <div class="actions">
    ${access.some(({ type }) => type === 'outgoing-payment') && html`<form method="post">${fields}<button name="do" value="${act}" aria-label="${named(act)}">${say(locale, act)}</button></form>`}
    <details><summary aria-label="${named('remove')}">${say(locale, 'remove')}</summary>
      <p>${say(locale, 'removeQuestion')}</p>
      <form method="post">${fields}<button class="danger" name="do" value="revoke">${say(locale, 'removeApp', { app: name })}</button></form></details>
    </div>
  </article>`
}

/** A pause until the owner ends it is stored as the last instant. */
function pausedText(until: number, { locale }: ConnectedAppsOptions): Html {
  return until >= untilResumed
    ? say(locale, 'paused')
    : say(locale, 'pausedUntil', { time: formatInstant(until, locale) })
}

/** The last instant that a grant can store. */
export const untilResumed = 253_402_300_799_999

function conditionsHtml({ conditions }: GrantView, { locale }: ConnectedAppsOptions): Html {
  const { paymentMax, receivers = [] } = conditions ?? {}
  if (paymentMax === undefined && receivers.length === 0) return html``
  return html`<ul>${paymentMax && html`<li>${say(locale, 'paymentMax', { amount: amountHtml(paymentMax, locale) })}</li>`}
    ${receivers.map((receiver) => html`<li>${say(locale, 'onlyTo', { receiver })}</li>`)}</ul>`
}

function lastPaymentHtml({ lastPayment }: ConnectedApp, { locale }: ConnectedAppsOptions): Html {
  if (lastPayment === undefined) return html``
  if (lastPayment === null) return say(locale, 'noPayment')
  const amount = amountHtml(lastPayment.debitAmount, locale)
  const date = formatDay(lastPayment.createdAt, locale)
  const key = lastPayment.status === 'failed' ? 'lastPaymentFailed' : 'lastPayment'
  return say(locale, key, { amount, date })
}

/** The limit of an item, what of it is spent, and the form that lowers it. */
function limitHtml(
  item: ItemView,
  { budgets }: ConnectedApp,
  fields: Html,
  options: ConnectedAppsOptions,
): Html {
  const { locale } = options
  const { itemId = '', limits = {}, label } = item
  const { debitAmount, receiveAmount, interval } = limits
  const limit = debitAmount ?? receiveAmount
  const parsed = interval === undefined ? undefined : parseInterval(interval)
  const often = parsed?.ok
    ? every(parsed.value, locale)
    : interval !== undefined
      ? isolated(interval)
      : limit && say(locale, 'inAll')
  const amount =
    limit === undefined
      ? say(locale, 'anyAmount')
      : say(locale, debitAmount ? 'upTo' : 'upToReceived', { amount: amountHtml(limit, locale) })
  const budget = budgets?.find((each) => each.item.itemId === itemId)
  const counts: CountedAmount = debitAmount ? 'debitAmount' : 'receiveAmount'
  return html`<div class="limit">
    ${label !== undefined && html`<p class="quiet small">${say(locale, 'token', { label })}</p>`}
    <strong>${amount} ${often}</strong>
    ${budget && budgetHtml(budget, limit && { limit, left: budget.left[counts], counts }, options)}
    ${limit && debitAmount && lowerForm(item, debitAmount, fields, options)}
    </div>`
}

function budgetHtml(
  { isOpen, window, spent }: ItemBudget,
  limited:
    | { readonly limit: Amount; readonly left: Amount | undefined; readonly counts: CountedAmount }
    | undefined,
  { locale }: ConnectedAppsOptions,
): Html {
  if (!isOpen) return html`<p class="quiet">${say(locale, 'notNow')}</p>`
  const { debitAmount } = spent
  if (limited === undefined) {
    return html`${debitAmount && html`<p class="quiet">${say(locale, 'spent', { spent: amountHtml(debitAmount, locale) })}</p>`}`
  }
  const { limit, left = { ...limit, value: '0' }, counts } = limited
  // More than the limit, if the owner has lowered it since.
  const used = spent[counts] ?? {
    ...limit,
    value: String(BigInt(limit.value) - BigInt(left.value)),
  }
  const values = { spent: amountHtml(used, locale), limit: amountHtml(limit, locale) }
  const rest = { left: amountHtml(left, locale) }
  const end = window && formatDay(window.end, locale)
  const percent = percentOf(used, limit)
  return html`<svg class="bar" role="meter" aria-valuemin="0" aria-valuemax="100" aria-valuenow="${percent}" aria-label="${plain(locale, 'spentOf', { spent: formatAmount(used, locale), limit: formatAmount(limit, locale) })}"><rect width="${percent}%" height="100%"/></svg>
    <p class="sides quiet"><span>${say(locale, 'spentOf', values)}</span>
    <span>${end === undefined ? say(locale, 'left', rest) : say(locale, 'leftUntil', { ...rest, end })}</span></p>`
}

function percentOf(used: Amount, limit: Amount): string {
  const most = BigInt(limit.value)
  const parts = most === 0n ? 1_000n : (BigInt(used.value) * 1_000n) / most
  return (Math.min(Number(parts), 1_000) / 10).toString()
}

function lowerForm(
  { itemId = '' }: ItemView,
  { assetCode }: Amount,
  fields: Html,
  { locale }: ConnectedAppsOptions,
): Html {
  return html`<details><summary>${say(locale, 'change')}</summary><form method="post">
    ${fields}<input type="hidden" name="item" value="${itemId}">
    <label>${say(locale, 'newLimit', { asset: assetCode })}
    <input name="most" inputmode="decimal" autocomplete="off" required></label>
    <p><button name="do" value="lower">${say(locale, 'lower')}</button></p></form></details>`
}

function removeItemForm(
  { itemId = '' }: ItemView,
  fields: Html,
  { locale }: ConnectedAppsOptions,
): Html {
  return html`<form method="post">${fields}<input type="hidden" name="item" value="${itemId}">
    <button name="do" value="remove">${say(locale, 'removeItem')}</button></form>`
}
