import type { GrantServices, GrantView, Handler, HttpResponse } from 'open-payments-server'
import { escapeHtml, fieldOf, page, seeOther, wrongMethod } from './page.js'
import { describeAccess } from './plain-language.js'
import type { Session } from './session.js'

/** The page where an account's owner sees the apps with live grants and revokes them. */
export function connectedApps(
  grants: Pick<GrantServices, 'iterate' | 'get' | 'revoke'>,
  session: Session,
): Handler {
  async function liveGrantsOf(resourceOwner: string): Promise<GrantView[]> {
    const live: GrantView[] = []
    for await (const grant of grants.iterate({ resourceOwner })) {
      if (isLive(grant.status)) live.push(grant)
    }
    return live
  }

  /** Checks first that the grant is the owner's own: a form can contain any id. */
  async function revoke(grantId: string, owner: string): Promise<HttpResponse> {
    const grant = await grants.get(grantId)
    if (grant?.resourceOwner !== owner) {
      return page(404, 'Unknown', '<p>You have not approved this.</p>')
    }
    await grants.revoke(grantId)
    return seeOther('/grants')
  }

  return async (request) => {
    if (request.url.split('?', 1)[0] !== '/grants') {
      return page(404, 'Unknown', '<p>This page does not exist.</p>')
    }
    const owner = session.ownerOf(request)
    if (owner === undefined) {
      return page(403, 'Not signed in', '<p>Please open a consent page first. It signs you in.</p>')
    }
    if (request.method === 'POST') return revoke(fieldOf(request, 'grant') ?? '', owner)
    if (request.method !== 'GET' && request.method !== 'HEAD') return wrongMethod()
    return page(200, 'Connected apps', listed(await liveGrantsOf(owner), owner))
  }
}

function isLive(status: GrantView['status']): boolean {
  return status === 'approved' || status === 'issued'
}

function listed(grants: readonly GrantView[], owner: string): string {
  const signedIn = `<p>You are signed in as <b>${escapeHtml(owner)}</b>.</p>`
  if (grants.length === 0) return `${signedIn}<p>No app has access to your account.</p>`
  return `${signedIn}<ul>${grants.map(entry).join('')}</ul>`
}

function entry({ grantId, client, access, subject }: GrantView): string {
  const allowed = access.flatMap(describeAccess)
  if (subject !== undefined) allowed.push(`know that you are ${subject.id}`)
  return `<li>The app at <code>${escapeHtml(client)}</code> may:<br>
    ${allowed.map(escapeHtml).join('<br>')}
    <form method="post"><button name="grant" value="${escapeHtml(grantId)}">Revoke</button></form></li>`
}
