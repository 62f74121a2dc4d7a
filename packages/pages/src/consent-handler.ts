import type { ConsentRefusal, HostResult, InteractionView, TokenItem } from 'open-payments-server'
import type { Handler, HttpResponse } from 'open-payments-server/adapter'
import { readAmount } from './amounts.js'
import { type ConsentOptions, limitFieldsOf, placeOf } from './consent.js'
import { limitsIn } from './consent-limit.js'
import { fieldsOf } from './forms.js'
import { html } from './html.js'
import { canArrive, seeOther } from './layout.js'
import { type LimitProblem, lowered } from './limits.js'
import { type Locale, say } from './locale.js'
import { type Outcome, outcomeOf, seeOutcome } from './outcomes.js'
import { ownKeysOf } from './own-keys.js'
import { ownReceiverOf } from './own-receivers.js'
import { isSameUrl, type OwnedAccount } from './owned-account.js'
import { isSameLimit } from './owner-limits.js'
import { namedReceivers, receiversIn } from './receivers.js'
import { isSignedIn, type OwnersVisit, type Site, type Visit } from './site.js'

/** Returns the handler of the consent page. */
export function consentHandler(site: Site): Handler {
  const { options, tokens, screens, notice } = site
  const { accountsOf, connectedAppsUrl, intervalCounting } = options
  const { interactions } = options.auth
  const receiverOf = options.receiverOf ?? ownReceiverOf(options)

  const tokenOf = ({ id }: InteractionView, { owner }: OwnersVisit) =>
    tokens.field('consent', owner.id, id)

  async function ask(
    view: InteractionView,
    visit: OwnersVisit,
    { result: problem, given }: Partial<Outcome<ConsentOptions['problem']>> = {},
  ): Promise<HttpResponse> {
    if (view.status !== 'pending') return decided(view, visit)
    const { owner, locale } = visit
    const accounts = await accountsOf(owner.id)
    if (isForeign(view, accounts)) return notice(403, 'notYours', visit)
    const receivers = await namedReceivers(receiversIn(view.access), receiverOf)
    const screen = screens.consent(view, {
      locale,
      now: site.now(),
      intervalCounting,
      receivers,
      accounts,
      ownKey: await ownKeysOf(accounts, options.keys)(view),
      token: await tokenOf(view, visit),
      problem,
      given,
      connectedAppsUrl,
    })
    return site.show(screen, visit, { status: problem === undefined ? 200 : 400 })
  }

  async function askAgain(
    view: InteractionView,
    visit: OwnersVisit,
    problem: ConsentOptions['problem'],
    given?: URLSearchParams,
  ): Promise<HttpResponse> {
    if (view.status !== 'pending') return decided(view, visit)
    return seeOutcome(tokens, visit, problem, { ...(given !== undefined && { given }) })
  }

  /** Shows what was decided, with a link back to the app as long as the app needs it. */
  async function decided(view: InteractionView, visit: Visit, status = 410): Promise<HttpResponse> {
    const { finishUri } = view
    if (view.status === 'interaction-expired') return notice(status, 'expired', visit)
    const isLive = leadsBack(view)
    if (!isLive || !isSignedIn(visit) || finishUri === undefined) {
      return notice(status, decisionOf(view), visit)
    }
    const { owner, locale } = visit
    if (isForeign(view, await accountsOf(owner.id))) return notice(403, 'notYours', visit)
    const content = html`<form method="post">${await tokenOf(view, visit)}
      <div class="buttons"><button class="primary" name="decision" value="return">
      ${say(locale, 'backTo', { place: placeOf(finishUri) })}</button></div></form>`
    return notice(status, decisionOf(view), visit, { content, formTarget: finishUri })
  }

  async function decide(view: InteractionView, visit: OwnersVisit): Promise<HttpResponse> {
    const { request, owner, locale } = visit
    const { id } = view
    if (!(await tokens.isValid(request, 'consent', owner.id, id)))
      return askAgain(view, visit, 'stale')
    const fields = fieldsOf(request)
    const decision = fields.get('decision')
    const resourceOwner = owner.id
    const walletAddresses = await accountsOf(owner.id)
    if (decision === 'return' || isRepeated(view, fields, walletAddresses, locale)) {
      return repeat(view, visit)
    }
    if (decision === 'deny') {
      return answered(await interactions.deny(id, { resourceOwner }), 'denied', visit, view)
    }
    if (decision !== 'approve') return askAgain(view, visit, 'undecided', fields)
    if (view.status !== 'pending') return decided(view, visit, 409)
    if (walletAddresses.length === 0) return notice(403, 'notYours', visit)
    const account = view.needAccount.length === 0 ? undefined : fields.get('account') || undefined
    if (account !== undefined && !walletAddresses.some(({ url }) => isSameUrl(url, account))) {
      return notice(403, 'notYours', visit)
    }
    const read = accessIn(view.access, fields, locale)
    if (!read.ok) return askAgain(view, visit, read.problem, fields)
    const limited = limitsIn(view, fields, { locale, accounts: walletAddresses, account })
    if (!limited.ok) return askAgain(view, visit, limited.problem, fields)
    const approval = {
      resourceOwner,
      walletAddresses,
      ...(account !== undefined && { account }),
      ...read.value,
      ...(limited.limits.length > 0 && { conditions: { limits: limited.limits } }),
    }
    const approved = await interactions.approve(id, approval)
    if (!approved.ok && /^(?:identifier_required|asset_mismatch)$/.test(approved.refusal)) {
      return askAgain(view, visit, 'choose', fields)
    }
    return answered(approved, 'approved', visit, view)
  }

  /** Repeats the decision that was made, for a browser that did not arrive at the app. */
  async function repeat(view: InteractionView, visit: OwnersVisit): Promise<HttpResponse> {
    const { id, status, access, conditions, subject } = view
    const resourceOwner = visit.owner.id
    if (status === 'denied') {
      return answered(await interactions.deny(id, { resourceOwner }), 'denied', visit, view)
    }
    if (status !== 'approved') return askAgain(view, visit, 'undecided')
    const walletAddresses = await accountsOf(resourceOwner)
    if (walletAddresses.length === 0) return notice(403, 'notYours', visit)
    const approved = await interactions.approve(id, {
      resourceOwner,
      walletAddresses,
      access,
      ...(conditions !== undefined && { conditions }),
      sharesSubject: subject !== undefined,
    })
    return answered(approved, 'approved', visit, view)
  }

  /** A refusal has a page of its own. Its `reason` is for the log of a developer, not for an owner. */
  async function answered(
    result: HostResult<{ readonly redirect?: string }, ConsentRefusal>,
    done: 'approved' | 'denied',
    visit: OwnersVisit,
    view: InteractionView,
  ): Promise<HttpResponse> {
    if (result.ok) {
      const { redirect } = result
      if (redirect === undefined) return notice(200, done, visit)
      if (canArrive(redirect)) return seeOther(redirect)
      const text = say(visit.locale, 'backTo', { place: placeOf(redirect) })
      const content = html`<p><a class="button" href="${redirect}">${text}</a></p>`
      return notice(200, done, visit, { content })
    }
    if (result.refusal === 'not_the_owner') return notice(403, 'notYours', visit)
    if (result.refusal === 'interaction_unknown') return notice(404, 'requestUnknown', visit)
    const current = (await interactions.get(view.id)) ?? view
    return current.status === 'pending'
      ? notice(409, 'failed', visit)
      : decided(current, visit, 409)
  }

  return site.served(async (visit) => {
    const [path = ''] = visit.request.url.split('?', 1)
    const view = await interactions.get(path.split('/').at(-1) ?? '')
    if (view === undefined) return notice(404, 'requestUnknown', visit)
    const isPosted = visit.request.method === 'POST'
    const isOver = view.status !== 'pending' && !(view.status === 'approved' && leadsBack(view))
    if (!isPosted && isOver) return decided(view, visit)
    if (!isSignedIn(visit)) return site.signIn(visit)
    if (isPosted) return decide(view, visit)
    return ask(view, visit, await outcomeOf(tokens, visit))
  })
}

