import type { OutgoingPaymentView, QuoteView } from 'open-payments-server'
import type { Handler, HttpResponse } from 'open-payments-server/adapter'
import { readAmount } from './amounts.js'
import { paymentHtml } from './connected-app.js'
import { fieldsOf, queryOf } from './forms.js'
import { html } from './html.js'
import { seeOther } from './layout.js'
import { say } from './locale.js'
import type { PagesOptions } from './options.js'
import { outcomeOf, seeOutcome } from './outcomes.js'
import { ownReceiverOf } from './own-receivers.js'
import { isSameUrl, type OwnedAccount } from './owned-account.js'
import { namedReceivers } from './receivers.js'
import { problemOf, type SendProblem, toLengthMax } from './send.js'
import { isSignedIn, type OwnersVisit, type Site } from './site.js'

/**
 * Returns the handler of the page on which an owner pays somebody. The form makes a quote, whose page shows the price
 * and pays. A quote pays once, so a double click and Back pay once; its page then shows what became of the payment.
 */
export function sendHandler(site: Site): Handler {
  const { options, tokens, screens, notice } = site
  const receiverOf = options.receiverOf ?? ownReceiverOf(options)
  const calls = callsOf(options)
  if (calls === undefined) return site.served(async (visit) => notice(404, 'unknown', visit))
  const { settings, quotes, payments } = calls

  async function form(
    visit: OwnersVisit,
    given: URLSearchParams,
    problem?: SendProblem,
  ): Promise<HttpResponse> {
    const { owner, locale } = visit
    const accounts = await options.accountsOf(owner.id)
    const token = await tokens.field('send', owner.id)
    const screen = screens.send({ locale, accounts, given, problem, token })
    return site.show(screen, visit, { status: problem === undefined ? 200 : 400, place: 'send' })
  }

  /** Prices what the owner typed, and leads to the page of the price. */
  async function check(visit: OwnersVisit, given: URLSearchParams): Promise<HttpResponse> {
    const refused = (problem: SendProblem) => seeOutcome(tokens, visit, problem, { given })
    if (!(await tokens.isValid(visit.request, 'send', visit.owner.id))) return refused('stale')
    const accounts = await options.accountsOf(visit.owner.id)
    const account = accounts.find(({ url }) => url === given.get('account'))
    if (account === undefined) return notice(403, 'notYours', visit)
    const to = receiverUrl(given.get('to') ?? '')
    if (to === undefined) return refused('toUnreadable')
    const typed = given.get('amount')?.trim() ?? ''
    const value = typed === '' ? undefined : readAmount(typed, account, visit.locale)
    if (typed !== '' && (value === undefined || value === '0')) return refused('amountUnreadable')
    const receiver = await settings.receiverFor(to)
    if (receiver === undefined) return refused('toUnknown')
    const { url: walletAddress, assetCode, assetScale } = account
    const quoted = await quotes.create({
      walletAddress,
      receiver,
      ...(value !== undefined && { debitAmount: { value, assetCode, assetScale } }),
    })
    if (!quoted.ok) return refused(problemOf(quoted.refusal))
    return seeOther(`?${new URLSearchParams({ ...typedOf(given), quote: quoted.quote.quoteId })}`)
  }

  async function pay(visit: OwnersVisit, given: URLSearchParams): Promise<HttpResponse> {
    const { owner, request } = visit
    const quoteId = given.get('quote') ?? ''
    const at = { ...typedOf(queryOf(request)), quote: quoteId }
    const refused = (problem: SendProblem) =>
      seeOutcome(tokens, visit, problem, { given: new URLSearchParams(typedOf(queryOf(request))) })
    if (!(await tokens.isValid(request, 'pay', owner.id, quoteId))) return refused('stale')
    const accounts = await options.accountsOf(owner.id)
    const earlier = (await payments.get(quoteId)) ?? (await quotes.get(quoteId))
    if (earlier === undefined) return seeOther(`?${new URLSearchParams(at)}`)
    if (!isOwners(earlier, accounts)) return notice(403, 'notYours', visit)
    const { walletAddress } = earlier
    const paid = await payments.create({ walletAddress, quoteId, resourceOwner: owner.id })
    if (paid.ok || paid.refusal === 'confirmation_required') {
      return seeOther(`?${new URLSearchParams(at)}`)
    }
    return refused(problemOf(paid.refusal))
  }

  /** Shows the price, or what became of the payment. */
  async function quoted(visit: OwnersVisit, quoteId: string): Promise<HttpResponse> {
    const { owner, locale, request } = visit
    const given = new URLSearchParams(typedOf(queryOf(request)))
    const accounts = await options.accountsOf(owner.id)
    const payment = await payments.get(quoteId)
    if (payment !== undefined) {
      return isOwners(payment, accounts) ? paid(visit, payment) : notice(403, 'notYours', visit)
    }
    const waiting = await payments.toConfirm(quoteId)
    if (waiting !== undefined && isOwners(waiting, accounts)) {
      const link = html`<p><a class="button" href="${waiting.url}">${say(locale, 'confirm')}</a></p>`
      return notice(200, 'sendConfirm', visit, { content: link })
    }
    const quote = await quotes.get(quoteId)
    // It may have been paid: the payment is removed before its quote, or with it.
    if (quote === undefined) return notice(404, 'sendGone', visit, { content: again(visit) })
    if (!isOwners(quote, accounts)) return notice(403, 'notYours', visit)
    if (quote.expiresAt <= site.now()) return form(visit, given, 'quote_expired')
    const screen = screens.sendCheck(quote, {
      locale,
      accounts,
      receivers: await receiversOf(quote),
      fields: html`<input type="hidden" name="quote" value="${quoteId}">
        ${await tokens.field('pay', owner.id, quoteId)}`,
      backUrl: `?${given}`,
    })
    return site.show(screen, visit, { place: 'send' })
  }

  async function paid(visit: OwnersVisit, payment: OutgoingPaymentView): Promise<HttpResponse> {
    const line = paymentHtml(payment, await receiversOf(payment), visit)
    const content = html`<p>${line}</p>${again(visit)}`
    return notice(200, answers[payment.status], visit, { content })
  }

  async function receiversOf({
    receiver,
    receiverWalletAddress: walletAddress,
  }: QuoteView | OutgoingPaymentView) {
    const named = await namedReceivers([receiver], receiverOf)
    const isKnown = named.has(receiver) || walletAddress === undefined
    return isKnown ? named : new Map([[receiver, { walletAddress }]])
  }

  return site.served(async (visit) => {
    if (!isSignedIn(visit)) return site.signIn(visit)
    const { request } = visit
    if (request.method === 'POST') {
      const given = fieldsOf(request)
      return given.has('quote') ? pay(visit, given) : check(visit, given)
    }
    const outcome = await outcomeOf<SendProblem>(tokens, visit)
    if (outcome !== undefined) return form(visit, outcome.given, outcome.result)
    const quoteId = queryOf(request).get('quote')
    return quoteId === null ? form(visit, queryOf(request)) : quoted(visit, quoteId)
  })
}

