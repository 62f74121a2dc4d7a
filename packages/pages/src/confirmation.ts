import type { InteractionView, PaymentToConfirm } from 'open-payments-server'
import { amountHtml } from './amounts.js'
import { aboutName, addressOf, type OwnKey, shortName } from './app-name.js'
import { type Html, html } from './html.js'
import type { Screen } from './layout.js'
import { formatDeadline, type Locale, plain, say } from './locale.js'
import { alertOf } from './notice.js'
import { accountLine, isSameUrl, type OwnedAccount } from './owned-account.js'
import { type Receivers, receiverHtml, receiverName } from './receivers.js'

/** The values that the page that confirms a payment needs in addition to the payment. */
export interface ConfirmationOptions {
  readonly locale: Locale
  /** The accounts of the signed-in owner. */
  readonly accounts: readonly OwnedAccount[]
  /** How to name the app. */
  readonly display?: InteractionView['display'] | undefined
  /** The key of the owner with which the app signs, if its address is one of `accounts`. It then names the app. */
  readonly ownKey?: OwnKey | undefined
  /** The receiver, by the URL of the incoming payment. Default: the page shows the host and the URL. */
  readonly receivers?: Receivers | undefined
  /** Hidden fields with what is shown, and the token of the form. */
  readonly fields: Html
  /** What was wrong with the form that was posted. */
  readonly problem?: 'stale' | undefined
}

/**
 * Returns the page on which an owner confirms one payment, or declines it: the amount, the payer, the receiver, and
 * until when the owner can confirm. It names the app that asks, if it is not the owner's own payment.
 *
 * @example
 * ```ts
 * import { confirmationScreen, formTokens, page } from 'open-payments-pages'
 *
 * const tokens = formTokens(crypto.getRandomValues(new Uint8Array(32)))
 * const payment = await wallet.resources.outgoingPayments.toConfirm('…')
 * if (payment !== undefined) {
 *   const fields = await tokens.field('confirm', payment.paymentId, 'alice')
 *   const response = page(confirmationScreen(payment, { locale, accounts: [], fields }), { locale })
 * }
 * ```
 */
export function confirmationScreen(
  payment: PaymentToConfirm,
  { locale, accounts, display, ownKey, receivers, fields, problem }: ConfirmationOptions,
): Screen {
  const { client, walletAddress, receiver, debitAmount, receiveAmount, until } = payment
  const app = client !== undefined && { client, display, ownKey }
  const values = app && { app: shortName(app, locale) }
  const account = accounts.find(({ url }) => isSameUrl(url, walletAddress))
  const { value, assetCode, assetScale } = debitAmount
  const arrivesAsPaid =
    value === receiveAmount.value &&
    assetCode === receiveAmount.assetCode &&
    assetScale === receiveAmount.assetScale
  const arrives = html`<div><dt>${say(locale, 'rowArrives')}</dt><dd>${amountHtml(receiveAmount, locale)}</dd></div>`
  const content = html`<form method="post" class="card">
    ${problem && alertOf(problem, locale, '#decision')}
    ${fields}
    <h1>${values ? say(locale, 'asksToConfirm', values) : say(locale, 'confirmOwn')}</h1>
    ${
      app &&
      html`<p class="address">${addressOf(app)}</p>
    ${aboutName(app, locale)}`
    }
    <p class="amount"><span>${say(locale, 'pay', { receiver: receiverName(receiver, receivers), amount: amountHtml(debitAmount, locale) })}</span></p>
    <dl>
    <div><dt>${say(locale, 'rowTo')}</dt><dd>${receiverHtml(receiver, receivers)}</dd></div>
    ${!arrivesAsPaid && arrives}
    <div><dt>${say(locale, 'rowAccount')}</dt><dd>${accountLine(walletAddress, account, locale)}</dd></div>
    </dl>
    <p>${say(locale, 'confirmBy', { time: formatDeadline(until, locale) })}</p>
    <div class="buttons"><button class="primary" id="decision" name="decision" value="confirm">
    ${say(locale, 'confirm')}</button>
    <button name="decision" value="decline">${say(locale, 'decline')}</button></div>
    ${values && html`<p class="quiet small">${say(locale, 'returns', values)}</p>`}</form>`
  const title = values ? plain(locale, 'asksToConfirm', values) : plain(locale, 'confirmOwn')
  return { title, content }
}
