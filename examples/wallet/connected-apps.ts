import type { GrantServices, GrantView, Handler, ItemView } from 'open-payments-server'
import type { HttpRequest, HttpResponse } from 'open-payments-server/adapter'
import type { Accounts } from './accounts.js'
import { appName, formatInstant, isolated, type Locale, localeFor } from './locale.js'
import { escapeHtml, fieldOf, list, notice, page, seeOther, wrongMethod } from './page.js'
import { describeAccess } from './plain-language.js'
import { isForeignForm, type Session } from './session.js'

type NamedGrant = GrantView & {
  readonly display: Awaited<ReturnType<GrantServices['displayOf']>>
}

/** A pause lasts until the owner ends it: this is the last instant that a grant can store. */
const untilResumed = 253_402_300_799_999

/** The page where an account's owner sees the apps with live grants, and narrows, pauses or revokes them. */
export function connectedApps(
  grants: Pick<GrantServices, 'iterate' | 'get' | 'revoke' | 'amend' | 'displayOf'>,
  accounts: Pick<Accounts, 'ownedBy'>,
  session: Session,
): Handler {
  async function liveGrantsOf(resourceOwner: string): Promise<NamedGrant[]> {
    const live: Promise<NamedGrant>[] = []
    for await (const grant of grants.iterate({ resourceOwner, statuses: ['approved'] })) {
      live.push(grants.displayOf(grant.client).then((display) => ({ ...grant, display })))
    }
    return Promise.all(live)
  }

  /** Checks first that the grant is the owner's own: a form can contain any id. */
  async function change(
    request: HttpRequest,
    owner: string,
    locale: Locale,
  ): Promise<HttpResponse> {
    const grantId = fieldOf(request, 'grant') ?? ''
    const grant = await grants.get(grantId)
    if (grant?.resourceOwner !== owner) return notice(404, 'notApproved', locale)
    if (fieldOf(request, 'do') === undefined) {
      await grants.revoke(grantId)
      return seeOther('/grants?revoked')
    }
    const amendment = { resourceOwner: owner, ...amendmentOf(grant, request) }
    const amended = await grants.amend(grantId, amendment)
    return amended.ok ? seeOther('/grants?changed') : notice(400, 'notNarrower', locale)
  }

  return async (request) => {
    const [path, query] = request.url.split('?', 2)
    const owner = session.ownerOf(request)
    const [account] = owner === undefined ? [] : accounts.ownedBy(owner)
    const locale = localeFor(request, account?.locale)
    if (path !== '/grants') return notice(404, 'unknown', locale)
    if (owner === undefined) return notice(403, 'signedOut', locale)
    if (request.method === 'POST' && isForeignForm(request)) return notice(403, 'unknown', locale)
    if (request.method === 'POST') return change(request, owner, locale)
    if (request.method !== 'GET' && request.method !== 'HEAD') return wrongMethod(locale)
    const content = listed(await liveGrantsOf(owner), owner, locale)
    const { revoked, changed } = locale.messages.apps
    const done = { revoked, changed }[query ?? ''] // after the redirect of a form
    const status = done === undefined ? '' : `<p role="status">${escapeHtml(done)}</p>`
    return page(200, locale.messages.apps.title, status + content, { locale })
  }
}

function listed(grants: readonly NamedGrant[], owner: string, locale: Locale): string {
  const { apps, consent } = locale.messages
  const signedIn = consent.signedIn(isolated(owner, locale.messages))
  const entries = grants.map((grant, index) => entry(grant, index, locale)).join('')
  return `<p>${escapeHtml(signedIn)}</p>${entries || `<p>${escapeHtml(apps.none)}</p>`}`
}

function entry(
  { grantId, client, display, access, subject, approvedAt, conditions }: NamedGrant,
  index: number,
  locale: Locale,
): string {
  const { messages } = locale
  const { apps } = messages
  const name = appName(client, display, messages)
  const grant = `<input type="hidden" name="grant" value="${escapeHtml(grantId)}">`
  const allowed = access.map(
    (item) => list(describeAccess(item, locale)) + itemForm(item, access.length > 1, grant, locale),
  )
  const isPaused = (conditions?.pausedUntil ?? 0) > Date.now()
  const isPaying = access.some(({ type }) => type === 'outgoing-payment')
  const [act, label] = isPaused ? ['resume', apps.resume] : ['pause', apps.pause]
  const pause = `<form method="post">${grant}<button name="do" value="${act}"
      aria-describedby="app-${index}">${escapeHtml(label)}</button></form>`
  if (subject !== undefined) allowed.push(list([messages.subject(isolated(subject.id, messages))]))
  const since = approvedAt === undefined ? '' : apps.since(formatInstant(approvedAt, locale))
  return `<article class="card" aria-labelledby="app-${index}">
    <h2 id="app-${index}">${escapeHtml(name)}</h2>
    <p id="since-${index}">${escapeHtml(since)}</p>
    <p>${escapeHtml(apps.may)}</p>${allowed.join('')}
    ${isPaused ? `<p>${escapeHtml(apps.paused)}</p>` : ''}${isPaying ? pause : ''}
    <form method="post"><button name="grant" value="${escapeHtml(grantId)}"
      aria-label="${escapeHtml(apps.revokeApp(name))}"
      aria-describedby="since-${index}">${escapeHtml(apps.revoke)}</button></form>
  </article>`
}

/** What the form of an owner changes. */
function amendmentOf({ access }: GrantView, request: HttpRequest) {
  const isChosen = ({ itemId }: ItemView) => itemId === fieldOf(request, 'item')
  switch (fieldOf(request, 'do')) {
    case 'pause':
      return { conditions: { pausedUntil: untilResumed } }
    case 'resume':
      return { conditions: { pausedUntil: null } }
    case 'remove':
      return { access: access.filter((item) => !isChosen(item)) }
    case 'lower': {
      const most = fieldOf(request, 'most') ?? ''
      return { access: access.map((item) => (isChosen(item) ? lowered(item, most) : item)) }
    }
    default:
      return {}
  }
}

/** Returns the item with a lower limit, or unchanged if the amount cannot be read. */
function lowered(item: ItemView, most: string): ItemView {
  const limit = item.limits?.debitAmount
  const [, whole = '', fraction = ''] = /^(\d{1,15})(?:[.,](\d{1,15}))?$/.exec(most.trim()) ?? []
  if (limit === undefined || whole === '' || fraction.length > limit.assetScale) return item
  const value = BigInt(whole + fraction.padEnd(limit.assetScale, '0')).toString()
  return { ...item, limits: { ...item.limits, debitAmount: { ...limit, value } } }
}

/** The form that lowers the limit of an item, or removes the item while others remain. */
function itemForm(
  { itemId = '', limits }: ItemView,
  isRemovable: boolean,
  grant: string,
  { messages: { apps } }: Locale,
): string {
  const limit = limits?.debitAmount
  const lower =
    limit === undefined
      ? ''
      : `<p><label>${escapeHtml(apps.newLimit(limit.assetCode))}
      <input name="most" inputmode="decimal" autocomplete="off"></label></p>
      <button name="do" value="lower">${escapeHtml(apps.lower)}</button>`
  const remove = isRemovable
    ? `<button name="do" value="remove">${escapeHtml(apps.remove)}</button>`
    : ''
  if (lower === '' && remove === '') return ''
  const item = `<input type="hidden" name="item" value="${escapeHtml(itemId)}">`
  return `<form method="post">${grant}${item}${lower}${remove}</form>`
}