function again({ locale }: OwnersVisit) {
  return html`<p><a href="?">${say(locale, 'sendAgain')}</a></p>`
}

/** What became of a payment, in words. */
const answers = {
  created: 'sending',
  begun: 'sending',
  completed: 'sent',
  failed: 'sendFailed',
} as const

function callsOf({ send: settings, resources }: PagesOptions) {
  const { quotes, outgoingPayments } = resources ?? {}
  const { create, get, toConfirm } = outgoingPayments ?? {}
  const payments = create && get && toConfirm && { create, get, toConfirm }
  return settings && quotes && payments && { settings, quotes, payments }
}

/** What the owner typed, as the query of a page. */
function typedOf(given: URLSearchParams): Record<string, string> {
  const names = ['account', 'to', 'amount'] as const
  return Object.fromEntries(names.map((name) => [name, given.get(name) ?? '']))
}

/** Whether the owner has ordered it, or may: a client's has a client. */
function isOwners(
  { client, walletAddress }: { readonly client?: string; readonly walletAddress: string },
  accounts: readonly OwnedAccount[],
): boolean {
  return client === undefined && accounts.some(({ url }) => isSameUrl(url, walletAddress))
}

/** A name of this machine, where a wallet in development has no https. */
const local = /^(?:localhost|127\.0\.0\.1|\[::1\])(?=[:/]|$)/

/** Reads a wallet address, a payment pointer or the URL of an incoming payment, with or without its scheme. */
function receiverUrl(text: string): string | undefined {
  const typed = text.trim()
  if (typed === '' || typed.length > toLengthMax || /\s/.test(typed)) return undefined
  const isPointer = typed.startsWith('$')
  const rest = isPointer ? typed.slice(1) : typed
  const url = /^https?:\/\//i.test(rest) ? rest : `${local.test(rest) ? 'http' : 'https'}://${rest}`
  if (!URL.canParse(url)) return undefined
  const { protocol, host, pathname, href } = new URL(url)
  if (protocol !== 'https:' && !local.test(host)) return undefined
  return isPointer && pathname === '/' ? `${href}.well-known/pay` : href
}
