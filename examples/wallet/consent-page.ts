import type {
  Handler,
  HostResult,
  Interactions,
  InteractionView,
  TokenView,
} from 'open-payments-server'
import type { HttpRequest, HttpResponse } from 'open-payments-server/adapter'
import { fitsAccount } from 'open-payments-server/core'
import type { Account, Accounts } from './accounts.js'
import { appName, isolated, type Locale, localeFor } from './locale.js'
import { escapeHtml, fieldOf, list, notice, page, seeOther, wrongMethod } from './page.js'
import { describeAccess, describeTotal } from './plain-language.js'
import { isForeignForm, type Session } from './session.js'

/**
 * The page where an account's owner decides. Because this is a demo, it signs the browser in as the owner of
 * the account: a real wallet uses its own login here.
 */
export function consentPage(
  interactions: Interactions,
  accounts: Pick<Accounts, 'all' | 'ownedBy'>,
  session: Session,
): Handler {
  function show(view: InteractionView, locale: Locale): HttpResponse {
    const { status, issuedAt } = view
    if (status === 'interaction-expired') return notice(410, 'expired', locale)
    const canDecide = status === 'pending' || (status === 'approved' && issuedAt === undefined)
    if (!canDecide) return notice(410, 'answered', locale)
    const owner = ownerOf(accounts, view)
    const response = question(200, view, owner, accounts.ownedBy(owner), locale)
    return { ...response, headers: { ...response.headers, 'set-cookie': session.cookieFor(owner) } }
  }

  async function decide(
    view: InteractionView,
    request: HttpRequest,
    locale: Locale,
  ): Promise<HttpResponse> {
    const owner = session.ownerOf(request)
    if (owner === undefined || isForeignForm(request)) return notice(403, 'signedOut', locale)
    if (owner !== ownerOf(accounts, view)) return notice(403, 'notYours', locale)
    const decision = fieldOf(request, 'decision')
    const owned = accounts.ownedBy(owner)
    if (decision !== 'approve' && decision !== 'deny') {
      return question(400, view, owner, owned, locale)
    }
    const account = view.needAccount.length === 0 ? undefined : fieldOf(request, 'account')
    const approval = { resourceOwner: owner, walletAddresses: owned, ...(account && { account }) }
    const result =
      decision === 'approve'
        ? await interactions.approve(view.id, approval)
        : await interactions.deny(view.id, { resourceOwner: owner })
    return outcome(result, locale)
  }

  return async (request) => {
    const id = request.url.split('?', 1)[0]?.slice('/consent/'.length) ?? ''
    const view = await interactions.get(id)
    if (view === undefined) return notice(404, 'unknown', localeFor(request))
    const [account] = accounts.ownedBy(ownerOf(accounts, view))
    const locale = localeFor(request, account?.locale)
    if (request.method === 'GET' || request.method === 'HEAD') return show(view, locale)
    return request.method === 'POST' ? decide(view, request, locale) : wrongMethod(locale)
  }
}

function ownerOf({ all }: Pick<Accounts, 'all'>, { access, subject }: InteractionView): string {
  const [first] = all
  const named = all.find(
    ({ url }) => url === subject?.id || access.some(({ identifier }) => identifier === url),
  )
  return (named ?? first)?.owner ?? ''
}

function outcome(result: HostResult<{ readonly redirect?: string }>, locale: Locale): HttpResponse {
  if (!result.ok) {
    const status = result.refusal === 'not_the_owner' ? 403 : 409
    const reason = `<p lang="en" dir="ltr">${escapeHtml(result.reason)}.</p>`
    return notice(status, 'failed', locale, reason)
  }
  return result.redirect === undefined ? notice(200, 'done', locale) : seeOther(result.redirect)
}

/** The page with the question, and with an error above it after a form without a decision. */
function question(
  status: 200 | 400,
  { client, display, tokens, totals, subject, finishUri, needAccount }: InteractionView,
  owner: string,
  owned: readonly Account[],
  locale: Locale,
): HttpResponse {
  const { messages } = locale
  const said = messages.consent
  const text = (sentence: string) => `<p>${escapeHtml(sentence)}</p>`
  const sums = totals.flatMap((total) => describeTotal(total, locale) ?? [])
  const fitting = owned.filter((each) => needAccount.every((item) => fitsAccount(item, each)))
  const canApprove = needAccount.length === 0 || fitting.length > 0
  const place = finishUri && isolated(placeOf(new URL(finishUri)), messages)
  const content = `${status === 400 ? error(locale) : ''}
    ${text(said.signedIn(isolated(owner, messages)))}
    <p><small>${escapeHtml(said.demo)}</small></p>
    <form method="post">
      ${text(said.asks(appName(client, display, messages)))}
      ${tokens.map((token) => tokenAccess(token, locale)).join('')}
      ${subject ? list([messages.subject(isolated(subject.id, messages))]) : ''}
      ${sums.map((sum) => text(`${sum}.`)).join('')}
      ${needAccount.length === 0 ? '' : choice(fitting, locale)}
      ${owned
        .flatMap((each) => misfit(each, needAccount, locale) ?? [])
        .map(text)
        .join('')}
      ${text(place ? said.returnsTo(place) : said.returns)}
      <div class="buttons">
        ${canApprove ? `<button id="decision" name="decision" value="approve">${escapeHtml(said.approve)}</button>` : ''}
        <button ${canApprove ? '' : 'id="decision" '}name="decision" value="deny">${escapeHtml(said.deny)}</button>
      </div>
    </form>`
  return page(status, said.title, content, { locale, finishUri })
}

/** The question for which account the access is, where the app has not said it. */
function choice(fitting: readonly Account[], { messages }: Locale): string {
  const { account, noAccount } = messages.consent
  if (fitting.length === 0) return `<p><strong>${escapeHtml(noAccount)}</strong></p>`
  const options = fitting.map(({ url, assetCode }) => {
    const name = `${isolated(url, messages)} (${assetCode})`
    return `<option value="${escapeHtml(url)}">${escapeHtml(name)}</option>`
  })
  return `<p><label for="account">${escapeHtml(account)}</label><br>
    <select id="account" name="account">${options.join('')}</select></p>`
}

/** Says why an account cannot be chosen, or returns `undefined` if it can. */
function misfit(
  account: Account,
  needAccount: InteractionView['needAccount'],
  { messages }: Locale,
): string | undefined {
  const limit = needAccount.find((item) => !fitsAccount(item, account))?.limits?.debitAmount
  if (limit === undefined) return undefined
  const url = isolated(account.url, messages)
  return messages.consent.misfit(url, account.assetCode, limit.assetCode)
}

/** A native app has a scheme of its own and no host. */
function placeOf({ host, protocol }: URL): string {
  return host || protocol
}

/** A summary that takes the focus, and leads to the buttons. */
function error({ messages }: Locale): string {
  const [title, text] = messages.notices.undecided
  return `<div class="error" role="alert" tabindex="-1" autofocus>
    <h2>${escapeHtml(title)}</h2><p><a href="#decision">${escapeHtml(text)}</a></p></div>`
}

/** Returns what a token permits. The label of one of several tokens is text that the app chose. */
function tokenAccess({ label, access }: TokenView, locale: Locale): string {
  const { messages } = locale
  const title = label === undefined ? '' : messages.consent.token(isolated(label, messages))
  const heading = title && `<h2>${escapeHtml(title)}</h2>`
  return heading + access.map((item) => list(describeAccess(item, locale))).join('')
}
