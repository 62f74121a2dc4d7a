import type {
  Handler,
  HttpRequest,
  HttpResponse,
  InteractionResult,
  Interactions,
  InteractionView,
} from 'open-payments-server'
import type { Accounts } from './accounts.js'
import { escapeHtml, fieldOf, page, seeOther, wrongMethod } from './page.js'
import { describeAccess } from './plain-language.js'
import type { Session } from './session.js'

/**
 * The page where an account's owner decides. Because this is a demo, it signs the browser in as the owner of
 * the account: a real wallet uses its own login here.
 */
export function consentPage(
  interactions: Interactions,
  accounts: Accounts,
  session: Session,
): Handler {
  function show(view: InteractionView): HttpResponse {
    if (view.state === 'expired') return page(410, 'Too late', '<p>This request has expired.</p>')
    if (view.state === 'denied' || view.state === 'closed') {
      return page(
        410,
        'Done',
        '<p>You have already answered this request. You can close this page.</p>',
      )
    }
    const owner = ownerOf(accounts, view)
    const response = page(200, 'Do you approve?', question(view, owner), view.finishUri)
    return { ...response, headers: { ...response.headers, 'set-cookie': session.cookieFor(owner) } }
  }

  async function decide(view: InteractionView, request: HttpRequest): Promise<HttpResponse> {
    const owner = session.ownerOf(request)
    if (owner === undefined) return page(403, 'Not signed in', '<p>Please open the page first.</p>')
    if (owner !== ownerOf(accounts, view)) {
      return page(403, 'Not yours', '<p>This request is for another account.</p>')
    }
    const decision = fieldOf(request, 'decision')
    if (decision !== 'approve' && decision !== 'deny') {
      return page(400, 'Please decide', '<p>Please choose either Approve or Deny.</p>')
    }
    const walletAddresses = accounts.ownedBy(owner).map(({ url }) => url)
    const result =
      decision === 'approve'
        ? await interactions.approve(view.id, { resourceOwner: owner, walletAddresses })
        : await interactions.deny(view.id)
    return outcome(result)
  }

  return async (request) => {
    const id = request.url.split('?', 1)[0]?.slice('/consent/'.length) ?? ''
    const view = await interactions.get(id)
    if (view === undefined) return page(404, 'Unknown', '<p>This request does not exist.</p>')
    if (request.method === 'GET' || request.method === 'HEAD') return show(view)
    return request.method === 'POST' ? decide(view, request) : wrongMethod()
  }
}

function ownerOf({ all }: Accounts, { access, subject }: InteractionView): string {
  const [first] = all
  const named = all.find(
    ({ url }) => url === subject?.id || access.some(({ identifier }) => identifier === url),
  )
  return (named ?? first)?.owner ?? ''
}

function outcome(result: InteractionResult): HttpResponse {
  if (!result.ok) {
    const status = result.refusal === 'not_the_owner' ? 403 : 409
    return page(status, 'That did not work', `<p>${escapeHtml(result.reason)}.</p>`)
  }
  if (result.redirect === undefined) {
    return page(200, 'Done', '<p>Thank you. Please return to the app that sent you here.</p>')
  }
  return seeOther(result.redirect)
}

function question({ client, access, subject, finishUri }: InteractionView, owner: string): string {
  const asked = access.map((item) => describeAccess(item).map(escapeHtml).join('<br>'))
  if (subject !== undefined) {
    asked.push(`know that you are <code>${escapeHtml(subject.id)}</code>`)
  }
  const after =
    finishUri === undefined
      ? 'Afterwards, please return to the app that sent you here.'
      : `Afterwards you will return to <code>${escapeHtml(new URL(finishUri).host)}</code>.`
  return `
    <p>You are signed in as <b>${escapeHtml(owner)}</b>. <small>(This is a demo, so this page signed you in.)</small></p>
    <p>The app at <code>${escapeHtml(client)}</code> would like to:</p>
    <ul>${asked.map((each) => `<li>${each}</li>`).join('')}</ul>
    <p>${after}</p>
    <form method="post">
      <button name="decision" value="approve">Approve</button>
      <button name="decision" value="deny">Deny</button>
    </form>`
}
