import type {
  GrantView,
  ItemBudget,
  ItemView,
  LimitStatus,
  OutgoingPaymentView,
  PaymentToConfirm,
} from 'open-payments-server'
import { alsoList } from './abilities.js'
import type { DescriptionOptions } from './access.js'
import { amountHtml } from './amounts.js'
import { limitHtml } from './app-limits.js'
import { addressOf, type OwnKey, ownKeyHtml, shortName } from './app-name.js'
import { type Html, html } from './html.js'
import type { Screen } from './layout.js'
import {
  formatDay,
  formatDeadline,
  formatInstant,
  isolated,
  listed,
  plain,
  say,
  visible,
} from './locale.js'
import { alertOf } from './notice.js'
import { isSameUrl, type OwnedAccount } from './owned-account.js'
import { payeeHtml } from './receivers.js'
import type { TextKey } from './texts.js'

/** An app with access, and what it has done with it. */
export interface ConnectedApp {
  readonly grant: GrantView
  /** How the app can be named: see `grants.displayOf`. */
  readonly display?: { readonly name?: string } | undefined
  /** The key of the owner with which the app signs, if its address is an account of the owner: it names the app. */
  readonly ownKey?: OwnKey | undefined
  /** What was spent and is left: see `outgoingPayments.budgetsOf`. */
  readonly budgets?: readonly ItemBudget[] | undefined
  /** What is left of each of `conditions.limits`: see `outgoingPayments.limitsOf`. */
  readonly ownerLimits?: readonly LimitStatus[] | undefined
  /** The latest payment, or `null` if there is none; absent if it is not known. */
  readonly lastPayment?: OutgoingPaymentView | null | undefined
  /** The payments that wait for the owner's answer: see `outgoingPayments.listToConfirm`. */
  readonly waiting?: readonly PaymentToConfirm[] | undefined
}

/** The values that the pages about connected apps need in addition to the apps. */
export interface AppOptions extends DescriptionOptions {
  readonly accounts: readonly OwnedAccount[]
  /** A hidden field with the token of the forms. */
  readonly token: Html
}

/** The values that the page of connected apps needs in addition to the apps. */
export interface ConnectedAppsOptions extends AppOptions {
  /** The app whose access the owner has just removed. */
  readonly removed?: ConnectedApp | undefined
  /** Why a form has changed nothing. */
  readonly outcome?: 'stale' | undefined
  /** What the owner searched for, if anything. */
  readonly search?: string | undefined
  /** How many apps were searched, if the owner has more. */
  readonly searchedMax?: number | undefined
  /** The URL of the page with apps that were approved before these. */
  readonly olderUrl?: string | undefined
  /** The URL of the page of apps whose access has ended. */
  readonly endedUrl?: string | undefined
  /** The URL of the page of limits for all apps. */
  readonly accountLimitsUrl?: string | undefined
  /** Replaces the part of the page about one app. */
  readonly renderApp?: ((app: ConnectedApp, options: ConnectedAppsOptions) => Html) | undefined
}

/**
 * Returns the page on which an owner sees the connected apps, searches them, and pauses them.
 *
 * @example
 * ```ts
 * import { connectedAppsScreen, formTokens, page } from 'open-payments-pages'
 *
 * const tokens = formTokens(crypto.getRandomValues(new Uint8Array(32)))
 * const token = await tokens.field('apps', 'alice')
 * const screen = connectedAppsScreen(apps, { locale, now: Date.now(), accounts: [], token })
 * const response = page(screen, { locale })
 * ```
 */
