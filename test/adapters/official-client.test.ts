import { createHash, createPublicKey, generateKeyPairSync } from 'node:crypto'
import {
  type AuthenticatedClient,
  type Grant,
  isFinalizedGrantWithAccessToken,
  isPendingGrant,
  type PendingGrant,
} from '@interledger/open-payments'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { decide } from '../../examples/demo/browser.js'
import { openShop, type Shop } from '../../examples/demo/shop.js'
import {
  type Access,
  clientOf,
  deployments,
  failure,
  type RunningDeployment,
  startDeployment,
  usd,
} from '../support/official-client.js'

/** Creates an unpublished key pair, and the key as a client sends it in a request. */
function ownKey(keyId: string) {
  const { publicKey, privateKey } = generateKeyPairSync('ed25519')
  const { x = '' } = publicKey.export({ format: 'jwk' })
  const jwk = { kid: keyId, kty: 'OKP', crv: 'Ed25519', alg: 'EdDSA', use: 'sig', x } as const
  return { signing: { keyId, privateKey }, jwk }
}

function tokenOf(grant: object) {
  if (!isFinalizedGrantWithAccessToken(grant as Grant)) throw new Error('the grant has no token')
  return (grant as Grant).access_token as NonNullable<Grant['access_token']>
}

let shop: Shop
let client: AuthenticatedClient
/** Clients with false identities, and one without an identity. */
let thief: AuthenticatedClient
let unknown: AuthenticatedClient
let directed: AuthenticatedClient
const { signing: ownSigning, jwk: ownJwk } = ownKey('directed-1')

beforeAll(async () => {
  shop = await openShop()
  client = await clientOf(shop)
  thief = await clientOf(shop, ownKey(shop.keyId).signing)
  unknown = await clientOf(shop, ownKey('unknown-1').signing)
  directed = await clientOf(shop, ownSigning)
})
afterAll(() => shop.stop())

