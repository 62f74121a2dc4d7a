import { createPages, seeOther } from 'open-payments-pages'
import type { AuthorizationServer, ResourceServer } from 'open-payments-server'
import { demoLogin } from './demo-login.js'
import { secretKey } from './secrets.js'
import { cookieSession } from './session.js'
import type { Side, Surroundings } from './side.js'

/** The pages for the owners of accounts, and their paths. */
export async function ownerPages(
  { accounts, storage, watch, time }: Surroundings,
  auth: AuthorizationServer,
  /** Absent if it is in another process, which may have another database: then no page shows budgets and keys. */
  resources?: Pick<ResourceServer, 'outgoingPayments'>,
): Promise<Side['mounts']> {
  const session = cookieSession(await secretKey(storage.secrets, 'session'))
  const login = demoLogin(accounts, session)
  const pages = createPages({
    auth,
    ...(resources && { resources, keys: storage.keys }),
    ownerOf(request) {
      const id = session.ownerOf(request)
      return id === undefined ? undefined : { id, ...accounts.ownedBy(id)[0]?.locale }
    },
    accountsOf: accounts.ownedBy,
    signIn: login.signIn,
    signOut: ({ url }) => seeOther(url, { 'set-cookie': session.endingCookie }),
    formKey: await secretKey(storage.secrets, 'forms'),
    connectedAppsUrl: '/grants',
    design: { name: 'Example wallet' },
    onError: watch.onError,
    ...(time.clock && { clock: time.clock }),
  })
  return [
    { path: '/consent', handle: login.signingIn(pages.consent, auth.interactions.get) },
    { path: '/grants', handle: pages.connectedApps },
    ...(resources ? [{ path: '/keys', handle: pages.keys }] : []),
  ]
}
