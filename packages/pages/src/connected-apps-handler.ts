import {
  type ConditionChanges,
  type GrantView,
  InvalidInputError,
  type ItemView,
} from 'open-payments-server'
import type { Handler, HttpResponse } from 'open-payments-server/adapter'
import { accountLimitsPage } from './account-limits-page.js'
import { type OwnKey, shortName } from './app-name.js'
import { type ConnectedAppOptions, limitFieldOf } from './connected-app.js'
import {
  type AppOptions,
  type ConnectedApp,
  type ConnectedAppsOptions,
  searchLengthMax,
  untilResumed,
} from './connected-apps.js'
import { fieldsOf, queryOf } from './forms.js'
import { seeOther } from './layout.js'
import { type LimitProblem, limitOf, lowered } from './limits.js'
import type { Locale } from './locale.js'
import { type Outcome, outcomeOf, seeOutcome } from './outcomes.js'
import { type OwnKeyOf, ownKeysOf } from './own-keys.js'
import { ownReceiverOf } from './own-receivers.js'
import type { OwnedAccount } from './owned-account.js'
import { debitedAsset, typedLimit, withTypedLimit } from './owner-limits.js'
import { namedReceivers, receiversIn } from './receivers.js'
import { isSignedIn, type OwnersVisit, type Site } from './site.js'

/** The apps, and the payments, on one page. */
const pageMax = 20
/** The apps in which a search looks, in pages of this many. */
const searchedMax = 500
const searchedPage = 100
/** How often a page reads on: one call of the library looks at a part of a list, and may find nothing in it. */
const readsMax = 20

