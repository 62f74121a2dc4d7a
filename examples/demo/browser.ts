/** The password of the owners in the wallets of the demo. */
export const demoPassword = 'demo'

/** Signs a browser in, and returns its cookie, or an empty text if the wallet has no login. */
async function signIn(origin: string, owner: string): Promise<string> {
  const body = new URLSearchParams({ owner, password: demoPassword })
  const { headers } = await fetch(`${origin}/login`, { method: 'POST', redirect: 'manual', body })
  return cookieIn(headers)
}

/**
 * Acts as the resource owner on the consent page, who may choose an account, with a cookie and without following the
 * redirect.
 */
export async function decide(
  redirect: string,
  decision: 'approve' | 'deny',
  account?: string,
): Promise<{ readonly page: string; readonly location: URL | undefined; readonly cookie: string }> {
  const signedIn = await signIn(new URL(redirect).origin, 'alice')
  const shown = await fetch(redirect, { headers: { cookie: signedIn } })
  const page = await shown.text()
  const cookie = signedIn || cookieIn(shown.headers)
  const answered = await fetch(redirect, {
    method: 'POST',
    redirect: 'manual',
    headers: { cookie, 'content-type': 'application/x-www-form-urlencoded' },
    body: new URLSearchParams({ token: tokenOf(page), decision, ...(account && { account }) }),
  })
  const location = answered.headers.get('location')
  return { page, location: location === null ? undefined : new URL(location), cookie }
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

function cookieIn(headers: Headers): string {
  return headers.getSetCookie()[0]?.split(';', 1)[0] ?? ''
}
