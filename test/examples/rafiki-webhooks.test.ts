import { createHmac, timingSafeEqual } from 'node:crypto'
import { createServer, type IncomingHttpHeaders, type Server } from 'node:http'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { canonicalize, rafikiSignature } from '../../examples/webhooks/rafiki.js'
import { webhookSender } from '../../examples/webhooks/sender.js'
import type { IncomingPaymentView } from '../../src/index.js'
import { listening, stopped } from '../support/hosts.js'
import { pay, shopReceiver, usd } from '../support/spending.js'
import { idOfPayment, payingClient } from '../support/spending-client.js'
import { alice, bob, createWorld, incomingAccess, type World } from '../support/world.js'

const secret = 'iEPPaVMNXYVSTGDdsnUVXJhPSlAKRUxM'
const dollars = { assetCode: 'USD', assetScale: 2 }
const uuid = /^[0-9a-f]{8}-[0-9a-f]{4}-[1-8][0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/

interface Received {
  readonly headers: IncomingHttpHeaders
  readonly text: string
  readonly body: { readonly id: string; readonly type: string; readonly data: object }
}

let servers: Server[]
beforeEach(() => {
  servers = []
})
afterEach(() => Promise.all(servers.map(stopped)))

/** A receiver that was written for Rafiki: it responds with 200. */
async function receiver() {
  const received: Received[] = []
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk)
    const text = Buffer.concat(chunks).toString()
    received.push({ headers: request.headers, text, body: JSON.parse(text) })
    response.writeHead(200).end()
  })
  servers.push(server)
  return { received, url: `http://localhost:${await listening(server)}` }
}

/**
 * The steps of Rafiki's documentation: take timestamp and digest from the header, sign the timestamp, a point and the
 * canonical body, compare. The canonical form is written here independently, for bodies without nested arrays.
 */
function isSignedByRafiki({ headers, body }: Received, key: string): boolean {
  const [, timestamp = '', digest = ''] =
    /^t=(\d+), v1=([0-9a-f]{64})$/.exec(`${headers['rafiki-signature']}`) ?? []
  const sorted = JSON.stringify(body, (_, value) =>
    value !== null && typeof value === 'object'
      ? Object.fromEntries(
          Object.keys(value)
            .sort()
            .map((name) => [name, value[name]]),
        )
      : value,
  )
  const expected = createHmac('sha256', key).update(`${timestamp}.${sorted}`).digest('hex')
  const isFresh = Math.abs(Date.now() / 1000 - Number(timestamp)) < 300
  return isFresh && digest !== '' && timingSafeEqual(Buffer.from(expected), Buffer.from(digest))
}

/** Creates a payment, and returns a function that sends its events so far. */
async function createdPayment(world: World, body: object = {}) {
  const client = world.client()
  const grant = (await client.request([incomingAccess])).body
  const { url, received } = await receiver()
  const response = await client.createPayment(grant.access_token.value, {
    walletAddress: bob,
    ...body,
  })
  const paymentId = `${response.body.id}`.split('/').at(-1) ?? ''
  const send = webhookSender({
    url,
    secret,
    rafiki: { payments: world.resources, walletAddressId: async () => 'id-of-bob' },
  })
  const sent = async () => {
    await world.resources.events.drain(send)
    return received
  }
  return { paymentId, sent }
}

describe('the signature', () => {
  test('is that of Rafiki for this body, secret and time', () => {
    const body = '{"data":{"b":1},"id":"i","type":"t"}'
    const digest = createHmac('sha256', 'key').update(`1700000000.${body}`).digest('hex')
    expect(rafikiSignature(body, 'key', new Date(1_700_000_000_900))).toBe(
      `t=1700000000, v1=${digest}`,
    )
  })

  test('covers the canonical form of RFC 8785', () => {
    // The example of section 3.2.3, and nested values of every type.
    const given = JSON.parse(
      '{"\\u20ac":"Euro Sign","\\r":"Carriage Return","\\ufb33":"Hebrew","1":"One",' +
        '"\\ud83d\\ude00":"Emoji","\\u0080":"Control","\\u00f6":"Latin","a":[{"z":1,"b":null},true,1e21]}',
    )
    expect(canonicalize(given)).toBe(
      '{"\\r":"Carriage Return","1":"One","a":[{"b":null,"z":1},true,1e+21],"\u0080":"Control",' +
        '"ö":"Latin","€":"Euro Sign","😀":"Emoji","\ufb33":"Hebrew"}',
    )
  })
})

