import { randomUUID } from 'node:crypto'
import {
  demand,
  demandAmount,
  demandJson,
  demandStatus,
  joined,
  pick,
  responded,
  show,
  textAt,
  type WireAnswer,
} from 'open-payments-programs'
import { demandErrorBody, demandInstant, demandSame } from './expectations.js'
import type { ServerCaseDefinition, Session } from './session.js'

const create = 'OpenAPI create-incoming-payment'
const get = 'OpenAPI get-incoming-payment'
const complete = 'OpenAPI complete-incoming-payment'
const challenge = 'OpenAPI create-incoming-payment, 401'

/** More than a double holds exactly. */
const bigValue = '9007199254740993'

async function amountOf(session: Session, value: unknown) {
  return { value, ...(await session.wallet()).asset }
}

/** Creates an incoming payment, and returns its URL. */
export async function createdId(session: Session, more: object = {}): Promise<string> {
  const answer = await session.createIncoming(more)
  demandJson(answer, 201)
  return textAt(answer, 'id')
}

async function read(session: Session, url: string): Promise<WireAnswer> {
  return session.send({ method: 'GET', url, token: await session.sharedToken() })
}

async function completePayment(session: Session, id: string): Promise<WireAnswer> {
  return session.send({
    method: 'POST',
    url: joined(id, '/complete'),
    token: await session.sharedToken(),
  })
}

/** Fails unless the body is an incoming payment of the wallet address. */
export function demandIncomingPayment(session: Session, body: unknown): void {
  const { walletAddress } = session
  demand(
    pick(body, 'walletAddress') === walletAddress,
    `walletAddress is ${show(pick(body, 'walletAddress'))}; expected ${show(walletAddress)}`,
  )
  demandAmount(pick(body, 'receivedAmount'), 'receivedAmount')
  if (pick(body, 'incomingAmount') !== undefined) {
    demandAmount(pick(body, 'incomingAmount'), 'incomingAmount')
  }
  const completed = pick(body, 'completed')
  demand(typeof completed === 'boolean', `completed must be true or false: ${show(completed)}`)
  demandInstant(pick(body, 'createdAt'), 'createdAt')
}

const creationCases: readonly ServerCaseDefinition[] = [
  {
    id: 'incoming-create',
    name: 'an incoming payment is created at the resource server',
    rule: create,
    async check(session) {
      const answer = await session.createIncoming()
      demandJson(answer, 201)
      demandIncomingPayment(session, answer.body)
      const id = textAt(answer, 'id')
      const list = `${await session.resource('/incoming-payments')}/`
      demand(id.startsWith(list), `the id is ${show(id)}; expected a URL that begins with ${list}`)
      demand(Array.isArray(pick(answer.body, 'methods')), 'methods must be an array')
      demand(pick(answer.body, 'completed') === false, 'a new payment must not be completed')
    },
  },
  {
    id: 'incoming-amount',
    name: 'an amount is text, and keeps every digit',
    rule: 'OpenAPI schema amount',
    async check(session) {
      const incomingAmount = await amountOf(session, bigValue)
      const answer = await session.createIncoming({ incomingAmount })
      demandJson(answer, 201)
      demandSame(pick(answer.body, 'incomingAmount'), incomingAmount, 'incomingAmount')
      demandAmount(pick(answer.body, 'receivedAmount'), 'receivedAmount')
      demandSame(
        pick(answer.body, 'receivedAmount'),
        await amountOf(session, '0'),
        'receivedAmount of a new payment',
      )
    },
  },
  {
    id: 'incoming-metadata',
    name: 'metadata and the expiry of an incoming payment are kept',
    rule: create,
    async check(session) {
      const metadata = { description: 'Ünïcode – 漢字', nested: { list: [1, 'two', null] } }
      const expiresAt = new Date((Math.floor(session.now() / 1000) + 3600) * 1000).toISOString()
      const id = await createdId(session, { metadata, expiresAt })
      const { body } = await read(session, id)
      demandSame(pick(body, 'metadata'), metadata, 'metadata')
      demandInstant(pick(body, 'expiresAt'), 'expiresAt')
      const kept = Date.parse(String(pick(body, 'expiresAt')))
      demand(kept === Date.parse(expiresAt), `expiresAt is ${kept}; expected ${expiresAt}`)
    },
  },
  ...(
    [
      ['a number', 1000],
      ['negative', '-1'],
      ['a fraction', '1.5'],
      ['more than 64 bits', '18446744073709551616'],
    ] as const
  ).map(
    ([what, value]): ServerCaseDefinition => ({
      id: `incoming-amount-${what.replace(/^an? /, '').replaceAll(' ', '-')}`,
      name: `an incoming payment with an amount that is ${what} is refused`,
      rule: 'OpenAPI schema amount',
      async check(session) {
        const incomingAmount = await amountOf(session, value)
        demandStatus(await session.createIncoming({ incomingAmount }), 400)
      },
    }),
  ),
  {
    id: 'incoming-asset',
    name: 'an incoming payment in another asset than the account is refused',
    rule: create,
    async check(session) {
      const incomingAmount = { ...(await amountOf(session, '1')), assetCode: 'XTS' }
      demandStatus(await session.createIncoming({ incomingAmount }), 400, 403)
    },
  },
  {
    id: 'incoming-large',
    name: 'a body of 2 MiB is refused and does not occupy the server',
    rule: 'RFC 9110 section 15.5.14',
    level: 'recommended',
    async check(session) {
      const metadata = { description: 'x'.repeat(2 * 1024 * 1024) }
      // A server may also close the connection before it has read the body.
      const answer = await session.createIncoming({ metadata }).catch(isClosed)
      if (answer !== undefined) demandStatus(answer, 400, 413)
    },
  },
]

