import type { GrantServices, GrantView, Handler } from 'open-payments-server'
import type { HttpResponse } from 'open-payments-server/adapter'
import type { Login } from './login.js'
import { escapeHtml, fieldsOf, methodNotAllowed, page, seeOther } from './page.js'
import { describeAccess } from './wording.js'

/** The page where owners see and revoke what they approved: `/apps`. */
export function connectedAppsPage(grants: GrantServices, login: Login): Handler {
  async function revoke(grantId: string, owner: string): Promise<HttpResponse> {
    // A form can contain the id of another owner's grant.
    const grant = await grants.get(grantId)
    if (grant?.resourceOwner === owner) await grants.revoke(grantId)
    return seeOther('/apps')
  }

  return async (request) => {
    const owner = login.ownerOf(request)
    if (owner === undefined) return login.redirect(request)
    if (request.method === 'POST') {
      const isOwn = login.isOwnForm(request)
      return isOwn ? revoke(fieldsOf(request).get('grant') ?? '', owner) : seeOther('/apps')
    }
    if (request.method !== 'GET' && request.method !== 'HEAD') return methodNotAllowed()
    const live: string[] = []
    for await (const grant of grants.iterate({ resourceOwner: owner, statuses: ['approved'] })) {
      live.push(entry(grant, login.formField(request)))
    }
    const list = live.length === 0 ? '<p>No app has access to your account.</p>' : live.join('\n')
    const signedIn = `<p>You are signed in as <strong>${escapeHtml(owner)}</strong>.</p>`
    return page({ title: 'Connected apps', content: `${signedIn}\n${list}` })
  }
}

function entry({ grantId, client, access }: GrantView, formField: string): string {
  const items = access.flatMap(describeAccess).map((line) => `<li>${escapeHtml(line)}</li>`)
  return `<section>
<h2><code>${escapeHtml(client)}</code> may:</h2>
<ul>${items.join('\n')}</ul>
<form method="post">${formField}<button name="grant" value="${escapeHtml(grantId)}">Revoke</button></form>
</section>`
}
