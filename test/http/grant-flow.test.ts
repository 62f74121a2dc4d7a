import { createHash } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { type AccessItem, memoryStore, type Store } from '../../src/index.js'
import { jwkOf, testKey } from '../support/keys.js'
import {
  createSpendingWorld,
  grantToPay,
  otherReceiver,
  outgoingItem,
  pay,
  shopReceiver,
  usd,
} from '../support/spending.js'
import {
  alice,
  approvedGrant,
  bob,
  carol,
  createWorld,
  finishUri,
  grantEndpoint,
  incomingAccess,
  interactionId,
  issuedGrant,
  origin,
  outgoingAccess,
  type TestClient,
  type World,
  withFinish,
  withoutFinish,
} from '../support/world.js'

function setUp(options: Parameters<typeof createWorld>[0] = {}) {
  const world = createWorld(options)
  return { world, client: world.client() }
}

/** Signs a rotation like the published client, without a nonce. */
function signedWithoutNonce(
  world: World,
  client: TestClient,
  { manage: url, value: token }: { manage: string; value: string },
) {
  const parameters = [`created=${world.clock.now() / 1000}`, `keyid="${client.key.kid}"`]
  return client.sign({ method: 'POST', url, token, parameters })
}

const bound = { auth: { policy: { keyBinding: 'bound' } } } as const

const approval = { resourceOwner: 'alice', walletAddresses: [alice] }

async function introspect(world: World, accessToken: string) {
  return (await world.auth.introspect({ accessToken })).active
}