describe.each(deployments)('the published client and $name', (deployment) => {
  let running: RunningDeployment
  let [alice, bob, carol, auth, op] = ['', '', '', '', '']

  beforeAll(async () => {
    running = await startDeployment(deployment)
    ;({ alice, bob, carol, auth, op } = running)
  })
  afterAll(() => running.stop())

  const incoming = (identifier = bob, actions = ['create', 'read']) =>
    [{ type: 'incoming-payment', actions, identifier }] as Access
  const outgoing = () =>
    [
      {
        type: 'outgoing-payment',
        actions: ['create', 'read'],
        identifier: alice,
        limits: { interval: 'R12/2026-12-01T00:00:00Z/P1M', debitAmount: usd('2500') },
      },
    ] as Access

  const request = (access: Access, more: object = {}, by = client) =>
    by.grant.request({ url: auth }, { access_token: { access }, ...more })

  const nonce = 'a-nonce-of-the-shop'
  async function pending(finish = true): Promise<PendingGrant> {
    const uri = shop.finishUri
    const method = { finish: { method: 'redirect' as const, uri, nonce } }
    const grant = await request(outgoing(), {
      interact: { start: ['redirect'], ...(finish ? method : {}) },
    })
    if (!isPendingGrant(grant)) throw new Error('the grant is not pending')
    return grant
  }

  const continuation = (grant: { continue: PendingGrant['continue'] }) => ({
    url: grant.continue.uri,
    accessToken: grant.continue.access_token.value,
  })

  async function issued() {
    const grant = await pending()
    const { location } = await decide(grant.interact.redirect, 'approve')
    const interact_ref = location?.searchParams.get('interact_ref') ?? ''
    const answer = await client.grant.continue(continuation(grant), { interact_ref })
    return { grant, answer, token: tokenOf(answer) }
  }

  async function payable() {
    const walletAddress = bob
    const { value: accessToken } = tokenOf(await request(incoming()))
    const payment = await client.incomingPayment.create(
      { url: op, accessToken },
      { walletAddress, incomingAmount: usd('2500'), metadata: { invoice: 'INV-1', lines: [1] } },
    )
    return { accessToken, payment }
  }

  describe('wallet addresses', () => {
    test('have the expected documents', async () => {
      expect(await client.walletAddress.get({ url: alice })).toEqual({
        id: alice,
        publicName: 'Alice',
        assetCode: 'USD',
        assetScale: 2,
        authServer: auth,
        resourceServer: op,
      })
    })

    test('have keys', async () => {
      const { keys } = await client.walletAddress.getKeys({ url: alice })
      expect(keys).toEqual([
        {
          kid: 'alice-1',
          kty: 'OKP',
          crv: 'Ed25519',
          alg: 'EdDSA',
          use: 'sig',
          x: expect.stringMatching(/^[\w-]{43}$/),
        },
      ])
    })

    test('have no DID document', async () => {
      const call = client.walletAddress.getDIDDocument({ url: alice })
      expect(await failure(call)).toMatchObject({ status: 404, code: 'not_found' })
    })

    test('are not found if they do not exist', async () => {
      const error = { status: 404, code: 'not_found', description: 'Not found' }
      const url = `${running.baseUrl}/nobody`
      expect(await failure(client.walletAddress.get({ url }))).toEqual(error)
      expect(await failure(client.walletAddress.getKeys({ url }))).toEqual(error)
    })
  })

  describe('a grant that needs no consent', () => {
    test('is issued immediately to a client identified by its wallet address', async () => {
      const grant = await request(incoming())
      const token = tokenOf(grant)
      expect(token.access).toEqual(incoming())
      expect(token.expires_in).toBe(600)
      expect(token.manage).not.toContain(token.value)
      expect(isPendingGrant(grant)).toBe(false)
    })

    test('is issued to a client identified by its wallet address in an object', async () => {
      const named = { walletAddress: shop.walletAddress } as never
      const body = { access_token: { access: incoming() } }
      expect(tokenOf(await client.grant.request({ url: auth }, body, named)).value).toBeTruthy()
    })

    test('is issued to a client identified by its key alone, and allows payments', async () => {
      const body = { access_token: { access: incoming() } }
      const grant = await directed.grant.request({ url: auth }, body, { jwk: ownJwk })
      const { value: accessToken } = tokenOf(grant)
      const payment = await directed.incomingPayment.create(
        { url: op, accessToken },
        { walletAddress: bob },
      )
      expect(await directed.incomingPayment.get({ url: payment.id, accessToken })).toEqual(payment)
      const stolen = client.incomingPayment.get({ url: payment.id, accessToken })
      expect((await failure(stolen)).code).toBe('invalid_signature')
    })

    test('is refused for a key that did not sign the request', async () => {
      const { jwk } = ownKey(shop.keyId)
      const body = { access_token: { access: incoming() } }
      expect(await failure(client.grant.request({ url: auth }, body, { jwk }))).toEqual({
        status: 401,
        code: 'invalid_client',
        description: 'Invalid signature',
      })
    })

    test('is refused for access that needs consent', async () => {
      expect(await failure(request(outgoing()))).toEqual({
        status: 400,
        code: 'invalid_request',
        description: "Missing required request field 'interact'",
      })
    })

    test('is refused for access that does not exist', async () => {
      const access = [{ type: 'incoming-payment', actions: ['destroy'] }] as unknown as Access
      expect(await failure(request(access))).toMatchObject({ status: 400, code: 'invalid_request' })
    })
  })

  describe('a grant that needs consent', () => {
    test('is continued with the interaction reference of the redirect, whose hash is valid', async () => {
      const grant = await pending()
      expect(grant.continue.wait).toBe(5)
      const { page, location } = await decide(grant.interact.redirect, 'approve')
      expect(page).toMatch(/USD\s25\.00/)
      const parameters = location?.searchParams
      const interact_ref = parameters?.get('interact_ref') ?? ''
      const base = [nonce, grant.interact.finish, interact_ref, auth].join('\n')
      expect(parameters?.get('hash')).toBe(createHash('sha256').update(base).digest('base64'))
      expect(parameters?.get('order')).toBe('17')

      const answer = await client.grant.continue(continuation(grant), { interact_ref })
      expect(tokenOf(answer).access).toEqual(outgoing())
      expect(answer.continue.access_token.value).toBe(grant.continue.access_token.value)
    })

    test('is continued by polling after approval if there is no redirect', async () => {
      const grant = await pending(false)
      const { location } = await decide(grant.interact.redirect, 'approve')
      expect(location).toBeUndefined()
      expect(tokenOf(await client.grant.continue(continuation(grant))).access).toEqual(outgoing())
    })

    test('is not continued before the wait has passed', async () => {
      expect(await failure(client.grant.continue(continuation(await pending(false))))).toEqual({
        status: 400,
        code: 'too_fast',
        description: 'Continued before "wait" had passed',
      })
    })

    test('is not continued by polling if there is a redirect', async () => {
      const grant = await pending()
      await decide(grant.interact.redirect, 'approve')
      expect(await failure(client.grant.continue(continuation(grant)))).toMatchObject({
        status: 401,
        code: 'request_denied',
      })
    })

    test('is not continued with the reference of another interaction', async () => {
      const [grant, other] = [await pending(), await pending()]
      await decide(grant.interact.redirect, 'approve')
      const { location } = await decide(other.interact.redirect, 'approve')
      const interact_ref = location?.searchParams.get('interact_ref') ?? ''
      expect(
        await failure(client.grant.continue(continuation(grant), { interact_ref })),
      ).toMatchObject({ status: 404, code: 'invalid_continuation' })
      expect(
        tokenOf(await client.grant.continue(continuation(other), { interact_ref })).value,
      ).toBeTruthy()
    })

    test('redirects after a denial, and cannot be continued', async () => {
      const grant = await pending()
      const { location } = await decide(grant.interact.redirect, 'deny')
      expect([...(location?.searchParams ?? [])]).toEqual([
        ['order', '17'],
        ['result', 'grant_rejected'],
      ])
    })

    test('reports a denial to a poll', async () => {
      const grant = await pending(false)
      await decide(grant.interact.redirect, 'deny')
      expect(await failure(client.grant.continue(continuation(grant)))).toEqual({
        status: 401,
        code: 'request_denied',
        description: 'Grant was denied',
      })
    })

    test('is refused to a client identified by its key alone', async () => {
      const body = {
        access_token: { access: outgoing() },
        interact: { start: ['redirect' as const] },
      }
      expect(
        await failure(directed.grant.request({ url: auth }, body, { jwk: ownJwk })),
      ).toMatchObject({
        status: 400,
        code: 'invalid_client',
      })
    })

    test('is over after it is cancelled', async () => {
      const grant = await pending(false)
      expect(await client.grant.cancel(continuation(grant))).toBeUndefined()
      expect(await failure(client.grant.continue(continuation(grant)))).toMatchObject({
        status: 404,
        code: 'invalid_continuation',
      })
      expect((await decide(grant.interact.redirect, 'approve')).page).toContain('already answered')
    })
  })

  describe('an access token', () => {
    test('is rotated to another token with the same rights', async () => {
      const { token } = await issued()
      const { access_token: rotated } = await client.token.rotate({
        url: token.manage,
        accessToken: token.value,
      })
      expect(rotated.value).not.toBe(token.value)
      expect(rotated.manage).not.toBe(token.manage)
      expect(rotated.access).toEqual(token.access)
      const again = await client.token.rotate({ url: rotated.manage, accessToken: rotated.value })
      expect(again.access_token.value).not.toBe(rotated.value)
    })

    test('is invalid after its rotation, and the next token is valid', async () => {
      const token = tokenOf(await request(incoming()))
      const { access_token: rotated } = await client.token.rotate({
        url: token.manage,
        accessToken: token.value,
      })
      const create = (accessToken: string) =>
        client.incomingPayment.create({ url: op, accessToken }, { walletAddress: bob })
      expect(await failure(create(token.value))).toEqual({
        status: 401,
        code: 'invalid_token',
        description: 'Invalid Token',
      })
      expect((await create(rotated.value)).walletAddress).toBe(bob)
    })

    test('is invalid after its revocation and cannot be rotated', async () => {
      const token = tokenOf(await request(incoming()))
      const managed = { url: token.manage, accessToken: token.value }
      expect(await client.token.revoke(managed)).toBeUndefined()
      const resource = { url: op, accessToken: token.value }
      expect(
        await failure(client.incomingPayment.create(resource, { walletAddress: bob })),
      ).toEqual({
        status: 401,
        code: 'invalid_token',
        description: 'Invalid Token',
      })
      expect(await failure(client.token.rotate(managed))).toMatchObject({
        status: 404,
        code: 'invalid_rotation',
      })
      expect(await client.token.revoke(managed)).toBeUndefined()
    })

    test('is revoked with its grant', async () => {
      const grant = (await request(incoming())) as Grant
      const { value: accessToken } = tokenOf(grant)
      await client.grant.cancel(continuation(grant))
      const call = client.incomingPayment.create({ url: op, accessToken }, { walletAddress: bob })
      expect((await failure(call)).code).toBe('invalid_token')
    })

    test('cannot be rotated with the token of another grant', async () => {
      const [one, two] = [
        tokenOf(await request(incoming())),
        tokenOf(await request(incoming(carol))),
      ]
      expect(
        await failure(client.token.rotate({ url: one.manage, accessToken: two.value })),
      ).toMatchObject({ status: 404, code: 'invalid_rotation' })
    })
  })

  describe('an incoming payment', () => {
    test('is created and read', async () => {
      const { accessToken, payment } = await payable()
      expect(payment).toMatchObject({
        walletAddress: bob,
        completed: false,
        incomingAmount: usd('2500'),
        receivedAmount: usd('0'),
        metadata: { invoice: 'INV-1', lines: [1] },
        methods: [{ type: 'ilp' }],
      })
      expect(payment.id.startsWith(`${op}/incoming-payments/`)).toBe(true)
      expect(await client.incomingPayment.get({ url: payment.id, accessToken })).toEqual(payment)
    })

    test('must be in the asset of its wallet address', async () => {
      const { value: accessToken } = tokenOf(await request(incoming(carol)))
      const resource = { url: op, accessToken }
      const payment = await client.incomingPayment.create(resource, { walletAddress: carol })
      expect(payment.receivedAmount).toEqual({ value: '0', assetCode: 'EUR', assetScale: 2 })
      const dollars = { walletAddress: carol, incomingAmount: usd('1') }
      expect(await failure(client.incomingPayment.create(resource, dollars))).toEqual({
        status: 400,
        code: 'invalid_amount',
        description: 'Invalid amount',
      })
    })

    test('is read with a token that was issued later', async () => {
      const { payment } = await payable()
      const { value: accessToken } = tokenOf(await request(incoming(bob, ['read'])))
      expect((await client.incomingPayment.get({ url: payment.id, accessToken })).id).toBe(
        payment.id,
      )
    })
  })

  describe('the server refuses', () => {
    test('a grant request with a key that the client does not publish', async () => {
      expect(await failure(request(incoming(), {}, thief))).toEqual({
        status: 401,
        code: 'invalid_client',
        description: 'Invalid signature',
      })
      expect(await failure(request(incoming(), {}, unknown))).toEqual({
        status: 400,
        code: 'invalid_client',
        description: 'Could not determine client',
      })
    })

    test('a call with a key that differs from that of the grant', async () => {
      const token = tokenOf(await request(incoming()))
      const managed = { url: token.manage, accessToken: token.value }
      const resource = { url: op, accessToken: token.value }
      expect(await failure(thief.incomingPayment.create(resource, { walletAddress: bob }))).toEqual(
        {
          status: 401,
          code: 'invalid_signature',
          description: 'Signature validation error',
        },
      )
      const refused = { status: 401, code: 'invalid_client' }
      expect(await failure(thief.token.rotate(managed))).toMatchObject(refused)
      expect(await failure(thief.token.revoke(managed))).toMatchObject(refused)
      expect(
        (await client.incomingPayment.create(resource, { walletAddress: bob })).id,
      ).toBeTruthy()
    })

    test('an action that the token does not include', async () => {
      const error = { status: 403, code: 'insufficient_access', description: 'Insufficient Grant' }
      const reader = tokenOf(await request(incoming(bob, ['read']))).value
      const create = (accessToken: string, walletAddress: string) =>
        failure(client.incomingPayment.create({ url: op, accessToken }, { walletAddress }))
      expect(await create(reader, bob)).toEqual(error)
      const { token } = await issued()
      expect(await create(token.value, bob)).toEqual(error)
    })

    test('a wallet address that the token does not include', async () => {
      const { accessToken } = await payable()
      const call = client.incomingPayment.create({ url: op, accessToken }, { walletAddress: carol })
      expect(await failure(call)).toEqual({
        status: 403,
        code: 'insufficient_access',
        description: 'Insufficient Grant',
      })
    })

    test('a payment that does not exist, or that belongs to another wallet address', async () => {
      const { accessToken } = await payable()
      const { value } = tokenOf(await request(incoming(carol)))
      const resource = { url: op, accessToken: value }
      const foreign = await client.incomingPayment.create(resource, { walletAddress: carol })
      const error = { status: 404, code: 'not_found', description: 'Not found' }
      const unknown = `${op}/incoming-payments/unknown`
      expect(await failure(client.incomingPayment.get({ url: unknown, accessToken }))).toEqual(
        error,
      )
      expect(await failure(client.incomingPayment.get({ url: foreign.id, accessToken }))).toEqual(
        error,
      )
    })

    test('a token that was never issued, or that is of another class', async () => {
      const grant = (await request(incoming())) as Grant
      const error = { status: 401, code: 'invalid_token', description: 'Invalid Token' }
      for (const accessToken of ['unknown', grant.continue.access_token.value]) {
        const call = client.incomingPayment.create({ url: op, accessToken }, { walletAddress: bob })
        expect(await failure(call)).toEqual(error)
      }
    })
  })

  test('the key that the shop publishes is the one that it signs with', async () => {
    const { keys } = await client.walletAddress.getKeys({ url: shop.walletAddress })
    const { x } = createPublicKey(shop.privateKey).export({ format: 'jwk' })
    expect(keys).toMatchObject([{ kid: shop.keyId, x }])
  })
})
