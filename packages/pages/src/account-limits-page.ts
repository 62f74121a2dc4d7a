import type { HttpResponse } from 'open-payments-server/adapter'
import {
  type AccountLimitSettings,
  type AccountLimitsOptions,
  type LimitedAccount,
  sectionOf,
} from './account-limits.js'
import type { OwnedAccount } from './consent.js'
import { fieldsOf, queryOf } from './forms.js'
import { seeOther } from './layout.js'
import { outcomeOf, seeOutcome } from './outcomes.js'
import { typedLimit, withTypedLimit } from './owner-limits.js'
import type { OwnersVisit, Site } from './site.js'

/** How often a form is applied to limits that change meanwhile, as with a double click. */
const attemptsMax = 3

/** Returns what serves the page of limits for all apps. */
export function accountLimitsPage(
  { options, tokens, screens, notice, show }: Site,
  settings: AccountLimitSettings,
): (visit: OwnersVisit) => Promise<HttpResponse> {
  const payments = options.resources?.outgoingPayments

  async function limited(account: OwnedAccount): Promise<LimitedAccount> {
    const [limits, statuses] = await Promise.all([
      settings.of(account.url),
      payments?.limitsOf({ walletAddress: account.url }),
    ])
    // They differ if a limit was added between the two calls, and if the host has no `policy.accountLimits`.
    return { account, limits, ...(statuses?.length === limits.length && { statuses }) }
  }

  /** Resolves to the reason why the limit that the owner typed was not set. */
  async function save(
    account: OwnedAccount,
    section: string,
    { fields, locale }: { fields: URLSearchParams } & Pick<OwnersVisit, 'locale'>,
  ): Promise<AccountLimitsOptions['outcome']> {
    const typed = typedLimit(fields)
    for (let attempt = 0; attempt < attemptsMax; attempt++) {
      const before = await settings.of(account.url)
      const changed = withTypedLimit(before, typed, account, locale, section)
      if (!changed.ok) return changed.problem
      if (await settings.set(account.url, changed.value, before)) return undefined
    }
    return 'limitsChanged'
  }

  return async (visit) => {
    const { request, owner, locale } = visit
    const accounts = await options.accountsOf(owner.id)
    if (request.method !== 'POST') {
      const seen = await outcomeOf<AccountLimitsOptions['outcome']>(tokens, visit)
      const { result: outcome, given } = seen ?? { given: queryOf(request) }
      const token = await tokens.field('account-limits', owner.id)
      const all = await Promise.all(accounts.map(limited))
      const screen = screens.accountLimits(all, { locale, outcome, given, token })
      return show(screen, visit, outcome === undefined ? 200 : 400)
    }
    const given = fieldsOf(request)
    const answer = (outcome: AccountLimitsOptions['outcome']) =>
      seeOutcome(tokens, visit, outcome, { at: { limits: '' }, given })
    if (!(await tokens.isValid(request, 'account-limits', owner.id))) return answer('stale')
    const index = accounts.findIndex(({ url }) => url === given.get('account'))
    const account = accounts[index]
    if (account === undefined) return notice(403, 'notYours', visit)
    if (given.get('do') !== 'limit') return answer('unchanged')
    const problem = await save(account, sectionOf(index), { fields: given, locale })
    if (problem !== undefined) return answer(problem)
    return seeOther(`?${new URLSearchParams({ limits: '', account: account.url, done: 'saved' })}`)
  }
}
