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
 * The page on which an account's owner decides. It signs the browser in by itself, as whoever owns the
 * account in question, because this is a demo: a real wallet's own login stands here instead.
 */
export function consentPage(
  interactions: Interactions,
  accounts: Accounts,
  session: Session,
): Handler {
  function ownerOf({ access, subject }: InteractionView): string {
    const [first] = accounts.all
    const named = accounts.all.find(
      ({ url }) => url === subject?.id || access.some(({ identifier }) => identifier === url),
    )
    return (named ?? first)?.owner ?? ''
  }

  function show(view: InteractionView): HttpResponse {
    if (view.state === 'expired') return page(410, 'Too late', '<p>This request has expired.</p>')
    if (view.state === 'denied' || view.state === 'closed') {
      return page(410, 'Done', '<p>This request has been answered. You can close this page.</p>')
    }
    const owner = ownerOf(view)
    const response = page(200, 'Do you agree?', question(view, owner), view.finishUri)
    return { ...response, headers: { ...response.headers, 'set-cookie': session.cookieFor(owner) } }
  }

  async function decide(view: InteractionView, request: HttpRequest): Promise<HttpResponse> {
    const owner = session.ownerOf(request)
    if (owner === undefined) return page(403, 'Not signed in', '<p>Open the page first.</p>')
    if (owner !== ownerOf(view)) {
      return page(403, 'Not yours', '<p>This request is for another account.</p>')
    }
    const decision = fieldOf(request, 'decision')
    if (decision !== 'approve' && decision !== 'deny') {
      return page(400, 'Which one?', '<p>Neither approved nor denied.</p>')
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
    if (view === undefined) return page(404, 'Unknown', '<p>There is no such request.</p>')
    if (request.method === 'GET' || request.method === 'HEAD') return show(view)
    return request.method === 'POST' ? decide(view, request) : wrongMethod()
  }
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
    asked.push(`be told that you are <code>${escapeHtml(subject.id)}</code>`)
  }
  const after =
    finishUri === undefined
      ? 'Afterwards, return to the app that sent you here.'
      : `Afterwards you are sent to <code>${escapeHtml(new URL(finishUri).host)}</code>.`
  return `
    <p>You are signed in as <b>${escapeHtml(owner)}</b>. <small>(A demo: this page signed you in.)</small></p>
    <p>The app at <code>${escapeHtml(client)}</code> asks to:</p>
    <ul>${asked.map((each) => `<li>${each}</li>`).join('')}</ul>
    <p>${after}</p>
    <form method="post">
      <button name="decision" value="approve">Approve</button>
      <button name="decision" value="deny">Deny</button>
    </form>`
}
