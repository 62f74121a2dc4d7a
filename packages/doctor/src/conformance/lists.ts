import { demand, demandJson, demandStatus, pick, show, textAt } from 'open-payments-programs'
import { demandSame } from './expectations.js'
import { createdId, demandIncomingPayment } from './incoming-payment.js'
import type { ServerCaseDefinition, Session } from './session.js'

const list = 'OpenAPI list-incoming-payments'

interface Page {
  readonly ids: readonly string[]
  readonly startCursor: unknown
  readonly endCursor: unknown
  readonly hasNextPage: unknown
}

async function page(session: Session, query: Readonly<Record<string, string>>): Promise<Page> {
  const { walletAddress } = session
  const search = new URLSearchParams({ 'wallet-address': walletAddress, ...query })
  const url = `${await session.resource('/incoming-payments')}?${search}`
  const token = await session.sharedToken()
  const answer = await session.send({ method: 'GET', url, token })
  demandJson(answer, 200)
  const result = pick(answer.body, 'result')
  demand(Array.isArray(result), 'result must be an array')
  for (const each of result) demandIncomingPayment(session, each)
  const pagination = pick(answer.body, 'pagination')
  for (const name of ['hasNextPage', 'hasPreviousPage']) {
    const value = pick(pagination, name)
    demand(typeof value === 'boolean', `pagination.${name} must be true or false: ${show(value)}`)
  }
  return {
    ids: result.map((_, index) => textAt(answer, 'result', String(index), 'id')),
    startCursor: pick(pagination, 'startCursor'),
    endCursor: pick(pagination, 'endCursor'),
    hasNextPage: pick(pagination, 'hasNextPage'),
  }
}

/** Bounds the walk through a list that never ends. */
const pagesMax = 200

export const listCases: readonly ServerCaseDefinition[] = [
  {
    id: 'list',
    name: 'the client lists the incoming payments that it created',
    rule: list,
    async check(session) {
      const id = await createdId(session)
      const found = await walk(session, id)
      demand(found.includes(id), 'the list lacks a payment that was created before')
    },
  },
  {
    id: 'list-pages',
    name: 'pages follow each other without gaps or repeats',
    rule: list,
    async check(session) {
      const { ids, startCursor } = await firstThree(session)
      const two = await page(session, { first: '1', cursor: String(startCursor) })
      const three = await page(session, { first: '1', cursor: String(two.endCursor) })
      demandSame([...two.ids, ...three.ids], ids.slice(1), 'the payments of the next two pages')
    },
  },
  {
    id: 'list-backwards',
    name: 'the page before a cursor ends where the cursor begins',
    rule: list,
    async check(session) {
      const { ids, startCursor, endCursor } = await firstThree(session)
      const back = await page(session, { last: '1', cursor: String(endCursor) })
      demandSame(back.ids, [ids[1]], 'the payments of the page before the third payment')
      const begin = await page(session, { last: '1', cursor: String(back.startCursor) })
      demand(
        begin.startCursor === startCursor,
        'the page before the second payment is not the first',
      )
    },
  },
  {
    id: 'list-action-missing',
    name: 'a token without the action for lists reads none',
    rule: `${list}, 403`,
    async check(session) {
      const { value: token } = await session.issue('create', 'read')
      const search = new URLSearchParams({ 'wallet-address': session.walletAddress })
      const url = `${await session.resource('/incoming-payments')}?${search}`
      demandStatus(await session.send({ method: 'GET', url, token }), 403)
    },
  },
]

/** Reads the first page of three payments. */
async function firstThree(session: Session): Promise<Page> {
  for (let i = 0; i < 3; i++) await createdId(session)
  const found = await page(session, { first: '3' })
  demand(found.ids.length === 3, `a page of three payments has ${found.ids.length}`)
  return found
}

/** Reads pages until the wanted payment was found, or there are no more. */
async function walk(session: Session, wanted: string): Promise<readonly string[]> {
  const most = 50
  const found: string[] = []
  let cursor: unknown
  for (let i = 0; i < pagesMax; i++) {
    const after = cursor !== undefined && { cursor: String(cursor) }
    const next = await page(session, { first: String(most), ...after })
    demand(next.ids.length <= most, `a page of at most ${most} has ${next.ids.length} payments`)
    found.push(...next.ids)
    if (next.hasNextPage !== true || found.includes(wanted)) return found
    cursor = next.endCursor
    demand(typeof cursor === 'string' && cursor !== '', 'a page with a next one has no endCursor')
  }
  throw new Error(`the list has more than ${pagesMax} pages of ${most}`)
}
