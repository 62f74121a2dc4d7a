import { describe, expect, test } from 'vitest'
import { type ClientKeys, remoteClientKeys } from '../../src/index.js'
import type { FetchedDocument } from '../../src/network/index.js'
import { manualClock } from '../support/clock.js'
import { jwkOf, testKey } from '../support/keys.js'
import { createWorld, grantEndpoint, incomingAccess } from '../support/world.js'

const second = 1_000
const shopKey = testKey('shop')

function response(body: string, more: Partial<FetchedDocument> = {}): FetchedDocument {
  return { status: 200, contentType: 'application/json', body: Buffer.from(body), ...more }
}

const keySet = response(JSON.stringify({ keys: [jwkOf(shopKey)] }))

/** Servers that fetch the keys of their clients from a network that the test controls. */
async function setUp() {
  const clock = manualClock()
  const network = { reply: keySet as FetchedDocument | Error }
  const start = () =>
    remoteClientKeys({
      clock,
      fetch: async (url) => {
        if (url.pathname.startsWith('/bogus')) return new Promise(() => undefined)
        if (network.reply instanceof Error) throw network.reply
        return network.reply
      },
    })
  let keys = start()
  const clientKeys: ClientKeys = { find: (query) => keys.find(query) }
  const world = createWorld({ clock, auth: { clientKeys } })
  const client = world.client('shop')
  const { body } = await client.request([incomingAccess])
  const use = () =>
    client.createPayment(body.access_token.value, { walletAddress: incomingAccess.identifier })
  /** Forgets all keys, as a process that restarts does. */
  const restart = () => {
    keys = start()
  }
  return { clock, network, restart, client, token: body.access_token, use }
}

const fetchRefusal = Object.assign(new Error('not public'), { code: 'ERR_FETCH_REFUSED' })

describe('a client whose key set cannot be used until it changes it', () => {
  const unavailable = 'Client keys cannot be fetched at the moment'
  const unknown = 'Could not determine client'
  const ofSet = (change: object) =>
    response(JSON.stringify({ keys: [{ ...jwkOf(shopKey), ...change }] }))
  test.each<[number, string, string, FetchedDocument]>([
    [503, unavailable, 'the key set must not be a redirect', response('', { status: 302 })],
    [
      503,
      unavailable,
      'the response for the key set must have status 200',
      response('', { status: 403 }),
    ],
    [503, unavailable, 'the key set must be an object with an array keys', response('[]')],
    [400, unknown, 'the key must have alg EdDSA', ofSet({ alg: undefined })],
    [400, unknown, 'the key must have kty OKP and crv Ed25519', ofSet({ kty: 'RSA' })],
  ])('gets %i "%s", and is told: %s', async (status, description, problem, reply) => {
    const { network, client, restart } = await setUp()
    restart()
    network.reply = reply
    const { body, ...answer } = await client.request([incomingAccess])
    expect(answer.status).toBe(status)
    expect(body.error).toMatchObject({ description, details: { problem } })
  })

  test('is not told to change it after a failure that may be temporary', async () => {
    const { network, client, restart } = await setUp()
    restart()
    network.reply = response('', { status: 500 })
    const { status, body } = await client.request([incomingAccess])
    expect([status, body.error.description]).toEqual([503, unavailable])
    expect(body.error).not.toHaveProperty('details')
  })
})

