import { randomBytes, randomUUID } from 'node:crypto'
import * as pages from 'open-payments-pages'
import type { Handler } from 'open-payments-server'
import type { HttpRequest } from 'open-payments-server/adapter'

// A PLACEHOLDER, not a login: one password opens every account. Replace it.
const { PLACEHOLDER_PASSWORD } = process.env
if (!PLACEHOLDER_PASSWORD) throw new Error('set PLACEHOLDER_PASSWORD')
const sessions = new Map<string, string>()
// With https, the name of the cookie begins with __Host-.
const tokens = pages.browserTokens(randomBytes(32), 'sign-in')

export function ownerOf({ headers }: HttpRequest): { readonly id: string } | undefined {
  const cookies = headers.find(([name]) => name.toLowerCase() === 'cookie')?.[1] ?? ''
  const [, session = ''] = /(?:^|; )session=([\w-]+)/.exec(cookies) ?? []
  const id = sessions.get(session)
  return id === undefined ? undefined : { id }
}

export const signIn = ({ url }: HttpRequest) =>
  pages.seeOther(`/login?${new URLSearchParams({ next: url })}`)

export const loginPage: Handler = async (request) => {
  const next = new URLSearchParams(request.url.split('?')[1]).get('next') ?? ''
  const fields = pages.fieldsOf(request)
  const isRight = fields.get('password') === PLACEHOLDER_PASSWORD
  const isPosted = request.method === 'POST'
  if (isPosted && isRight && (await tokens.check(request)) === 'ours') {
    const session = randomUUID()
    sessions.set(session, fields.get('owner') ?? '')
    const target = /^\/(?:apps|keys|(?:consent|confirm)\/[\w.-]+)$/.test(next)
      ? next
      : '/apps'
    const cookie = `session=${session}; Path=/; HttpOnly; SameSite=Lax`
    return pages.seeOther(target, { 'set-cookie': cookie })
  }
  const locale = pages.localeFor(request)
  const action = `/login?${new URLSearchParams({ next })}`
  const token = await tokens.field(request)
  const screen = pages.loginScreen({ locale, action, fields: token.field })
  return pages.page(screen, { locale, headers: token.headers })
}
