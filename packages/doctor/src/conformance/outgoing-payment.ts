import {
  demand,
  demandAmount,
  demandJson,
  demandStatus,
  pick,
  show,
  textAt,
  tokenIn,
  type WireAnswer,
} from 'open-payments-programs'
import { approvedToken } from './consent.js'
import { demandInstant, demandSame } from './expectations.js'
import { outgoing } from './grant.js'
import { type ServerCaseDefinition, type Session, taken } from './session.js'

/** An amount in the smallest unit of the receiver's asset. */
const receivedValue = '100'

/** Creates an incoming payment with an amount at the receiver. */
async function receiver({ steps, receiver: payee, now }: Session): Promise<string> {
  const { address } = taken(await steps.addressOf(payee))
  const created = await steps.createReceiver({
    walletAddress: address,
    incomingAmount: { value: receivedValue, ...address.asset },
    expiresAt: now() + lifetimeMs,
  })
  return taken(created).url
}

const lifetimeMs = 60 * 60 * 1_000

interface Quoted {
  readonly answer: WireAnswer
  readonly token: string
  readonly receiver: string
}

async function quoted(session: Session): Promise<Quoted> {
  const access = [{ type: 'quote', actions: ['create', 'read'] }]
  const { value: token } = tokenIn(await session.askFor(access))
  const to = await receiver(session)
  const { walletAddress } = session
  const url = await session.resource('/quotes')
  const body = { walletAddress, receiver: to, method: 'ilp' }
  const answer = await session.send({ method: 'POST', url, token, body })
  demandJson(answer, 201)
  return { answer, token, receiver: to }
}

async function newQuote(session: Session) {
  const { steps, walletAddress } = session
  const asked = { walletAddress, receiver: await receiver(session) }
  return taken(await steps.createQuote(asked)).quote
}

/** Pays a new quote with a token. */
async function paid(session: Session, token: string): Promise<WireAnswer> {
  const { id: quoteId } = await newQuote(session)
  const body = { walletAddress: session.walletAddress, quoteId }
  const url = await session.resource('/outgoing-payments')
  return session.send({ method: 'POST', url, token, body })
}

/** Gets a token whose limit is this amount in the asset of the account. */
async function tokenFor(session: Session, value: string): Promise<string> {
  const { asset } = await session.wallet()
  const limits = { debitAmount: { value, ...asset } }
  return approvedToken(session, outgoing(session, { limits }))
}

function demandPayment(session: Session, body: unknown): void {
  const { walletAddress } = session
  demandSame(pick(body, 'walletAddress'), walletAddress, 'walletAddress')
  for (const name of ['debitAmount', 'receiveAmount']) demandAmount(pick(body, name), name)
  demandInstant(pick(body, 'createdAt'), 'createdAt')
}

const quoteCases: readonly ServerCaseDefinition[] = [
  {
    id: 'quote-create',
    name: 'a quote states what is debited and what is received',
    rule: 'OpenAPI create-quote',
    needs: 'consent',
    async check(session) {
      const { answer, receiver: to } = await quoted(session)
      demandPayment(session, answer.body)
      demandSame(pick(answer.body, 'receiver'), to, 'receiver')
      demandSame(pick(answer.body, 'method'), 'ilp', 'method')
      demandSame(pick(answer.body, 'receiveAmount', 'value'), receivedValue, 'receiveAmount.value')
    },
  },
  {
    id: 'quote-get',
    name: 'the client reads its quote',
    rule: 'OpenAPI get-quote',
    needs: 'consent',
    async check(session) {
      const { answer: created, token } = await quoted(session)
      const answer = await session.send({ method: 'GET', url: textAt(created, 'id'), token })
      demandJson(answer, 200)
      demandPayment(session, answer.body)
      for (const name of ['id', 'receiver', 'debitAmount', 'receiveAmount', 'createdAt']) {
        demandSame(pick(answer.body, name), pick(created.body, name), name)
      }
    },
  },
]

const paymentCases: readonly ServerCaseDefinition[] = [
  {
    id: 'outgoing-create',
    name: 'an outgoing payment is created for a quote, within the limits of the grant',
    rule: 'OpenAPI create-outgoing-payment',
    needs: 'consent',
    async check(session) {
      const answer = await paid(session, await tokenFor(session, '1000000'))
      demandJson(answer, 201)
      demandPayment(session, answer.body)
      demandAmount(pick(answer.body, 'sentAmount'), 'sentAmount')
      textAt(answer, 'receiver')
    },
  },
  {
    id: 'outgoing-get',
    name: 'the client reads and lists its outgoing payment',
    rule: 'OpenAPI get-outgoing-payment',
    needs: 'consent',
    async check(session) {
      const token = await tokenFor(session, '1000000')
      const id = textAt(await paid(session, token), 'id')
      const answer = await session.send({ method: 'GET', url: id, token })
      demandJson(answer, 200)
      demandPayment(session, answer.body)
      const search = new URLSearchParams({ 'wallet-address': session.walletAddress, first: '50' })
      const url = `${await session.resource('/outgoing-payments')}?${search}`
      const list = await session.send({ method: 'GET', url, token })
      demandJson(list, 200)
      const result = pick(list.body, 'result')
      const ids = Array.isArray(result) ? result.map((each) => pick(each, 'id')) : []
      const more = pick(list.body, 'pagination', 'hasNextPage') === true
      demand(ids.includes(id) || more, `the list lacks ${show(id)}`)
    },
  },
  {
    id: 'outgoing-limit',
    name: 'an outgoing payment that exceeds the limits of the grant is refused',
    rule: 'OpenAPI create-outgoing-payment, 403',
    needs: 'consent',
    async check(session) {
      demandStatus(await paid(session, await tokenFor(session, '1')), 403)
    },
  },
  {
    id: 'outgoing-limit-total',
    name: 'all outgoing payments of a grant together stay within its limits',
    rule: 'OpenAPI create-outgoing-payment, 403',
    needs: 'consent',
    async check(session) {
      const debit = BigInt((await newQuote(session)).debitAmount.value)
      const token = await tokenFor(session, String(debit + debit - 1n))
      demandStatus(await paid(session, token), 201)
      demandStatus(await paid(session, token), 403)
    },
  },
  {
    id: 'outgoing-spent',
    name: 'the client reads the amounts that were spent under its grant',
    rule: 'OpenAPI get-outgoing-payment-grant',
    level: 'recommended',
    needs: 'consent',
    async check(session) {
      const token = await tokenFor(session, '1000000')
      demandStatus(await paid(session, token), 201)
      const url = await session.resource('/outgoing-payment-grant')
      const answer = await session.send({ method: 'GET', url, token })
      demandJson(answer, 200)
      for (const name of ['spentDebitAmount', 'spentReceiveAmount']) {
        const amount = pick(answer.body, name)
        if (amount !== null) demandAmount(amount, name)
      }
    },
  },
]

export const outgoingPaymentCases = [...quoteCases, ...paymentCases]
