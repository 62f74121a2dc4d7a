import type { PaymentToConfirm } from 'open-payments-server'
import type { Handler, HttpResponse } from 'open-payments-server/adapter'
import { addressOf, shortName } from './app-name.js'
import { paymentHtml } from './connected-app.js'
import { fieldsOf } from './forms.js'
import { html } from './html.js'
import { formatDeadline, say } from './locale.js'
import { limitsUrlAt } from './navigation.js'
import type { NoticeName } from './notice.js'
import type { PagesOptions } from './options.js'
import { outcomeOf, seeOutcome } from './outcomes.js'
import { ownKeysOf } from './own-keys.js'
import { ownReceiverOf } from './own-receivers.js'
import { isSameUrl, type OwnedAccount } from './owned-account.js'
import { namedReceivers, type Receivers } from './receivers.js'
import { isSignedIn, type OwnersVisit, type Site } from './site.js'

type AskedOwner = Pick<PaymentToConfirm, 'walletAddress'> & {
  readonly resourceOwner?: string | undefined
}
type Shown = Pick<PaymentToConfirm, 'receiver' | 'debitAmount' | 'receiveAmount'>
type Asking = { readonly [Name in 'client' | 'clientKey']?: PaymentToConfirm[Name] | undefined }

/** What became of the owner's answer to a payment, and the app that asked for it, as far as it still waited. */
interface Answered extends Asking {
  readonly result: string
  /** Whether the owner ordered the payment, without an app. */
  readonly isOwn?: boolean
}

