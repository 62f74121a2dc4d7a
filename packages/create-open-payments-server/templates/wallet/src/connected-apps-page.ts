import type { GrantServices, GrantView, Handler, ItemView } from 'open-payments-server'
import type { HttpResponse } from 'open-payments-server/adapter'
import type { Login } from './login.js'
import { appName, escapeHtml, fieldsOf, methodNotAllowed, page, seeOther } from './page.js'
import { describeAccess } from './wording.js'

/** A pause lasts until the owner ends it: this is the last instant that a grant can store. */
const untilResumed = 253_402_300_799_999

/** The page where owners see what they approved, and narrow, pause or revoke it: `/apps`. */
export function connectedAppsPage(grants: GrantServices, login: Login): Handler {
  async function change(fields: URLSearchParams, owner: string): Promise<HttpResponse> {
    const grantId = fields.get('grant') ?? ''
    // A form can contain the id of another owner's grant.
    const grant = await grants.get(grantId)
    if (grant?.resourceOwner !== owner) return seeOther('/apps')
    if (!fields.has('do')) {
      await grants.revoke(grantId)
      return seeOther('/apps')
    }
    const amendment = { resourceOwner: owner, ...amendmentOf(grant, fields) }
    const amended = await grants.amend(grantId, amendment)
    if (amended.ok) return seeOther('/apps')
    const content = '<p>A limit can only become lower. To remove all access, revoke it.</p>'
    return page({ status: 400, title: 'Nothing was changed', content })
  }

  return async (request) => {
    const owner = login.ownerOf(request)
    if (owner === undefined) return login.redirect(request)
    if (request.method === 'POST') {
      const isOwn = login.isOwnForm(request)
      return isOwn ? change(fieldsOf(request), owner) : seeOther('/apps')
    }
    if (request.method !== 'GET' && request.method !== 'HEAD') return methodNotAllowed()
    const live: Promise<string>[] = []
    for await (const grant of grants.iterate({ resourceOwner: owner, statuses: ['approved'] })) {
      const name = grants.displayOf(grant.client).then((display) => appName(grant.client, display))
      live.push(name.then((each) => entry(grant, each, login.formField(request))))
    }
    const list =
      live.length === 0
        ? '<p>No app has access to your account.</p>'
        : (await Promise.all(live)).join('\n')
    const signedIn = `<p>You are signed in as <strong>${escapeHtml(owner)}</strong>.</p>`
    return page({ title: 'Connected apps', content: `${signedIn}\n${list}` })
  }
}

/** What the form of an owner changes. */
function amendmentOf({ access }: GrantView, fields: URLSearchParams) {
  const isChosen = ({ itemId }: ItemView) => itemId === fields.get('item')
  switch (fields.get('do')) {
    case 'pause':
      return { conditions: { pausedUntil: untilResumed } }
    case 'resume':
      return { conditions: { pausedUntil: null } }
    case 'remove':
      return { access: access.filter((item) => !isChosen(item)) }
    case 'lower':
      return {
        access: access.map((item) => (isChosen(item) ? lowered(item, fields.get('most')) : item)),
      }
    default:
      return {}
  }
}

/** Returns the item with a lower limit, or unchanged if the amount cannot be read. */
function lowered(item: ItemView, most: string | null): ItemView {
  const limit = item.limits?.debitAmount
  const [, whole = '', fraction = ''] = /^(\d{1,15})(?:[.,](\d{1,15}))?$/.exec(most ?? '') ?? []
  if (limit === undefined || whole === '' || fraction.length > limit.assetScale) return item
  const value = BigInt(whole + fraction.padEnd(limit.assetScale, '0')).toString()
  return { ...item, limits: { ...item.limits, debitAmount: { ...limit, value } } }
}

function entry(
  { grantId, access, conditions }: GrantView,
  name: string,
  formField: string,
): string {
  const grant = `${formField}<input type="hidden" name="grant" value="${escapeHtml(grantId)}">`
  const items = access.map((item) => {
    const lines = describeAccess(item).map((line) => `<li>${escapeHtml(line)}</li>`)
    return `<ul>${lines.join('\n')}</ul>${itemForm(item, access.length > 1, grant)}`
  })
  const isPaused = (conditions?.pausedUntil ?? 0) > Date.now()
  const pause = isPaused
    ? '<button name="do" value="resume">Resume payments</button>'
    : '<button name="do" value="pause">Pause payments</button>'
  const isPaying = access.some(({ type }) => type === 'outgoing-payment')
  return `<section>
<h2>${name} may:</h2>
${items.join('\n')}
${isPaused ? '<p>Payments are paused.</p>' : ''}
${isPaying ? `<form method="post">${grant}${pause}</form>` : ''}
<form method="post">${formField}<button name="grant" value="${escapeHtml(grantId)}">Revoke</button></form>
</section>`
}

/** The form that lowers the limit of an item, or removes the item while others remain. */
function itemForm({ itemId = '', limits }: ItemView, isRemovable: boolean, grant: string): string {
  const limit = limits?.debitAmount
  const lower =
    limit === undefined
      ? ''
      : `<label>New limit in ${escapeHtml(limit.assetCode)}, not more than now
<input name="most" inputmode="decimal" autocomplete="off"></label>
<button name="do" value="lower">Lower the limit</button>`
  const remove = isRemovable ? '<button name="do" value="remove">Remove this</button>' : ''
  if (lower === '' && remove === '') return ''
  const item = `<input type="hidden" name="item" value="${escapeHtml(itemId)}">`
  return `<form method="post">${grant}${item}${lower}${remove}</form>`
}
