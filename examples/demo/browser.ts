/** The password of the owners in the wallets of the demo. */
export const demoPassword = 'demo'

/** Signs a browser in to a wallet, and returns its cookie. */
export async function signIn(origin: string, owner = 'alice'): Promise<string> {
  const answer = await postLogin(origin, { owner, password: demoPassword })
  return cookieIn(answer)
}

/** Opens the login, and posts its form with these fields. */
export async function postLogin(
  origin: string,
  fields: Readonly<Record<string, string>>,
): Promise<Response> {
  const url = `${origin}/login`
  const form = await fetch(url)
  const body = new URLSearchParams({ ...fields, token: tokenOf(await form.text()) })
  const headers = { cookie: cookieIn(form) }
  return fetch(url, { method: 'POST', redirect: 'manual', headers, body })
}

function cookieIn({ headers }: Response): string {
  return headers.getSetCookie()[0]?.split(';', 1)[0] ?? ''
}

/** Acts as Alice on the consent page. She may choose an account, and does not follow the redirect. */
export async function decide(
  redirect: string,
  decision: 'approve' | 'deny',
  account?: string,
): Promise<{ readonly page: string; readonly location: URL | undefined; readonly cookie: string }> {
  const cookie = await signIn(new URL(redirect).origin)
  const page = await (await fetch(redirect, { headers: { cookie } })).text()
  const answered = await fetch(redirect, {
    method: 'POST',
    redirect: 'manual',
    headers: { cookie, 'content-type': 'application/x-www-form-urlencoded' },
    body: new URLSearchParams({ token: tokenOf(page), decision, ...(account && { account }) }),
  })
  const location = answered.headers.get('location')
  return { page, location: location === null ? undefined : new URL(location, redirect), cookie }
}

/** Acts as Alice on the page that confirms a payment. Resolves to the text that she reads. */
export async function answer(
  url: string,
  decision: 'confirm' | 'decline',
): Promise<{ readonly shown: string; readonly status: number }> {
  const cookie = await signIn(new URL(url).origin)
  const page = await (await fetch(url, { headers: { cookie } })).text()
  const [, fields = ''] = /name="shown" value="([^"]*)"/.exec(page) ?? []
  const shown = fields.replaceAll('&#34;', '"')
  const { status } = await fetch(url, {
    method: 'POST',
    headers: { cookie, 'content-type': 'application/x-www-form-urlencoded' },
    body: new URLSearchParams({ token: tokenOf(page), shown, decision }),
  })
  return { shown: page.replace(/<[^>]*>/g, '').replaceAll('\u00a0', ' '), status }
}

/** Acts as the resource owner on the page of the newest connected app, where the first form lowers a limit. */
export async function lowerLimit(baseUrl: string, cookie: string, most: string): Promise<number> {
  const apps = `${baseUrl}/apps`
  const list = await (await fetch(apps, { headers: { cookie } })).text()
  const [, query = ''] = /href="(\?app=[^"]+)"/.exec(list) ?? []
  const url = `${apps}${query}`
  const page = await (await fetch(url, { headers: { cookie } })).text()
  const [, grant = '', item = ''] =
    /name="grant" value="([^"]+)"><input type="hidden" name="item" value="([^"]+)"/.exec(page) ?? []
  const token = tokenOf(page)
  const { status } = await fetch(url, {
    method: 'POST',
    redirect: 'manual',
    headers: { cookie, 'content-type': 'application/x-www-form-urlencoded' },
    body: new URLSearchParams({ token, grant, item, do: 'lower', most }),
  })
  return status
}

/** The field that only a page of the wallet contains. */
function tokenOf(page: string): string {
  return /name="token" value="([^"]+)"/.exec(page)?.[1] ?? ''
}