describe('a grant request', () => {
  test('that needs no consent returns a token immediately', async () => {
    const { world, client } = setUp()
    const { status, body } = await client.request([incomingAccess])
    expect(status).toBe(200)
    expect(body.access_token).toMatchObject({ access: [incomingAccess], expires_in: 600 })
    expect(body.access_token.manage).toMatch(`${grantEndpoint}/token/`)
    expect(body.access_token.manage).not.toContain(body.access_token.value)
    expect(body.continue.uri).toMatch(`${grantEndpoint}/continue/`)
    expect(body.continue).not.toHaveProperty('wait')
    expect(body).not.toHaveProperty('interact')
    expect(await introspect(world, body.access_token.value)).toBe(true)
  })

  test('that needs consent returns the interaction and the continuation', async () => {
    const { client } = setUp()
    const { status, body } = await client.request([outgoingAccess], withFinish)
    expect(status).toBe(200)
    expect(body.interact.redirect).toMatch(`${origin}/consent/`)
    expect(body.interact.finish).toMatch(/^[\w-]{20,}$/)
    expect(body.continue).toMatchObject({ wait: 5 })
    expect(body).not.toHaveProperty('access_token')
  })

  test('returns a finish nonce even without a finish method', async () => {
    const { client } = setUp()
    const { body } = await client.request([outgoingAccess], withoutFinish)
    expect(body.interact.finish).toMatch(/^[\w-]{20,}$/)
  })

  test.each([
    ['a wallet address', 'https://shop.example'],
    ['a wallet address with a trailing slash', 'https://SHOP.example/'],
    ['an object with a wallet address', { walletAddress: 'https://shop.example' }],
    ['a key by value', { jwk: jwkOf(testKey('shop')) }],
  ])('can name its client as %s', async (_, named) => {
    const { client } = setUp()
    const body = { client: named, access_token: { access: [incomingAccess] } }
    expect((await client.post(grantEndpoint, body)).status).toBe(200)
  })

  test.each([
    ['is missing', undefined, 'invalid_request'],
    ['is a number', 42, 'invalid_request'],
    ['has both forms', { walletAddress: 'https://shop.example', jwk: {} }, 'invalid_request'],
    ['is an address with plain http', 'http://shop.example', 'invalid_client'],
    ['is an address with a query', 'https://shop.example/?x', 'invalid_client'],
    ['does not publish the key', 'https://nobody.example', 'invalid_client'],
    [
      'presents a symmetric key',
      { jwk: { kty: 'oct', k: 'AAAA', kid: 'shop-key' } },
      'invalid_client',
    ],
    [
      'presents a private key',
      { jwk: { ...jwkOf(testKey('shop')), d: 'nWGxne_9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2A' } },
      'invalid_client',
    ],
  ])('is refused with 400 if its client %s', async (_, named, code) => {
    const { client } = setUp()
    const body = { client: named, access_token: { access: [incomingAccess] } }
    const answer = await client.post(grantEndpoint, body)
    expect([answer.status, answer.body.error.code]).toEqual([400, code])
  })

  test.each<readonly [what: string, access: AccessItem]>([
    ['list-all', { ...incomingAccess, actions: ['create', 'list-all'] }],
    ['read-all of outgoing payments', { ...outgoingAccess, actions: ['read-all'] }],
  ])('for %s needs consent', async (_, access) => {
    const { client } = setUp()
    const { body } = await client.request([access], withFinish)
    expect(body).toHaveProperty('interact')
    expect((await client.request([access])).body.error.code).toBe('invalid_request')
  })

  test.each<readonly [what: string, access: AccessItem]>([
    ['any incoming payment', { type: 'incoming-payment', actions: ['read-all'] }],
    ['incoming payments of one wallet address', { ...incomingAccess, actions: ['read-all'] }],
    ['its own quotes', { type: 'quote', actions: ['create', 'read', 'read-all'] }],
  ])(
    'for read-all of %s yields a token at once, whether it has interact or not',
    async (_, access) => {
      const { client } = setUp()
      // Wallets that pay send `interact` with `start` alone, and expect a token all the same.
      for (const interact of [undefined, withoutFinish, withFinish]) {
        const { status, body } = await client.request([access], interact)
        expect(status).toBe(200)
        expect(body.access_token.access).toEqual([access])
        expect(body).not.toHaveProperty('interact')
      }
    },
  )

  test('for read-all needs consent if the policy of the host requires it', async () => {
    const requiresConsent = ({ actions }: AccessItem) => actions.includes('read-all')
    const { client } = setUp({ auth: { policy: { requiresConsent } } })
    const access: AccessItem = { type: 'incoming-payment', actions: ['read-all'] }
    expect((await client.request([access])).status).toBe(400)
    expect((await client.request([access], withFinish)).body).toHaveProperty('interact')
  })

  test('needs consent for all items if one of them needs it', async () => {
    const { client } = setUp()
    const { body } = await client.request([incomingAccess, outgoingAccess], withFinish)
    expect(body).toHaveProperty('interact')
    expect(body).not.toHaveProperty('access_token')
  })

  test('follows the consent policy of the host', async () => {
    const { client } = setUp({
      auth: { policy: { requiresConsent: () => true, requiresFinish: () => true } },
    })
    expect((await client.request([incomingAccess])).status).toBe(400)
    expect((await client.request([incomingAccess], withoutFinish)).status).toBe(400)
    expect((await client.request([incomingAccess], withFinish)).body).toHaveProperty('interact')
  })

  test('stores nothing when it is refused', async () => {
    const { world, client } = setUp()
    const commits: unknown[] = []
    const counting = createWorld({
      store: { ...world.store, commit: async (commit) => commits.push(commit) > 0 },
    })
    const other = counting.client()
    await other.post(grantEndpoint, { client: other.client }, undefined, {
      parameters: plain(other, counting),
    })
    await other.request([], undefined, { parameters: plain(other, counting) })
    expect(commits).toEqual([])
    expect(client.key.kid).toBe('shop-key')
  })

  function plain({ key }: TestClient, { clock }: World) {
    return [`keyid="${key.kid}"`, `created=${clock.now() / 1000}`]
  }
})

