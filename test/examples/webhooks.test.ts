import { createServer, type RequestListener, type Server } from 'node:http'
import { Webhook } from 'standardwebhooks'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { type ReceivedWebhook, webhookReceiver } from '../../examples/webhooks/receiver.js'
import { webhookSender } from '../../examples/webhooks/sender.js'
import type { DeliveredEvent, FailedDelivery } from '../../src/index.js'
import { listening, stopped } from '../support/hosts.js'
import { bob, createWorld, incomingAccess } from '../support/world.js'

const secret = `whsec_${Buffer.alloc(32, 5).toString('base64')}`

const event: DeliveredEvent = {
  id: 'AbCdEfGhpayment.incoming-payment.2.1',
  subject: 'incoming-payment/payment',
  server: 'https://wallet.example',
  type: 'incoming-payment.received',
  at: Date.UTC(2026, 10, 21, 12),
  incomingPaymentId: 'AbCdEfGhpayment',
  walletAddress: bob,
  client: 'https://shop.example',
  receivedAmount: { value: '1500', assetCode: 'USD', assetScale: 2 },
  transferId: 'rail-2',
  amount: { value: '500', assetCode: 'USD', assetScale: 2 },
}

let servers: Server[]
beforeEach(() => {
  servers = []
})
afterEach(() => Promise.all(servers.map(stopped)))

async function urlOf(server: Server): Promise<string> {
  servers.push(server)
  return `http://localhost:${await listening(server)}`
}

const serve = (listener: RequestListener) => urlOf(createServer(listener))

/** A receiver that records webhooks, after failing a number of times. */
async function receiver(options: { readonly failures?: number } = {}) {
  const received: ReceivedWebhook[] = []
  let failures = options.failures ?? 0
  const server = webhookReceiver(secret, (webhook) => {
    received.push(webhook)
    if (failures-- > 0) throw new Error('not now')
  })
  return { received, url: await urlOf(server) }
}

const delivery = { attempt: 1, signal: new AbortController().signal }

describe('the webhook sender', () => {
  test('sends the event and its time, with the id of the event', async () => {
    const { received, url } = await receiver()
    await webhookSender({ url, secret })(event, delivery)
    const { id, type, at: _, ...data } = event
    expect(received).toEqual([{ id, type, timestamp: '2026-11-21T12:00:00.000Z', data }])
  })

  test('repeats a failed delivery with the same id', async () => {
    const { received, url } = await receiver({ failures: 1 })
    const world = createWorld()
    const client = world.client()
    const grant = (await client.request([incomingAccess])).body
    const payment = await client.createPayment(grant.access_token.value, { walletAddress: bob })
    expect(payment.status).toBe(201)

    const failures: FailedDelivery[] = []
    const options = { backoffMs: 10_000, onFailure: (each: FailedDelivery) => failures.push(each) }
    const send = webhookSender({ url, secret })
    const { events } = world.resources
    expect(await events.drain(send, options)).toEqual({ delivered: 0, failed: 1 })
    expect(`${failures[0]?.error}`).toContain('500')
    expect(await events.drain(send, options)).toEqual({ delivered: 0, failed: 0 })

    world.clock.advance(10_000)
    expect(await events.drain(send, options)).toEqual({ delivered: 1, failed: 0 })
    expect(received).toHaveLength(2)
    expect(received[1]).toEqual(received[0])
    expect(received[0]).toMatchObject({
      id: failures[0]?.event.id,
      type: 'incoming-payment.created',
      data: { walletAddress: bob },
    })
  })

  test('signs with each of two secrets, so that the receiver can replace its own', async () => {
    const next = `whsec_${Buffer.alloc(32, 9).toString('base64')}`
    const accepted: string[] = []
    const known = [secret, next, `whsec_${Buffer.alloc(32, 10).toString('base64')}`]
    for (const one of known) {
      const url = await urlOf(webhookReceiver(one, () => void accepted.push(one)))
      const send = webhookSender({ url, secret: [secret, next] })
      await Promise.allSettled([send(event, delivery)])
    }
    expect(accepted).toEqual([secret, next])
  })

  test('rejects an empty list of secrets', () => {
    expect(() => webhookSender({ url: 'https://shop.example', secret: [] })).toThrow('secret')
  })

  test.each([204, 200, 201])('accepts the status %i', async (status) => {
    const url = await serve((_, response) => response.writeHead(status).end())
    await webhookSender({ url, secret })(event, delivery)
  })

  test.each([301, 304, 400, 410, 500, 503])('treats the status %i as a failure', async (status) => {
    const url = await serve((_, response) => response.writeHead(status).end())
    const sent = webhookSender({ url, secret })(event, delivery)
    await expect(sent).rejects.toThrow()
  })

  test.each([301, 302, 303, 307, 308])('does not follow a redirect with %i', async (status) => {
    const { received, url } = await receiver()
    const redirecting = await serve((_, response) =>
      response.writeHead(status, { location: url }).end(),
    )
    const sent = webhookSender({ url: redirecting, secret })(event, delivery)
    await expect(sent).rejects.toThrow(`${status}`)
    expect(received).toEqual([])
  })

  test('stops waiting for a receiver that does not respond', async () => {
    const url = await serve(() => undefined)
    const sent = webhookSender({ url, secret, timeoutMs: 50 })(event, delivery)
    await expect(sent).rejects.toMatchObject({ name: 'TimeoutError' })
  })

  test('gives up when the lease of the event ends', async () => {
    const url = await serve(() => undefined)
    const lease = new AbortController()
    const sent = webhookSender({ url, secret })(event, { attempt: 1, signal: lease.signal })
    lease.abort()
    await expect(sent).rejects.toMatchObject({ name: 'AbortError' })
  })

  test('rejects if the receiver is unreachable', async () => {
    const url = await serve(() => undefined)
    await Promise.all(servers.splice(0).map(stopped))
    await expect(webhookSender({ url, secret })(event, delivery)).rejects.toThrow()
  })

  test.each([
    '',
    'whsec_',
    'secret',
    `whsec_${Buffer.alloc(23).toString('base64')}`,
    secret.slice(6),
  ])('rejects %j as a secret', (bad) => {
    expect(() => webhookSender({ url: 'https://shop.example', secret: bad })).toThrow('secret')
  })

  test('rejects an invalid URL', () => {
    expect(() => webhookSender({ url: 'shop.example', secret })).toThrow()
  })
})

