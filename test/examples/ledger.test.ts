import { describe, expect, test } from 'vitest'
import { ledger } from '../../examples/wallet/ledger.js'
import {
  createSpendingWorld,
  eur,
  grantToPay,
  outgoingItem,
  pay,
  usd,
} from '../support/spending.js'
import { alice, bob, incomingAccess, resourceServer } from '../support/world.js'

type Headers = readonly (readonly [string, string])[]
const asJson: Headers = [['Content-Type', 'application/json; charset=utf-8']]

/** A payment of 10 dollars to Bob, and the wallet's ledger. */
async function opened() {
  const world = createSpendingWorld()
  const client = world.client()
  const { token } = await grantToPay(world, client, [outgoingItem()])
  const incoming = (await client.request([incomingAccess])).body.access_token.value
  const { id: receiver } = (await client.createPayment(incoming, { walletAddress: bob })).body
  const { body: created } = await pay(client, token, 1000, { incomingPayment: receiver })
  const { grantSpentDebitAmount: _, grantSpentReceiveAmount: __, ...body } = created
  const handle = ledger(world.resources)

  async function send(method: string, path: string, said: unknown = '', headers = asJson) {
    const text = typeof said === 'string' ? said : JSON.stringify(said)
    const url = `/ledger${path}`
    const answer = await handle({ method, url, headers, body: new TextEncoder().encode(text) })
    return { status: answer.status, headers: answer.headers, body: JSON.parse(answer.body ?? '') }
  }

  const path = `/outgoing-payments/${body.id.split('/').at(-1)}`
  async function report(how: string, said?: unknown) {
    const answer = await send('POST', `${path}/${how}`, said)
    expect(answer.headers['cache-control']).toBe('no-store')
    return { status: answer.status, body: answer.body }
  }
  const arrived = async () =>
    (await client.getPayment(incoming, receiver)).body.receivedAmount.value as string
  return { world, payment: body, path, send, report, arrived }
}

const failed = (status: number, code: string) => ({ status, body: { error: { code } } })

describe('the ledger', () => {
  test.each<[string, Headers]>([
    ['no media type', []],
    ['text', [['content-type', 'text/plain']]],
    ['text that names JSON', [['content-type', 'text/plain; x=application/json']]],
    ['a form', [['content-type', 'application/x-www-form-urlencoded']]],
    ['a form with parts', [['content-type', 'multipart/form-data; boundary=x']]],
    ['two media types', [...asJson, ['content-type', 'text/plain']]],
  ])('moves no money for %s, which pages of other sites can post', async (_, headers) => {
    const { payment, path, send, report, arrived } = await opened()
    const refused = { status: 415, body: { error: { code: 'unsupported_media_type' } } }
    const transfer = { transferId: '1', incomingPayment: payment.receiver, amount: usd(100) }
    expect(await send('POST', '/transfers', transfer, headers)).toMatchObject(refused)
    for (const how of ['settle', 'fail']) {
      expect(await send('POST', `${path}/${how}`, '', headers)).toMatchObject(refused)
      expect(await send('POST', `${path}/${how}`, {}, headers)).toMatchObject(refused)
    }
    expect(await arrived()).toBe('0')
    expect((await send('POST', '/transfers', transfer)).status).toBe(200)
    expect((await report('settle')).status).toBe(200)
  })

  test('counts a transfer once, and returns the payment as its client sees it', async () => {
    const { payment, send, arrived } = await opened()
    const transfer = { transferId: '1', incomingPayment: payment.receiver, amount: usd(1500) }
    for (let i = 0; i < 2; i++) {
      const { status, body } = await send('POST', '/transfers', transfer)
      const { receiver: id } = payment
      expect([status, body]).toMatchObject([200, { id, receivedAmount: usd(1500) }])
      expect(body).not.toHaveProperty('methods')
    }
    expect(await arrived()).toBe('1500')
  })

  const transferOf = (more: object = {}) => ({ transferId: '2', amount: usd(1), ...more })
  test.each<[number, string, unknown]>([
    [409, 'transfer_mismatch', transferOf({ transferId: '1' })],
    [409, 'amount_invalid', transferOf({ amount: eur(1) })],
    [409, 'amount_invalid', transferOf({ amount: usd('18446744073709551616') })],
    [409, 'amount_invalid', transferOf({ amount: usd('1e3') })],
    [404, 'payment_unknown', transferOf({ incomingPayment: 'incoming-payments/1' })],
    [
      404,
      'payment_unknown',
      transferOf({ incomingPayment: `${resourceServer}/incoming-payments/x` }),
    ],
    [
      404,
      'payment_unknown',
      transferOf({ incomingPayment: 'https://evil.example/incoming-payments/1' }),
    ],
    [404, 'payment_unknown', transferOf({ incomingPayment: '' })],
    ...['', '{', 'null', '[]', '"text"', 'x'.repeat(70_000)].map(
      (text): [number, string, unknown] => [400, 'invalid_request', text],
    ),
    [400, 'invalid_request', {}],
    [400, 'invalid_request', transferOf({ transferId: '' })],
    [400, 'invalid_request', transferOf({ transferId: 1 })],
    [400, 'invalid_request', transferOf({ incomingPayment: 1 })],
    [400, 'invalid_request', transferOf({ amount: { ...usd(1), value: 1 } })],
    [400, 'invalid_request', transferOf({ amount: { value: '1', assetCode: 'USD' } })],
    [400, 'invalid_request', transferOf({ amount: null })],
  ])('refuses with %i %s the transfer %j', async (status, code, said) => {
    const { payment, send, arrived } = await opened()
    const incomingPayment = payment.receiver
    const first = { transferId: '1', incomingPayment, amount: usd(100) }
    expect((await send('POST', '/transfers', first)).status).toBe(200)
    const body = typeof said === 'string' ? said : { incomingPayment, ...(said as object) }
    const answer = await send('POST', '/transfers', body)
    expect([answer.status, answer.body]).toEqual([status, { error: { code } }])
    expect(await arrived()).toBe('100')
  })

  test('refuses funds after completion', async () => {
    const { world, payment, send } = await opened()
    const { incomingPayments } = world.resources
    await incomingPayments.complete(incomingPayments.idOf(payment.receiver) ?? '')
    const transfer = transferOf({ incomingPayment: payment.receiver })
    const { status, body } = await send('POST', '/transfers', transfer)
    expect({ status, body }).toEqual(failed(409, 'payment_completed'))
  })
})