describe('an interaction', () => {
  test('shows the client, the access and the finish URI to the consent page', async () => {
    const { world, client } = setUp()
    const { body } = await client.request([outgoingAccess], withFinish)
    const id = interactionId(body.interact.redirect)
    expect(await world.auth.interactions.get(id)).toEqual({
      id,
      grantId: id.split('.')[0],
      status: 'pending',
      client: 'https://shop.example',
      clientKey: { kid: client.key.kid, thumbprint: client.key.thumbprint },
      display: { uri: 'https://shop.example' },
      access: [outgoingAccess],
      tokens: [{ access: [outgoingAccess] }],
      needAccount: [],
      totals: [{ identifier: alice, debitAmount: usd(2500), items: 1 }],
      finishUri,
      expiresAt: world.clock.now() + 600_000,
    })
  })

  test.each(['x', 'a.b', 'AAAAAAAAAAAAAAAAAAAAAAAAAAAAAA.AAAAAAAAAAAAAAAAAAAAAA'])(
    'with the unknown id %j does not exist',
    async (id) => {
      const { world } = setUp()
      expect(await world.auth.interactions.get(id)).toBeUndefined()
      expect(await world.auth.interactions.approve(id, approval)).toMatchObject({ ok: false })
      expect(await world.auth.interactions.deny(id)).toMatchObject({ ok: false })
    },
  )

  test('ends with a redirect that keeps the query of the client and contains the hash', async () => {
    const { world, client } = setUp()
    const { body, redirect, interactRef } = await approvedGrant(world, client)
    expect(redirect?.origin + (redirect?.pathname ?? '')).toBe('https://shop.example/back')
    expect(redirect?.searchParams.get('order')).toBe('17')
    const base = ['client-nonce', body.interact.finish, interactRef, grantEndpoint].join('\n')
    const hash = createHash('sha256').update(base).digest('base64')
    expect(redirect?.searchParams.get('hash')).toBe(hash)
    expect(interactRef).toMatch(/^[A-Za-z0-9._~-]{22,}$/)
  })

  test('encodes its hash as in RFC 9635 if the host chooses that', async () => {
    const { world, client } = setUp({
      auth: { compatibility: { interactionHash: 'base64url' } },
    })
    const { redirect } = await approvedGrant(world, client)
    expect(redirect?.searchParams.get('hash')).toMatch(/^[A-Za-z0-9_-]{43}$/)
  })

  test('uses the hash method of the client', async () => {
    const { world, client } = setUp()
    const finish = { ...withFinish.finish, hash_method: 'sha-512' }
    const approved = await approvedGrant(world, client, { ...withFinish, finish })
    const { body, redirect, interactRef } = approved
    const base = ['client-nonce', body.interact.finish, interactRef, grantEndpoint].join('\n')
    const hash = createHash('sha512').update(base).digest('base64')
    expect(redirect?.searchParams.get('hash')).toBe(hash)
  })

  test('ends without a redirect if the client requests none', async () => {
    const { world, client } = setUp()
    const { redirect } = await approvedGrant(world, client, withoutFinish)
    expect(redirect).toBeUndefined()
  })

  test('cannot be denied after approval or approved after denial', async () => {
    const { world, client } = setUp()
    const { id } = await approvedGrant(world, client)
    expect(await world.auth.interactions.deny(id)).toMatchObject({ refusal: 'decided_otherwise' })
    const other = await client.request([outgoingAccess], withFinish)
    const denied = interactionId(other.body.interact.redirect)
    expect(await world.auth.interactions.deny(denied)).toMatchObject({ ok: true })
    expect(await world.auth.interactions.approve(denied, approval)).toMatchObject({
      refusal: 'decided_otherwise',
    })
  })

  test('redirects without a reference each time it is denied', async () => {
    const { world, client } = setUp()
    const { body } = await client.request([outgoingAccess], withFinish)
    const id = interactionId(body.interact.redirect)
    const redirect = `${finishUri}&result=grant_rejected`
    for (const changed of [true, false]) {
      expect(await world.auth.interactions.deny(id)).toEqual({ ok: true, changed, redirect })
    }
    const answer = await client.continue(body.continue, 'anything')
    world.clock.advance(5_000)
    const later = await client.continue(body.continue, 'anything')
    expect([answer.status, later.status, later.body.error.code]).toEqual([
      401,
      401,
      'request_denied',
    ])
  })

  test('records the owner whom the call names, although the host changes the object while the call runs', async () => {
    const { world, client } = setUp()
    const { body } = await client.request([outgoingAccess], withFinish)
    const id = interactionId(body.interact.redirect)
    const denial = { resourceOwner: 'alice' }
    const denied = world.auth.interactions.deny(id, denial)
    denial.resourceOwner = 'mallory'
    expect(await denied).toMatchObject({ ok: true })
    const record = await world.auth.grants.getRecord(id.split('.')[0] ?? '')
    expect(record?.finalized).toMatchObject({ reason: 'denied', resourceOwner: 'alice' })
  })

  test('redirects with hash and reference after denial if the host chooses RFC 9635', async () => {
    const { world, client } = setUp({
      auth: { compatibility: { denialRedirect: 'rfc9635' } },
    })
    const { body } = await client.request([outgoingAccess], withFinish)
    const result = await world.auth.interactions.deny(interactionId(body.interact.redirect))
    const redirect = new URL((result.ok && result.redirect) || '')
    expect([...redirect.searchParams.keys()]).toEqual(['order', 'hash', 'interact_ref'])
    const interactRef = redirect.searchParams.get('interact_ref') ?? ''
    expect((await client.continue(body.continue, interactRef)).body.error.code).toBe(
      'request_denied',
    )
  })

  test('expires at the end of its lifetime', async () => {
    const { world, client } = setUp()
    const { body } = await client.request([outgoingAccess], withFinish)
    const id = interactionId(body.interact.redirect)
    world.clock.advance(599_999)
    expect(await world.auth.interactions.get(id)).toMatchObject({ status: 'pending' })
    world.clock.advance(1)
    expect(await world.auth.interactions.get(id)).toMatchObject({ status: 'interaction-expired' })
    expect(await world.auth.interactions.approve(id, approval)).toMatchObject({
      refusal: 'interaction_expired',
    })
    const answer = await client.continue(body.continue, 'anything')
    expect([answer.status, answer.body.error.code]).toEqual([401, 'request_denied'])
  })

  test('grants nothing that the owner does not own', async () => {
    const { world, client } = setUp()
    const { body } = await client.request([outgoingAccess], withFinish)
    const id = interactionId(body.interact.redirect)
    const foreign = { resourceOwner: 'bob', walletAddresses: [bob, carol] }
    expect(await world.auth.interactions.approve(id, foreign)).toMatchObject({
      refusal: 'not_the_owner',
    })
    expect(await world.auth.interactions.get(id)).toMatchObject({ status: 'pending' })
  })

  test('can grant less than requested, and the token shows the granted access', async () => {
    const { world, client } = setUp()
    const { body } = await client.request([outgoingAccess], withFinish)
    const id = interactionId(body.interact.redirect)
    const debitAmount = { value: '1000', assetCode: 'USD', assetScale: 2 }
    const access = [{ ...outgoingAccess, actions: ['create'], limits: { debitAmount } } as const]
    const result = await world.auth.interactions.approve(id, { ...approval, access })
    const interactRef = new URL((result.ok && result.redirect) || '').searchParams.get(
      'interact_ref',
    )
    const issued = await client.continue(body.continue, interactRef ?? '')
    expect(issued.body.access_token.access).toEqual(access)
  })

  test('can name a receiver in any spelling, and the grant can pay it', async () => {
    const world = createSpendingWorld()
    const client = world.client()
    const receiver = 'HTTPS://BANK.example:443/incoming-payments/usd-1/'
    const limits = { debitAmount: usd(100), receiver }
    const requested = [outgoingItem({ debitAmount: usd(100) })]
    const { token, accessToken } = await grantToPay(world, client, requested, [
      outgoingItem(limits),
    ])
    expect(accessToken.access[0].limits.receiver).toBe(shopReceiver)
    expect((await pay(client, token, 10)).status).toBe(201)
    const other = await pay(client, token, 10, { incomingPayment: otherReceiver })
    expect(other.status).toBe(403)
  })

  test('never grants more than requested', async () => {
    const { world, client } = setUp()
    const { body } = await client.request([outgoingAccess], withFinish)
    const id = interactionId(body.interact.redirect)
    const debitAmount = { value: '2501', assetCode: 'USD', assetScale: 2 }
    for (const access of [
      [{ ...outgoingAccess, limits: { debitAmount } }],
      [{ ...outgoingAccess, limits: {} }],
      [outgoingAccess, outgoingAccess],
      [incomingAccess],
    ]) {
      const result = await world.auth.interactions.approve(id, { ...approval, access })
      expect(result).toMatchObject({ refusal: 'access_widened' })
    }
    const result = await world.auth.interactions.approve(id, { ...approval, access: [] })
    expect(result).toMatchObject({ refusal: 'nothing_granted' })
  })
})

