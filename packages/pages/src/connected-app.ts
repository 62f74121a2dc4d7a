import type { GrantView, ItemView, OutgoingPaymentView } from 'open-payments-server'
import { describeItem } from './access.js'
import { amountHtml } from './amounts.js'
import { limitHtml } from './app-limits.js'
import { addressOf } from './app-name.js'
import {
  type AppOptions,
  type ConnectedApp,
  fieldsFor,
  isPaying,
  isSpent,
  isUsedUp,
  labelOf,
  nameOf,
  pausedBadge,
  pauseForm,
  sayOf,
  signedWithHtml,
  waitingHtml,
} from './connected-apps.js'
import { type Html, html } from './html.js'
import type { Screen } from './layout.js'
import { type LimitProblem, limitAlert, limitField, limitOf } from './limits.js'
import { formatDay, formatInstant, isolated, say } from './locale.js'
import { alertOf } from './notice.js'
import { ownerLimitsHtml } from './owner-limits.js'
import { payeeHtml, type Receivers } from './receivers.js'
import type { TextKey } from './texts.js'

/** The values that the page of one connected app needs in addition to the app. */
export interface ConnectedAppOptions extends AppOptions {
  /** Its payments, the latest first; absent without a resource server. */
  readonly payments?: readonly OutgoingPaymentView[] | undefined
  /** The URL of the page with its earlier payments. */
  readonly olderUrl?: string | undefined
  /** Whether a form has changed something, or why not. */
  readonly outcome?: 'changed' | 'stale' | 'unchanged' | 'widened' | LimitProblem | undefined
  /** What was posted, to show it again. */
  readonly given?: URLSearchParams | undefined
}

/**
 * Returns the page of one connected app: everything that it may do, what it has paid, and the forms that narrow, pause
 * and end its access.
 *
 * @example
 * ```ts
 * import { connectedAppScreen, html, page } from 'open-payments-pages'
 *
 * for (const app of apps) {
 *   const token = html`<input type="hidden" name="token" value="…">`
 *   const screen = connectedAppScreen(app, { locale, now: Date.now(), accounts: [], token })
 *   const response = page(screen, { locale })
 * }
 * ```
 */
export function connectedAppScreen(app: ConnectedApp, options: ConnectedAppOptions): Screen {
  const { client, access, subject, approvedAt } = app.grant
  const { locale, outcome } = options
  const name = nameOf(app, options)
  const date = approvedAt !== undefined && formatDay(approvedAt, locale)
  const isOver = isUsedUp(app)
  const content = html`${outcome && outcomeHtml(outcome, app, options)}
    <p><a href="?">${say(locale, 'appsAll')}</a></p>
    <section class="card"><h1>${isolated(name)}</h1>
    <p class="address">${addressOf({ client })}</p>
    ${signedWithHtml(app, options)}
    ${date && html`<p class="quiet small">${say(locale, 'since', { date })}</p>`}
    ${isOver ? html`<p><span class="badge">${say(locale, 'usedUp')}</span></p><p>${say(locale, 'usedUpMeaning')}</p>` : pausedBadge(app, options)}
    ${waitingHtml(app, options)}
    ${access.map((item) => itemHtml(item, app, options))}
    ${subject && html`<ul><li>${say(locale, 'learns', { id: subject.id })}</li></ul>`}
    ${conditionsHtml(app.grant, options)}
    ${!isOver && ownerLimitsHtml(app, options)}
    <div class="actions">${!isOver && pauseForm(app, options)}
    <details id="remove"><summary aria-label="${labelOf('remove', app, options)}">${say(locale, 'remove')}</summary>
      <p>${sayOf('removeQuestion', app, options)}</p>
      <form method="post">${fieldsFor(app, options)}<button class="danger" name="do" value="revoke">${say(locale, 'removeApp', { app: name })}</button></form></details>
    </div></section>
    ${historyHtml(options)}`
  return { title: name, content }
}

function outcomeHtml(
  outcome: NonNullable<ConnectedAppOptions['outcome']>,
  app: ConnectedApp,
  options: ConnectedAppOptions,
): Html {
  const { locale } = options
  if (typeof outcome === 'object') return limitAlert(outcome, locale)
  if (outcome === 'stale' || outcome === 'widened') return alertOf(outcome, locale)
  if (outcome === 'unchanged') return alertOf('notNarrower', locale)
  return html`<p class="done" role="status">${sayOf('changed', app, options)}</p>`
}

