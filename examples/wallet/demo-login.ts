import { fieldsOf, html, type Locale, localeFor, page, seeOther } from 'open-payments-pages'
import type { Handler, InteractionView } from 'open-payments-server'
import type { HttpRequest, HttpResponse } from 'open-payments-server/adapter'
import type { Accounts } from './accounts.js'
import type { Session } from './session.js'

/**
 * Because this is a demo, visitors choose whom they are, and the consent page signs a browser in as the owner of the
 * account: a real wallet uses its own login here.
 */
export function demoLogin({ all }: Pick<Accounts, 'all'>, session: Session) {
  const owners = [...new Set(all.map(({ owner }) => owner))]

  /** Signs the browser in as the owner whom the visitor chose, or asks for one. */
  function signIn(request: HttpRequest): HttpResponse {
    const wanted = fieldsOf(request).get('owner') ?? ''
    if (owners.includes(wanted)) {
      return seeOther(request.url, { 'set-cookie': session.cookieFor(wanted) })
    }
    const locale = localeFor(request)
    const [title, question] = saidIn(locale)
    const buttons = owners.map(
      (owner) => html`<button name="owner" value="${owner}">${owner}</button>`,
    )
    const content = html`<form method="post" class="card"><h1>${title}</h1><p>${question}</p>
      <div class="buttons">${buttons}</div></form>`
    return page({ title, content }, { locale, status: 403 })
  }

  /** Wraps the consent page. */
  function signingIn(
    consent: Handler,
    find: (id: string) => Promise<InteractionView | undefined>,
  ): Handler {
    return async (request) => {
      if (request.method !== 'GET' && request.method !== 'HEAD') return consent(request)
      const [path = ''] = request.url.split('?', 1)
      const view = await find(path.split('/').at(-1) ?? '')
      if (view === undefined) return consent(request)
      const cookie = session.cookieFor(ownerOf(view))
      const others = request.headers.filter(([name]) => name.toLowerCase() !== 'cookie')
      const response = await consent({ ...request, headers: [...others, ['cookie', cookie]] })
      if (response.status !== 200) return response
      return { ...response, headers: { ...response.headers, 'set-cookie': cookie } }
    }
  }

  function ownerOf({ access, subject }: InteractionView): string {
    const named = all.find(
      ({ url }) => url === subject?.id || access.some(({ identifier }) => identifier === url),
    )
    return (named ?? all[0])?.owner ?? ''
  }

  return { signIn, signingIn }
}

function saidIn({ tag }: Locale): readonly [title: string, question: string] {
  const language = tag.split('-', 1)[0] ?? ''
  return said[language as keyof typeof said] ?? said.en
}

const said = {
  en: ['Sign in', 'This is a demo. Whose account would you like to see?'],
  de: ['Anmelden', 'Dies ist eine Demo. Wessen Konto möchten Sie sehen?'],
  es: ['Iniciar sesión', 'Esto es una demostración. ¿Qué cuenta quiere ver?'],
  ar: ['تسجيل الدخول', 'هذا عرض توضيحي. أي حساب تريد أن ترى؟'],
} as const
