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
import { alice, bob, incomingAccess } from '../support/world.js'

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
})

describe("the ledger's reports of an outgoing payment", () => {
  test('return the payment as its client sees it, and credit Bob', async () => {
    const { payment, report, arrived } = await opened()
    const { grantSpentDebitAmount: _debit, grantSpentReceiveAmount: _receive, ...created } = payment
    const { status, body } = await report('settle')
    expect(status).toBe(200)
    expect(body).toEqual({ ...created, sentAmount: usd(1000) })
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
    expect(await arrived()).toBe('200')
    expect(await report('settle', { final: false })).toMatchObject({ status: 200 })
    expect((await report('settle', { sentAmount: usd(301) })).status).toBe(200)
    const { body } = await report('settle', { final: true })
    expect(body).toMatchObject({ failed: false, sentAmount: usd(301) })
    expect(await arrived()).toBe('200')
    expect(await report('settle')).toEqual(failed(409, 'payment_over'))
  })

  test('accept a failure, with totals and a reason that clients cannot see', async () => {
    const { world, report, arrived } = await opened()
    const said = { sentAmount: usd(20), deliveredAmount: usd(10), reason: 'no liquidity' }
    const { status, body } = await report('fail', said)
    expect([status, body.failed, body.sentAmount]).toEqual([200, true, usd(20)])
    expect(JSON.stringify(body)).not.toContain('liquidity')
    const { outgoingPayments } = world.resources
    const stored = await outgoingPayments.get(outgoingPayments.idOf(body.id) ?? '')
    expect(stored?.failure).toBe('no liquidity')
    expect(await arrived()).toBe('10')
    expect(await report('settle')).toEqual(failed(409, 'payment_over'))
  })

  test('accept a failure without a body', async () => {
    const { report, arrived } = await opened()
    const { status, body } = await report('fail')
    expect([status, body.failed, body.sentAmount]).toEqual([200, true, usd(0)])
    expect(await arrived()).toBe('0')
  })

  test.each([
    ['settle', { sentAmount: usd(1001) }, 'totals_exceeded'],
    ['settle', { deliveredAmount: eur(1) }, 'amount_invalid'],
    ['settle', { deliveredAmount: usd('01') }, 'amount_invalid'],
    ['fail', { sentAmount: usd(1000) }, 'payment_sent'],
  ])('refuse to %s with %j', async (how, said, code) => {
    const { report, arrived } = await opened()
    expect(await report(how, said)).toEqual(failed(409, code))
    expect(await arrived()).toBe('0')
    expect((await report('settle')).status).toBe(200)
  })

  test.each([
    ['settle', '{'],
    ['settle', 'null'],
    ['settle', '[]'],
    ['settle', '"all"'],
    ['settle', { sentAmout: usd(1) }],
    ['settle', { sentAmount: '1' }],
    ['settle', { sentAmount: null }],
    ['settle', { deliveredAmount: { value: 1, assetCode: 'USD', assetScale: 2 } }],
    ['settle', { deliveredAmount: { value: '1', assetCode: 'USD' } }],
    ['settle', { deliveredAmount: { value: '1', assetScale: 2 } }],
    ['settle', { final: 'yes' }],
    ['settle', { reason: 'why' }],
    ['fail', '{'],
    ['fail', { final: true }],
    ['fail', { reason: 1 }],
  ])('reject %s with invalid %j', async (how, said) => {
    const { report, arrived } = await opened()
    expect(await report(how, said)).toEqual(failed(400, 'invalid_request'))
    expect(await arrived()).toBe('0')
    expect((await report('fail')).status).toBe(200)
  })

  test('check the payment, the path and the method', async () => {
    const { path, send } = await opened()
    const unknown = await send('POST', '/outgoing-payments/unknown/settle')
    expect([unknown.status, unknown.body]).toEqual([404, { error: { code: 'payment_unknown' } }])
    for (const other of [path, `${path}/`, `${path}/cancel`, `${path}/settle/`, `${path}/x/fail`]) {
      const { status, body } = await send('POST', other)
      expect([status, body], other).toEqual([404, { error: { code: 'not_found' } }])
    }
    const get = await send('GET', `${path}/settle`)
    expect([get.status, get.headers['allow']]).toEqual([405, 'POST'])
    expect((await send('POST', `${path}/settle?now`)).status).toBe(200)
  })
})
