// #region pages
import type express from 'express'
import { createPages, seeOther } from 'open-payments-pages'
import type { Wallet } from 'open-payments-server'
import { toExpress } from 'open-payments-server/express'

/** Mounts the pages for the owners of accounts. */
export function mountPages(app: express.Express, wallet: Wallet, host: Host): void {
  const pages = createPages({
    auth: wallet.auth,
    resources: wallet.resources,
    ownerOf: ({ headers }) => host.signedIn(headers), // { id: 'alice' }, or undefined
    accountsOf: (ownerId) => host.accountsOf(ownerId), // url, assetCode, assetScale
    signIn: ({ url }) => seeOther(`/login?${new URLSearchParams({ next: url })}`),
    signOut: (request) => host.signedOut(request), // ends the session
    formKey: host.formKey, // 32 random bytes
    connectedAppsUrl: '/apps',
    keys: host.keys, // your table of owners' keys; without it, no page for keys
    accountLimits: host.accountLimits, // owners' limits for all apps
    design: { name: 'Your wallet', css: ':root{--accent:#7a1fa2;--radius:4px}' },
    onError: console.error,
  })
  app.use('/consent', toExpress(pages.consent)) // the path of consentUrl
  app.use('/confirm', toExpress(pages.confirmation)) // the path of the url of mayPay
  app.use('/apps', toExpress(pages.connectedApps))
  app.use('/keys', toExpress(pages.keys))
  app.use('/send', toExpress(pages.send))
  app.use(toExpress(pages.around(wallet.handle))) // last: with an icon and a 404 page
}

// #endregion pages

// #region parts
import {
  consentScreen,
  consentSections,
  html,
  languages,
  type PagesOptions,
  type Texts,
} from 'open-payments-pages'

const dutch: Texts = { ...languages.en, approve: 'Goedkeuren' } // and so on

/** Options of `createPages`: a note above the buttons, and one more language. */
export const own: Pick<PagesOptions, 'screens' | 'languages'> = {
  screens: {
    consent: (view, options) =>
      consentScreen(view, {
        ...options,
        sections: {
          buttons: (...shown) =>
            html`<p>Did you start this?</p>${consentSections.buttons(...shown)}`,
        },
      }),
  },
  languages: { ...languages, nl: dutch },
}
// #endregion parts

type HttpRequest = Parameters<PagesOptions['signIn']>[0]
type HttpResponse = Awaited<ReturnType<PagesOptions['signIn']>>
type AccountLimits = NonNullable<PagesOptions['accountLimits']>
type OwnerKeys = NonNullable<PagesOptions['keys']>

interface Host {
  readonly formKey: Uint8Array
  readonly keys: OwnerKeys
  readonly accountLimits: AccountLimits
  signedOut(request: HttpRequest): HttpResponse
  signedIn(headers: readonly (readonly [string, string])[]): Promise<{ id: string } | undefined>
  accountsOf(ownerId: string): Promise<readonly Account[]>
}

interface Account {
  readonly url: string
  readonly assetCode: string
  readonly assetScale: number
}