/** Everything that an item grants, the form that lowers its limit, and the one that removes it. */
function itemHtml(item: ItemView, app: ConnectedApp, options: ConnectedAppOptions): Html {
  const { locale } = options
  const { label } = item
  const lines = describeItem(item, options).map((line) => html`<li>${line}</li>`)
  return html`${isPaying(item) ? limitHtml(item, app, options) : label && html`<p class="quiet small">${say(locale, 'token', { label })}</p>`}
    <ul>${lines}</ul>
    ${!isSpent(item, app) && lowerForm(item, app, options)}
    ${app.grant.access.length > 1 && removeItemForm(item, app, options, say(locale, 'removeItem'))}`
}

function lowerForm(item: ItemView, app: ConnectedApp, options: ConnectedAppOptions): Html {
  const limit = limitOf(item)
  if (limit === undefined) return html``
  const { locale, outcome, given } = options
  const field = limitFieldOf(item)
  const problem = typeof outcome === 'object' && outcome.field === field ? outcome : undefined
  const typed = problem && given?.get('most')
  return html`<details${problem && html` open`}><summary>${say(locale, 'change')}</summary><form method="post">
    ${itemFields(item, app, options)}
    ${limitField({ field, name: 'most', limit, typed, problem, isRequired: true }, locale)}
    <p><button name="do" value="lower">${say(locale, 'lower')}</button></p></form></details>`
}

/** Returns the id of the field for the limit of an item. */
export function limitFieldOf({ itemId = '' }: ItemView): string {
  return `limit-${itemId}`
}

function itemFields(item: ItemView, app: ConnectedApp, options: ConnectedAppOptions): Html {
  return html`${fieldsFor(app, options)}<input type="hidden" name="item" value="${item.itemId ?? ''}">`
}

function removeItemForm(
  item: ItemView,
  app: ConnectedApp,
  options: ConnectedAppOptions,
  text: Html,
): Html {
  return html`<form method="post">${itemFields(item, app, options)}
    <button name="do" value="remove">${text}</button></form>`
}

function conditionsHtml({ conditions }: GrantView, { locale }: ConnectedAppOptions): Html {
  const { paymentMax, receivers = [] } = conditions ?? {}
  if (paymentMax === undefined && receivers.length === 0) return html``
  return html`<ul>${paymentMax && html`<li>${say(locale, 'paymentMax', { amount: amountHtml(paymentMax, locale) })}</li>`}
    ${receivers.map((receiver) => html`<li>${say(locale, 'onlyTo', { receiver })}</li>`)}</ul>`
}

function historyHtml({ payments, olderUrl, receivers, ...options }: ConnectedAppOptions): Html {
  const { locale } = options
  if (payments === undefined) return html``
  const items = payments.map(
    (payment) => html`<li>${paymentHtml(payment, receivers, options)}</li>`,
  )
  return html`<section class="card"><h2>${say(locale, 'history')}</h2>
    ${items.length === 0 ? html`<p class="quiet">${say(locale, 'noPayment')}</p>` : html`<ul class="history">${items}</ul>`}
    ${olderUrl && html`<p><a href="${olderUrl}">${say(locale, 'historyOlder')}</a></p>`}</section>`
}

const states = {
  created: 'paymentCreated',
  begun: 'paymentBegun',
  completed: 'paymentCompleted',
  failed: 'paymentFailed',
} as const satisfies Record<OutgoingPaymentView['status'], TextKey>

/** The states of a payment of which nobody knows yet whether a part arrives. */
const statesInDoubt = {
  ...states,
  begun: 'paymentBegunInDoubt',
  completed: 'paymentCompletedInDoubt',
  failed: 'paymentFailedInDoubt',
} as const satisfies Record<OutgoingPaymentView['status'], TextKey>

/** Returns a payment with the amount that it debited, or, until it ends, the maximum that it may debit. */
export function paymentHtml(
  payment: OutgoingPaymentView,
  receivers: Receivers | undefined,
  { locale }: Pick<ConnectedAppOptions, 'locale'>,
): Html {
  const { status, inDoubt } = payment
  const values = {
    amount: amountHtml(status === 'completed' ? payment.sentAmount : payment.debitAmount, locale),
    receiver: payeeHtml(payment, receivers),
  }
  const date = formatInstant(payment.createdAt, locale)
  const sent = amountHtml(payment.sentAmount, locale)
  const amount = amountHtml(payment.debitAmount, locale)
  const state =
    inDoubt === undefined
      ? say(locale, states[status], { date, sent })
      : say(locale, statesInDoubt[status], {
          ...{ date, sent, amount },
          checked: amountHtml(inDoubt.amount, locale),
        })
  return html`${say(locale, 'paymentTo', values)}<br>
    <span class="quiet small">${state}</span>`
}
