import type {
  Handler,
  HostResult,
  Interactions,
  InteractionView,
  TokenView,
} from 'open-payments-server'
import type { HttpRequest, HttpResponse } from 'open-payments-server/adapter'
import { fitsAccount } from 'open-payments-server/core'
import type { Account, Ledger } from './ledger.js'
import type { Login } from './login.js'
import { appName, escapeHtml, fieldsOf, methodNotAllowed, page, pathOf, seeOther } from './page.js'
import { describeAccess, describeTotal } from './wording.js'

/** The page where an owner decides about the access that an app asks for: `/consent/{id}`. */
export function consentPage(interactions: Interactions, ledger: Ledger, login: Login): Handler {
  async function decide(request: HttpRequest, id: string, owner: string): Promise<HttpResponse> {
    if (!login.isOwnForm(request)) return message(403, 'Please open the page again')
    const fields = fieldsOf(request)
    const [decision, account] = [fields.get('decision'), fields.get('account')]
    if (decision === 'deny') return outcome(await interactions.deny(id, { resourceOwner: owner }))
    if (decision !== 'approve') return message(400, 'Please choose either Approve or Deny')
    const walletAddresses = await ledger.ownedBy(owner)
    if (walletAddresses.length === 0) return message(403, 'You have no account in this wallet')
    const approval = { resourceOwner: owner, walletAddresses, ...(account && { account }) }
    return outcome(await interactions.approve(id, approval))
  }

  return async (request) => {
    const id = pathOf(request).slice('/consent/'.length)
    const view = await interactions.get(id)
    if (view === undefined) return message(404, 'This request does not exist')
    const owner = login.ownerOf(request)
    if (request.method === 'POST') {
      return owner === undefined ? login.redirect(request) : decide(request, id, owner)
    }
    if (request.method !== 'GET' && request.method !== 'HEAD') return methodNotAllowed()
    if (view.status === 'interaction-expired') return message(410, 'This request has expired')
    if (view.status !== 'pending') return message(410, 'You have already answered this request')
    if (owner === undefined) return login.redirect(request)
    return question(view, owner, await ledger.ownedBy(owner), login.formField(request))
  }
}

function outcome(result: HostResult<{ readonly redirect?: string }>): HttpResponse {
  if (!result.ok) {
    if (result.refusal === 'identifier_required' || result.refusal === 'asset_mismatch') {
      return message(409, 'Please open the page again and choose one of its accounts')
    }
    return result.refusal === 'not_the_owner'
      ? message(403, 'This request is for an account of another owner')
      : message(409, 'This request can no longer be answered')
  }
  if (result.redirect !== undefined) return seeOther(result.redirect)
  return message(200, 'Thank you. Please return to the app')
}

function message(status: number, title: string): HttpResponse {
  return page({ status, title, content: '<p><a href="/apps">Connected apps</a></p>' })
}

function question(
  view: InteractionView,
  owner: string,
  accounts: readonly Account[],
  formField: string,
): HttpResponse {
  const { client, display, tokens, totals, finishUri, needAccount } = view
  const fitting = accounts.filter((each) => needAccount.every((item) => fitsAccount(item, each)))
  const canApprove = needAccount.length === 0 || fitting.length > 0
  const sums = totals.flatMap((total) => describeTotal(total) ?? [])
  return page({
    title: `Give ${new URL(client).host} access to your account?`,
    content: `
<p>You are signed in as <strong>${escapeHtml(owner)}</strong>. The app ${appName(client, display)} asks to:</p>
${tokens.map(listOf).join('\n')}
${sums.map((sum) => `<p><strong>${escapeHtml(sum)}.</strong></p>`).join('\n')}
<p>${escapeHtml(afterwards(finishUri))} You can end the access at any time on the page of connected apps.</p>
<form method="post">
${formField}
${needAccount.length === 0 ? '' : choice(accounts, fitting)}
${canApprove ? '<button name="decision" value="approve">Approve</button>' : ''}
<button name="decision" value="deny">Deny</button>
</form>`,
    ...(finishUri !== undefined && { formTarget: finishUri }),
  })
}

/** The accounts for access of an app that names none. A limit is in one asset, and so fits the accounts in that asset. */
function choice(accounts: readonly Account[], fitting: readonly Account[]): string {
  const nameOf = ({ url, assetCode }: Account) => escapeHtml(`${url} (${assetCode})`)
  const options = fitting.map((each) => {
    return `<option value="${escapeHtml(each.url)}">${nameOf(each)}</option>`
  })
  const others = accounts.filter((each) => !fitting.includes(each)).map(nameOf)
  const select = `<label>For which account? <select name="account">${options.join('')}</select></label>`
  return `<p>${options.length === 0 ? 'None of your accounts fits.' : select}</p>
${others.map((name) => `<p>Not ${name}: the limit is in another currency.</p>`).join('\n')}`
}

/** The label of one of several tokens is text that the app chose. */
function listOf({ label, access }: TokenView): string {
  const title = label === undefined ? '' : `<p>With the key “${escapeHtml(label)}”:</p>`
  const items = access.flatMap(describeAccess).map((line) => `<li>${escapeHtml(line)}</li>`)
  return `${title}<ul>${items.join('\n')}</ul>`
}

function afterwards(finishUri: string | undefined): string {
  if (finishUri === undefined) return 'Then return to the app.'
  const { host, protocol } = new URL(finishUri)
  return `Then you return to ${host === '' ? protocol : host}.`
}