describe('the webhook sender for receivers of Rafiki', () => {
  test('sends name, body and signature of Rafiki', async () => {
    const world = createWorld()
    const metadata = { order: 17, note: 'ö & <b>' }
    const incomingAmount = { value: '2500', ...dollars }
    const { paymentId, sent } = await createdPayment(world, { metadata, incomingAmount })
    const [webhook] = await sent()
    // The bytes are signed too, for a receiver that does not parse them.
    expect(webhook?.text).toBe(canonicalize(webhook?.body))
    expect(webhook && isSignedByRafiki(webhook, secret)).toBe(true)
    expect(webhook && isSignedByRafiki(webhook, 'another secret')).toBe(false)
    const payment = (await world.resources.incomingPayments.get(paymentId)) as IncomingPaymentView
    expect(webhook?.body).toEqual({
      id: expect.stringMatching(uuid),
      type: 'incoming_payment.created',
      data: {
        id: paymentId,
        walletAddressId: 'id-of-bob',
        client: payment.client,
        completed: false,
        incomingAmount,
        receivedAmount: { value: '0', ...dollars },
        metadata,
        createdAt: new Date(payment.createdAt).toISOString(),
        updatedAt: new Date(payment.createdAt).toISOString(),
        expiresAt: new Date(payment.expiresAt).toISOString(),
      },
    })
  })

  test('reports completion with what was received', async () => {
    const world = createWorld()
    const incomingAmount = { value: '2500', ...dollars }
    const { paymentId, sent } = await createdPayment(world, { incomingAmount })
    await world.resources.incomingPayments.receive(paymentId, {
      transferId: 'transfer-1',
      amount: incomingAmount,
    })
    const received = await sent()
    expect(received.map(({ body }) => body.type)).toEqual([
      'incoming_payment.created',
      'incoming_payment.completed',
    ])
    expect(received[1]?.body.data).toMatchObject({
      completed: true,
      receivedAmount: incomingAmount,
    })
    expect(received[0]?.body.id).not.toBe(received[1]?.body.id)
  })

  test.each([
    [0, []],
    [255, ['incoming_payment.expired']],
  ])('reports the expiry of a payment that received %i with %j', async (value, types) => {
    const world = createWorld()
    const { paymentId, sent } = await createdPayment(world)
    if (value > 0) {
      const funds = { transferId: 'transfer-1', amount: { value: `${value}`, ...dollars } }
      await world.resources.incomingPayments.receive(paymentId, funds)
    }
    world.clock.advance(31 * 86_400_000)
    await world.resources.sweep()
    const [, ...later] = await sent()
    expect(later.map(({ body }) => body.type)).toEqual(types)
  })

  test.each([
    ['COMPLETED', 'outgoing_payment.completed', '1000'],
    ['FAILED', 'outgoing_payment.failed', '300'],
  ])('reports an outgoing payment that is %s', async (state, type, value) => {
    const { world, client, token } = await payingClient()
    const { url, received } = await receiver()
    const paymentId = idOfPayment(await pay(client, token, 1000))
    const { outgoingPayments, events } = world.resources
    await outgoingPayments.begin(paymentId)
    const sent = { sentAmount: usd(value), deliveredAmount: usd(value) }
    const ended =
      state === 'FAILED'
        ? await outgoingPayments.fail(paymentId, { ...sent, reason: 'no route' })
        : await outgoingPayments.reportSent(paymentId, sent)
    expect(ended).toMatchObject({ ok: true })

    await events.drain(webhookSender({ url, secret, rafiki: { payments: world.resources } }))
    expect(received.map((webhook) => isSignedByRafiki(webhook, secret))).toEqual([true, true])
    const [created, last] = received.map((webhook) => webhook.body)
    expect(created).toMatchObject({
      type: 'outgoing_payment.created',
      data: { id: paymentId, state: 'FUNDING', debitAmount: usd(1000), sentAmount: usd(0) },
    })
    expect(last).toMatchObject({
      type,
      data: {
        id: paymentId,
        walletAddressId: alice,
        state,
        receiver: shopReceiver,
        sentAmount: usd(value),
        ...(state === 'FAILED' && { error: 'no route' }),
      },
    })
  })

  test('sends nothing for events that Rafiki does not have', async () => {
    const world = createWorld()
    await world.client().request([incomingAccess])
    const { url, received } = await receiver()
    const send = webhookSender({ url, secret, rafiki: { payments: world.resources } })
    expect(await world.auth.events.drain(send)).toMatchObject({ failed: 0 })
    expect(received).toEqual([])
  })

  test('gives a repeated delivery the same id', async () => {
    const world = createWorld()
    const { sent } = await createdPayment(world)
    const { url, received } = await receiver()
    const send = webhookSender({ url, secret, rafiki: { payments: world.resources } })
    const failing = async (...[event, delivery]: Parameters<typeof send>) => {
      await send(event, delivery)
      throw new Error('the process stopped')
    }
    await world.resources.events.drain(failing, { backoffMs: 1_000 })
    world.clock.advance(1_000)
    const [again] = await sent()
    expect(received.map(({ body }) => body.id)).toEqual([again?.body.id])
  })

  test.each([[['one', 'two']], [[]]])('rejects the secrets %j: its header has one', (secrets) => {
    const rafiki = { payments: createWorld().resources }
    const options = { url: 'https://a.example', secret: secrets, rafiki }
    expect(() => webhookSender(options)).toThrow('secret')
  })

  test('rejects an empty secret', () => {
    const rafiki = { payments: createWorld().resources }
    expect(() => webhookSender({ url: 'https://a.example', secret: '', rafiki })).toThrow('secret')
  })
})