/** Whether access is for an account of another owner. */
function isForeign({ access }: InteractionView, accounts: readonly OwnedAccount[]): boolean {
  return access.some(
    ({ identifier }) =>
      identifier !== undefined && !accounts.some(({ url }) => isSameUrl(url, identifier)),
  )
}

/** Whether the app needs a redirect: as far as this server knows, the app has not received an answer. */
function leadsBack({ status, issuedAt }: InteractionView): boolean {
  return status === 'denied' || (status === 'approved' && issuedAt === undefined)
}

function decisionOf({ status }: InteractionView): 'wasApproved' | 'wasDenied' | 'wasEnded' {
  return status === 'approved' ? 'wasApproved' : status === 'denied' ? 'wasDenied' : 'wasEnded'
}

/** Whether a form, such as that of a double click, decides what was decided. */
function isRepeated(
  view: InteractionView,
  fields: URLSearchParams,
  accounts: readonly OwnedAccount[],
  locale: Locale,
): boolean {
  if (fields.get('decision') !== 'approve' || view.status !== 'approved') return false
  const account = fields.get('account')
  const isSameAccount =
    account === null || view.access.some(({ identifier }) => isSameUrl(account, identifier))
  const isAsTyped = ({ field, limit }: ReturnType<typeof limitFieldsOf>[number]) => {
    const typed = fields.get(field)?.trim() ?? ''
    return typed === '' || readAmount(typed, limit, locale) === limit.value
  }
  const limited = limitsIn(view, fields, { locale, accounts, account: account ?? undefined })
  const isLimited = limited.ok && isSameLimit(limited.limits[0], view.conditions?.limits?.[0])
  return isSameAccount && isLimited && limitFieldsOf(view.access).every(isAsTyped)
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
