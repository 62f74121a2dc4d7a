import { isDeepStrictEqual } from 'node:util'
import type { MayPay } from '../../src/index.js'
import { startOfTests } from '../support/clock.js'
import {
  grantToPay,
  newQuote,
  outgoingItem,
  pay,
  payByQuote,
  quoteToken,
  shopReceiver,
  usd,
  withKey,
} from '../support/spending.js'
import { idOfPayment } from '../support/spending-client.js'
import type { Answer } from '../support/world.js'
import {
  alice,
  approvedGrant,
  bob,
  incomingAccess,
  interactionId,
  issuedGrant,
  outgoingAccess,
  resourceServer,
  type TestClient,
  type World,
  withFinish,
} from '../support/world.js'

/** What a life needs in order to go on, as JSON. */
// biome-ignore lint/suspicious/noExplicitAny: each life has notes of its own
type Notes = any

/** The life of a record up to one of its states, and what must still be possible from there. */
export interface Life {
  /** Brings records into the state. */
  readonly begin: (world: World, client: TestClient) => Promise<Notes>
  /** Throws unless the records are read as they were meant. Any later version of the library must be able to go on. */
  readonly goOn: (world: World, client: TestClient, notes: Notes) => Promise<void>
}

function demand(holds: boolean, what: string, found?: unknown): void {
  if (!holds) throw new Error(`${what}: ${JSON.stringify(found)}`)
}

async function demandStatus(answer: Answer | Promise<Answer>, status: number): Promise<Answer> {
  const given = await answer
  demand(given.status === status, `the status must be ${status}`, given)
  return given
}

async function demandOk<Result extends { readonly ok: boolean }>(
  result: Promise<Result>,
): Promise<Extract<Result, { readonly ok: true }>> {
  const given = await result
  demand(given.ok, 'the call must succeed', given)
  return given as Extract<Result, { readonly ok: true }>
}

async function demandRefused(result: Promise<{ readonly ok: boolean }>, refusal: string) {
  const given = (await result) as { readonly refusal?: string }
  demand(given.refusal === refusal, `the call must be refused: ${refusal}`, given)
}

const isActive = async ({ auth }: World, accessToken: string) =>
  (await auth.introspect({ accessToken })).active

/** Requests a token that may create and complete incoming payments of bob. */
async function receivingToken(client: TestClient): Promise<string> {
  const access = { ...incomingAccess, actions: ['create', 'read', 'complete'] as const }
  return (await client.request([access])).body.access_token.value
}

async function openPayment(client: TestClient, more: object = { incomingAmount: usd(500) }) {
  const token = await receivingToken(client)
  const created = await client.createPayment(token, { walletAddress: bob, ...more })
  return { token, url: created.body.id as string, id: idOfPayment(created) }
}

async function paid(world: World, client: TestClient) {
  const grant = await grantToPay(world, client)
  const payment = await pay(client, grant.token, 1_000, {}, withKey('golden'))
  return { ...grant, id: idOfPayment(payment), url: payment.body.id as string }
}

/** An amount about which the host does not decide, one that it declines, and one that the owner must confirm. */
const undecidedValue = 666
const declinedValue = 667
const confirmedValue = 668

export const mayPay: MayPay = ({ outgoingPaymentId, debitAmount: { value }, isConfirmed }) => {
  if (value === String(undecidedValue)) throw new Error('the ledger is away')
  if (value === String(confirmedValue) && !isConfirmed) {
    const url = `https://wallet.example/payments/${outgoingPaymentId}`
    return { ok: false, refusal: 'confirmation_required', url, until: startOfTests + 3_600_000 }
  }
  return value === String(declinedValue)
    ? { ok: false, refusal: 'payment_not_allowed' }
    : { ok: true }
}

/** What the owner of the account orders in the host's own app. */
const order = {
  walletAddress: alice,
  receiver: shopReceiver,
  debitAmount: usd(1_000),
  idempotencyKey: 'rent 2026-11',
  metadata: { note: 'rent' },
  data: { card: { expiry: '12/30' } },
}
const ownConfirmed = {
  ...order,
  debitAmount: usd(confirmedValue),
  resourceOwner: 'alice',
  countsInAccountLimits: true,
}

const funds = (transferId: string, value: number) => ({ transferId, amount: usd(value) })

