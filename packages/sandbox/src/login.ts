import type { Login } from 'create-open-payments-server/wallet/login'
import { fieldsOf, html, isForeignForm, localeFor, page, seeOther } from 'open-payments-pages'
import type { HttpRequest, HttpResponse } from 'open-payments-server/adapter'

const cookieName = 'sandbox_owner'

/** A login without a password: visitors choose whose pages they open. */
export function openLogin(owners: readonly string[]): Login {
  function ownerOf({ headers }: HttpRequest) {
    const cookies = headers
      .filter(([name]) => name.toLowerCase() === 'cookie')
      .flatMap(([, value]) => value.split(/; */))
    const id = owners.find((owner) => cookies.includes(`${cookieName}=${owner}`))
    return id === undefined ? undefined : { id }
  }

  function question(request: HttpRequest): HttpResponse {
    const { texts, timeZone } = localeFor({ headers: [] })
    const locale = { tag: 'en', timeZone, texts } // a page for developers
    const buttons = owners.map(
      (owner) => html`<button name="owner" value="${owner}">${owner}</button>`,
    )
    const action = `/login?${new URLSearchParams({ next: nextOf(request) })}`
    const content = html`<form method="post" action="${action}" class="card"><h1>Sign in</h1>
      <p>Whose account would you like to see?</p><div class="buttons">${buttons}</div></form>`
    return page({ title: 'Sign in', content }, { locale, status: 200 })
  }

  const redirect = ({ url }: HttpRequest) =>
    seeOther(`/login?${new URLSearchParams({ next: url })}`)

  return {
    ownerOf,
    redirect,
    signOut(request) {
      const { status, headers } = redirect(request)
      return { status, headers: { ...headers, 'set-cookie': `${cookieFor('')}; Max-Age=0` } }
    },
    async page(request) {
      const owner = fieldsOf(request).get('owner') ?? ''
      const isChosen = request.method === 'POST' && owners.includes(owner)
      if (!isChosen || isForeignForm(request)) return question(request)
      return seeOther(nextOf(request), { 'set-cookie': cookieFor(owner) })
    },
  }
}

/** Returns the cookie of an owner. `SameSite` keeps other sites from sending forms with it. */
export function cookieFor(owner: string): string {
  return `${cookieName}=${owner}; Path=/; HttpOnly; SameSite=Lax`
}

/** Returns a path of this wallet, whatever the URL says. */
function nextOf({ url }: HttpRequest): string {
  const next = new URLSearchParams(url.split('?')[1]).get('next') ?? ''
  return /^\/(?:apps|keys)(?:\?[\w.*%&=+-]*)?$/.test(next) ? next : '/apps'
}
