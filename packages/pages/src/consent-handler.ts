import type { HostResult, InteractionView, TokenItem } from 'open-payments-server'
import type { Handler, HttpResponse } from 'open-payments-server/adapter'
import { type ConsentOptions, isSameUrl, limitFieldsOf } from './consent.js'
import { fieldsOf } from './forms.js'
import { seeOther } from './layout.js'
import { type LimitProblem, lowered } from './limits.js'
import type { Locale } from './locale.js'
import { ownReceiverOf } from './own-receivers.js'
import { receiversIn } from './receivers.js'
import { isSignedIn, type OwnersVisit, type Site, type Visit } from './site.js'

/** Returns the handler of the consent page. */
export function consentHandler(site: Site): Handler {
  const { options, tokens, screens, notice } = site
  const { accountsOf, connectedAppsUrl, intervalCounting } = options
  const { interactions } = options.auth
  const receiverOf = options.receiverOf ?? ownReceiverOf(options)

  async function ask(
    view: InteractionView,
    visit: OwnersVisit,
    problem?: ConsentOptions['problem'],
    given?: URLSearchParams,
  ): Promise<HttpResponse> {
    const { owner, locale } = visit
    if (view.status === 'interaction-expired') return notice(410, 'expired', visit)
    if (!isOpen(view)) return notice(410, 'answered', visit)
    const accounts = await accountsOf(owner.id)
    const isForeign = view.access.some(
      ({ identifier }) =>
        identifier !== undefined && !accounts.some(({ url }) => isSameUrl(url, identifier)),
    )
    if (isForeign) return notice(403, 'notYours', visit)
    const receivers = await receiversIn(view.access, receiverOf)
    const screen = screens.consent(view, {
      locale,
      now: site.now(),
      intervalCounting,
      receivers,
      accounts,
      token: await tokens.field('consent', owner.id, view.id),
      problem,
      given,
      connectedAppsUrl,
    })
    return site.show(screen, visit, problem === undefined ? 200 : 400)
  }

  async function decide(view: InteractionView, visit: OwnersVisit): Promise<HttpResponse> {
    const { id } = view
    const { request, owner } = visit
    if (!(await tokens.isValid(request, 'consent', owner.id, id))) return ask(view, visit, 'stale')
    const fields = fieldsOf(request)
    const decision = fields.get('decision')
    if (decision === 'deny') {
      const denied = await interactions.deny(id, { resourceOwner: owner.id })
      return answered(denied, 'denied', visit)
    }
    if (decision !== 'approve') return ask(view, visit, 'undecided', fields)
    const walletAddresses = await accountsOf(owner.id)
    if (walletAddresses.length === 0) return notice(403, 'notYours', visit)
    const account = view.needAccount.length === 0 ? undefined : fields.get('account')
    if (account && !walletAddresses.some(({ url }) => isSameUrl(url, account))) {
      return notice(403, 'notYours', visit)
    }
    const read = accessIn(view.access, fields, visit.locale)
    if (!read.ok) return ask(view, visit, read.problem, fields)
    const approval = {
      resourceOwner: owner.id,
      walletAddresses,
      ...(account && { account }),
      ...read.value,
    }
    const approved = await interactions.approve(id, approval)
    if (!approved.ok && /^(?:identifier_required|asset_mismatch)$/.test(approved.refusal)) {
      return ask(view, visit, 'choose', fields)
    }
    return answered(approved, 'approved', visit)
  }
  function answered(
    result: HostResult<{ readonly redirect?: string }>,
    done: 'approved' | 'denied',
    visit: Visit,
  ): HttpResponse {
    if (result.ok) {
      return result.redirect === undefined ? notice(200, done, visit) : seeOther(result.redirect)
    }
    if (result.refusal === 'not_the_owner') return notice(403, 'notYours', visit)
    return notice(409, 'failed', visit, { values: { reason: result.reason } })
  }

  return site.served(async (visit) => {
    const [path = ''] = visit.request.url.split('?', 1)
    const view = await interactions.get(path.split('/').at(-1) ?? '')
    if (view === undefined) return notice(404, 'unknown', visit)
    const isPosted = visit.request.method === 'POST'
    if (!isPosted && view.status === 'interaction-expired') return notice(410, 'expired', visit)
    if (!isPosted && !isOpen(view)) return notice(410, 'answered', visit)
    if (!isSignedIn(visit)) return options.signIn(visit.request)
    return isPosted ? decide(view, visit) : ask(view, visit)
  })
}

/** Returns the access with the lower limits that the owner typed, or nothing if there are none. */
function accessIn(
  access: readonly TokenItem[],
  fields: URLSearchParams,
  locale: Locale,
):
  | { readonly ok: true; readonly value: { readonly access?: readonly TokenItem[] } }
  | { readonly ok: false; readonly problem: LimitProblem } {
  const changes = new Map<TokenItem, TokenItem>()
  for (const { field, item, limit } of limitFieldsOf(access)) {
    const typed = fields.get(field)?.trim() ?? ''
    if (typed === '') continue
    const lower = lowered(item, limit, typed, locale)
    if (typeof lower === 'string') return { ok: false, problem: { name: lower, field } }
    changes.set(item, lower)
  }
  if (changes.size === 0) return { ok: true, value: {} }
  return { ok: true, value: { access: access.map((item) => changes.get(item) ?? item) } }
}

/** Whether the owner can decide, or repeat an approval. */
function isOpen({ status, issuedAt }: InteractionView): boolean {
  return status === 'pending' || (status === 'approved' && issuedAt === undefined)
}