describe('a grant request of a client whose URL is never fetched', () => {
  /** A wallet with the default options, in front of a client with this wallet address. */
  async function requestOf(walletAddress: string, addresses: readonly string[]) {
    const resolve = async () => addresses
    const world = createWorld({ auth: { clientKeys: remoteClientKeys({ resolve }) } })
    const body = { client: walletAddress, access_token: { access: [incomingAccess] } }
    const answer = await world.client('shop').post(grantEndpoint, body)
    return { answer, refusal: world.refusals.at(-1) }
  }

  test.each([
    [
      'http://localhost:4000/shop',
      [],
      'the host is this machine, which needs the option allowLoopback',
    ],
    [
      'https://127.0.0.1/shop',
      [],
      'the host is this machine, which needs the option allowLoopback',
    ],
    [
      'https://shop.internal/app',
      ['172.18.0.4'],
      'the address of the host is not public, which needs the option privateHosts',
    ],
    ['https://shop.example:8443/app', ['8.8.8.8'], 'the port is not allowed'],
  ])('is refused with a reason for the operator: %s', async (walletAddress, addresses, why) => {
    const { answer, refusal } = await requestOf(walletAddress, addresses)
    expect(refusal).toMatchObject({
      refusal: 'client_invalid',
      reason: `the keys of the client were not fetched: ${why}`,
    })
    expect(answer.status).toBe(400)
  })

  test('gets the response of a client without keys, which shows nothing of the network', async () => {
    const { client } = await setUp()
    const unknown = await client.post(
      grantEndpoint,
      { client: client.client, access_token: { access: [incomingAccess] } },
      undefined,
      { key: { ...client.key, kid: 'unknown' } },
    )
    for (const url of ['http://localhost:4000/shop', 'https://10.0.0.1/a', 'https://shop.lan/a']) {
      const { answer } = await requestOf(url, ['192.168.1.1'])
      expect([answer.status, answer.body]).toEqual([unknown.status, unknown.body])
    }
    expect(unknown.body.error).toEqual({
      code: 'invalid_client',
      description: 'Could not determine client',
    })
  })
})

describe('a grant request with a large body', () => {
  test('is refused with 503 at once when 512 others wait for key sets', async () => {
    const ends: (() => void)[] = []
    const clientKeys = remoteClientKeys({
      timeoutMs: 60_000,
      fetch: () => new Promise((_, reject) => ends.push(() => reject(new Error('over')))),
    })
    const world = createWorld({ auth: { clientKeys } })
    const client = world.client('shop')
    const body = { client: client.client, access_token: { access: [incomingAccess] } }
    const padded = { ...body, padding: 'x'.repeat(60_000) }
    const statuses: number[] = []
    const sent = Array.from({ length: 520 }, async (_, i) => {
      const { status } = await client.post(grantEndpoint, { ...padded, i })
      statuses.push(status)
    })
    await expect.poll(() => statuses).toEqual(Array(8).fill(503))
    expect(ends).toHaveLength(1)
    for (const end of ends) end()
    await Promise.all(sent)
    expect(statuses).toEqual(Array(520).fill(503))
  })
})

describe('a live token', () => {
  test.each<[string, FetchedDocument | Error]>([
    ['301', response('', { status: 301 })],
    ['302', response('', { status: 302 })],
    ['307', response('', { status: 307 })],
    ['401', response('', { status: 401 })],
    ['403', response('', { status: 403 })],
    ['451', response('', { status: 451 })],
    ['500', response('', { status: 500 })],
    ['a page of a proxy', response('<html></html>', { contentType: 'text/html' })],
    ['a truncated key set', response('{"keys":[')],
    ['a refusal by the fetch', fetchRefusal],
  ])('outlives a failed request for the keys of its client: %s', async (_, reply) => {
    const { clock, network, client, token, use } = await setUp()
    expect((await use()).status).toBe(201)
    network.reply = reply
    clock.advance(301 * second)
    expect((await use()).status).toBe(201)
    network.reply = keySet
    clock.advance(30 * second)
    expect((await use()).status).toBe(201)
    expect((await client.rotate(token)).status).toBe(200)
  })

  test.each([
    ['another key', [jwkOf(testKey('other'))]],
    ['no key', []],
  ])(
    'is refused while its client publishes %s, and works again 5 s after the key returns',
    async (_, keys) => {
      const { clock, network, client, token, use } = await setUp()
      const attempts = async () => [(await use()).status, (await client.rotate(token)).status]
      network.reply = response(JSON.stringify({ keys }))
      clock.advance(301 * second)
      expect(await attempts()).toEqual([401, 400])
      network.reply = keySet
      clock.advance(5 * second - 1)
      expect(await attempts()).toEqual([401, 400])
      clock.advance(1)
      expect(await attempts()).toEqual([201, 200])
    },
  )

  test('gets 503 from a restarted server while the key host responds with 403, and works again afterwards', async () => {
    const { clock, network, restart, use } = await setUp()
    restart()
    network.reply = response('', { status: 403 })
    const refused = await use()
    expect(refused.status).toBe(503)
    expect(refused.headers).toHaveProperty('retry-after')
    network.reply = keySet
    clock.advance(30 * second)
    expect((await use()).status).toBe(201)
  })
})