export const lives: Readonly<Record<string, Life>> = {
  'a grant that waits for consent': {
    async begin(_, client) {
      const { body } = await client.request([outgoingAccess], withFinish)
      return { continue: body.continue, id: interactionId(body.interact.redirect) }
    },
    async goOn({ auth }, client, { id, continue: continuation }) {
      const approval = { resourceOwner: 'alice', walletAddresses: [alice] }
      const { redirect = '' } = await demandOk(auth.interactions.approve(id, approval))
      const interactRef = new URL(redirect).searchParams.get('interact_ref') ?? ''
      await demandStatus(client.continue(continuation, interactRef), 200)
    },
  },

  'a grant that was approved': {
    async begin(world, client) {
      const { body, interactRef } = await approvedGrant(world, client)
      return { continue: body.continue, interactRef }
    },
    async goOn(world, client, { continue: continuation, interactRef }) {
      await demandStatus(client.continue(continuation, 'another'), 404)
      const { body } = await demandStatus(client.continue(continuation, interactRef), 200)
      demand(await isActive(world, body.access_token.value), 'the token must be active')
    },
  },

  'a grant that was denied': {
    async begin({ auth }, client) {
      const { body } = await client.request([outgoingAccess], withFinish)
      await auth.interactions.deny(interactionId(body.interact.redirect))
      return { continue: body.continue }
    },
    async goOn(_, client, { continue: continuation }) {
      await demandStatus(client.continue(continuation, 'any'), 401)
    },
  },

  'a grant with a token': {
    async begin(world, client) {
      const { token, ...issued } = await issuedGrant(world, client)
      return { token, continue: issued.continue }
    },
    async goOn(world, client, { token, continue: continuation }) {
      demand(await isActive(world, token.value), 'the token must be active')
      const { body } = await demandStatus(client.rotate(token), 200)
      demand(!(await isActive(world, token.value)), 'the old token must be dead')
      await demandStatus(client.revoke(body.access_token), 204)
      await demandStatus(client.cancel(continuation), 204)
    },
  },

  'a grant whose token was rotated': {
    async begin(world, client) {
      const { token } = await issuedGrant(world, client)
      const { body } = await client.rotate(token)
      return { token, rotated: body.access_token }
    },
    async goOn(world, client, { token, rotated }) {
      const { body } = await demandStatus(client.rotate(token), 200)
      const [again, first] = [body.access_token, rotated].map(({ value, manage }) => value + manage)
      demand(again === first, 'a repeat must get the same token')
      demand(await isActive(world, rotated.value), 'the new token must be active')
    },
  },

  'a grant with several tokens': {
    async begin(_, client) {
      const access_token = ['a', 'b'].map((label) => ({ label, access: [incomingAccess] }))
      const body = { client: client.client, access_token }
      const granted = await client.post('https://wallet.example/auth', body)
      return { tokens: granted.body.access_token }
    },
    async goOn(world, client, { tokens }) {
      await demandStatus(client.revoke(tokens[0]), 204)
      demand(!(await isActive(world, tokens[0].value)), 'a revoked token must be dead')
      demand(await isActive(world, tokens[1].value), 'the other token must be active')
    },
  },

  'a grant that its owner amended': {
    async begin(world, client) {
      const grant = await grantToPay(world, client)
      const conditions = { paymentMax: usd(300) }
      await demandOk(world.auth.grants.amend(grant.grantId, { conditions }))
      return grant
    },
    async goOn(world, client, { grantId, token }) {
      await demandStatus(pay(client, token, 301), 403)
      await demandStatus(pay(client, token, 300), 201)
      await demandOk(world.auth.grants.revoke(grantId))
    },
  },

  'a grant that was revoked': {
    async begin(world, client) {
      const grant = await grantToPay(world, client)
      await demandOk(world.auth.grants.revoke(grant.grantId))
      return grant
    },
    async goOn(world, client, { token, accessToken }) {
      demand(!(await isActive(world, token)), 'the token must be dead')
      await demandStatus(client.rotate(accessToken), 400)
    },
  },

  'an incoming payment that received a part': {
    async begin({ resources }, client) {
      const payment = await openPayment(client)
      await demandOk(resources.incomingPayments.receive(payment.id, funds('one', 200)))
      return payment
    },
    async goOn({ resources }, client, { id, url, token }) {
      const { incomingPayments } = resources
      const { changed } = await demandOk(incomingPayments.receive(id, funds('one', 200)))
      demand(!changed, 'a repeated transfer must count once')
      await demandRefused(incomingPayments.receive(id, funds('one', 300)), 'transfer_mismatch')
      await demandOk(incomingPayments.receive(id, funds('two', 300)))
      const { body } = await demandStatus(client.getPayment(token, url), 200)
      demand(body.completed === true, 'the payment must be completed', body)
    },
  },

  'a transfer that was closed': {
    async begin({ resources }, client) {
      const payment = await openPayment(client)
      const { incomingPayments } = resources
      await demandOk(incomingPayments.close('one', { paymentId: payment.id }))
      return payment
    },
    async goOn({ resources }, _, { id }) {
      const { incomingPayments } = resources
      const closed = await demandOk(incomingPayments.close('one', { paymentId: id }))
      demand(!closed.changed && !closed.counted, 'a closed transfer is not counted', closed)
      await demandRefused(incomingPayments.receive(id, funds('one', 200)), 'transfer_closed')
      await demandOk(incomingPayments.receive(id, funds('two', 200)))
    },
  },

  'an incoming payment that its client completed': {
    async begin(_, client) {
      const payment = await openPayment(client, {})
      await client.post(`${payment.url}/complete`, undefined, payment.token)
      return payment
    },
    async goOn({ resources }, client, { id, url, token }) {
      const late = resources.incomingPayments.receive(id, funds('one', 1))
      await demandRefused(late, 'payment_completed')
      await demandStatus(client.post(`${url}/complete`, undefined, token), 200)
    },
  },

  'an incoming payment that expired': {
    async begin({ resources, clock }, client) {
      const expiresAt = new Date(clock.now() + 60_000).toISOString()
      const payment = await openPayment(client, { expiresAt })
      clock.advance(60_001)
      await resources.sweep()
      return payment
    },
    async goOn({ resources }, _, { id }) {
      await demandRefused(
        resources.incomingPayments.receive(id, funds('one', 1)),
        'payment_expired',
      )
    },
  },

  'a quote': {
    async begin(world, client) {
      const { token } = await grantToPay(world, client)
      const quote = await newQuote(client, await quoteToken(client), { debitAmount: usd(700) })
      return { token, quote: quote.body.id }
    },
    async goOn(_, client, { token, quote }) {
      const { body } = await demandStatus(payByQuote(client, token, quote), 201)
      demand(body.debitAmount.value === '700', 'the price must be that of the quote', body)
    },
  },

  'a grant that was removed after its end': {
    async begin(world, client) {
      const { auth, clock } = world
      const { id, continue: continuation } = await issuedGrant(world, client)
      const grantId = id.split('.')[0] ?? ''
      const { access = [] } = (await auth.grants.get(grantId)) ?? {}
      const lower = access.map((item) => ({ ...item, limits: { debitAmount: usd(1_000) } }))
      const conditions = { paymentMax: usd(500) }
      await demandOk(auth.grants.amend(grantId, { access: lower, conditions }))
      await demandStatus(client.cancel(continuation), 204)
      const view = await auth.grants.get(grantId)
      clock.advance(30 * 86_400_000)
      await auth.sweep()
      return view
    },
    async goOn({ auth, clock }, _client, view) {
      const history = async () => (await auth.grants.history({ resourceOwner: 'alice' })).result
      const [shown] = await history()
      demand(isDeepStrictEqual(shown, view), 'the owner must see the grant as it was', shown)
      clock.advance(700 * 86_400_000)
      await auth.sweep()
      demand((await history()).length === 0, 'it must be removed after two years', shown)
    },
  },

  'an outgoing payment that was reserved': {
    async begin(world, client) {
      const grant = await grantToPay(world, client)
      await demandStatus(pay(client, grant.token, undecidedValue, {}, withKey('golden')), 503)
      return grant
    },
    async goOn({ resources, clock }, client, { token }) {
      await demandStatus(pay(client, token, 2_500), 403)
      const repeat = pay(client, token, undecidedValue, {}, withKey('golden'))
      await demandStatus(repeat, 503)
      clock.advance(300_000)
      await resources.sweep()
      const ended = pay(client, token, undecidedValue, {}, withKey('golden'))
      await demandStatus(ended, 403)
    },
  },

  'an outgoing payment that was declined': {
    async begin(world, client) {
      const grant = await grantToPay(world, client)
      await demandStatus(pay(client, grant.token, declinedValue, {}, withKey('golden')), 403)
      return grant
    },
    async goOn(_, client, { token }) {
      await demandStatus(pay(client, token, declinedValue, {}, withKey('golden')), 403)
      await demandStatus(pay(client, token, 2_500), 201)
    },
  },

  'an outgoing payment that waits for its owner': {
    async begin(world, client) {
      const grant = await grantToPay(world, client)
      const paying = pay(client, grant.token, confirmedValue, {}, withKey('golden'))
      const { body } = await demandStatus(paying, 403)
      return { ...grant, id: body.error.details.url.split('/').at(-1) }
    },
    async goOn({ resources }, client, { token, id }) {
      const { outgoingPayments } = resources
      const waiting = await outgoingPayments.toConfirm(id)
      if (waiting === undefined) throw new Error('the owner must find the payment')
      const { receiver, debitAmount, receiveAmount } = waiting
      const shown = { receiver, debitAmount, receiveAmount }
      await demandOk(outgoingPayments.confirm(id, { resourceOwner: 'alice', ...shown }))
      const paid = pay(client, token, confirmedValue, {}, withKey('golden'))
      const repeat = await demandStatus(paid, 201)
      demand(idOfPayment(repeat) === id, 'a repeat must get the confirmed payment', repeat)
    },
  },

  'an outgoing payment that was created': {
    begin: paid,
    async goOn({ resources }, client, { token, id }) {
      const repeat = await demandStatus(pay(client, token, 1_000, {}, withKey('golden')), 201)
      demand(idOfPayment(repeat) === id, 'a repeat must get the same payment', repeat)
      await demandStatus(pay(client, token, 1_501), 403)
      await demandOk(resources.outgoingPayments.cancel(id))
      await demandStatus(pay(client, token, 2_500), 201)
    },
  },

  'an outgoing payment that its owner ordered': {
    async begin({ resources }) {
      const { payment } = await demandOk(resources.outgoingPayments.create(order))
      return { id: payment.paymentId }
    },
    async goOn(world, client, { id }) {
      const { resources, clock } = world
      const { outgoingPayments } = resources
      const again = await demandOk(outgoingPayments.create(order))
      demand(again.payment.paymentId === id && !again.changed, 'a repeat must get it', again)
      await demandRefused(outgoingPayments.create({ ...order, data: {} }), 'request_differs')
      const { result } = await outgoingPayments.list({ walletAddress: alice })
      demand(result[0]?.paymentId === id, 'its owner must see it', result)
      const { token } = await grantToPay(world, client, [
        { type: 'outgoing-payment', actions: ['list-all'], identifier: alice },
      ])
      const url = `${resourceServer}/outgoing-payments?wallet-address=${encodeURIComponent(alice)}`
      const listed = await demandStatus(client.getPayment(token, url), 200)
      demand(listed.body.result.length === 0, 'no client must see it', listed.body)
      await demandOk(outgoingPayments.cancel(id))
      clock.advance(399 * 86_400_000)
      while ((await resources.sweep()).more);
      await demandRefused(outgoingPayments.create(order), 'payment_unknown')
    },
  },

  'an outgoing payment that its owner ordered and must confirm': {
    async begin({ resources }) {
      const ordered = resources.outgoingPayments.create(ownConfirmed)
      await demandRefused(ordered, 'confirmation_required')
      const { result } = await resources.outgoingPayments.listToConfirm({ walletAddress: alice })
      return { id: result[0]?.paymentId }
    },
    async goOn({ resources }, _, { id }) {
      const { outgoingPayments } = resources
      const waiting = await outgoingPayments.toConfirm(id)
      if (waiting === undefined) throw new Error('the owner must find the payment')
      const { receiver, debitAmount, receiveAmount } = waiting
      const shown = { receiver, debitAmount, receiveAmount }
      const other = outgoingPayments.confirm(id, { resourceOwner: 'mallory', ...shown })
      await demandRefused(other, 'not_the_owner')
      await demandOk(outgoingPayments.confirm(id, { resourceOwner: 'alice', ...shown }))
      const { payment } = await demandOk(outgoingPayments.create(ownConfirmed))
      demand(payment.paymentId === id, 'a repeat must get the confirmed payment', payment)
    },
  },

  'an outgoing payment that was sent in part': {
    async begin(world, client) {
      const payment = await paid(world, client)
      const { outgoingPayments } = world.resources
      await demandOk(outgoingPayments.begin(payment.id))
      const sent = { sentAmount: usd(400), deliveredAmount: usd(400) }
      await demandOk(outgoingPayments.reportSent(payment.id, sent))
      return payment
    },
    async goOn({ resources }, client, { token, id, url }) {
      const { outgoingPayments } = resources
      await demandOk(outgoingPayments.fail(id, { sentAmount: usd(400) }))
      const { body } = await demandStatus(client.getPayment(token, url), 200)
      demand(body.failed === true && body.sentAmount.value === '400', 'it must have failed', body)
      await demandStatus(pay(client, token, 2_101), 403)
      await demandStatus(pay(client, token, 2_100), 201)
    },
  },

  'an outgoing payment of which a part is in doubt': {
    async begin(world, client) {
      const { id } = await paid(world, client)
      const { outgoingPayments } = world.resources
      await demandOk(outgoingPayments.begin(id))
      const sent = { sentAmount: usd(700), deliveredAmount: usd(700) }
      const inDoubt = { amount: usd(200), since: startOfTests, reason: 'no reply from peer 1' }
      await demandOk(outgoingPayments.fail(id, { ...sent, inDoubt }))
      return { id }
    },
    async goOn({ resources }, _, { id }) {
      const { outgoingPayments } = resources
      const { result } = await outgoingPayments.list({ inDoubt: true })
      demand(result[0]?.paymentId === id, 'the payment must be listed', result)
      const { payment } = await demandOk(outgoingPayments.decideDoubt(id, { refunded: usd(150) }))
      demand(payment.sentAmount.value === '550', 'the refund must count', payment)
      demand((await outgoingPayments.doubt()).payments === 0, 'nothing must be in doubt')
    },
  },

  'an outgoing payment whose doubt was decided': {
    async begin(world, client) {
      const { id } = await paid(world, client)
      const { outgoingPayments } = world.resources
      await demandOk(outgoingPayments.begin(id))
      const sent = { sentAmount: usd(700), deliveredAmount: usd(700) }
      const inDoubt = { amount: usd(200), since: startOfTests, reason: 'no reply from peer 1' }
      await demandOk(outgoingPayments.fail(id, { ...sent, inDoubt }))
      await demandOk(outgoingPayments.decideDoubt(id, { refunded: usd(150) }))
      return { id }
    },
    async goOn({ resources }, _, { id }) {
      const { outgoingPayments } = resources
      const again = await demandOk(outgoingPayments.decideDoubt(id, { refunded: usd(150) }))
      demand(!again.changed, 'a decision must count once', again)
      await demandRefused(outgoingPayments.decideDoubt(id, { refunded: usd(0) }), 'doubt_decided')
      demand((await resources.sweep()).removed === 1, 'the mark must be removed')
    },
  },

  'an outgoing payment that was completed': {
    async begin(world, client) {
      const payment = await paid(world, client)
      const { outgoingPayments } = world.resources
      await demandOk(outgoingPayments.begin(payment.id))
      const sent = { sentAmount: usd(1_000), deliveredAmount: usd(1_000), final: true }
      await demandOk(outgoingPayments.reportSent(payment.id, sent))
      return payment
    },
    async goOn(_, client, { token, url }) {
      const { body } = await demandStatus(client.getPayment(token, url), 200)
      demand(body.sentAmount.value === '1000', 'all of it must have been sent', body)
      await demandStatus(pay(client, token, 1_501), 403)
    },
  },

  'a budget of an interval': {
    async begin(world, client) {
      const interval = 'R/2026-11-01T00:00:00Z/P1M'
      const limits = { debitAmount: usd(2_500), interval, receiver: shopReceiver }
      const grant = await grantToPay(world, client, [outgoingItem(limits)])
      await demandStatus(pay(client, grant.token, 2_000), 201)
      return grant
    },
    async goOn({ clock }, client, { token, accessToken }) {
      await demandStatus(pay(client, token, 501), 403)
      await demandStatus(pay(client, token, 500), 201)
      clock.advance(31 * 86_400_000)
      const { body } = await demandStatus(client.rotate(accessToken), 200)
      await demandStatus(pay(client, body.access_token.value, 2_500), 201)
    },
  },

  'events that failed, and that were set aside': {
    async begin({ resources, clock }, client) {
      const { incomingPayments, events } = resources
      const [one, other] = [await openPayment(client), await openPayment(client)]
      await demandOk(incomingPayments.receive(one.id, funds('one', 500)))
      const fail = () => {
        throw new Error('not now')
      }
      for (let attempt = 1; attempt <= 12; attempt++) {
        await events.drain(fail)
        clock.advance(86_400_000)
      }
      await demandOk(incomingPayments.receive(other.id, funds('other', 500)))
      await events.drain(fail)
      return {}
    },
    async goOn({ resources, clock }) {
      const { events } = resources
      const types: string[] = []
      for (const { event } of await events.listSetAside()) await demandOk(events.retry(event.id))
      for (let round = 0; round < 4; round++) {
        await events.drain(({ type }) => void types.push(type))
        clock.advance(86_400_000)
      }
      const each = ['incoming-payment.completed', 'incoming-payment.received']
      for (const type of each) {
        const count = types.filter((one) => one === type).length
        demand(count === 2, `${type} must be delivered for both payments`, types)
      }
    },
  },
}