function isClosed(error: unknown): undefined {
  if ((error as Error).name === 'TimeoutError') throw error
}

const readingCases: readonly ServerCaseDefinition[] = [
  {
    id: 'incoming-get',
    name: 'the client reads the incoming payment that it created',
    rule: get,
    async check(session) {
      const created = await session.createIncoming({ metadata: { reference: 'A-1' } })
      const answer = await read(session, textAt(created, 'id'))
      demandJson(answer, 200)
      demandIncomingPayment(session, answer.body)
      for (const name of ['id', 'walletAddress', 'createdAt', 'metadata', 'receivedAmount']) {
        demandSame(pick(answer.body, name), pick(created.body, name), name)
      }
    },
  },
  {
    id: 'incoming-public',
    name: 'a request without credentials reads the received amount and the authorization server of an incoming payment, and nothing else',
    rule: `${get}, public-incoming-payment`,
    async check(session) {
      const url = await createdId(session, { metadata: { reference: 'private' } })
      const answer = await session.send({ method: 'GET', url, sign: false })
      demandJson(answer, 200)
      const { authServer } = await session.wallet()
      demandSame(pick(answer.body, 'authServer'), authServer, 'authServer')
      const received = pick(answer.body, 'receivedAmount')
      if (received !== undefined) demandAmount(received, 'receivedAmount')
      for (const name of ['metadata', 'methods', 'walletAddress']) {
        const hidden = pick(answer.body, name) === undefined
        demand(hidden, `the public view contains ${name}`)
      }
    },
  },
  {
    id: 'incoming-private-cache',
    name: 'shared caches must not store what only the client may read',
    rule: 'RFC 9111 section 3.5',
    async check(session) {
      const { headers } = await read(session, await createdId(session))
      const control = (headers.get('cache-control') ?? '').toLowerCase()
      const directives = control.split(',').map((each) => each.trim().split('=', 1)[0] ?? '')
      const has = (...names: string[]) => names.some((name) => directives.includes(name))
      const shared = has('public', 's-maxage', 'must-revalidate') && !has('private', 'no-store')
      demand(!shared, `the response has Cache-Control ${show(control)}`)
    },
  },
  {
    id: 'incoming-unknown',
    name: 'an incoming payment that does not exist is not found',
    rule: `${get}, 404`,
    async check(session) {
      const url = `${await session.resource('/incoming-payments')}/${randomUUID()}`
      const answer = await read(session, url)
      demandStatus(answer, 404)
      demandErrorBody(answer)
    },
  },
  {
    id: 'incoming-complete',
    name: 'a completed incoming payment stays completed',
    rule: complete,
    async check(session) {
      const id = await createdId(session)
      const before = await read(session, id)
      demand(pick(before.body, 'completed') === false, 'a new payment must not be completed')
      const answer = await completePayment(session, id)
      demandJson(answer, 200)
      demandIncomingPayment(session, answer.body)
      demand(pick(answer.body, 'completed') === true, 'completed must be true in the response')
      const after = await read(session, id)
      demand(pick(after.body, 'completed') === true, 'completed must be true when read again')
    },
  },
]

const accessCases: readonly ServerCaseDefinition[] = [
  {
    id: 'resource-401-challenge',
    name: 'the response to a request without an access token names the grant endpoint',
    rule: challenge,
    async check(session) {
      const answer = await session.requestIncoming(undefined)
      demandStatus(answer, 401)
      const { authServer } = await session.wallet()
      const header = answer.headers.get('www-authenticate') ?? 'none'
      const names = [`as_uri=${authServer}`, `as_uri="${authServer}"`]
      demand(
        /^GNAP\s/i.test(header) && names.some((name) => header.includes(name)),
        () =>
          `${responded(answer)} and WWW-Authenticate ${show(header)}; expected GNAP ${names[0]}`,
      )
    },
  },
  {
    id: 'resource-error-body',
    name: 'a refusal of the resource server has a code and a description',
    rule: 'OpenAPI schema error-response',
    async check(session) {
      const answer = await session.requestIncoming(undefined)
      demandStatus(answer, 401)
      demandErrorBody(answer)
    },
  },
  {
    id: 'resource-action-missing',
    name: 'a token for reading creates nothing',
    rule: `${create}, 403`,
    async check(session) {
      const { value: token } = await session.issue('read')
      demandStatus(await session.requestIncoming(token), 403)
    },
  },
  {
    id: 'resource-identifier',
    name: 'a token for one account creates nothing for another one',
    rule: `${create}, 403`,
    async check(session) {
      const walletAddress = `${session.walletAddress}-${randomUUID()}`
      const answer = await session.createIncoming({ walletAddress })
      demandStatus(answer, 400, 403, 404)
    },
  },
  {
    id: 'resource-405-allow',
    name: 'a response with status 405 lists the methods that are allowed',
    rule: 'RFC 9110 section 15.5.6',
    async check(session) {
      const answer = await session.send({
        method: 'PUT',
        url: await session.resource('/incoming-payments'),
        token: await session.sharedToken(),
      })
      const allow = answer.headers.get('allow')
      demand(answer.status !== 405 || allow !== null, () => `${responded(answer)} without Allow`)
      demandStatus(answer, 400, 401, 403, 404, 405, 501)
    },
  },
]

export const incomingPaymentCases = [...creationCases, ...readingCases, ...accessCases]
