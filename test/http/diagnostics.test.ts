import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { RefusalMessage, RequestMessage } from '../../src/index.js'
import { alice, bob, createWorld, incomingAccess, resourceServer } from '../support/world.js'

const requests: RequestMessage[] = []
const refusals: RefusalMessage[] = []
const onRequest = (message: unknown) => void requests.push(message as RequestMessage)
const onRefusal = (message: unknown) => void refusals.push(message as RefusalMessage)

/** A grant, a payment, and a payment that the grant does not allow. */
async function life() {
  const world = createWorld()
  const client = world.client()
  const { body } = await client.request([incomingAccess])
  const token: string = body.access_token.value
  await client.createPayment(token, { walletAddress: bob })
  await client.createPayment(token, { walletAddress: alice })
  return { world, client, token }
}

describe('with subscribers of the channels', () => {
  beforeEach(() => {
    requests.length = 0
    refusals.length = 0
    subscribe('open-payments-server:request', onRequest)
    subscribe('open-payments-server:refusal', onRefusal)
  })
  afterEach(() => {
    unsubscribe('open-payments-server:request', onRequest)
    unsubscribe('open-payments-server:refusal', onRefusal)
  })

  test('each answered request is published, with its route and outcome', async () => {
    await life()
    const operation = 'createIncomingPayment'
    const own = { server: 'resourceServer', operation, route: '/op/incoming-payments' }
    const durationMs = expect.any(Number)
    expect(requests).toEqual([
      {
        server: 'authorizationServer',
        method: 'POST',
        operation: 'requestGrant',
        route: '/auth',
        status: 200,
        durationMs,
      },
      { ...own, method: 'POST', status: 201, durationMs },
      { ...own, method: 'POST', status: 403, refusal: 'identifier_foreign', durationMs },
    ])
  })

  test('each refusal is published as the hook reports it, without the client', async () => {
    const { world } = await life()
    const expected = world.refusals.map(({ client: _client, keyid: _keyid, ...report }) => ({
      server: 'resourceServer',
      ...report,
    }))
    expect(expected).toHaveLength(1)
    expect(refusals).toEqual(expected)
  })

  test('nothing in the messages identifies a client, a record, a token or a key', async () => {
    const { client, token } = await life()
    await client.getPayment(token, `${resourceServer}/incoming-payments/none-such`)
    const text = JSON.stringify([requests, refusals])
    for (const secret of [token, client.key.x, client.key.kid, 'shop.example', 'none-such']) {
      expect(text).not.toContain(secret)
    }
  })
})

test('without subscribers nothing is published', async () => {
  const before = [requests.length, refusals.length]
  await life()
  expect([requests.length, refusals.length]).toEqual(before)
})