export function connectedAppsScreen(
  apps: readonly ConnectedApp[],
  options: ConnectedAppsOptions,
): Screen {
  const { locale, outcome, removed, search, searchedMax, olderUrl, endedUrl } = options
  const { accountLimitsUrl, renderApp = connectedAppHtml } = options
  const count =
    searchedMax === undefined ? '' : new Intl.NumberFormat(locale.tag).format(searchedMax)
  const none = search === undefined ? 'appsNone' : 'appsNotFound'
  // A page of a list may be empty although there are older apps.
  const isNone = apps.length === 0 && olderUrl === undefined
  const render = (app: ConnectedApp) => renderApp(app, options)
  const usedUp = apps.filter(isUsedUp)
  const waiting = apps.filter((app) => (app.waiting ?? []).length > 0)
  const others = apps.filter((app) => !usedUp.includes(app) && !waiting.includes(app))
  const content = html`${outcome && alertOf(outcome, locale)}
    <h1>${say(locale, 'appsTitle')}</h1>
    ${removed && html`<p class="done" role="status">${sayOf('removed', removed, options)}</p>`}
    ${(apps.length > 0 || search !== undefined) && searchForm(options)}
    ${isNone && html`<p class="card">${say(locale, none)}</p>`}
    ${count && html`<p class="quiet">${say(locale, 'appsNotAll', { count })}</p>`}
    ${waiting.map(render)}${others.map(render)}
    ${usedUp.length > 0 && html`<h2>${say(locale, 'usedUp')}</h2>${usedUp.map(render)}`}
    ${search !== undefined && html`<p><a href="?">${say(locale, 'appsAll')}</a></p>`}
    ${olderUrl && html`<p><a href="${olderUrl}">${say(locale, 'appsOlder')}</a></p>`}
    ${accountLimitsUrl && html`<p><a href="${accountLimitsUrl}">${say(locale, 'accountLimits')}</a></p>`}
    ${endedUrl && html`<p><a href="${endedUrl}">${say(locale, 'endedApps')}</a></p>`}`
  return { title: plain(locale, 'appsTitle'), content }
}

/** Whether an app can never pay again: all that it was granted, once and for all, is spent, and nothing waits. */
export function isUsedUp(app: ConnectedApp): boolean {
  const paying = app.grant.access.filter(isPaying)
  return paying.length > 0 && paying.every((item) => isSpent(item, app))
}

/** Whether what an item allows, once and for all, is spent, and nothing waits. */
export function isSpent(
  { itemId, limits = {} }: ItemView,
  { budgets, waiting = [] }: ConnectedApp,
): boolean {
  const left = budgets?.find(({ item }) => item.itemId === itemId)?.left
  const rest = limits.debitAmount ? left?.debitAmount : left?.receiveAmount
  const isOver = limits.interval === undefined && rest !== undefined && BigInt(rest.value) === 0n
  return isOver && waiting.length === 0
}

function searchForm({ locale, search }: ConnectedAppsOptions): Html {
  return html`<form role="search" class="search"><label for="search">${say(locale, 'appsSearch')}</label>
    <div><input id="search" type="search" name="search" maxlength="${searchLengthMax}" value="${visible(search ?? '')}">
    <button>${say(locale, 'search')}</button></div></form>`
}