/** Returns the handler of the page on which owners confirm single payments. */
export function confirmationHandler(site: Site): Handler {
  const { options, tokens, screens, notice } = site
  const receiverOf = options.receiverOf ?? ownReceiverOf(options)
  const calls = callsOf(options)
  if (calls === undefined) return site.served(async (visit) => notice(404, 'unknown', visit))
  const { toConfirm, confirm, decline } = calls

  /** The form contains what is shown, and its token is for exactly that. */
  async function fieldsFor(payment: PaymentToConfirm, ownerId: string) {
    const { paymentId, receiver, debitAmount, receiveAmount } = payment
    const shown = JSON.stringify({ receiver, debitAmount, receiveAmount } satisfies Shown)
    return html`<input type="hidden" name="shown" value="${shown}">
      ${await tokens.field('confirm', ownerId, paymentId, shown)}`
  }

  async function ask(
    payment: PaymentToConfirm,
    visit: OwnersVisit,
    problem?: 'stale',
  ): Promise<HttpResponse> {
    const { owner, locale } = visit
    const accounts = await options.accountsOf(owner.id)
    if (!isOwnedBy(owner.id, payment, accounts)) return notice(403, 'notYours', visit)
    const screen = screens.confirmation(payment, {
      locale,
      accounts,
      ...(await appOf(payment, accounts)),
      receivers: await receiversOf(payment),
      fields: await fieldsFor(payment, owner.id),
      problem,
    })
    return site.show(screen, visit, { status: problem === undefined ? 200 : 400 })
  }

  async function appOf({ client, clientKey }: Asking, accounts: readonly OwnedAccount[]) {
    if (client === undefined) return undefined
    const [ownKey, display] = await Promise.all([
      ownKeysOf(accounts, options.keys)({ client, clientKey }),
      options.auth.grants.displayOf(client),
    ])
    return { client, ownKey, display }
  }

  /** Resolves to a payment that no longer waits, for its owner alone, and to its description. */
  async function madeFor({ owner, locale }: OwnersVisit, paymentId: string) {
    const payment = await options.resources?.outgoingPayments.get?.(paymentId)
    if (payment === undefined) return undefined
    const { grantId, walletAddress } = payment
    const grant = grantId === undefined ? undefined : await options.auth.grants.get(grantId)
    const asked = { resourceOwner: grant?.resourceOwner, walletAddress }
    const accounts = await options.accountsOf(owner.id)
    if (!isOwnedBy(owner.id, asked, accounts)) return undefined
    const line = paymentHtml(payment, await receiversOf(payment), { locale })
    return { payment, line: html`<p>${line}</p>` }
  }

  /** Says that a payment was not made now, and leads to its next answer, and to the limit that is in the way. */
  function stillWaits(
    { until }: PaymentToConfirm,
    result: string,
    visit: OwnersVisit,
  ): HttpResponse {
    const { locale } = visit
    const { accountLimits, connectedAppsUrl } = options
    const isOverLimit = result === 'account_limit_exceeded'
    const limitsUrl =
      isOverLimit && accountLimits && connectedAppsUrl && limitsUrlAt(connectedAppsUrl)
    const content = html`<p><a class="button" href="?">${say(locale, 'waitsAnswer')}</a></p>
      <p class="quiet small">${say(locale, 'waitsUntil', { time: formatDeadline(until, locale) })}</p>
      ${limitsUrl && html`<p><a href="${limitsUrl}">${say(locale, 'accountLimits')}</a></p>`}`
    return notice(409, isOverLimit ? 'overLimit' : 'broken', visit, { content })
  }

  /** Says to its owner what an answer has led to, and which app waits for it. */
  async function answered(
    { result, isOwn, ...asking }: Answered,
    paymentId: string,
    visit: OwnersVisit,
  ): Promise<HttpResponse> {
    const { owner, locale } = visit
    const waiting = Object.hasOwn(answers, result) ? undefined : await toConfirm(paymentId)
    if (waiting !== undefined) return stillWaits(waiting, result, visit)
    const [status, name] = answers[result] ?? ([409, 'notPaid'] as const)
    const made = name === 'confirmed' ? await madeFor(visit, paymentId) : undefined
    const accounts = await options.accountsOf(owner.id)
    const app = await appOf(made?.payment ?? asking, accounts)
    const sendUrl = isOwn && options.sendUrl
    const back = app
      ? html`<p>${say(locale, 'returnTo', { app: shortName(app, locale) })}<br>
        <span class="address">${addressOf(app)}</span></p>`
      : sendUrl && html`<p><a href="${sendUrl}">${say(locale, 'sendAgain')}</a></p>`
    return notice(status, name, visit, { content: html`${made?.line}${back}` })
  }

  /** Says to its owner what became of a payment that no longer waits. */
  async function decided(paymentId: string, visit: OwnersVisit): Promise<HttpResponse> {
    const made = await madeFor(visit, paymentId)
    return made === undefined
      ? notice(404, 'notWaiting', visit)
      : notice(200, 'wasDecided', visit, { content: made.line })
  }

  async function receiversOf(
    payment: Pick<PaymentToConfirm, 'receiver' | 'receiverWalletAddress'>,
  ): Promise<Receivers> {
    const { receiver, receiverWalletAddress: walletAddress } = payment
    const named = await namedReceivers([receiver], receiverOf)
    const isKnown = named.has(receiver) || walletAddress === undefined
    return isKnown ? named : new Map([[receiver, { walletAddress }]])
  }

  async function decide(
    paymentId: string,
    payment: PaymentToConfirm | undefined,
    visit: OwnersVisit,
  ): Promise<HttpResponse> {
    const { request, owner } = visit
    const { client, clientKey } = payment ?? {}
    const fields = fieldsOf(request)
    const [shown, decision] = [fields.get('shown') ?? '', fields.get('decision')]
    const isShown = await tokens.isValid(request, 'confirm', owner.id, paymentId, shown)
    if (!isShown || (decision !== 'confirm' && decision !== 'decline')) {
      return seeOutcome(tokens, visit, { result: 'stale' })
    }
    const resourceOwner = owner.id
    const result = await (decision === 'confirm'
      ? confirm(paymentId, { resourceOwner, ...(JSON.parse(shown) as Shown) })
      : decline(paymentId, { resourceOwner }))
    const done = decision === 'confirm' ? 'confirmed' : 'declined'
    const outcome: Answered = {
      ...{ result: result.ok ? done : result.refusal, client, clientKey },
      isOwn: payment !== undefined && client === undefined,
    }
    return seeOutcome(tokens, visit, outcome)
  }

  return site.served(async (visit) => {
    const [path = ''] = visit.request.url.split('?', 1)
    const paymentId = path.split('/').at(-1) ?? ''
    const isPosted = visit.request.method === 'POST'
    const payment = await toConfirm(paymentId)
    if (!isSignedIn(visit)) return site.signIn(visit)
    if (isPosted) return decide(paymentId, payment, visit)
    const { result: answer } = (await outcomeOf<Answered>(tokens, visit)) ?? {}
    if (answer !== undefined && answer.result !== 'stale') return answered(answer, paymentId, visit)
    if (payment === undefined) return decided(paymentId, visit)
    return ask(payment, visit, answer && 'stale')
  })
}

/** Whether a payment waits, or waited, for this owner: who consented to its grant, or else who has the account. */
function isOwnedBy(
  ownerId: string,
  { resourceOwner, walletAddress }: AskedOwner,
  accounts: readonly OwnedAccount[],
): boolean {
  if (resourceOwner !== undefined) return resourceOwner === ownerId
  return accounts.some(({ url }) => isSameUrl(url, walletAddress))
}

function callsOf({ resources }: PagesOptions) {
  const { toConfirm, confirm, decline } = resources?.outgoingPayments ?? {}
  return toConfirm && confirm && decline && { toConfirm, confirm, decline }
}

/** The answers to decisions: what was done, or why nothing was. */
const answers: Readonly<Record<string, readonly [status: number, name: NoticeName]>> = {
  confirmed: [200, 'confirmed'],
  declined: [200, 'declined'],
  payment_unknown: [404, 'notWaiting'],
  not_the_owner: [403, 'notYours'],
  payment_confirmed: [409, 'confirmed'],
  confirmation_declined: [409, 'declined'],
  confirmation_expired: [410, 'answeredLate'],
  funds_insufficient: [409, 'noFunds'],
}
