import type { SpendingLimit } from 'open-payments-server'
import type { HttpResponse } from 'open-payments-server/adapter'
import {
  type AccountLimitSettings,
  type AccountLimitsOptions,
  type LimitedAccount,
  sectionOf,
} from './account-limits.js'
import { fieldsOf, queryOf } from './forms.js'
import { html } from './html.js'
import { seeOther } from './layout.js'
import { outcomeOf, seeOutcome } from './outcomes.js'
import type { OwnedAccount } from './owned-account.js'
import {
  allowsMore,
  isSameLimit,
  limitOf,
  type TypedLimit,
  typedLimit,
  withLimit,
  withTypedLimit,
} from './owner-limits.js'
import type { OwnersVisit, Site } from './site.js'

/** How often a change is applied to limits that change meanwhile. */
const attemptsMax = 3

/** How long after a sign-in an owner may raise and remove limits. */
const freshMs = 5 * 60_000

/** A change of one limit, as the page that checks it shows it. */
interface Shown {
  readonly url: string
  readonly typed: TypedLimit
  /** Absent if the limit is new. */
  readonly before?: SpendingLimit | undefined
  /** Absent if the limit is removed. */
  readonly after?: SpendingLimit | undefined
}

type Problem = NonNullable<AccountLimitsOptions['outcome']>

/** What a form would change, or why it cannot. */
type Change =
  | { readonly ok: true; readonly shown: Shown }
  | { readonly ok: false; readonly problem: Problem }

/** Returns what serves the page of limits for all apps. */
export function accountLimitsPage(
  site: Site,
  settings: AccountLimitSettings,
): (visit: OwnersVisit) => Promise<HttpResponse> {
  const { options, tokens, screens, notice } = site
  const { signInAgain } = options
  const payments = options.resources?.outgoingPayments
  const mayWiden = signInAgain !== undefined

  async function limited(account: OwnedAccount): Promise<LimitedAccount> {
    const [limits, statuses] = await Promise.all([
      settings.of(account.url),
      payments?.limitsOf({ walletAddress: account.url }),
    ])
    // They differ if a limit was added between the two calls, and if the host has no `policy.accountLimits`.
    return { account, limits, ...(statuses?.length === limits.length && { statuses }) }
  }

  async function list(
    visit: OwnersVisit,
    accounts: readonly OwnedAccount[],
    { result: outcome, given }: { result?: Problem; given: URLSearchParams },
  ): Promise<HttpResponse> {
    const { owner, locale } = visit
    const token = await tokens.field('account-limits', owner.id)
    const all = await Promise.all(accounts.map(limited))
    const screen = screens.accountLimits(all, { locale, outcome, given, token, mayWiden })
    return site.show(screen, visit, { status: outcome === undefined ? 200 : 400, place: 'limits' })
  }

  async function changeOf(
    fields: URLSearchParams,
    accounts: readonly OwnedAccount[],
    { locale }: OwnersVisit,
  ): Promise<Change> {
    const index = accounts.findIndex(({ url }) => url === fields.get('account'))
    const account = accounts[index]
    const action = fields.get('do')
    if (account === undefined || (action !== 'limit' && !(action === 'remove' && mayWiden))) {
      return { ok: false, problem: 'unchanged' }
    }
    const { url } = account
    const limits = await settings.of(url)
    const typed = typedLimit(fields)
    const before = limitOf(limits, typed)
    if (action === 'remove') return { ok: true, shown: { url, typed, before } }
    const section = sectionOf(index)
    const changed = withTypedLimit(limits, typed, account, locale, { section, mayWiden })
    if (!changed.ok) return { ok: false, problem: changed.problem }
    return { ok: true, shown: { url, typed, before, after: limitOf(changed.value, typed) } }
  }

  function isFresh({ owner: { signedInAt } }: OwnersVisit): boolean {
    const age = site.now() - (signedInAt ?? Number.NaN)
    return age >= 0 && age < freshMs
  }

  /** Shows a change before it is saved. What allows more needs a new sign-in first. */
  async function check(
    fields: URLSearchParams,
    accounts: readonly OwnedAccount[],
    visit: OwnersVisit,
  ): Promise<HttpResponse> {
    const { owner, locale, request } = visit
    const change = await changeOf(fields, accounts, visit)
    if (!change.ok) return list(visit, accounts, { result: change.problem, given: fields })
    const { url, before, after } = change.shown
    if (signInAgain && allowsMore(before, after) && !isFresh(visit)) {
      return site.linked(await signInAgain(request), 'signInAgain', visit)
    }
    const account = accounts.find((each) => each.url === url)
    if (account === undefined) return notice(403, 'notYours', visit)
    const text = JSON.stringify(change.shown)
    const screen = screens.limitCheck(
      { account, before, after },
      {
        locale,
        backUrl: '?limits',
        fields: html`<input type="hidden" name="shown" value="${text}">
        ${await tokens.field('account-limit', owner.id, text)}`,
      },
    )
    return site.show(screen, visit, { place: 'limits' })
  }

  /** Saves exactly what was shown, unless somebody has changed this limit meanwhile. */
  async function save(text: string, visit: OwnersVisit): Promise<HttpResponse> {
    const { url, typed, before, after } = JSON.parse(text) as Shown
    const given = new URLSearchParams({ account: url, do: 'limit', ...typed })
    const refused = (problem: Problem) =>
      seeOutcome(tokens, visit, problem, { at: { limits: '' }, given })
    if (allowsMore(before, after) && !isFresh(visit)) return refused('stale')
    const saved = () =>
      seeOther(`?${new URLSearchParams({ limits: '', account: url, done: 'saved' })}`)
    for (let attempt = 0; attempt < attemptsMax; attempt++) {
      const limits = await settings.of(url)
      const current = limitOf(limits, typed)
      // The form was sent twice.
      if (isSameLimit(current, after)) return saved()
      if (!isSameLimit(current, before)) break
      const next = withLimit(limits, typed, after)
      if (next === undefined) break
      if (await settings.set(url, next, limits)) return saved()
    }
    return refused('limitsChanged')
  }

  return async (visit) => {
    const { request, owner } = visit
    const accounts = await options.accountsOf(owner.id)
    if (request.method !== 'POST') {
      const seen = await outcomeOf<Problem | 'check'>(tokens, visit)
      if (seen === undefined) return list(visit, accounts, { given: queryOf(request) })
      const { result, given } = seen
      return result === 'check'
        ? check(given, accounts, visit)
        : list(visit, accounts, { result, given })
    }
    const fields = fieldsOf(request)
    const shown = fields.get('shown')
    if (shown !== null && fields.get('do') === 'save') {
      if (await tokens.isValid(request, 'account-limit', owner.id, shown)) return save(shown, visit)
    }
    const answer = (result: Problem | 'check') =>
      seeOutcome(tokens, visit, result, { at: { limits: '' }, given: fields })
    if (!(await tokens.isValid(request, 'account-limits', owner.id))) return answer('stale')
    const isOwners = accounts.some(({ url }) => url === fields.get('account'))
    if (!isOwners) return notice(403, 'notYours', visit)
    const change = await changeOf(fields, accounts, visit)
    return answer(change.ok ? 'check' : change.problem)
  }
}