/** The characters of a search that count. */
export const searchLengthMax = 100

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
 *   accounts: [],
 *   token: html`<input type="hidden" name="token" value="…">`,
 *   renderApp: (app, options) => html`${connectedAppHtml(app, options)}<p>Approved by phone.</p>`,
 * })
 * ```
 */
export function connectedAppHtml(app: ConnectedApp, options: ConnectedAppsOptions): Html {
  const { grantId, client, access, subject } = app.grant
  const { locale } = options
  const id = `app-${grantId}`
  const url = `?${new URLSearchParams({ app: grantId })}`
  const paying = access.filter(isPaying)
  return html`<article class="card" aria-labelledby="${id}">
    <h2 id="${id}">${isolated(nameOf(app, options))}</h2>
    <p class="address">${addressOf({ client })}</p>
    ${signedWithHtml(app, options)}
    <p class="quiet">${say(locale, 'appAccount', { account: accountsOf(app.grant, options) })}</p>
    ${!isUsedUp(app) && pausedBadge(app, options)}
    ${waitingHtml(app, options)}
    ${paying.map((item) => limitHtml(item, app, options))}
    <p class="quiet">${lastPaymentHtml(app, options)}</p>
    ${paying.length === 0 && alsoList('appsMay', access, locale)}
    ${subject && html`<ul><li>${say(locale, 'learns', { id: subject.id })}</li></ul>`}
    <div class="actions"><a href="${url}" aria-label="${labelOf('appDetails', app, options)}">${say(locale, 'appDetails')}</a>
    <a href="${url}#remove" aria-label="${labelOf('remove', app, options)}">${say(locale, 'remove')}</a>
    ${!isUsedUp(app) && pauseForm(app, options)}</div>
  </article>`
}

/** Returns the payments that wait for the owner's answer, each with a link to the page that takes it. */
export function waitingHtml(
  { waiting = [] }: ConnectedApp,
  { locale, receivers }: Pick<AppOptions, 'locale' | 'receivers'>,
): Html {
  if (waiting.length === 0) return html``
  const items = waiting.map((payment) => {
    const { url, until, debitAmount } = payment
    const values = {
      amount: amountHtml(debitAmount, locale),
      receiver: payeeHtml(payment, receivers),
    }
    const time = formatDeadline(until, locale)
    return html`<li>${say(locale, 'paymentTo', values)}<br>
      <span class="quiet small">${say(locale, 'waitsUntil', { time })}</span><br>
      <a class="button" href="${url}">${say(locale, 'waitsAnswer')}</a></li>`
  })
  return html`<div class="waiting"><p><strong>${say(locale, 'waitsForOwner')}</strong></p>
    <ul class="history">${items}</ul></div>`
}

/** Returns the name of an app. */
export function nameOf(
  { grant, display, ownKey }: ConnectedApp,
  { locale }: Pick<AppOptions, 'locale'>,
): string {
  return shortName({ client: grant.client, display, ownKey }, locale)
}

/** Returns with which key of the owner an app signs, if it does. */
export function signedWithHtml(
  { ownKey }: Pick<ConnectedApp, 'ownKey'>,
  { locale }: Pick<AppOptions, 'locale'>,
): Html {
  return html`${ownKey && html`<p class="quiet small">${ownKeyHtml(ownKey, locale)}</p>`}`
}

/** Whether an item lets the app pay. */
export function isPaying({ type, actions }: ItemView): boolean {
  return type === 'outgoing-payment' && actions.includes('create')
}

/** Returns the accounts to which an app has access, as their owner knows them. */
export function accountsOf(
  { access }: Pick<GrantView, 'access'>,
  { accounts, locale }: Pick<AppOptions, 'accounts' | 'locale'>,
): string {
  const urls = new Set(access.flatMap(({ identifier }) => identifier ?? []))
  const names = [...urls].map((url) => {
    return accounts.find((each) => isSameUrl(each.url, url))?.publicName || url
  })
  return names.length === 0 ? locale.texts.yourAccount : listed(names, locale)
}

/** Returns a text about an app, with its name and its accounts. */
export function sayOf(
  key: 'changed' | 'removed' | 'removeQuestion',
  app: ConnectedApp,
  options: AppOptions,
): Html {
  return say(options.locale, key, {
    app: nameOf(app, options),
    account: accountsOf(app.grant, options),
  })
}

/** Returns a name for screen readers. It begins with the visible words, by which speech control finds it. */
export function labelOf(key: TextKey, app: ConnectedApp, options: AppOptions): string {
  return `${plain(options.locale, key)}: ${visible(nameOf(app, options))}`
}

/** The last instant that a grant can store: that of a pause without an end. */
export const untilResumed = 253_402_300_799_999

/** Until when an app is paused; 0 if it is not. */
function pausedUntil({ grant }: ConnectedApp, { now }: AppOptions): number {
  const until = grant.conditions?.pausedUntil ?? 0
  return until > now ? until : 0
}

/** Returns a mark for an app that is paused. */
export function pausedBadge(app: ConnectedApp, options: AppOptions): Html {
  const { locale } = options
  const until = pausedUntil(app, options)
  if (until === 0) return html``
  const text =
    until >= untilResumed
      ? say(locale, 'paused')
      : say(locale, 'pausedUntil', { time: formatInstant(until, locale) })
  return html`<p><span class="badge">${text}</span></p>`
}

/** Returns the form that pauses or resumes the payments of an app. */
export function pauseForm(app: ConnectedApp, options: AppOptions): Html {
  if (!app.grant.access.some(({ type }) => type === 'outgoing-payment')) return html``
  const act = pausedUntil(app, options) === 0 ? 'pause' : 'resume'
  return html`<form method="post">${fieldsFor(app, options)}
    <button name="do" value="${act}" aria-label="${labelOf(act, app, options)}">${say(options.locale, act)}</button></form>`
}

/** Returns the hidden fields of a form about an app. */
export function fieldsFor({ grant }: ConnectedApp, { token }: AppOptions): Html {
  return html`${token}<input type="hidden" name="grant" value="${grant.grantId}">`
}

function lastPaymentHtml({ lastPayment }: ConnectedApp, { locale }: AppOptions): Html {
  if (lastPayment === undefined) return html``
  if (lastPayment === null) return say(locale, 'noPayment')
  const amount = amountHtml(lastPayment.debitAmount, locale)
  const date = formatDay(lastPayment.createdAt, locale)
  const key = lastPayment.status === 'failed' ? 'lastPaymentFailed' : 'lastPayment'
  return say(locale, key, { amount, date })
}
