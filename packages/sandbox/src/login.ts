import { randomBytes } from 'node:crypto'
import type { Login } from 'create-open-payments-server/wallet/login'
import { browserTokens, fieldsOf, html, localeFor, page, seeOther } from 'open-payments-pages'
import type { HttpRequest, HttpResponse } from 'open-payments-server/adapter'

/**
 * A login without a password: visitors choose whose pages they open. Other sites cannot choose for them.
 *
 * @param baseUrl the origin of the wallet. Cookies have no port, so each wallet has cookies of its own name.
 */
export function openLogin(baseUrl: string, owners: readonly string[]): Login {
  const cookieName = cookieNameAt(baseUrl)
  const tokens = browserTokens(randomBytes(32), `${cookieName}-form`)

  function ownerOf({ headers }: HttpRequest) {
    const cookies = headers
      .filter(([name]) => name.toLowerCase() === 'cookie')
      .flatMap(([, value]) => value.split(/; */))
    const id = owners.find((owner) => cookies.includes(`${cookieName}=${owner}`))
    return id === undefined ? undefined : { id }
  }

  async function question(request: HttpRequest): Promise<HttpResponse> {
    const { texts, timeZone } = localeFor({ headers: [] })
    const locale = { tag: 'en', timeZone, texts } // a page for developers
    const buttons = owners.map(
      (owner) => html`<button name="owner" value="${owner}">${owner}</button>`,
    )
    const action = `/login?${new URLSearchParams({ next: nextOf(request) })}`
    const { field, headers } = await tokens.field(request)
    const content = html`<form method="post" action="${action}" class="card">${field}<h1>Sign in</h1>
      <p>Whose account would you like to see?</p><div class="buttons">${buttons}</div></form>`
    return page({ title: 'Sign in', content }, { locale, headers })
  }

  const redirect = ({ url }: HttpRequest) =>
    seeOther(`/login?${new URLSearchParams({ next: url })}`)

  return {
    ownerOf,
    redirect,
    signOut(request) {
      const { status, headers } = redirect(request)
      return {
        status,
        headers: { ...headers, 'set-cookie': `${cookieFor(baseUrl, '')}; Max-Age=0` },
      }
    },
    async page(request) {
      const owner = fieldsOf(request).get('owner') ?? ''
      const isChosen = request.method === 'POST' && owners.includes(owner)
      if (!isChosen || (await tokens.check(request)) !== 'ours') return question(request)
      return seeOther(nextOf(request), { 'set-cookie': cookieFor(baseUrl, owner) })
    },
  }
}

/** Returns the cookie of an owner. `SameSite` keeps other sites from sending forms with it. */
export function cookieFor(baseUrl: string, owner: string): string {
  return `${cookieNameAt(baseUrl)}=${owner}; Path=/; HttpOnly; SameSite=Lax`
}

function cookieNameAt(baseUrl: string): string {
  return `sandbox_owner-${new URL(baseUrl).port}`
}

/** Returns a path of this wallet, whatever the URL says. */
function nextOf({ url }: HttpRequest): string {
  const next = new URLSearchParams(url.split('?')[1]).get('next') ?? ''
  return /^\/(?:apps|keys|send)(?:\?[\w.*%&=+-]*)?$/.test(next) ? next : '/apps'
}
