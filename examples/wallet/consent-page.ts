import { createHmac, timingSafeEqual } from 'node:crypto'
import type {
  Handler,
  HttpRequest,
  HttpResponse,
  InteractionResult,
  Interactions,
  InteractionView,
} from '../../src/index.js'
import type { Accounts } from './accounts.js'
import { describeAccess } from './plain-language.js'

const cookieName = 'example_wallet_session'

/**
 * The page on which an account's owner decides. It signs the browser in by itself, as whoever owns the
 * account in question, because this is a demo: a real wallet's own login stands here instead.
 *
 * @param sessionKey the key of the cookie by which the browser is known, the same in every process.
 */
export function consentPage(
  interactions: Interactions,
  accounts: Accounts,
  sessionKey: Uint8Array,
): Handler {
  const session = signedCookie(sessionKey)

  function ownerOf(view: InteractionView): string {
    const [first] = accounts.all
    const named = accounts.all.find(({ url }) =>
      view.access.some(({ identifier }) => identifier === url),
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
    const cookie = `${cookieName}=${session.sign(owner)}; Path=/consent; HttpOnly; SameSite=Lax`
    return { ...response, headers: { ...response.headers, 'set-cookie': cookie } }
  }

  async function decide(view: InteractionView, request: HttpRequest): Promise<HttpResponse> {
    const owner = session.verify(cookieOf(request))
    if (owner === undefined) return page(403, 'Not signed in', '<p>Open the page first.</p>')
    if (owner !== ownerOf(view)) {
      return page(403, 'Not yours', '<p>This request is for another account.</p>')
    }
    const decision = new URLSearchParams(new TextDecoder().decode(request.body)).get('decision')
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
    if (request.method === 'POST') return decide(view, request)
    const refused = page(405, 'Not allowed', '<p>Open this page in a browser.</p>')
    return { ...refused, headers: { ...refused.headers, allow: 'GET, HEAD, POST' } }
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
  // 303, so that the browser does not send the form along (RFC 9635 section 11.19).
  return { status: 303, headers: { ...safety(), location: result.redirect } }
}

function question(view: InteractionView, owner: string): string {
  const access = view.access
    .map((item) => `<li>${describeAccess(item).map(escapeHtml).join('<br>')}</li>`)
    .join('')
  const after =
    view.finishUri === undefined
      ? 'Afterwards, return to the app that sent you here.'
      : `Afterwards you are sent to <code>${escapeHtml(new URL(view.finishUri).host)}</code>.`
  return `
    <p>You are signed in as <b>${escapeHtml(owner)}</b>. <small>(A demo: this page signed you in.)</small></p>
    <p>The app at <code>${escapeHtml(view.client)}</code> asks to:</p>
    <ul>${access}</ul>
    <p>${after}</p>
    <form method="post">
      <button name="decision" value="approve">Approve</button>
      <button name="decision" value="deny">Deny</button>
    </form>`
}

function page(status: number, title: string, content: string, finishUri?: string): HttpResponse {
  const body = `<!doctype html><html lang="en"><meta charset="utf-8"><title>${title}</title>
    <meta name="viewport" content="width=device-width, initial-scale=1">
    <style>body{font:1.1rem/1.6 system-ui,sans-serif;max-width:36rem;margin:3rem auto;padding:0 1rem}
    button{font:inherit;padding:.5rem 1.5rem;margin-right:.5rem}li{margin:.5rem 0}</style>
    <h1>${title}</h1>${content}</html>`
  return {
    status,
    headers: { ...safety(finishUri), 'content-type': 'text/html; charset=utf-8' },
    body,
  }
}

/** Browsers hold a form's redirect to `form-action`, so that the client's own origin has to be named. */
function safety(finishUri?: string): Record<string, string> {
  const { origin = '', protocol = '' } = finishUri === undefined ? {} : new URL(finishUri)
  const target = origin === 'null' ? protocol : origin
  return {
    'cache-control': 'no-store',
    'referrer-policy': 'no-referrer',
    'x-content-type-options': 'nosniff',
    'content-security-policy': `default-src 'none'; style-src 'unsafe-inline'; form-action 'self' ${target}; frame-ancestors 'none'; base-uri 'none'`,
  }
}

function escapeHtml(text: string): string {
  return text.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`)
}

function cookieOf({ headers }: HttpRequest): string | undefined {
  const cookies = headers
    .filter(([name]) => name.toLowerCase() === 'cookie')
    .flatMap(([, value]) => value.split(/; */))
  return cookies.find((cookie) => cookie.startsWith(`${cookieName}=`))?.slice(cookieName.length + 1)
}

/** A cookie value that nobody else can write: the owner's name and its MAC under the key. */
function signedCookie(key: Uint8Array) {
  const mac = (owner: string) => createHmac('sha256', key).update(owner).digest()
  return {
    sign: (owner: string) => `${owner}.${mac(owner).toString('base64url')}`,
    verify(cookie: string | undefined): string | undefined {
      const [owner = '', claimed = ''] = cookie?.split('.') ?? []
      const given = Buffer.from(claimed, 'base64url')
      const expected = mac(owner)
      const genuine = given.length === expected.length && timingSafeEqual(given, expected)
      return genuine ? owner : undefined
    },
  }
}
