import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { AccessItem, HttpRequest, HttpResponse } from '../../src/index.js'
import { runs } from '../support/runs.js'
import { withHeader } from '../support/sign.js'
import {
  approvedGrant,
  bob,
  createWorld,
  grantEndpoint,
  incomingAccess,
  issuedGrant,
  outgoingAccess,
  resourceServer,
  withFinish,
} from '../support/world.js'

/** Expects a well-formed response, whatever the client sent. */
function expectWellFormed(response: HttpResponse, method = 'POST'): void {
  expect(response.status).toBeGreaterThanOrEqual(200)
  expect(response.status).toBeLessThan(500)
  expect(response.headers['cache-control']).toBe('no-store')
  if (response.status === 204) {
    expect(response.body).toBeUndefined()
    return
  }
  expect(response.headers['content-type']).toBe('application/json')
  if (method === 'HEAD') {
    expect(response.body).toBeUndefined()
    return
  }
  const body = JSON.parse(response.body ?? '')
  if (response.status < 400) return
  expect(body).toEqual({
    error: {
      code: expect.stringMatching(/^[a-z_]+$/),
      description: expect.any(String),
      ...('details' in body.error && { details: expect.any(Object) }),
    },
  })
  expect(response.body).not.toMatch(/\bat .*\.[jt]s:\d+|node_modules|Error:/)
  if (response.status === 401) expect(response.headers['www-authenticate']).toMatch(/^GNAP as_uri=/)
}

async function setUp() {
  const world = createWorld()
  const client = world.client()
  const issued = await issuedGrant(world, client)
  const approved = await approvedGrant(world, client)
  const { body } = await client.request([incomingAccess])
  const { body: more } = await client.request([listing])
  const token: string = more.access_token.value
  const { body: payment } = await client.createPayment(token, { walletAddress: bob })
  const good = {
    grant: client.sign({
      method: 'POST',
      url: grantEndpoint,
      body: JSON.stringify({
        client: client.client,
        access_token: { access: [outgoingAccess] },
        interact: withFinish,
      }),
    }),
    continue: client.sign({
      method: 'POST',
      url: approved.body.continue.uri,
      token: approved.body.continue.access_token.value,
      body: JSON.stringify({ interact_ref: approved.interactRef }),
    }),
    rotate: client.sign({ method: 'POST', url: issued.token.manage, token: issued.token.value }),
    create: client.sign({
      method: 'POST',
      url: `${resourceServer}/incoming-payments`,
      token: body.access_token.value,
      body: JSON.stringify({ walletAddress: bob, metadata: { a: [1, { b: null }] } }),
    }),
    list: client.sign({ method: 'GET', url: `${list}?first=1&wallet-address=${bob}`, token }),
    complete: client.sign({ method: 'POST', url: `${payment.id}/complete`, token }),
  }
  return { world, client, good, token }
}

const list = `${resourceServer}/incoming-payments`
const listing: AccessItem = { ...incomingAccess, actions: ['create', 'list', 'complete'] }

const anyHeaderName = fc.constantFrom(
  ...['signature', 'signature-input', 'authorization', 'content-digest', 'content-type'],
  ...['content-length', 'content-encoding', 'host', 'x-forwarded-host', 'transfer-encoding', ''],
)
const anyText = fc.oneof(
  fc.string({ unit: 'binary', maxLength: 300 }),
  fc.string({ unit: fc.constantFrom(...'()";:=,?@ \t\\/aA1-.%*'), maxLength: 80 }),
  fc.constantFrom(
    'GNAP ',
    'GNAP  x',
    'Bearer x',
    'sig1=()',
    'sig1=("@method");created=1',
    'sha-512=:AA==:',
  ),
)

const change: fc.Arbitrary<(request: HttpRequest) => HttpRequest> = fc.oneof(
  fc.tuple(anyHeaderName, fc.array(anyText, { maxLength: 3 })).map(
    ([name, values]) =>
      (request: HttpRequest) =>
        withHeader(request, name, ...values),
  ),
  fc.uint8Array({ maxLength: 200 }).map((body) => (request: HttpRequest) => ({ ...request, body })),
  fc
    .json({ maxDepth: 5 })
    .map((json) => (request: HttpRequest) => ({ ...request, body: Buffer.from(json) })),
  anyText.map((tail) => (request: HttpRequest) => ({ ...request, url: request.url + tail })),
  anyText.map((url) => (request: HttpRequest) => ({ ...request, url })),
  fc
    .constantFrom('GET', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'HEAD', 'get', '', 'PROPFIND')
    .map((method) => (request: HttpRequest) => ({ ...request, method })),
  fc.boolean().map((headersMerged) => (request: HttpRequest) => ({ ...request, headersMerged })),
)

