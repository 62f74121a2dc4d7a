import { readClientKey } from 'open-payments-server'
import type { Handler } from 'open-payments-server/adapter'
import { fieldsOf, queryOf } from './forms.js'
import { type KeyProblem, readKey } from './keys.js'
import { seeOther } from './layout.js'
import { isSignedIn, type Site } from './site.js'

/** Returns the handler of the page with the keys of all accounts of an owner. */
export function keysHandler(site: Site): Handler {
  const { options, tokens, screens, notice } = site

  return site.served(async (visit) => {
    const { keys } = options
    if (keys === undefined) return notice(404, 'unknown', visit)
    if (!isSignedIn(visit)) return site.signIn(visit)
    const { request, owner, locale } = visit
    const isPosted = request.method === 'POST'
    const given = isPosted ? fieldsOf(request) : queryOf(request)
    const accounts = await options.accountsOf(owner.id)
    const wanted = given.get('account') ?? accounts[0]?.url
    const account = accounts.find(({ url }) => url === wanted)
    if (account === undefined) return notice(403, 'notYours', visit)
    const show = async (problem?: KeyProblem) => {
      const lists = accounts.map(async (account) =>
        (await keys.of(account.url)).map((key) => ({ ...key, account })),
      )
      const screen = await screens.keys((await Promise.all(lists)).flat(), {
        locale,
        account,
        accounts,
        given,
        problem,
        token: await tokens.field('keys', owner.id),
      })
      return site.show(screen, visit, { status: problem === undefined ? 200 : 400, place: 'keys' })
    }
    if (!isPosted) {
      const read = given.has('key') ? readClientKey(given.get('key') ?? '') : undefined
      return show(read?.ok === false ? read.refusal : undefined)
    }
    if (!(await tokens.isValid(request, 'keys', owner.id))) return show('stale')
    const revoked = given.get('revoke')
    if (revoked !== null) {
      await keys.revoke(account.url, revoked)
    } else {
      const read = readKey(given, site.now())
      if (!read.ok) return show(read.problem)
      const isTaken = account.keys?.some(({ kid }) => kid === read.key.kid)
      const outcome = isTaken ? 'kidTaken' : await keys.add(account.url, read.key)
      if (outcome !== 'added') return show(outcome)
    }
    const done = revoked === null ? 'added' : 'revoked'
    return seeOther(`?${new URLSearchParams({ account: account.url, done })}`)
  })
}
