import type { AuthenticatedClient } from '@interledger/open-payments'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { openShop, type Shop } from '../../examples/demo/shop.js'
import {
  type Access,
  approvedToken,
  clientOf,
  deployments,
  eur,
  failure,
  type RunningDeployment,
  startDeployment,
  tokenWithoutConsent,
  usd,
} from '../support/official-client.js'

const interval = `R12/${new Date(Date.now() - 60_000).toISOString().slice(0, 19)}Z/P1M`
const method = 'ilp' as const

const overLimit = { status: 403, code: 'insufficient_grant', description: 'unauthorized' }
const insufficient = {
  status: 403,
  code: 'insufficient_access',
  description: 'Insufficient Grant',
}
const invalidReceiver = {
  status: 400,
  code: 'invalid_receiver',
  description: 'invalid receiver',
}
const invalidAmount = { status: 400, code: 'invalid_amount', description: 'Invalid amount' }
const invalidToken = { status: 401, code: 'invalid_token', description: 'Invalid Token' }
const notFound = { status: 404, code: 'not_found', description: 'Not found' }

let shops: Shop[]
let [client, other]: AuthenticatedClient[] = []

beforeAll(async () => {
  shops = [await openShop(), await openShop()]
  ;[client, other] = await Promise.all(shops.map((shop) => clientOf(shop)))
})
afterAll(() => {
  for (const shop of shops) shop.stop()
})

