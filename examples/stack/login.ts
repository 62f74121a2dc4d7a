import { randomUUID } from 'node:crypto'
import * as pages from 'open-payments-pages'
import type { Handler } from 'open-payments-server'
import type { HttpRequest } from 'open-payments-server/adapter'

// A PLACEHOLDER, not a login: one password opens every account. Replace it.
const { PLACEHOLDER_PASSWORD } = process.env
if (!PLACEHOLDER_PASSWORD) throw new Error('set PLACEHOLDER_PASSWORD')
const sessions = new Map<string, string>()

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
  if (request.method === 'POST' && isRight && !pages.isForeignForm(request)) {
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
  return pages.page(pages.loginScreen({ locale, action }), { locale })
}
