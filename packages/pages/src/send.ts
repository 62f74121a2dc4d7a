import type { QuoteView } from 'open-payments-server'
import { amountHtml, formatAmount } from './amounts.js'
import { type Html, html } from './html.js'
import type { Screen } from './layout.js'
import { formatDeadline, type Locale, plain, say, visible } from './locale.js'
import { alertOf } from './notice.js'
import { accountLine, isSameUrl, type OwnedAccount } from './owned-account.js'
import { type Receivers, receiverHtml, receiverName } from './receivers.js'
import type { TextKey } from './texts.js'

/** How the host finds whom an owner pays. */
export interface SendSettings {
  /**
   * Resolves to the URL of the incoming payment to pay: for a wallet address, a new one, without an amount, that you
   * create there, such as with `createReceiver` of open-payments-client; for the URL of an incoming payment, this one.
   * Resolves to `undefined` if nobody can be paid there, or if the other wallet does not answer.
   *
   * @param to an https URL, or an http URL on this machine. A payment pointer was made a URL.
   */
  receiverFor(to: string): Promise<string | undefined>
}

/**
 * Why nothing was paid, or no price was shown: what the owner wrote cannot be read, nobody can be paid there, a refusal
 * of the library, or `stale`, a form that was sent before or is too old. Minor versions add members.
 */
export type SendProblem =
  | 'toUnreadable'
  | 'toUnknown'
  | 'receiver_invalid'
  | 'amountUnreadable'
  | 'amount_missing'
  | 'amount_invalid'
  | 'amount_too_small'
  | 'funds_insufficient'
  | 'quote_expired'
  | 'notPaid'
  | 'stale'

/** The values that the page on which an owner sends money needs. */
export interface SendOptions {
  readonly locale: Locale
  /** The accounts of the owner. */
  readonly accounts: readonly OwnedAccount[]
  /** The fields of the link or of the form. */
  readonly given: URLSearchParams
  readonly problem?: SendProblem | undefined
  /** A hidden field with the token of the form. */
  readonly token: Html
}

/**
 * Returns the page on which an owner says whom to pay, and how much. It pays nothing: the price comes first.
 *
 * @example
 * ```ts
 * import { html, page, sendScreen } from 'open-payments-pages'
 *
 * const screen = sendScreen({
 *   locale,
 *   accounts: [{ url: 'https://wallet.example/alice', assetCode: 'USD', assetScale: 2 }],
 *   given: new URLSearchParams(),
 *   token: html`<input type="hidden" name="token" value="…">`,
 * })
 * const response = page(screen, { locale })
 * ```
 */
export function sendScreen({ locale, accounts, given, problem, token }: SendOptions): Screen {
  const refused = problem === undefined || problem === 'stale' ? undefined : problems[problem]
  const text = refused && say(locale, refused.text, { example: exampleOf(accounts, given, locale) })
  const problemOf = (field: SendField) =>
    refused?.field === field && html`<p class="problem" id="${field}-problem">${text}</p>`
  const markOf = (field: SendField, hint?: string) => {
    const ids = [...(refused?.field === field ? [`${field}-problem`] : []), ...(hint ? [hint] : [])]
    return html`${refused?.field === field && html` aria-invalid="true"`}${ids.length > 0 && html` aria-describedby="${ids.join(' ')}"`}`
  }
  const choices = accounts.map(
    ({ url, publicName, assetCode }) =>
      html`<option value="${url}"${isSameUrl(url, given.get('account') ?? '') && html` selected`}>${publicName || url} (${assetCode})</option>`,
  )
  const content = html`${problem === 'stale' && alertOf('stale', locale)}
    ${
      refused &&
      html`<div class="error" role="alert" tabindex="-1" autofocus><h2>${say(locale, 'sendRefused')}</h2>
    <p><a href="#${refused.field}">${text}</a></p></div>`
    }
    <form method="post" class="card" autocomplete="off">${token}
    <h1>${say(locale, 'sendTitle')}</h1>
    <label for="account">${say(locale, 'rowAccount')}</label>
    <select id="account" name="account">${choices}</select>
    <label for="to">${say(locale, 'rowTo')}</label>${problemOf('to')}
    <input id="to" name="to"${markOf('to', 'to-hint')} required maxlength="${toLengthMax}" dir="ltr" autocapitalize="none" autocorrect="off" spellcheck="false" value="${visible(given.get('to') ?? '')}">
    <p class="quiet small" id="to-hint">${say(locale, 'sendToHint')}</p>
    <label for="amount">${say(locale, 'sendAmount')}</label>${problemOf('amount')}
    <input id="amount" name="amount"${markOf('amount', 'amount-hint')} inputmode="decimal" maxlength="40" value="${visible(given.get('amount') ?? '')}">
    <p class="quiet small" id="amount-hint">${say(locale, 'sendAmountHint')}</p>
    <div class="buttons"><button class="primary" id="check">${say(locale, 'sendCheck')}</button></div></form>`
  return { title: plain(locale, 'sendTitle'), content }
}

