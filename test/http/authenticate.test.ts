import { describe, expect, test } from 'vitest'
import type { HttpRequest } from '../../src/entry-adapter.js'
import { testKey } from '../support/keys.js'
import { withHeader, withSignaturesOf } from '../support/sign.js'
import {
  type Answer,
  answerOf,
  bob,
  createWorld,
  grantEndpoint,
  incomingAccess,
  resourceServer,
  type World,
  type WorldOptions,
} from '../support/world.js'

const collection = `${resourceServer}/incoming-payments`

function setUp(options: WorldOptions = {}) {
  const world = createWorld(options)
  return { world, client: world.client() }
}

async function answer({ handle }: World, request: HttpRequest): Promise<Answer> {
  return answerOf(await handle(request))
}

describe('a grant request', () => {
  const body = (client: unknown, access: unknown = [incomingAccess]) =>
    JSON.stringify({ client, access_token: { access } })

  test('that is invalid with any key causes no key lookup', async () => {
    const { world, client } = setUp()
    const asked = { method: 'POST', url: grantEndpoint, body: body(client.client) }
    const good = client.sign(asked)
    const now = world.clock.now() / 1000
    const refused = [
      { ...good, url: '/auth/%2F' },
      { ...good, method: 'PUT' },
      withHeader(good, 'Host', 'wallet.example', 'wallet.example'),
      withHeader(good, 'Content-Type', 'text/plain'),
      withHeader(good, 'Signature'),
      withHeader(good, 'Signature-Input', 'sig1=()'),
      { ...good, body: Buffer.from(body(client.client, [])) },
      client.sign({ ...asked, created: now - 301 }),
      client.sign({ ...asked, created: now + 61 }),
      client.sign({ ...asked, digest: 'none' }),
      client.sign({ ...asked, components: ['"@method"', '"content-digest"'] }),
      client.sign({ ...asked, body: '{"client":' }),
      client.sign({ ...asked, body: body('http://shop.example') }),
      client.sign({ ...asked, body: body('https://user@shop.example') }),
      client.sign({ ...asked, body: body({ walletAddress: client.client, name: 'Shop' }) }),
    ]
    for (const request of refused) {
      expect((await answer(world, request)).status).toBeGreaterThanOrEqual(400)
    }
    expect(world.clientKeys.asked).toEqual([])
    expect((await answer(world, good)).status).toBe(200)
    expect(world.clientKeys.asked).toHaveLength(1)
  })

  test('needs a valid signature of the client that it names, whatever others have signed it', async () => {
    const { world, client } = setUp()
    const mallory = world.client('mallory')
    const asked = { method: 'POST', url: grantEndpoint, body: body(client.client) }
    const good = client.sign(asked)
    const forged = client.sign({ ...asked, key: { ...mallory.key, kid: client.key.kid } })
    const own = mallory.sign({ ...asked, label: 'sig2' })
    const refused = await answer(world, withSignaturesOf(forged, own))
    expect([refused.status, refused.body.error.code]).toEqual([400, 'invalid_client'])
    expect((await answer(world, withSignaturesOf(good, own))).status).toBe(200)
  })
})

describe('a token', () => {
  test('has no effect in the query of a request', async () => {
    const { world, client } = setUp()
    const { body } = await client.request([incomingAccess])
    const url = `${collection}?access_token=${body.access_token.value}&wallet-address=${bob}`
    expect((await answer(world, client.sign({ method: 'GET', url }))).status).toBe(401)
  })

  test('does not work with another key that its client publishes under the same kid, if grants are bound', async () => {
    const { world, client } = setUp({ auth: { policy: { keyBinding: 'bound' } } })
    const { body } = await client.request([incomingAccess])
    const { access_token: token } = body
    const key = { ...testKey('replacement'), kid: client.key.kid }
    world.clientKeys.publish('https://shop.example', key)
    const sent = await client.createPayment(token.value, { walletAddress: bob }, { key })
    expect([sent.status, sent.body.error.code]).toEqual([401, 'invalid_token'])
    expect((await client.rotate(token, { key })).status).toBe(400)
    world.clientKeys.publish('https://shop.example', client.key)
    expect((await client.rotate(token)).status).toBe(200)
  })
})
