import { demoPassword } from './running-wallet.js'

/** Opens a page, and shows what a form of it would send. */
export interface Browser {
  open(url: string): Promise<{ status: number; text: string; token: string }>
  /** Sends a form, and resolves to the redirect without following it, except to what became of the form. */
  send(
    url: string,
    form: Readonly<Record<string, string>>,
  ): Promise<{
    status: number
    location: string | null
    /** The hidden fields of the form on that page, if it has one. */
    token?: string
    shown?: string
  }>
}

/** Signs in to the wallet as the owner of an account. */
export async function browserOf(baseUrl: string, owner: string): Promise<Browser> {
  const form = await fetch(`${baseUrl}/login`)
  const [, token = ''] = /name="token" value="([^"]*)"/.exec(await form.text()) ?? []
  const fields = { owner, password: demoPassword, token }
  const cookie = cookieIn(await post(`${baseUrl}/login`, cookieIn(form), fields))

  async function open(url: string) {
    const response = await fetch(url, { headers: { cookie }, redirect: 'manual' })
    const text = await response.text()
    const [, token = ''] = /name="token" value="([^"]*)"/.exec(text) ?? []
    return { status: response.status, text, token }
  }

  return {
    open,
    async send(url, form) {
      const { status, headers } = await post(url, cookie, form)
      const location = headers.get('location')
      if (!new URLSearchParams(location ?? '').has('outcome')) return { status, location }
      const page = await open(new URL(location ?? '', url).href)
      const shown = shownIn(page.text)
      const fields = shown === '' ? {} : { token: page.token, shown }
      return { status: page.status, location: null, ...fields }
    },
  }
}

/** Decides on the consent page, and resolves to the URL to which the browser then goes. */
export async function decide(
  browser: Browser,
  interactUrl: string,
  decision: 'approve' | 'deny',
): Promise<string> {
  const { token } = await browser.open(interactUrl)
  const { status, location } = await browser.send(interactUrl, { token, decision })
  if (location === null) throw new Error(`the consent page responded with ${status}`)
  return location
}

/** Answers on the page that confirms a payment, and resolves to the status of the next page. */
export async function answer(
  browser: Browser,
  confirmUrl: string,
  decision: 'confirm' | 'decline',
): Promise<number> {
  const { token, text } = await browser.open(confirmUrl)
  const fields = { token, shown: shownIn(text), decision }
  return (await browser.send(confirmUrl, fields)).status
}

function shownIn(page: string): string {
  const [, shown = ''] = /name="shown" value="([^"]*)"/.exec(page) ?? []
  return shown.replaceAll('&#34;', '"')
}

function cookieIn({ headers }: Response): string {
  return (headers.get('set-cookie') ?? '').split(';', 1)[0] ?? ''
}

function post(url: string, cookie: string, form: Readonly<Record<string, string>>) {
  const body = new URLSearchParams(form)
  return fetch(url, { method: 'POST', redirect: 'manual', headers: { cookie }, body })
}