/** The most characters of what an owner types as the receiver. */
export const toLengthMax = 500

/** A number in the asset of the chosen account, as the language writes it. */
function exampleOf(
  accounts: readonly OwnedAccount[],
  given: URLSearchParams,
  locale: Locale,
): string {
  const account = accounts.find(({ url }) => url === given.get('account')) ?? accounts[0]
  const { assetCode, assetScale } = account ?? { assetCode: 'USD', assetScale: 2 }
  return formatAmount({ value: `25${'0'.repeat(assetScale)}`, assetCode, assetScale }, locale)
}

/** The values that the page with the price needs in addition to the quote. */
export interface SendCheckOptions {
  readonly locale: Locale
  readonly accounts: readonly OwnedAccount[]
  readonly receivers?: Receivers | undefined
  /** Hidden fields with the quote, and the token of the form. */
  readonly fields: Html
  /** Where the owner goes who does not want to pay. */
  readonly backUrl: string
}

/**
 * Returns the page that shows the price of a payment to the owner, whose button pays exactly that.
 *
 * @example
 * ```ts
 * import { html, page, sendCheckScreen } from 'open-payments-pages'
 *
 * const quoted = await wallet.resources.quotes.get('…')
 * if (quoted !== undefined) {
 *   const fields = html`<input type="hidden" name="token" value="…">`
 *   const options = { locale, accounts: [], fields, backUrl: '/send' }
 *   const response = page(sendCheckScreen(quoted, options), { locale })
 * }
 * ```
 */
export function sendCheckScreen(
  { walletAddress, receiver, debitAmount, receiveAmount, expiresAt }: QuoteView,
  { locale, accounts, receivers, fields, backUrl }: SendCheckOptions,
): Screen {
  const account = accounts.find(({ url }) => isSameUrl(url, walletAddress))
  const debited = formatAmount(debitAmount, locale)
  const arrives = html`<div><dt>${say(locale, 'rowArrives')}</dt><dd>${amountHtml(receiveAmount, locale)}</dd></div>`
  const content = html`<form method="post" class="card">${fields}
    <h1>${say(locale, 'sendCheckTitle')}</h1>
    <p class="amount"><span>${say(locale, 'pay', { receiver: receiverName(receiver, receivers), amount: amountHtml(debitAmount, locale) })}</span></p>
    <dl>
    <div><dt>${say(locale, 'rowTo')}</dt><dd>${receiverHtml(receiver, receivers)}</dd></div>
    ${formatAmount(receiveAmount, locale) !== debited && arrives}
    <div><dt>${say(locale, 'rowAccount')}</dt><dd>${accountLine(walletAddress, account, locale)}</dd></div>
    </dl>
    <p>${say(locale, 'sendUntil', { time: formatDeadline(expiresAt, locale) })}</p>
    <div class="buttons"><button class="primary">${say(locale, 'sendPay')}</button></div>
    <p><a href="${backUrl}">${say(locale, 'sendBack')}</a></p></form>`
  return { title: plain(locale, 'sendCheckTitle'), content }
}

type SendField = 'to' | 'amount' | 'check'

/** What the page says, beside the field that the owner has to change. */
const problems = {
  toUnreadable: { field: 'to', text: 'sendToUnreadable' },
  toUnknown: { field: 'to', text: 'sendToUnknown' },
  receiver_invalid: { field: 'to', text: 'sendToRefused' },
  amountUnreadable: { field: 'amount', text: 'sendAmountUnreadable' },
  amount_missing: { field: 'amount', text: 'sendAmountMissing' },
  amount_invalid: { field: 'amount', text: 'sendAmountRefused' },
  amount_too_small: { field: 'amount', text: 'sendAmountSmall' },
  funds_insufficient: { field: 'amount', text: 'noFunds' },
  quote_expired: { field: 'check', text: 'sendExpired' },
  notPaid: { field: 'check', text: 'notPaid' },
} as const satisfies Record<Exclude<SendProblem, 'stale'>, { field: SendField; text: TextKey }>

/** Returns what the page says of a refusal of the library. */
export function problemOf(refusal: string): SendProblem {
  return Object.hasOwn(problems, refusal) ? (refusal as SendProblem) : 'notPaid'
}