describe('continuing a grant', () => {
  test('with its reference returns a token immediately after consent', async () => {
    const { world, client } = setUp()
    const { body, interactRef } = await approvedGrant(world, client)
    const answer = await client.continue(body.continue, interactRef)
    expect(answer.status).toBe(200)
    expect(answer.body.access_token.access).toEqual([outgoingAccess])
    expect(answer.body.continue).toEqual({
      access_token: body.continue.access_token,
      uri: body.continue.uri,
    })
    expect(await introspect(world, answer.body.access_token.value)).toBe(true)
  })

  test('before the wait is over is refused with the remaining seconds, and changes nothing', async () => {
    const { world, client } = setUp()
    const { body } = await client.request([outgoingAccess], withoutFinish)
    world.clock.advance(4_999)
    const fast = await client.continue(body.continue)
    expect([fast.status, fast.body.error.code]).toEqual([400, 'too_fast'])
    expect(fast.headers['retry-after']).toBe('1')
    world.clock.advance(1)
    const answer = await client.continue(body.continue)
    expect(answer.status).toBe(200)
    expect(answer.body).toEqual({ continue: body.continue })
  })

  test('by polling restarts the wait after each accepted call, and returns the token after consent', async () => {
    const { world, client } = setUp()
    const { body } = await client.request([outgoingAccess], withoutFinish)
    world.clock.advance(5_000)
    expect((await client.continue(body.continue)).status).toBe(200)
    expect((await client.continue(body.continue)).body.error.code).toBe('too_fast')
    const id = interactionId(body.interact.redirect)
    expect(await world.auth.interactions.approve(id, approval)).toEqual({ ok: true, changed: true })
    const issued = await client.continue(body.continue)
    expect(issued.body.access_token.access).toEqual([outgoingAccess])
  })

  test('by polling is refused if there is a finish method, approved or not', async () => {
    const { world, client } = setUp()
    const { body, interactRef } = await approvedGrant(world, client)
    const answer = await client.continue(body.continue)
    expect([answer.status, answer.body.error.code]).toEqual([401, 'request_denied'])
    expect((await client.continue(body.continue, interactRef)).status).toBe(200)
  })

  test('with the reference of another grant is refused and uses up neither', async () => {
    const { world, client } = setUp()
    const mine = await approvedGrant(world, client)
    const other = await approvedGrant(world, world.client('other'))
    const answer = await client.continue(mine.body.continue, other.interactRef)
    expect([answer.status, answer.body.error.code]).toEqual([404, 'invalid_continuation'])
    expect((await client.continue(mine.body.continue, mine.interactRef)).status).toBe(200)
  })

  test('again after a lost response returns the same token and management URI', async () => {
    const { world, client } = setUp()
    const { body, interactRef } = await approvedGrant(world, client)
    const first = await client.continue(body.continue, interactRef)
    world.clock.advance(59_000)
    const again = await client.continue(body.continue, interactRef)
    expect(again.body.access_token).toEqual({ ...first.body.access_token, expires_in: 541 })
    world.clock.advance(1_000)
    const late = await client.continue(body.continue, interactRef)
    expect([late.status, late.body.error.code]).toEqual([401, 'request_denied'])
  })

  test('with the same bytes again is refused as a replay, with and without a nonce', async () => {
    for (const nonce of [true, false]) {
      const { world, client } = setUp()
      const { body, interactRef } = await approvedGrant(world, client)
      const created = world.clock.now() / 1000
      const request = client.sign({
        method: 'POST',
        url: body.continue.uri,
        token: body.continue.access_token.value,
        body: JSON.stringify({ interact_ref: interactRef }),
        ...(nonce ? {} : { parameters: [`created=${created}`, `keyid="${client.key.kid}"`] }),
      })
      expect((await world.handle(request)).status).toBe(200)
      const repeat = await world.handle(request)
      expect([repeat.status, JSON.parse(repeat.body ?? '').error.code]).toEqual([
        409,
        'signature_used',
      ])
    }
  })

  test('with the same bytes of an accepted poll is refused as a replay, however long the wait', async () => {
    const { world, client } = setUp()
    const { body } = await client.request([outgoingAccess], withoutFinish)
    const polls: number[] = []
    world.clock.advance(5_000)
    const captured = client.sign({
      method: 'POST',
      url: body.continue.uri,
      token: body.continue.access_token.value,
      parameters: [`keyid="${client.key.kid}"`, `created=${world.clock.now() / 1000}`],
    })
    for (let i = 0; i < 3; i++) {
      polls.push((await world.handle(captured)).status)
      world.clock.advance(6_000)
      polls.push((await client.continue(body.continue)).status)
      world.clock.advance(6_000)
    }
    expect(polls).toEqual([200, 200, 409, 200, 409, 200])
  })

  test('concurrently returns the same token in every response', async () => {
    const { world, client } = setUp()
    const { body, interactRef } = await approvedGrant(world, client)
    const answers = await Promise.all(
      Array.from({ length: 20 }, () => client.continue(body.continue, interactRef)),
    )
    expect(new Set(answers.map((answer) => answer.body.access_token?.value)).size).toBe(1)
    expect(await introspect(world, answers[0]?.body.access_token.value)).toBe(true)
  })

  test('is refused for another client, even with all credentials', async () => {
    const { world, client } = setUp()
    const { body, interactRef } = await approvedGrant(world, client)
    const mallory = world.client('mallory')
    const answer = await mallory.continue(body.continue, interactRef)
    expect([answer.status, answer.body.error.code]).toEqual([400, 'invalid_client'])
    expect((await client.continue(body.continue, interactRef)).status).toBe(200)
  })

  test('is refused after the client publishes another key with the same kid, if grants are bound', async () => {
    const { world, client } = setUp(bound)
    const { body, interactRef } = await approvedGrant(world, client)
    const replaced = { ...testKey('replacement'), kid: client.key.kid }
    world.clientKeys.publish('https://shop.example', replaced)
    const answer = await client.continue(body.continue, interactRef, { key: replaced })
    expect([answer.status, answer.body.error.code]).toEqual([400, 'invalid_client'])
  })
})