describe("the ledger's reports of an outgoing payment", () => {
  test('return the payment as its client sees it, and credit Bob', async () => {
    const { payment, report, arrived } = await opened()
    const { status, body } = await report('settle')
    expect([status, body]).toEqual([200, { ...payment, sentAmount: usd(1000) }])
    expect(body.walletAddress).toBe(alice)
    expect(await arrived()).toBe('1000')
    expect(await report('settle')).toEqual({ status: 200, body })
    expect(await report('fail')).toEqual(failed(409, 'payment_over'))
    expect(await arrived()).toBe('1000')
  })

  test('accept totals, and keep earlier values of missing members', async () => {
    const { report, arrived } = await opened()
    const some = { sentAmount: usd(300), deliveredAmount: usd(200) }
    expect((await report('settle', some)).body).toMatchObject({ sentAmount: usd(300) })
    expect(await report('settle', { final: false })).toMatchObject({ status: 200 })
    expect((await report('settle', { sentAmount: usd(301) })).status).toBe(200)
    const { body } = await report('settle', { final: true })
    expect(body).toMatchObject({ failed: false, sentAmount: usd(301) })
    expect(await arrived()).toBe('200')
  })

  test.each([
    [{ sentAmount: usd(20), deliveredAmount: usd(10), reason: 'no liquidity' }, usd(20), '10'],
    [undefined, usd(0), '0'],
  ])('accept a failure with %j, and hide its reason from clients', async (said, sent, credited) => {
    const { world, report, arrived } = await opened()
    const { status, body } = await report('fail', said)
    expect([status, body.failed, body.sentAmount]).toEqual([200, true, sent])
    expect(JSON.stringify(body)).not.toContain('liquidity')
    const { outgoingPayments } = world.resources
    const stored = await outgoingPayments.get(outgoingPayments.idOf(body.id) ?? '')
    expect(stored?.failure).toBe(said?.reason)
    expect(await arrived()).toBe(credited)
  })

  const invalid = [400, 'invalid_request'] as const
  test.each<[string, unknown, number, string]>([
    ['settle', { sentAmount: usd(1001) }, 409, 'totals_exceeded'],
    ['settle', { deliveredAmount: eur(1) }, 409, 'amount_invalid'],
    ['settle', { deliveredAmount: usd('01') }, 409, 'amount_invalid'],
    ['fail', { sentAmount: usd(1000) }, 409, 'payment_sent'],
    ['settle', '{', ...invalid],
    ['settle', 'null', ...invalid],
    ['settle', '[]', ...invalid],
    ['settle', { sentAmout: usd(1) }, ...invalid],
    ['settle', { sentAmount: '1' }, ...invalid],
    ['settle', { sentAmount: null }, ...invalid],
    ['settle', { deliveredAmount: { ...usd(1), value: 1 } }, ...invalid],
    ['settle', { final: 'yes' }, ...invalid],
    ['settle', { reason: 'why' }, ...invalid],
    ['fail', '{', ...invalid],
    ['fail', { final: true }, ...invalid],
    ['fail', { reason: 1 }, ...invalid],
  ])('refuse to %s with %j: %i %s', async (how, said, status, code) => {
    const { report, arrived } = await opened()
    expect(await report(how, said)).toEqual(failed(status, code))
    expect(await arrived()).toBe('0')
    expect((await report(how)).status).toBe(200)
  })

  test('check the payment, the path and the method', async () => {
    const { path, send } = await opened()
    const unknown = await send('POST', '/outgoing-payments/unknown/settle')
    expect([unknown.status, unknown.body]).toEqual([404, { error: { code: 'payment_unknown' } }])
    const others = ['', '/', '/transfer', '/transfers/1', path, `${path}/cancel`, `${path}/x/fail`]
    for (const other of others) {
      const { status, body } = await send('POST', other)
      expect([status, body], other).toEqual([404, { error: { code: 'not_found' } }])
    }
    for (const known of ['/transfers', `${path}/settle`]) {
      const get = await send('GET', known)
      expect([get.status, get.headers['allow']]).toEqual([405, 'POST'])
    }
    expect((await send('POST', `${path}/settle?now`)).status).toBe(200)
  })
})