describe('the webhook receiver', () => {
  const body = JSON.stringify({ type: 'grant.issued', timestamp: '2026-11-21T12:00:00Z', data: {} })

  /** Signs a webhook, optionally with one part changed afterwards. */
  function signed(change: { at?: number; by?: string; headers?: object; body?: string } = {}) {
    const at = new Date(change.at ?? Date.now())
    const headers = {
      'webhook-id': 'id',
      'webhook-timestamp': `${Math.floor(at.getTime() / 1000)}`,
      'webhook-signature': new Webhook(change.by ?? secret).sign('id', at, body),
      ...change.headers,
    }
    return { method: 'POST', headers, body: change.body ?? body }
  }

  test('responds with 204 to a valid webhook', async () => {
    const { received, url } = await receiver()
    expect((await fetch(url, signed())).status).toBe(204)
    expect(received.map(({ id }) => id)).toEqual(['id'])
  })

  test.each([
    ['another body', () => signed({ body: body.replace('issued', 'denied') })],
    ['the same JSON in other bytes', () => signed({ body: body.replace(':', ': ') })],
    ['another id', () => signed({ headers: { 'webhook-id': 'other' } })],
    ['another secret', () => signed({ by: `whsec_${Buffer.alloc(32, 6).toString('base64')}` })],
    ['no signature', () => signed({ headers: { 'webhook-signature': '' } })],
    ['an old signature', () => signed({ at: Date.now() - 600_000 })],
    ['a signature from the future', () => signed({ at: Date.now() + 600_000 })],
    ['another time', () => signed({ headers: { 'webhook-timestamp': `${2 ** 31}` } })],
  ])('responds with 401 to %s', async (_, request) => {
    const { received, url } = await receiver()
    expect((await fetch(url, request())).status).toBe(401)
    expect(received).toEqual([])
  })

  test('responds with 413 to a body that is too large, and with 405 to methods other than POST', async () => {
    const { received, url } = await receiver()
    expect((await fetch(url, signed({ body: 'x'.repeat(70_000) }))).status).toBe(413)
    expect((await fetch(url)).status).toBe(405)
    expect(received).toEqual([])
  })
})