/** Returns the handler of the pages of connected apps. */
export function connectedAppsHandler(site: Site): Handler {
  const { options, tokens, screens, notice } = site
  const { grants } = options.auth
  const payments = options.resources?.outgoingPayments
  const receiverOf = options.receiverOf ?? ownReceiverOf(options)
  const { accountLimits } = options
  const limitsPage = accountLimits && accountLimitsPage(site, accountLimits)

  async function connected(grant: GrantView, ownKeyOf: OwnKeyOf): Promise<ConnectedApp> {
    const { grantId } = grant
    const isPaying = grant.access.some(({ type }) => type === 'outgoing-payment')
    const [named, budgets, last, waiting] = await Promise.all([
      namesOf(grant, ownKeyOf),
      isPaying ? payments?.budgetsOf(grantId) : undefined,
      isPaying ? payments?.list({ grantId, last: 1 }) : undefined,
      isPaying ? payments?.listToConfirm?.({ grantId }) : undefined,
    ])
    return {
      grant,
      ...named,
      ...(budgets !== undefined && { budgets }),
      ...(last !== undefined && { lastPayment: last.result[0] ?? null }),
      ...(waiting !== undefined && { waiting: waiting.result }),
    }
  }

  async function namesOf(grant: GrantView, ownKeyOf: OwnKeyOf) {
    const [display, ownKey] = await Promise.all([grants.displayOf(grant.client), ownKeyOf(grant)])
    return { display, ownKey }
  }

  async function appOptions({ owner, locale }: OwnersVisit): Promise<AppOptions> {
    const accounts = await options.accountsOf(owner.id)
    const token = await tokens.field('apps', owner.id)
    const { intervalCounting } = options
    return { locale, now: site.now(), intervalCounting, accounts, token }
  }

  const approvedBy = (resourceOwner: string) => ({ resourceOwner, statuses: ['approved'] }) as const

  async function list(
    visit: OwnersVisit,
    outcome?: ConnectedAppsOptions['outcome'],
  ): Promise<HttpResponse> {
    const { owner } = visit
    const query = queryOf(visit.request)
    const shown = await appOptions(visit)
    const ownKeyOf = ownKeysOf(shown.accounts, options.keys)
    const search = query.get('search')?.trim().slice(0, searchLengthMax) || undefined
    const { grants: found, ...more } = await (search === undefined
      ? newest(owner.id, query.get('before'))
      : searched(owner.id, search, shown.locale, ownKeyOf))
    const apps = await Promise.all(found.map((grant) => connected(grant, ownKeyOf)))
    const screen = screens.connectedApps(apps, {
      ...shown,
      ...more,
      receivers: await namedReceivers(apps.flatMap(receiversWaitingIn), receiverOf),
      endedUrl: '?ended',
      accountLimitsUrl: limitsPage && '?limits',
      search,
      removed: await removedBy(owner.id, query.get('removed'), ownKeyOf),
      outcome,
    })
    return site.show(screen, visit, { status: outcome === undefined ? 200 : 400, place: 'apps' })
  }

  async function newest(ownerId: string, before: string | null) {
    const list = { ...approvedBy(ownerId), last: pageMax }
    const { result, pagination } = await pageOf((page) => grants.list({ ...list, ...page }), before)
    return { grants: result.toReversed(), olderUrl: olderUrl(pagination, {}) }
  }

  /** Resolves to the newest apps whose name or address contains a text. */
  async function searched(ownerId: string, search: string, locale: Locale, ownKeyOf: OwnKeyOf) {
    const all: GrantView[] = []
    let cursor: string | undefined
    let isMore = true
    for (let reads = 0; isMore && all.length < searchedMax && reads < readsMax; reads += 1) {
      const query = {
        ...approvedBy(ownerId),
        last: searchedPage,
        ...(cursor !== undefined && { cursor }),
      }
      const { result, pagination } = await grants.list(query)
      all.push(...result.toReversed())
      cursor = pagination.startCursor
      isMore = pagination.hasPreviousPage && cursor !== undefined
    }
    const lower = (text: string) => text.toLocaleLowerCase(locale.tag)
    const displays = new Map<string, ReturnType<typeof grants.displayOf>>()
    const displayOf = (client: string) => {
      const known = displays.get(client) ?? grants.displayOf(client)
      displays.set(client, known)
      return known
    }
    const matching = await Promise.all(
      all.map(async (grant) => {
        const { client } = grant
        const [display, ownKey] = await Promise.all([displayOf(client), ownKeyOf(grant)])
        const name = shortName({ client, display, ownKey }, locale)
        return lower(`${name} ${client}`).includes(lower(search)) ? [grant] : []
      }),
    )
    const found = matching.flat().slice(0, pageMax)
    return { grants: found, ...(isMore && { searchedMax: all.length }) }
  }

  async function ended(visit: OwnersVisit): Promise<HttpResponse> {
    const { owner, locale } = visit
    const query = { resourceOwner: owner.id, last: pageMax }
    const { result, pagination } = await pageOf(
      (page) => grants.history({ ...query, ...page }),
      queryOf(visit.request).get('before'),
    )
    const { intervalCounting, accountsOf, keys } = options
    const accounts = await accountsOf(owner.id)
    const ownKeyOf = ownKeysOf(accounts, keys)
    const ownKeys = new Map<string, OwnKey>()
    for (const grant of result) {
      const ownKey = await ownKeyOf(grant)
      if (ownKey !== undefined) ownKeys.set(grant.grantId, ownKey)
    }
    const screen = screens.endedApps(result.toReversed(), {
      locale,
      now: site.now(),
      intervalCounting,
      accounts,
      ownKeys,
      olderUrl: olderUrl(pagination, { ended: '' }),
    })
    return site.show(screen, visit, { place: 'apps' })
  }

  /** The app whose access the owner has ended. A link on any page can contain any id. */
  async function removedBy(ownerId: string, grantId: string | null, ownKeyOf: OwnKeyOf) {
    const grant = grantId === null ? undefined : await grants.get(grantId)
    const isRemoved = grant?.resourceOwner === ownerId && grant.status === 'revoked'
    return isRemoved ? { grant, ...(await namesOf(grant, ownKeyOf)) } : undefined
  }

  async function detail(
    grant: GrantView,
    visit: OwnersVisit,
    { result: outcome, given }: Partial<Outcome<ConnectedAppOptions['outcome']>> = {},
  ): Promise<HttpResponse> {
    const { grantId, access } = grant
    const query = queryOf(visit.request)
    const isPaying = access.some(({ type }) => type === 'outgoing-payment')
    const history =
      payments && isPaying
        ? await pageOf(
            (page) => payments.list({ grantId, last: pageMax, ...page }),
            query.get('before'),
          )
        : undefined
    const paid = history?.result.toReversed()
    const ownerLimits = grant.conditions?.limits && (await payments?.limitsOf({ grantId }))
    const shown = await appOptions(visit)
    const ownKeyOf = ownKeysOf(shown.accounts, options.keys)
    const app = {
      ...(await connected(grant, ownKeyOf)),
      ...(ownerLimits !== undefined && { ownerLimits }),
    }
    const wanted = [
      ...receiversIn(access),
      ...(paid ?? []).map(({ receiver }) => receiver),
      ...receiversWaitingIn(app),
    ]
    const screen = screens.connectedApp(app, {
      ...shown,
      receivers: await namedReceivers(wanted, receiverOf),
      payments: paid,
      olderUrl: history && olderUrl(history.pagination, { app: grantId }),
      outcome: outcome ?? (query.get('done') === 'changed' ? 'changed' : undefined),
      given,
    })
    return site.show(screen, visit, { status: outcome === undefined ? 200 : 400, place: 'apps' })
  }

  /** Checks that the grant belongs to the owner before changing it: a form can contain any id. */
  async function change(visit: OwnersVisit): Promise<HttpResponse> {
    const { request, owner, locale } = visit
    const fields = fieldsOf(request)
    const grantId = fields.get('grant') ?? ''
    if (!(await tokens.isValid(request, 'apps', owner.id)))
      return seeOutcome(tokens, visit, 'stale')
    const grant = await grants.get(grantId)
    if (grant?.resourceOwner !== owner.id) return notice(404, 'notApproved', visit)
    if (fields.get('do') === 'revoke') {
      await grants.revoke(grantId)
      return seeOther(`?${new URLSearchParams({ removed: grantId })}`)
    }
    const unchanged = (result: ConnectedAppOptions['outcome']) =>
      seeOutcome(tokens, visit, result, { at: { app: grantId }, given: fields })
    const changes = changesOf(grant, fields, locale, await options.accountsOf(owner.id))
    if (!changes.ok) return unchanged(changes.problem)
    const amended = await grants.amend(grantId, { resourceOwner: owner.id, ...changes.value })
    if (!amended.ok) {
      return unchanged(amended.refusal === 'conditions_widened' ? 'widened' : 'unchanged')
    }
    // A form that sets a value may be repeated; these forms remove something.
    const isIdle = !amended.changed && /^(?:remove|resume)$/.test(fields.get('do') ?? '')
    const done = isIdle ? {} : { done: 'changed' }
    return seeOther(`?${new URLSearchParams({ app: grantId, ...done })}`)
  }

  return site.served(async (visit) => {
    if (!isSignedIn(visit)) return site.signIn(visit)
    const query = queryOf(visit.request)
    if (limitsPage && query.has('limits')) return limitsPage(visit)
    if (visit.request.method === 'POST') return change(visit)
    const grantId = query.get('app')
    if (grantId === null && query.has('ended')) return ended(visit)
    const outcome = await outcomeOf<never>(tokens, visit)
    if (grantId === null) return list(visit, outcome?.result)
    const grant = await grants.get(grantId)
    const isOwners = grant?.resourceOwner === visit.owner.id && grant.status === 'approved'
    return isOwners ? detail(grant, visit, outcome) : notice(404, 'notApproved', visit)
  })
}

