import type { PaymentToConfirm } from 'open-payments-server'
import type { Handler, HttpResponse } from 'open-payments-server/adapter'
import { paymentHtml } from './connected-app.js'
import { fieldsOf } from './forms.js'
import { html } from './html.js'
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
    const { client, clientKey } = payment
    const accounts = await options.accountsOf(owner.id)
    if (!isOwnedBy(owner.id, payment, accounts)) return notice(403, 'notYours', visit)
    const app = client !== undefined && {
      ownKey: await ownKeysOf(accounts, options.keys)({ client, clientKey }),
      display: await options.auth.grants.displayOf(client),
    }
    const screen = screens.confirmation(payment, {
      locale,
      accounts,
      ...app,
      receivers: await receiversOf(payment),
      fields: await fieldsFor(payment, owner.id),
      problem,
    })
    return site.show(screen, visit, { status: problem === undefined ? 200 : 400 })
  }

  /** Says to its owner what became of a payment that no longer waits. */
  async function decided(paymentId: string, visit: OwnersVisit): Promise<HttpResponse> {
    const payment = await options.resources?.outgoingPayments.get?.(paymentId)
    if (payment === undefined) return notice(404, 'notWaiting', visit)
    const { grantId, walletAddress } = payment
    const grant = grantId === undefined ? undefined : await options.auth.grants.get(grantId)
    const asked = { resourceOwner: grant?.resourceOwner, walletAddress }
    const accounts = await options.accountsOf(visit.owner.id)
    if (!isOwnedBy(visit.owner.id, asked, accounts)) return notice(404, 'notWaiting', visit)
    const line = paymentHtml(payment, await receiversOf(payment), visit)
    return notice(200, 'wasDecided', visit, { content: html`<p>${line}</p>` })
  }

  async function receiversOf(
    payment: Pick<PaymentToConfirm, 'receiver' | 'receiverWalletAddress'>,
  ): Promise<Receivers> {
    const { receiver, receiverWalletAddress: walletAddress } = payment
    const named = await namedReceivers([receiver], receiverOf)
    const isKnown = named.has(receiver) || walletAddress === undefined
    return isKnown ? named : new Map([[receiver, { walletAddress }]])
  }

  async function decide(paymentId: string, visit: OwnersVisit): Promise<HttpResponse> {
    const { request, owner } = visit
    const fields = fieldsOf(request)
    const [shown, decision] = [fields.get('shown') ?? '', fields.get('decision')]
    const isShown = await tokens.isValid(request, 'confirm', owner.id, paymentId, shown)
    if (!isShown || (decision !== 'confirm' && decision !== 'decline')) {
      return seeOutcome(tokens, visit, 'stale')
    }
    const resourceOwner = owner.id
    const result = await (decision === 'confirm'
      ? confirm(paymentId, { resourceOwner, ...(JSON.parse(shown) as Shown) })
      : decline(paymentId, { resourceOwner }))
    const done = decision === 'confirm' ? 'confirmed' : 'declined'
    return seeOutcome(tokens, visit, result.ok ? done : result.refusal)
  }

  return site.served(async (visit) => {
    const [path = ''] = visit.request.url.split('?', 1)
    const paymentId = path.split('/').at(-1) ?? ''
    const isPosted = visit.request.method === 'POST'
    const payment = await toConfirm(paymentId)
    if (!isSignedIn(visit)) return site.signIn(visit)
    if (isPosted) return decide(paymentId, visit)
    const outcome = await outcomeOf<string>(tokens, visit)
    if (outcome !== undefined && outcome.result !== 'stale') {
      return notice(...(answers[outcome.result] ?? [409, 'notPaid']), visit)
    }
    if (payment === undefined) return decided(paymentId, visit)
    return ask(payment, visit, outcome && 'stale')
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
