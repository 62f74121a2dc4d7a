import type { AuthenticatedClient } from '@interledger/open-payments'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { openShop, type Shop } from '../../examples/demo/shop.js'
import {
  type Access,
  allDeployments,
  clientOf,
  eur,
  failure,
  type RunningDeployment,
  startDeployment,
  tokenWithoutConsent,
  usd,
} from '../support/official-client.js'

const insufficient = { status: 403, code: 'insufficient_access', description: 'Insufficient Grant' }

/** The merchant, which creates the payments, and the customer's wallet, which pays them. */
let shops: Shop[]
let [merchant, payer]: AuthenticatedClient[] = []

beforeAll(async () => {
  shops = [await openShop(), await openShop()]
  ;[merchant, payer] = await Promise.all(shops.map((shop) => clientOf(shop)))
})
afterAll(() => {
  for (const shop of shops) shop.stop()
})

/** Every adapter, and one deployment with separate servers, where the resource server introspects tokens. */
const [split] = allDeployments.filter((each) => each.split)
const whole = allDeployments.filter((each) => !each.split)

describe.each([...whole, ...(split ? [split] : [])])(
  'a wallet that pays into $name',
  (deployment) => {
    let running: RunningDeployment
    let paying: AuthenticatedClient
    /** The token of the paying wallet: one grant for all payments at this wallet. */
    let accessToken: string

    beforeAll(async () => {
      running = await startDeployment(deployment)
      paying = payer as AuthenticatedClient
      accessToken = await tokenFor(paying, ['read-all'])
    })
    afterAll(() => running.stop())

    function tokenFor(client: AuthenticatedClient, actions: readonly string[]) {
      const access = [{ type: 'incoming-payment', actions }] as unknown as Access
      return tokenWithoutConsent(client, running.auth, access)
    }

    /** An incoming payment that the merchant creates. */
    async function requested(walletAddress: string, incomingAmount: ReturnType<typeof usd>) {
      const client = merchant as AuthenticatedClient
      const where = { url: running.op, accessToken: await tokenFor(client, ['create']) }
      return client.incomingPayment.create(where, { walletAddress, incomingAmount })
    }

    test('reads a payment by its URL, with its payment methods', async () => {
      const created = await requested(running.bob, usd('2500'))
      const read = await paying.incomingPayment.get({ url: created.id, accessToken })
      expect(read).toEqual(created)
      expect(read).toMatchObject({
        methods: [
          { type: 'ilp', ilpAddress: expect.any(String), sharedSecret: expect.any(String) },
        ],
      })
    })

    test('reuses its token for a payment into another account', async () => {
      for (const created of [
        await requested(running.bob, usd('100')),
        await requested(running.carol, eur('100')),
      ]) {
        expect(await paying.incomingPayment.get({ url: created.id, accessToken })).toEqual(created)
      }
    })

    test('cannot read a payment without its URL', async () => {
      const guessed = paying.incomingPayment.get({
        url: `${running.op}/incoming-payments/${'A'.repeat(30)}`,
        accessToken,
      })
      expect(await failure(guessed)).toMatchObject({ status: 404, code: 'not_found' })
    })

    test('cannot list, create or complete payments', async () => {
      const created = await requested(running.bob, usd('100'))
      const where = { url: running.op, accessToken }
      const { incomingPayment } = paying
      const calls: readonly (() => Promise<unknown>)[] = [
        () => incomingPayment.list({ ...where, walletAddress: running.bob }),
        () => incomingPayment.create(where, { walletAddress: running.bob }),
        () => incomingPayment.complete({ url: created.id, accessToken }),
      ]
      for (const call of calls) expect(await failure(call())).toEqual(insufficient)
      const read = await paying.incomingPayment.get({ url: created.id, accessToken })
      expect(read.completed).toBe(false)
    })
  },
)