interface Page {
  readonly result: readonly unknown[]
  readonly pagination: { readonly hasPreviousPage: boolean; readonly startCursor?: string }
}

/** Resolves to the nearest page before a cursor that is not empty, if it is near; without a cursor, to the last one. */
async function pageOf<Found extends Page>(
  read: (page: { readonly cursor?: string }) => Promise<Found>,
  cursor: string | null,
): Promise<Found> {
  let page = await pageBefore(read, cursor)
  for (let reads = 1; page.result.length === 0 && reads < readsMax; reads += 1) {
    const { hasPreviousPage, startCursor } = page.pagination
    if (!hasPreviousPage || startCursor === undefined) return page
    page = await read({ cursor: startCursor })
  }
  return page
}

/** Resolves to the page before a cursor. A link on any page can contain any cursor: then, to the last page. */
async function pageBefore<Found>(
  read: (page: { readonly cursor?: string }) => Promise<Found>,
  cursor: string | null,
): Promise<Found> {
  if (cursor === null) return read({})
  try {
    return await read({ cursor })
  } catch (error) {
    if (error instanceof InvalidInputError) return read({})
    throw error
  }
}

/** Returns the incoming payments for which an app waits for the owner's answer. */
function receiversWaitingIn({ waiting = [] }: Pick<ConnectedApp, 'waiting'>): readonly string[] {
  return waiting.map(({ receiver }) => receiver)
}

function olderUrl(
  pagination: Page['pagination'],
  query: Readonly<Record<string, string>>,
): string | undefined {
  const { hasPreviousPage, startCursor } = pagination
  if (!hasPreviousPage || startCursor === undefined) return undefined
  return `?${new URLSearchParams({ ...query, before: startCursor })}`
}

type Changes = {
  readonly access?: readonly ItemView[]
  readonly conditions?: Pick<ConditionChanges, 'pausedUntil' | 'limits'>
}

/** Returns what the form of an owner changes, or why it changes nothing. */
function changesOf(
  { access, conditions }: GrantView,
  fields: URLSearchParams,
  locale: Locale,
  accounts: readonly OwnedAccount[],
):
  | { readonly ok: true; readonly value: Changes }
  | { readonly ok: false; readonly problem: LimitProblem | 'unchanged' } {
  const item = access.find(({ itemId }) => itemId === fields.get('item'))
  switch (fields.get('do')) {
    case 'pause':
      return { ok: true, value: { conditions: { pausedUntil: untilResumed } } }
    case 'resume':
      return { ok: true, value: { conditions: { pausedUntil: null } } }
    case 'remove':
      return { ok: true, value: { access: access.filter((each) => each !== item) } }
    case 'limit': {
      const asset = debitedAsset({ access }, accounts)
      const limits = withTypedLimit(conditions?.limits ?? [], typedLimit(fields), asset, locale)
      return limits.ok ? { ok: true, value: { conditions: { limits: limits.value } } } : limits
    }
    case 'lower': {
      const limit = item && limitOf(item)
      if (item === undefined || limit === undefined) break
      const lower = lowered(item, limit, fields.get('most') ?? '', locale)
      if (typeof lower === 'string') {
        return { ok: false, problem: { name: lower, field: limitFieldOf(item) } }
      }
      return { ok: true, value: { access: access.map((each) => (each === item ? lower : each)) } }
    }
  }
  return { ok: false, problem: 'unchanged' }
}