describe.each(deployments)('the published client pays over $name', (deployment) => {
  let running: RunningDeployment
  let [alice, bob, carol, auth, op] = ['', '', '', '', '']
  /** Tokens of the shop that all tests use. */
  let [quoting, receiving] = ['', '']

  beforeAll(async () => {
    running = await startDeployment(deployment)
    ;({ alice, bob, carol, auth, op } = running)
    quoting = await tokenFor([{ type: 'quote', actions: ['create', 'read'] }])
    receiving = await tokenFor([
      { type: 'incoming-payment', actions: ['create', 'read', 'complete'] },
    ])
  })
  afterAll(() => running.stop())

  const us = () => client as AuthenticatedClient
  const them = () => other as AuthenticatedClient

  /** Gets a token that does not need consent. */
  function tokenFor(access: Access, by = us()): Promise<string> {
    return tokenWithoutConsent(by, auth, access)
  }

  const theirQuoting = () => tokenFor([{ type: 'quote', actions: ['create', 'read'] }], them())

  type Spending = { limits?: object; actions?: string[]; by?: AuthenticatedClient }

  /** Gets a token to pay from Alice's account, with her consent. */
  async function consented({ limits, actions = ['create', 'read'], by = us() }: Spending = {}) {
    const item = {
      type: 'outgoing-payment',
      actions,
      identifier: alice,
      ...(limits && { limits }),
    }
    return approvedToken(by, auth, [item] as Access, shops[0] as Shop)
  }

  /** Creates an incoming payment at a wallet address, with or without an amount. */
  async function receiver(walletAddress = bob, more: object = {}) {
    const where = { url: op, accessToken: receiving }
    const { id } = await us().incomingPayment.create(where, { walletAddress, ...more })
    return {
      id,
      read: () => us().incomingPayment.get({ ...where, url: id }),
      complete: () => us().incomingPayment.complete({ ...where, url: id }),
    }
  }

  const paying = (accessToken: string) => ({ url: op, accessToken })

  function pay(accessToken: string, incomingPayment: string, value: string, by = us()) {
    const body = { walletAddress: alice, incomingPayment, debitAmount: usd(value) }
    return by.outgoingPayment.create(paying(accessToken), body)
  }

  const read = (url: string, accessToken: string) => us().outgoingPayment.get({ url, accessToken })

  const spent = (accessToken: string) =>
    us().outgoingPayment.getGrantSpentAmounts(paying(accessToken))

  /** Reports the outcome of a payment to the wallet's ledger. */
  async function report(paymentUrl: string, how: 'settle' | 'fail', body?: object) {
    const url = `${running.baseUrl}/ledger/outgoing-payments/${paymentUrl.split('/').at(-1)}/${how}`
    const content = body === undefined ? {} : { body: JSON.stringify(body) }
    const headers = { 'content-type': 'application/json' }
    return (await fetch(url, { method: 'POST', headers, ...content })).status
  }

  describe('a quote', () => {
    function quote(asked: object, accessToken = quoting) {
      const body = { walletAddress: alice, method, ...asked } as never
      return us().quote.create(paying(accessToken), body)
    }

    test('is created for the amount of the receiver, and then for the remainder', async () => {
      const { id } = await receiver(bob, { incomingAmount: usd('2000') })
      expect(await quote({ receiver: id })).toMatchObject({
        walletAddress: alice,
        receiver: id,
        method: 'ilp',
        debitAmount: usd('2020'),
        receiveAmount: usd('2000'),
      })
      const transfer = { transferId: id, incomingPayment: id, amount: usd('500') }
      const body = JSON.stringify(transfer)
      const headers = { 'content-type': 'application/json' }
      await fetch(`${running.baseUrl}/ledger/transfers`, { method: 'POST', headers, body })
      expect((await quote({ receiver: id })).receiveAmount).toEqual(usd('1500'))
    })

    test.each([
      ['debited, to dollars', 'bob', { debitAmount: usd('1010') }, ['1010', '1000']],
      ['debited, to euros', 'carol', { debitAmount: usd('1010') }, ['1010', '925']],
      ['received, in dollars', 'bob', { receiveAmount: usd('1000') }, ['1010', '1000']],
      ['received, in euros', 'carol', { receiveAmount: eur('100') }, ['110', '100']],
    ])('is created for an amount %s', async (_, name, asked, [debited = '', received = '']) => {
      const [to, amount] = name === 'bob' ? [bob, usd] : [carol, eur]
      const { id } = await receiver(to)
      expect(await quote({ receiver: id, ...asked })).toMatchObject({
        debitAmount: usd(debited),
        receiveAmount: amount(received),
      })
    })

    test('can be read only by the client that created it', async () => {
      const accessToken = quoting
      const { id } = await receiver()
      const made = await quote({ receiver: id, debitAmount: usd('100') }, accessToken)
      expect(made.id.startsWith(`${op}/quotes/`)).toBe(true)
      expect(await us().quote.get({ url: made.id, accessToken })).toEqual(made)
      const foreign = them().quote.get({ url: made.id, accessToken: await theirQuoting() })
      expect(await failure(foreign)).toEqual(notFound)
      const unknown = us().quote.get({ url: `${op}/quotes/unknown`, accessToken })
      expect(await failure(unknown)).toEqual(notFound)
    })

    test('expires after five minutes, or with its receiver', async () => {
      const asked = { debitAmount: usd('100') }
      const { createdAt, expiresAt } = await quote({ receiver: (await receiver()).id, ...asked })
      expect(Date.parse(`${expiresAt}`) - Date.parse(createdAt)).toBe(300_000)
      const soon = new Date(Date.now() + 60_000).toISOString()
      const { id } = await receiver(bob, { expiresAt: soon })
      expect((await quote({ receiver: id, ...asked })).expiresAt).toBe(soon)
    })

    test('is refused without an amount if the receiver has none', async () => {
      const { id } = await receiver()
      expect(await failure(quote({ receiver: id }))).toEqual({
        status: 400,
        code: 'invalid_amount',
        description: 'Missing amount',
      })
    })

    test.each([
      ['bob', '2'],
      ['carol', '3'],
    ])(
      'is refused for an amount too small for %s, with the minimum in the response',
      async (name, least) => {
        const { id } = await receiver(name === 'bob' ? bob : carol)
        expect(await failure(quote({ receiver: id, debitAmount: usd('1') }))).toEqual({
          status: 400,
          code: 'invalid_amount',
          description: 'non-positive receive amount',
          details: { minSendAmount: usd(least) },
        })
        const enough = await quote({ receiver: id, debitAmount: usd(least) })
        expect(enough.receiveAmount.value).toBe('1')
      },
    )

    test('is refused for a receiver that accepts no funds, or that does not exist here', async () => {
      const closed = await receiver(bob, { incomingAmount: usd('100') })
      await closed.complete()
      const elsewhere = 'https://wallet.example/incoming-payments/1'
      const unknown = `${op}/incoming-payments/unknown`
      for (const receiver of [closed.id, elsewhere, unknown]) {
        expect(await failure(quote({ receiver, debitAmount: usd('100') }))).toEqual(invalidReceiver)
      }
    })

    test('is refused in an asset that differs from those of the accounts', async () => {
      const { id } = await receiver()
      const foreign = quote({ receiver: id, debitAmount: eur('100') })
      expect(await failure(foreign)).toEqual(invalidAmount)
      const wrong = quote({ receiver: id, receiveAmount: eur('100') })
      expect(await failure(wrong)).toEqual(invalidAmount)
    })

    test('is refused to clients without the right', async () => {
      const asked = { receiver: (await receiver()).id, debitAmount: usd('100') }
      const reader = await tokenFor([{ type: 'quote', actions: ['read'] }])
      expect(await failure(quote(asked, reader))).toEqual(insufficient)
      expect(await failure(quote(asked, (await consented()).value))).toEqual(insufficient)
      expect(await failure(quote(asked, 'unknown'))).toEqual(invalidToken)
      const nobody = { ...asked, walletAddress: `${running.baseUrl}/nobody` }
      expect(await failure(quote(nobody))).toMatchObject({
        status: 404,
        code: 'unknown_wallet_address',
      })
    })
  })

  describe('an outgoing payment', () => {
    function quoted(receiver: string, accessToken = quoting, by = us()) {
      const asked = { walletAddress: alice, receiver, method, debitAmount: usd('1010') }
      return by.quote.create(paying(accessToken), asked)
    }

    test('is created from a quote', async () => {
      const to = await receiver(bob, { incomingAmount: usd('1000') })
      const { id: quoteId } = await quoted(to.id)
      const { value } = await consented({ limits: { debitAmount: usd('2500') } })
      const body = { walletAddress: alice, quoteId, metadata: { lines: [{ sku: 'x' }] } }
      const payment = await us().outgoingPayment.create(paying(value), body)
      const { grantSpentDebitAmount, grantSpentReceiveAmount, ...made } = payment
      expect(made).toEqual({
        ...body,
        id: expect.stringContaining(`${op}/outgoing-payments/`),
        failed: false,
        receiver: to.id,
        debitAmount: usd('1010'),
        receiveAmount: usd('1000'),
        sentAmount: usd('0'),
        createdAt: expect.any(String),
      })
      expect([grantSpentDebitAmount, grantSpentReceiveAmount]).toEqual([usd('1010'), usd('1000')])
      expect(await read(payment.id, value)).toEqual(made)
      expect(await report(payment.id, 'settle')).toBe(200)
      expect(await read(payment.id, value)).toEqual({ ...made, sentAmount: usd('1010') })
      expect(await to.read()).toMatchObject({ completed: true, receivedAmount: usd('1000') })
    })

    test('is created once for a quote that is used repeatedly', async () => {
      const { id: quoteId } = await quoted((await receiver()).id)
      const { value } = await consented({ limits: { debitAmount: usd('1010') } })
      const create = (more: object = {}) =>
        us().outgoingPayment.create(paying(value), { walletAddress: alice, quoteId, ...more })
      const first = await create()
      expect(await create()).toEqual(first)
      expect(await failure(create({ metadata: {} }))).toEqual({
        status: 422,
        code: 'request_differs',
        description: 'Already used for another payment',
      })
    })

    test('is created directly to an incoming payment', async () => {
      const to = await receiver(carol)
      const { value } = await consented({ limits: { debitAmount: usd('2500'), interval } })
      const payment = await pay(value, to.id, '1010')
      expect(payment).not.toHaveProperty('quoteId')
      expect(payment).toMatchObject({
        receiver: to.id,
        debitAmount: usd('1010'),
        receiveAmount: eur('925'),
        grantSpentDebitAmount: usd('1010'),
      })
      expect(await report(payment.id, 'settle')).toBe(200)
      expect((await to.read()).receivedAmount).toEqual(eur('925'))
    })

    test('is refused for an unknown quote and for a quote of another client', async () => {
      const to = await receiver()
      const { value } = await consented()
      const create = (quoteId: string) =>
        us().outgoingPayment.create(paying(value), { walletAddress: alice, quoteId })
      const theirs = await quoted(to.id, await theirQuoting(), them())
      const unknown = { status: 404, code: 'invalid_quote', description: 'unknown quote' }
      expect(await failure(create(theirs.id))).toEqual(unknown)
      expect(await failure(create(`${op}/quotes/unknown`))).toEqual(unknown)
      expect(await failure(create('https://wallet.example/quotes/1'))).toEqual(unknown)
    })

    test('is refused for a receiver that accepts no funds or has another currency', async () => {
      const { value } = await consented()
      const to = await receiver()
      const euros = { walletAddress: alice, incomingPayment: to.id, debitAmount: eur('100') }
      const call = us().outgoingPayment.create(paying(value), euros)
      expect(await failure(call)).toMatchObject({ status: 400, code: 'invalid_amount' })
      await to.complete()
      expect(await failure(pay(value, to.id, '100'))).toEqual(invalidReceiver)
    })

    test('is refused to clients without the right', async () => {
      const { id } = await receiver()
      const reader = await consented({ actions: ['read'] })
      expect(await failure(pay(reader.value, id, '100'))).toEqual(insufficient)
      expect(await failure(pay(quoting, id, '100'))).toEqual(insufficient)
      const { value } = await consented()
      const foreign = { walletAddress: bob, incomingPayment: id, debitAmount: usd('100') }
      const call = us().outgoingPayment.create(paying(value), foreign)
      expect(await failure(call)).toEqual(insufficient)
      expect(await failure(pay('unknown', id, '100'))).toEqual(invalidToken)
      expect(await failure(pay(value, id, '100', them()))).toMatchObject({
        status: 401,
        code: 'invalid_signature',
      })
    })

    test('can be read only by the client that created it', async () => {
      const { value } = await consented()
      const { id } = await pay(value, (await receiver()).id, '100')
      const theirs = (await consented({ by: them() })).value
      const foreign = them().outgoingPayment.get({ url: id, accessToken: theirs })
      expect(await failure(foreign)).toEqual(notFound)
      expect(await failure(read(`${op}/outgoing-payments/unknown`, value))).toEqual(notFound)
    })

    test('shows a failure, with the amount sent before it', async () => {
      const { value } = await consented()
      const { id } = await pay(value, (await receiver()).id, '1010')
      const some = { sentAmount: usd('505'), deliveredAmount: usd('500') }
      expect(await report(id, 'fail', some)).toBe(200)
      expect(await read(id, value)).toMatchObject({ failed: true, sentAmount: usd('505') })
    })
  })

  describe('a limit', () => {
    const none = { spentDebitAmount: null, spentReceiveAmount: null }

    test.each([
      ['for the life of the grant', {}],
      ['for a month', { interval }],
    ])('%s is exact to the cent, and unsent amounts become available again', async (_, more) => {
      const { value } = await consented({ limits: { debitAmount: usd('1000'), ...more } })
      const { id } = await receiver()
      const of = (debited: string, received: string) => ({
        spentDebitAmount: usd(debited),
        spentReceiveAmount: usd(received),
      })
      expect(await spent(value)).toEqual({ ...none, spentDebitAmount: usd('0') })
      const first = await pay(value, id, '600')
      expect(await failure(pay(value, id, '401'))).toEqual(overLimit)
      const second = await pay(value, id, '400')
      expect(second.grantSpentDebitAmount).toEqual(usd('1000'))
      expect(await failure(pay(value, id, '2'))).toEqual(overLimit)

      const some = { sentAmount: usd('202'), deliveredAmount: usd('200') }
      expect(await report(first.id, 'settle', some)).toBe(200)
      expect(await spent(value)).toEqual(of('1000', '990'))
      expect(await report(first.id, 'settle', { final: true })).toBe(200)
      expect(await spent(value)).toEqual(of('602', '596'))
      expect(await report(second.id, 'fail')).toBe(200)
      expect(await spent(value)).toEqual(of('202', '200'))
      expect(await failure(pay(value, id, '799'))).toEqual(overLimit)
      expect((await pay(value, id, '798')).grantSpentDebitAmount).toEqual(usd('1000'))
    })

    test('on the receive amount counts the receive amount', async () => {
      const { value } = await consented({ limits: { receiveAmount: eur('925') } })
      const [euros, dollars] = [await receiver(carol), await receiver()]
      const payment = await pay(value, euros.id, '1010')
      expect(payment.grantSpentReceiveAmount).toEqual(eur('925'))
      expect(payment.grantSpentDebitAmount).toEqual(usd('1010'))
      expect(await spent(value)).toEqual({
        spentDebitAmount: usd('1010'),
        spentReceiveAmount: eur('925'),
      })
      expect(await failure(pay(value, euros.id, '3'))).toEqual(overLimit)
      expect(await failure(pay(value, dollars.id, '2'))).toEqual(overLimit)
    })

    test('on the receiver allows only that receiver', async () => {
      const [to, another] = [await receiver(), await receiver()]
      const { value } = await consented({ limits: { receiver: to.id } })
      const payment = await pay(value, to.id, '100000')
      expect(payment.grantSpentDebitAmount).toEqual(usd('100000'))
      expect(await spent(value)).toEqual({
        spentDebitAmount: usd('100000'),
        spentReceiveAmount: usd('99009'),
      })
      expect(await failure(pay(value, another.id, '2'))).toEqual(overLimit)
    })

    test('whose first window has not started allows nothing', async () => {
      const limits = { debitAmount: usd('1000'), interval: 'R12/2999-01-01T00:00:00Z/P1M' }
      const { value } = await consented({ limits })
      expect(await failure(pay(value, (await receiver()).id, '100'))).toEqual(overLimit)
      expect(await spent(value)).toEqual(none)
    })

    test('keeps its count when the token is rotated', async () => {
      const { id } = await receiver()
      const first = await consented({ limits: { debitAmount: usd('1000') } })
      await pay(first.value, id, '900')
      const managed = { url: first.manage, accessToken: first.value }
      const { value } = (await us().token.rotate(managed)).access_token
      expect(await spent(value)).toEqual({
        spentDebitAmount: usd('900'),
        spentReceiveAmount: usd('891'),
      })
      expect(await failure(spent(first.value))).toEqual(invalidToken)
      expect(await failure(pay(first.value, id, '100'))).toEqual(invalidToken)
      expect(await failure(pay(value, id, '101'))).toEqual(overLimit)
      expect((await pay(value, id, '100')).grantSpentDebitAmount).toEqual(usd('1000'))
    })

    test('stops mattering once the token is revoked; payments in progress arrive', async () => {
      const to = await receiver()
      const token = await consented({ limits: { debitAmount: usd('1010') } })
      const { id } = await pay(token.value, to.id, '505')
      await us().token.revoke({ url: token.manage, accessToken: token.value })
      expect(await failure(pay(token.value, to.id, '505'))).toEqual(invalidToken)
      expect(await report(id, 'settle')).toBe(200)
      expect((await to.read()).receivedAmount).toEqual(usd('500'))
    })

    test('is not disclosed to clients that may not pay', async () => {
      expect(await failure(spent(quoting))).toEqual(insufficient)
    })
  })

  describe('a list', () => {
    /** Creates three payments of the shop and one of another client, and returns their ids. */
    async function payments(actions: string[]) {
      const to = await receiver()
      const { value } = await consented({ actions: ['create', ...actions] })
      const theirs = await consented({ actions: ['create', ...actions], by: them() })
      const made = [await pay(value, to.id, '100'), await pay(value, to.id, '101')]
      const { id: foreign } = await pay(theirs.value, to.id, '102', them())
      made.push(await pay(value, to.id, '103'))
      return { value, ids: made.map(({ id }) => id), foreign }
    }

    async function list(accessToken: string, page: object = {}) {
      const where = { ...paying(accessToken), walletAddress: alice }
      const { result, pagination } = await us().outgoingPayment.list(where, page as never)
      return { ids: result.map(({ id }) => id), result, ...pagination }
    }

    test('contains the payments of the client, page by page, in both directions', async () => {
      const { value, ids } = await payments(['list', 'read'])
      const [one = '', two = '', three = ''] = ids
      const end = await list(value, { last: 3 })
      expect(end.ids).toEqual(ids)
      expect(end.result[2]).toEqual(await read(three, value))
      expect(end.hasNextPage).toBe(false)

      const back = await list(value, { last: 1, cursor: end.endCursor })
      expect(back.ids).toEqual([two])
      const before = await list(value, { last: 1, cursor: back.startCursor })
      expect(before.ids).toEqual([one])
      const on = await list(value, { first: 2, cursor: before.endCursor })
      expect(on.ids).toEqual([two, three])
      expect([on.hasPreviousPage, on.hasNextPage]).toEqual([true, false])
    })

    test('contains those of other clients if the owner granted it', async () => {
      const { value, ids, foreign } = await payments(['list-all'])
      const [one = '', two = '', three = ''] = ids
      expect((await list(value, { last: 4 })).ids).toEqual([one, two, foreign, three])
    })

    test('is refused without the right, and for another wallet address', async () => {
      const { value } = await consented()
      expect(await failure(list(value))).toEqual(insufficient)
      const lister = (await consented({ actions: ['list'] })).value
      const where = { ...paying(lister), walletAddress: bob }
      expect(await failure(us().outgoingPayment.list(where))).toEqual(insufficient)
      expect(await failure(list(lister, { first: 101 }))).toMatchObject({
        status: 400,
        code: 'invalid_request',
      })
    })
  })
})