describe('rotating a token', () => {
  test('returns a new value and URI with the same rights, and the old value is inactive immediately', async () => {
    const { world, client } = setUp()
    const { token } = await issuedGrant(world, client)
    const { status, body } = await client.rotate(token)
    expect(status).toBe(200)
    expect(Object.keys(body)).toEqual(['access_token'])
    expect(body.access_token.value).not.toBe(token.value)
    expect(body.access_token.manage).not.toBe(token.manage)
    expect(body.access_token.access).toEqual(token.access)
    expect(await introspect(world, token.value)).toBe(false)
    expect(await introspect(world, body.access_token.value)).toBe(true)
  })

  test('again after a lost response returns the same token, as long as that is valid', async () => {
    const { world, client } = setUp()
    const { token } = await issuedGrant(world, client)
    const first = await client.rotate(token)
    world.clock.advance(599_000)
    const again = await client.rotate(token)
    expect(again.body.access_token).toEqual({ ...first.body.access_token, expires_in: 1 })
    expect(await introspect(world, token.value)).toBe(false)
    expect(await introspect(world, again.body.access_token.value)).toBe(true)
    world.clock.advance(1_000)
    const late = await client.rotate(token)
    expect([late.status, late.body.error.code]).toEqual([404, 'invalid_rotation'])
  })

  test('needs the token itself, not only the key of its client', async () => {
    const { world, client } = setUp()
    const mine = await issuedGrant(world, client)
    const other = await issuedGrant(world, client)
    const crossed = { manage: mine.token.manage, value: other.token.value }
    const answer = await client.rotate(crossed)
    expect([answer.status, answer.body.error.code]).toEqual([404, 'invalid_rotation'])
    expect(await introspect(world, mine.token.value)).toBe(true)
    const continuation = mine.body.continue.access_token.value
    expect((await client.rotate({ manage: mine.token.manage, value: continuation })).status).toBe(
      404,
    )
  })

  test('works on an expired token, as long as the grant exists', async () => {
    const { world, client } = setUp()
    const { body } = await client.request([incomingAccess])
    world.clock.advance(600_000)
    expect(await introspect(world, body.access_token.value)).toBe(false)
    const rotated = await client.rotate(body.access_token)
    expect(rotated.status).toBe(200)
    world.clock.advance(600_000 + 30 * 86_400_000)
    const late = await client.rotate(rotated.body.access_token)
    expect([late.status, late.body.error.code]).toEqual([400, 'invalid_rotation'])
  })

  test('is refused if the grant is revoked and removed meanwhile, which stays removed', async () => {
    const store = memoryStore()
    let meanwhile: (() => Promise<unknown>) | undefined
    const commit: Store['commit'] = async (requested) => {
      const work = meanwhile
      meanwhile = undefined
      await work?.()
      return store.commit(requested)
    }
    const policy = { grants: { retentionMs: 0, historyMs: 0 } }
    const world = createWorld({ store: { ...store, commit }, auth: { policy } })
    const client = world.client()
    const { token } = await issuedGrant(world, client)
    const { result } = await world.auth.grants.list({ resourceOwner: 'alice' })
    const { grantId = '' } = result[0] ?? {}
    meanwhile = async () => {
      await world.auth.grants.revoke(grantId)
      await world.auth.sweep()
    }
    expect((await client.rotate(token)).status).toBe(400)
    expect(await world.auth.grants.get(grantId)).toBeUndefined()
  })

  test('concurrently returns the same token in every response', async () => {
    const { world, client } = setUp()
    const { token } = await issuedGrant(world, client)
    const answers = await Promise.all(Array.from({ length: 20 }, () => client.rotate(token)))
    expect(new Set(answers.map(({ body }) => body.access_token?.value)).size).toBe(1)
  })

  test('with the same bytes again is refused as a replay, also after a retry', async () => {
    const { world, client } = setUp()
    const { token } = await issuedGrant(world, client)
    const first = signedWithoutNonce(world, client, token)
    world.clock.advance(1_000)
    const again = signedWithoutNonce(world, client, token)
    const answers: number[] = []
    for (const request of [first, first, again, again, first]) {
      answers.push((await world.handle(request)).status)
    }
    expect(answers).toEqual([200, 409, 200, 409, 409])
  })

  test('concurrently with the same bytes succeeds once', async () => {
    const { world, client } = setUp()
    const { token } = await issuedGrant(world, client)
    const request = signedWithoutNonce(world, client, token)
    const all = await Promise.all(Array.from({ length: 20 }, () => world.handle(request)))
    expect(all.filter(({ status }) => status === 200)).toHaveLength(1)
    expect(all.filter(({ status }) => status === 409)).toHaveLength(19)
  })

  test('writes the grant, its event and the replay record in one commit, and only the last for a repeat', async () => {
    const store = memoryStore()
    const commits: string[][] = []
    const commit: Store['commit'] = (requested) => {
      commits.push(requested.changes.map(({ kind }) => kind))
      return store.commit(requested)
    }
    const { world, client } = setUp({ store: { ...store, commit } })
    const { token } = await issuedGrant(world, client)
    commits.length = 0
    await world.handle(signedWithoutNonce(world, client, token))
    world.clock.advance(1_000)
    await world.handle(signedWithoutNonce(world, client, token))
    expect(commits).toEqual([['grant', 'event', 'replay'], ['replay']])
  })

  test('does not replace the key of its client', async () => {
    const { world, client } = setUp()
    const { token } = await issuedGrant(world, client)
    const key = testKey('next')
    const proof = { method: 'httpsig', alg: 'ed25519' }
    const asked = await client.post(token.manage, { key: { proof, jwk: jwkOf(key) } }, token.value)
    expect([asked.status, asked.body.error.code]).toEqual([400, 'invalid_rotation'])
    expect((await client.rotate(token, { key })).status).toBe(400)
    expect((await client.rotate(token)).status).toBe(200)
  })

  test('accepts no content except an empty object', async () => {
    const { world, client } = setUp()
    const { token } = await issuedGrant(world, client)
    expect((await client.post(token.manage, { other: 1 }, token.value)).body.error.code).toBe(
      'invalid_rotation',
    )
    expect((await client.post(token.manage, {}, token.value)).status).toBe(200)
  })
})

