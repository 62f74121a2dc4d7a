import { type GrantView, InvalidInputError, type ItemView } from 'open-payments-server'
import type { Handler, HttpResponse } from 'open-payments-server/adapter'
import { type ConnectedApp, type ConnectedAppsOptions, untilResumed } from './connected-apps.js'
import { fieldsOf } from './forms.js'
import { seeOther } from './layout.js'
import { limitOf, lowered } from './limits.js'
import type { Locale } from './locale.js'
import { isSignedIn, type OwnersVisit, type Site } from './site.js'

/** The apps on one page. */
const appsMax = 20

/** Returns the handler of the page of connected apps. */
export function connectedAppsHandler(site: Site): Handler {
  const { options, tokens, screens, notice } = site
  const { resources, intervalCounting } = options
  const { grants } = options.auth

  async function connected(grant: GrantView): Promise<ConnectedApp> {
    const payments = resources?.outgoingPayments
    const { grantId } = grant
    const isPaying = grant.access.some(({ type }) => type === 'outgoing-payment')
    const [display, budgets, last] = await Promise.all([
      grants.displayOf(grant.client),
      isPaying ? payments?.budgetsOf(grantId) : undefined,
      isPaying ? payments?.list({ grantId, last: 1 }) : undefined,
    ])
    return {
      grant,
      display,
      ...(budgets && { budgets }),
      ...(last && { lastPayment: last.result[0] ?? null }),
    }
  }

  async function list(
    visit: OwnersVisit,
    outcome?: ConnectedAppsOptions['outcome'],
  ): Promise<HttpResponse> {
    const { request, owner, locale } = visit
    const query = new URLSearchParams(request.url.split('?')[1])
    const newest = { resourceOwner: owner.id, statuses: ['approved'], last: appsMax } as const
    const cursor = query.get('before')
    const { result, pagination } = await (cursor === null
      ? grants.list(newest)
      : grants.list({ ...newest, cursor }).catch((error) => {
          // A link on any page can contain any cursor.
          if (error instanceof InvalidInputError) return grants.list(newest)
          throw error
        }))
    const { hasPreviousPage, startCursor } = pagination
    const done = query.get('done')
    const screen = screens.connectedApps(
      await Promise.all(result.toReversed().map((grant) => connected(grant))),
      {
        locale,
        now: site.now(),
        intervalCounting,
        token: await tokens.field('apps', owner.id),
        outcome: outcome ?? (done === 'changed' || done === 'removed' ? done : undefined),
        olderUrl:
          hasPreviousPage && startCursor !== undefined
            ? `?${new URLSearchParams({ before: startCursor })}`
            : undefined,
      },
    )
    return site.show(screen, visit, outcome === undefined ? 200 : 400)
  }

  /** Changes a grant, after it has checked that it is the owner's: a form can contain any id. */
  async function change(visit: OwnersVisit): Promise<HttpResponse> {
    const { request, owner, locale } = visit
    if (!(await tokens.isValid(request, 'apps', owner.id))) return list(visit, 'stale')
    const fields = fieldsOf(request)
    const grantId = fields.get('grant') ?? ''
    const grant = await grants.get(grantId)
    if (grant?.resourceOwner !== owner.id) return notice(404, 'notApproved', visit)
    if (fields.get('do') === 'revoke') {
      await grants.revoke(grantId)
      return seeOther('?done=removed')
    }
    const changes = changesOf(grant, fields, locale)
    if (typeof changes === 'string') return list(visit, changes)
    const amended = await grants.amend(grantId, { resourceOwner: owner.id, ...changes })
    return amended.ok ? seeOther('?done=changed') : list(visit, 'notNarrower')
  }

  return site.served(async (visit) => {
    if (!isSignedIn(visit)) return options.signIn(visit.request)
    return visit.request.method === 'POST' ? change(visit) : list(visit)
  })
}

/** Returns what the form of an owner changes, or why it changes nothing. */
function changesOf({ access }: GrantView, fields: URLSearchParams, locale: Locale) {
  const isChosen = ({ itemId }: ItemView) => itemId === fields.get('item')
  switch (fields.get('do')) {
    case 'pause':
      return { conditions: { pausedUntil: untilResumed } }
    case 'resume':
      return { conditions: { pausedUntil: null } }
    case 'remove':
      return { access: access.filter((item) => !isChosen(item)) }
    case 'lower': {
      const item = access.find(isChosen)
      const limit = item && limitOf(item)
      if (item === undefined || limit === undefined) return 'unreadable'
      const lower = lowered(item, limit, fields.get('most') ?? '', locale)
      if (typeof lower === 'string') return lower
      return { access: access.map((each) => (each === item ? lower : each)) }
    }
    default:
      return 'unreadable'
  }
}