describe('an arbitrary request', () => {
  test('receives a well-formed response, and changes nothing if it is refused', async () => {
    const { world, good } = await setUp()
    const names = Object.keys(good) as (keyof typeof good)[]
    let writes = 0
    const { commit } = world.store
    Object.assign(world.store, {
      async commit(...args: Parameters<typeof commit>) {
        const written = await commit(...args)
        if (written) writes += 1
        return written
      },
    })
    await fc.assert(
      fc.asyncProperty(
        fc.constantFrom(...names),
        fc.array(change, { minLength: 1, maxLength: 3 }),
        async (name, changes) => {
          const before = writes
          const request = changes.reduce((bent, bend) => bend(bent), good[name])
          const response = await world.handle(request)
          expectWellFormed(response, request.method)
          if (response.status >= 400) expect(writes).toBe(before)
        },
      ),
      { numRuns: runs(3_000) },
    )
    expect(world.errors).toEqual([])
  })

  test('with a signed arbitrary body receives a well-formed response', async () => {
    const { world, client } = await setUp()
    const { body } = await client.request([incomingAccess])
    const token = body.access_token.value
    await fc.assert(
      fc.asyncProperty(
        fc.constantFrom(grantEndpoint, `${resourceServer}/incoming-payments`),
        fc.oneof(fc.json({ maxDepth: 40 }), fc.string({ unit: 'binary' }), bodyLike),
        async (url, text) => {
          const authorized = url === grantEndpoint ? {} : { token }
          const request = client.sign({ method: 'POST', url, body: text, ...authorized })
          expectWellFormed(await world.handle(request))
        },
      ),
      { numRuns: runs(1_000) },
    )
    expect(world.errors).toEqual([])
  })

  test('with a signed arbitrary query receives a well-formed response', async () => {
    const { world, client, token } = await setUp()
    const part = fc.oneof(
      fc.constantFrom('wallet-address', bob, 'first', 'last', 'cursor', '7', '', 'MSBh', '%', '+'),
      fc.stringMatching(/^[!-"$-~]{0,10}$/),
    )
    const query = fc.array(fc.tuple(part, part), { maxLength: 4 })
    await fc.assert(
      fc.asyncProperty(query, async (pairs) => {
        const url = `${list}?${pairs.map((pair) => pair.join('=')).join('&')}`
        const response = await world.handle(client.sign({ method: 'GET', url, token }))
        expectWellFormed(response)
        expect([200, 400, 403]).toContain(response.status)
      }),
      { numRuns: runs(500) },
    )
    expect(world.errors).toEqual([])
  })

  test('with the deepest possible nesting is refused', async () => {
    const { world, client } = await setUp()
    const depth = 30_000
    for (const body of [
      '['.repeat(depth) + ']'.repeat(depth),
      `${'{"client":'.repeat(5_000)}1${'}'.repeat(5_000)}`,
      `{"client":"https://shop.example","access_token":${'['.repeat(depth)}${']'.repeat(depth)}}`,
    ]) {
      const response = await world.handle(client.sign({ method: 'POST', url: grantEndpoint, body }))
      expect(response.status).toBe(400)
    }
    expect(world.errors).toEqual([])
  })
})

/** Bodies that are almost valid, with known members of arbitrary values. */
const bodyLike = fc
  .record(
    {
      client: fc.oneof(fc.constant('https://shop.example'), fc.jsonValue()),
      access_token: fc.oneof(
        fc.record({ access: fc.array(fc.oneof(fc.jsonValue(), fc.constant(outgoingAccess))) }),
        fc.jsonValue(),
      ),
      interact: fc.oneof(
        fc.record({ start: fc.constant(['redirect']), finish: fc.jsonValue() }),
        fc.jsonValue(),
      ),
      walletAddress: fc.oneof(fc.constant(bob), fc.webUrl(), fc.jsonValue()),
      incomingAmount: fc.oneof(
        fc.record({ value: fc.string(), assetCode: fc.constant('USD'), assetScale: fc.integer() }),
        fc.jsonValue(),
      ),
      expiresAt: fc.oneof(fc.date({ noInvalidDate: true }).map(String), fc.jsonValue()),
      metadata: fc.jsonValue(),
    },
    { requiredKeys: [] },
  )
  .map((body) => JSON.stringify(body))