describe('revoking a token', () => {
  test('ends the token and its grant, and can be repeated', async () => {
    const { world, client } = setUp()
    const { token } = await issuedGrant(world, client)
    expect((await client.revoke(token)).status).toBe(204)
    expect((await client.revoke(token)).status).toBe(204)
    expect(await introspect(world, token.value)).toBe(false)
    const answer = await client.rotate(token)
    expect([answer.status, answer.body.error.code]).toEqual([404, 'invalid_rotation'])
  })

  test('does not prevent cancelling the grant, unless the owner has ended it', async () => {
    for (const status of [204, 404]) {
      const { world, client } = setUp()
      const issued = await issuedGrant(world, client)
      if (status === 404) await world.auth.grants.revokeAll({ resourceOwner: 'alice' })
      expect((await client.revoke(issued.token)).status).toBe(204)
      for (const _ of ['once', 'twice']) {
        expect((await client.cancel(issued.continue)).status).toBe(status)
      }
    }
  })
})

describe('introspection', () => {
  test('returns the rights, the key and the client of an active token', async () => {
    const { world, client } = setUp()
    const { token, id } = await issuedGrant(world, client)
    const { kid, x, thumbprint } = client.key
    expect(await world.auth.introspect({ accessToken: token.value })).toEqual({
      active: true,
      grantId: id.split('.')[0],
      grantVersion: 3,
      access: [{ ...outgoingAccess, itemId: '1' }],
      key: { kid, x, thumbprint },
      walletAddress: 'https://shop.example',
      expiresAt: world.clock.now() + 600_000,
    })
  })

  test('does not look up the key of a client that is identified by its key', async () => {
    const world = createWorld()
    const client = world.client('shop', { byKey: true })
    const { body } = await client.request([incomingAccess])
    world.clientKeys.unavailable = true
    const introspection = await world.auth.introspect({ accessToken: body.access_token.value })
    expect(introspection).toMatchObject({ active: true, key: { x: client.key.x } })
    expect(introspection).not.toHaveProperty('walletAddress')
    expect(world.clientKeys.asked).toEqual([])
  })
})