describe('settlements with a peer', () => {
  const peer = 'test.other'
  function railLedger() {
    const counted = new Map<string, bigint>()
    const handle = ledger(createSpendingWorld().resources, {
      async balances() {
        const value = 900n - [...counted.values()].reduce((sum, amount) => sum + amount, 0n)
        return { [peer]: { value: `${value}`, assetCode: 'USD', assetScale: 9 } }
      },
      async settle(to, { id, amount }) {
        if (to !== peer) return 'peer_unknown'
        if ((counted.get(id) ?? amount) !== amount) return 'transfer_mismatch'
        counted.set(id, amount)
        return 'settled'
      },
    })
    return async (said: unknown, headers = asJson, method = 'POST') => {
      const body = new TextEncoder().encode(JSON.stringify(said))
      const answer = await handle({ method, url: '/ledger/settlements', headers, body })
      return { status: answer.status, body: JSON.parse(answer.body ?? '') }
    }
  }
  const settlement = { transferId: 'one', peer, value: '400' }

  test('lower what the peer owes, and answer with the balances', async () => {
    const send = railLedger()
    const balances = { [peer]: { value: '500', assetCode: 'USD', assetScale: 9 } }
    expect(await send(settlement)).toEqual({ status: 200, body: balances })
    expect(await send({ ...settlement, transferId: 'two', value: '-400' })).toMatchObject({
      body: { [peer]: { value: '900' } },
    })
  })

  test('are refused if the id was used for another amount', async () => {
    const send = railLedger()
    await send(settlement)
    expect(await send(settlement)).toMatchObject({ status: 200 })
    const other = await send({ ...settlement, value: '401' })
    expect(other).toEqual(failed(409, 'transfer_mismatch'))
  })

  test.each<[string, number, string, unknown]>([
    ['another peer', 404, 'peer_unknown', { ...settlement, peer: 'test.stranger' }],
    ['a number', 400, 'invalid_request', { ...settlement, value: 400 }],
    ['a fraction', 400, 'invalid_request', { ...settlement, value: '4.5' }],
    ['no id', 400, 'invalid_request', { ...settlement, transferId: '' }],
    ['a long id', 400, 'invalid_request', { ...settlement, transferId: 'x'.repeat(256) }],
    ['a misspelled member', 400, 'invalid_request', { ...settlement, amount: '1' }],
    ['a list', 400, 'invalid_request', [settlement]],
  ])('are refused for %s', async (_, status, code, said) => {
    expect(await railLedger()(said)).toEqual(failed(status, code))
  })

  test('need JSON and POST', async () => {
    expect(await railLedger()(settlement, [])).toMatchObject({ status: 415 })
    expect(await railLedger()(settlement, asJson, 'GET')).toMatchObject({ status: 405 })
  })
})
