import {
  type AuthenticatedClient,
  createUnauthenticatedClient,
  type Grant,
  isFinalizedGrantWithAccessToken,
  isPendingGrant,
  type UnauthenticatedClient,
} from '@interledger/open-payments'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { decide } from '../../examples/demo/browser.js'
import { openShop, type Shop } from '../../examples/demo/shop.js'
import {
  type Access,
  clientOf,
  clientSettings,
  deployments,
  failure,
  type RunningDeployment,
  startDeployment,
  usd,
} from '../support/official-client.js'

type Pagination = NonNullable<Parameters<AuthenticatedClient['incomingPayment']['list']>[1]>

let shop: Shop
let other: Shop
let client: AuthenticatedClient
let stranger: AuthenticatedClient
let anonymous: UnauthenticatedClient

beforeAll(async () => {
  shop = await openShop()
  client = await clientOf(shop)
})
beforeAll(async () => {
  other = await openShop()
  stranger = await clientOf(other)
})
beforeAll(async () => {
  anonymous = await createUnauthenticatedClient(clientSettings)
})
afterAll(() => {
  shop.stop()
  other.stop()
})

describe.each(deployments)('the published client and $name', (deployment) => {
  let running: RunningDeployment
  let [alice, bob, carol, auth, op] = ['', '', '', '', '']

  beforeAll(async () => {
    running = await startDeployment(deployment)
    ;({ alice, bob, carol, auth, op } = running)
  })
  afterAll(() => running.stop())

  async function tokenOf(identifier: string, actions: readonly string[], by = client) {
    const access = [{ type: 'incoming-payment', actions, identifier }] as unknown as Access
    return issued(await by.grant.request({ url: auth }, { access_token: { access } }))
  }

  function issued(grant: object): string {
    if (!isFinalizedGrantWithAccessToken(grant as Grant)) throw new Error('the grant has no token')
    return (grant as Grant).access_token?.value ?? ''
  }

  async function consented(
    identifier: string,
    actions: readonly string[],
    by: AuthenticatedClient,
  ) {
    const access = [{ type: 'incoming-payment', actions, identifier }] as unknown as Access
    const finish = { method: 'redirect' as const, uri: shop.finishUri, nonce: 'a-nonce' }
    const grant = await by.grant.request(
      { url: auth },
      { access_token: { access }, interact: { start: ['redirect'], finish } },
    )
    if (!isPendingGrant(grant)) throw new Error('the grant is not pending')
    const { location } = await decide(grant.interact.redirect, 'approve')
    const { uri: url, access_token } = grant.continue
    const interact_ref = location?.searchParams.get('interact_ref') ?? ''
    return issued(
      await by.grant.continue({ url, accessToken: access_token.value }, { interact_ref }),
    )
  }

  const whole = ['create', 'read', 'list', 'complete']

  async function payment() {
    const accessToken = await tokenOf(bob, whole)
    const created = await client.incomingPayment.create(
      { url: op, accessToken },
      { walletAddress: bob, incomingAmount: usd('2500'), metadata: { invoice: 'INV-1' } },
    )
    return { created, resource: { url: created.id, accessToken } }
  }

  describe('a list of incoming payments', () => {
    test('can be paged forwards and backwards', async () => {
      const accessToken = await tokenOf(carol, ['create', 'list'])
      const resource = { url: op, accessToken, walletAddress: carol }
      const created: string[] = []
      for (let i = 0; i < 5; i++) {
        created.push((await client.incomingPayment.create(resource, { walletAddress: carol })).id)
      }
      const list = (pagination?: Pagination) => client.incomingPayment.list(resource, pagination)
      const all = await list()
      const ids = all.result.map(({ id }) => id)
      expect([...ids].sort()).toEqual([...created].sort())
      expect(all.pagination).toEqual({
        startCursor: expect.any(String),
        endCursor: expect.any(String),
        hasNextPage: false,
        hasPreviousPage: false,
      })

      const seen: string[] = []
      for (let cursor: string | undefined, more = true; more; ) {
        const from = cursor === undefined ? {} : { cursor }
        const page = await list({ 'wallet-address': carol, first: 2, ...from })
        seen.push(...page.result.map(({ id }) => id))
        cursor = page.pagination.endCursor
        more = page.pagination.hasNextPage
      }
      expect(seen).toEqual(ids)
      const { endCursor: cursor = '' } = all.pagination
      const back = await list({ 'wallet-address': carol, last: 2, cursor })
      expect(back.result.map(({ id }) => id)).toEqual(ids.slice(2, 4))
    })

    test('is valid when it is empty', async () => {
      const accessToken = await tokenOf(carol, ['list'], stranger)
      const resource = { url: op, accessToken, walletAddress: carol }
      expect(await stranger.incomingPayment.list(resource)).toEqual({
        pagination: { hasNextPage: false, hasPreviousPage: false },
        result: [],
      })
    })

    test('contains the payments of all clients if the owner granted list-all', async () => {
      const created: string[] = []
      for (const by of [client, stranger]) {
        const accessToken = await tokenOf(alice, ['create'], by)
        const resource = { url: op, accessToken }
        created.push((await by.incomingPayment.create(resource, { walletAddress: alice })).id)
      }
      const list = async (accessToken: string) => {
        const resource = { url: op, accessToken, walletAddress: alice }
        return (await client.incomingPayment.list(resource)).result.map(({ id }) => id)
      }
      const all = await list(await consented(alice, ['list-all'], client))
      expect(all.sort()).toEqual([...created].sort())
      expect(await list(await tokenOf(alice, ['list']))).toEqual(created.slice(0, 1))
    })

    test('is refused for an unknown wallet address, right or page', async () => {
      const accessToken = await tokenOf(bob, ['list'])
      const list = (walletAddress: string, pagination: object = {}, token = accessToken) =>
        client.incomingPayment.list(
          { url: op, accessToken: token, walletAddress },
          pagination as Pagination,
        )
      const insufficient = {
        status: 403,
        code: 'insufficient_access',
        description: 'Insufficient Grant',
      }
      expect(await failure(list(carol))).toEqual(insufficient)
      expect(await failure(list(bob, {}, await tokenOf(bob, ['read'])))).toEqual(insufficient)
      const invalid = { status: 400, code: 'invalid_request' }
      for (const pagination of [{ first: 101 }, { first: 1, last: 1 }, { cursor: 'none' }]) {
        expect(await failure(list(bob, pagination))).toMatchObject(invalid)
      }
    })
  })

  describe('completing an incoming payment', () => {
    test('returns the payment, also when it is repeated', async () => {
      const { created, resource } = await payment()
      const { methods: _methods, ...rest } = created
      const completed = await client.incomingPayment.complete(resource)
      expect(completed).toEqual({ ...rest, completed: true })
      expect(await client.incomingPayment.complete(resource)).toEqual(completed)
      expect(await client.incomingPayment.get(resource)).toEqual({ ...completed, methods: [] })
    })

    test('is allowed only to the client that created it', async () => {
      const { created } = await payment()
      const theirs = await tokenOf(bob, whole, stranger)
      const call = stranger.incomingPayment.complete({ url: created.id, accessToken: theirs })
      expect(await failure(call)).toEqual({
        status: 404,
        code: 'not_found',
        description: 'Not found',
      })
      const accessToken = await tokenOf(bob, ['read'])
      expect(
        await failure(client.incomingPayment.complete({ url: created.id, accessToken })),
      ).toEqual({ status: 403, code: 'insufficient_access', description: 'Insufficient Grant' })
    })
  })

  describe('the public view', () => {
    test('is served with and without a key', async () => {
      const { created } = await payment()
      const view = { receivedAmount: usd('0'), authServer: auth }
      expect(await client.incomingPayment.getPublic({ url: created.id })).toEqual(view)
      expect(await anonymous.incomingPayment.get({ url: created.id })).toEqual(view)
      const unknown = anonymous.incomingPayment.get({ url: `${op}/incoming-payments/unknown` })
      expect(await failure(unknown)).toEqual({
        status: 404,
        code: 'not_found',
        description: 'Not found',
      })
    })

    test('is not served instead of an error for an invalid token', async () => {
      const { created } = await payment()
      const call = client.incomingPayment.get({ url: created.id, accessToken: 'unknown' })
      expect(await failure(call)).toEqual({
        status: 401,
        code: 'invalid_token',
        description: 'Invalid Token',
      })
    })
  })
})
