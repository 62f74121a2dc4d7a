import type { GrantServices, GrantView, Handler } from 'open-payments-server'
import type { HttpResponse } from 'open-payments-server/adapter'
import type { Accounts } from './accounts.js'
import { formatInstant, isolated, type Locale, localeFor } from './locale.js'
import { escapeHtml, fieldOf, list, notice, page, seeOther, wrongMethod } from './page.js'
import { describeAccess } from './plain-language.js'
import { isForeignForm, type Session } from './session.js'

/** The page where an account's owner sees the apps with live grants and revokes them. */
export function connectedApps(
  grants: Pick<GrantServices, 'iterate' | 'get' | 'revoke'>,
  accounts: Pick<Accounts, 'ownedBy'>,
  session: Session,
): Handler {
  async function liveGrantsOf(resourceOwner: string): Promise<GrantView[]> {
    const live: GrantView[] = []
    for await (const grant of grants.iterate({ resourceOwner, statuses: ['approved'] }))
      live.push(grant)
    return live
  }

  /** Checks first that the grant is the owner's own: a form can contain any id. */
  async function revoke(grantId: string, owner: string, locale: Locale): Promise<HttpResponse> {
    const grant = await grants.get(grantId)
    if (grant?.resourceOwner !== owner) return notice(404, 'notApproved', locale)
    await grants.revoke(grantId)
    return seeOther('/grants?revoked')
  }

  return async (request) => {
    const [path, query] = request.url.split('?', 2)
    const owner = session.ownerOf(request)
    const [account] = owner === undefined ? [] : accounts.ownedBy(owner)
    const locale = localeFor(request, account?.locale)
    if (path !== '/grants') return notice(404, 'unknown', locale)
    if (owner === undefined) return notice(403, 'signedOut', locale)
    if (request.method === 'POST' && isForeignForm(request)) return notice(403, 'unknown', locale)
    if (request.method === 'POST') return revoke(fieldOf(request, 'grant') ?? '', owner, locale)
    if (request.method !== 'GET' && request.method !== 'HEAD') return wrongMethod(locale)
    const content = listed(await liveGrantsOf(owner), owner, locale)
    const isRevoked = query === 'revoked' // after the redirect of the form
    const status = isRevoked ? `<p role="status">${locale.messages.apps.revoked}</p>` : ''
    return page(200, locale.messages.apps.title, status + content, { locale })
  }
}

function listed(grants: readonly GrantView[], owner: string, locale: Locale): string {
  const { apps, consent } = locale.messages
  const signedIn = consent.signedIn(isolated(owner, locale.messages))
  const entries = grants.map((grant, index) => entry(grant, index, locale)).join('')
  return `<p>${escapeHtml(signedIn)}</p>${entries || `<p>${escapeHtml(apps.none)}</p>`}`
}

function entry(
  { grantId, client, access, subject, approvedAt }: GrantView,
  index: number,
  locale: Locale,
): string {
  const { messages } = locale
  const { apps } = messages
  const name = isolated(client, messages)
  const allowed = access.map((item) => list(describeAccess(item, locale)))
  if (subject !== undefined) allowed.push(list([messages.subject(isolated(subject.id, messages))]))
  const since = approvedAt === undefined ? '' : apps.since(formatInstant(approvedAt, locale))
  return `<article class="card" aria-labelledby="app-${index}">
    <h2 id="app-${index}">${escapeHtml(name)}</h2>
    <p id="since-${index}">${escapeHtml(since)}</p>
    <p>${escapeHtml(apps.may)}</p>${allowed.join('')}
    <form method="post"><button name="grant" value="${escapeHtml(grantId)}"
      aria-label="${escapeHtml(apps.revokeApp(name))}"
      aria-describedby="since-${index}">${escapeHtml(apps.revoke)}</button></form>
  </article>`
}
