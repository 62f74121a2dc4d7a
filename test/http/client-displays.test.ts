import fc from 'fast-check'
import { afterEach, describe, expect, test, vi } from 'vitest'
import {
  type ClientKeys,
  createWallet,
  ilpPaymentMethods,
  memoryStore,
  remoteClientKeys,
} from '../../src/index.js'
import { manualClock } from '../support/clock.js'
import { invalidInput } from '../support/invalid-input.js'
import { jwkOf, publishedKeys, testKey } from '../support/keys.js'
import { anyText, expectShowable } from '../support/names.js'
import {
  alice,
  createWorld,
  interactionId,
  origin,
  outgoingAccess,
  withFinish,
} from '../support/world.js'

const shop = 'https://shop.example'
type DisplayOf = (walletAddress: string) => Promise<unknown>

/** An authorization server with an open interaction, whose client has what `displayOf` resolves to. */
async function setUp(displayOf?: DisplayOf) {
  const keys = publishedKeys()
  const port = { displayOf: displayOf as NonNullable<ClientKeys['displayOf']> }
  const clientKeys = Object.assign(keys, displayOf === undefined ? {} : port)
  const world = createWorld({ auth: { clientKeys } })
  keys.publish(shop, testKey('shop'))
  const { body } = await world.client('shop').request([outgoingAccess], withFinish)
  const id = interactionId(body.interact.redirect)
  return { world, id, get: () => world.auth.interactions.get(id) }
}

afterEach(() => vi.useRealTimers())

describe('the view of an interaction', () => {
  test('has the wallet address, its origin, and at most a name that can be shown', async () => {
    const { world, id } = await setUp()
    const { store, clock } = world
    const answers = fc.oneof(
      fc.record({ name: fc.oneof(anyText, fc.anything()) }),
      fc.anything(),
      fc.constant({
        get name() {
          throw new Error('broken')
        },
      }),
    )
    await fc.assert(
      fc.asyncProperty(answers, fc.boolean(), async (answer, fails) => {
        const displayOf = async () => {
          if (fails) throw answer
          return answer as { name?: string }
        }
        const { auth } = createWorld({
          store,
          clock,
          auth: { clientKeys: { find: async () => undefined, displayOf } },
        })
        const view = await auth.interactions.get(id)
        expect(view).toMatchObject({ client: shop, display: { uri: shop }, status: 'pending' })
        const { name } = view?.display ?? {}
        if (name !== undefined) expectShowable(name)
        if (fails) expect(name).toBeUndefined()
      }),
    )
  })

  test('waits for the name for at most 2 s, and then shows the state of that time', async () => {
    const hanging = await setUp(() => new Promise(() => undefined))
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    const views: unknown[] = []
    const shown = hanging.get().then((view) => views.push(view))
    await vi.advanceTimersByTimeAsync(1_999)
    expect(views).toEqual([])
    hanging.world.clock.advance(600_000)
    await vi.advanceTimersByTimeAsync(1)
    await shown
    expect(views).toMatchObject([{ display: { uri: shop }, status: 'interaction-expired' }])
    expect(vi.getTimerCount()).toBe(0)
  })

  test('has no name when a host hangs that remoteClientKeys asks, whose requests wait for others', async () => {
    const key = testKey('shop')
    const clientKeys = remoteClientKeys({
      timeoutMs: 60_000,
      fetch: async ({ pathname }) => {
        const body = Buffer.from(JSON.stringify({ keys: [jwkOf(key)] }))
        if (pathname !== '/jwks.json') return new Promise(() => undefined)
        return { status: 200, contentType: 'application/json', body }
      },
    })
    const world = createWorld({ auth: { clientKeys } })
    const { body } = await world.client('shop').request([outgoingAccess], withFinish)
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    void clientKeys.displayOf(`${shop}/another`)
    const shown = world.auth.interactions.get(interactionId(body.interact.redirect))
    await vi.advanceTimersByTimeAsync(2_000)
    expect((await shown)?.display).toEqual({ uri: shop })
    await vi.advanceTimersByTimeAsync(70_000)
  })

  test('names no client inside a transaction, which must not wait for it', async () => {
    const { world, id, get } = await setUp(async () => ({ name: 'Shop' }))
    expect((await get())?.display).toEqual({ uri: shop, name: 'Shop' })
    const inside = world.auth.within(world.store)
    expect((await inside.interactions.get(id))?.display).toEqual({ uri: shop })
    expect(await inside.grants.displayOf(shop)).toEqual({ uri: shop })
  })

  test('has the name, as the grants of an owner have, and no event or refusal', async () => {
    const { world, id, get } = await setUp(async () => ({ name: 'Unheard-of' }))
    const view = await get()
    const approval = { resourceOwner: 'alice', walletAddresses: [alice] }
    await world.auth.interactions.approve(id, approval)
    expect(view?.display.name).toBe('Unheard-of')
    const events: unknown[] = []
    await world.auth.events.drain((event) => void events.push(event))
    const grant = await world.auth.grants.get(view?.grantId ?? '')
    expect(grant?.clientName).toBe('Unheard-of')
    expect(events).not.toEqual([])
    expect(JSON.stringify([events, world.refusals, world.errors])).not.toContain('Unheard-of')
  })
})

describe('grants.displayOf', () => {
  test('resolves to the name of a client with a wallet address, in any spelling', async () => {
    const { world } = await setUp(async (url) => ({ name: url }))
    const { displayOf } = world.auth.grants
    const display = { uri: shop, name: `${shop}/app` }
    expect(await displayOf(`${shop}/app`)).toEqual(display)
    expect(await displayOf('https://SHOP.example:443/app/')).toEqual(display)
    expect(await displayOf('urn:ietf:params:oauth:jwk-thumbprint:sha-256:x')).toBeUndefined()
    await expect(displayOf(undefined as never)).rejects.toThrow(invalidInput('client'))
  })
})

describe('a wallet', () => {
  const wallet = (clientKeys: ClientKeys, publicName: string | undefined) =>
    createWallet({
      baseUrl: origin,
      consentUrl: `${origin}/consent`,
      store: memoryStore(),
      clock: manualClock(),
      clientKeys,
      paymentMethods: ilpPaymentMethods({ addressPrefix: 'test.a', secret: new Uint8Array(32) }),
      walletAddresses: {
        find: async (url) => {
          if (url.endsWith('/broken')) throw new Error('the database is down')
          const name = publicName === undefined ? {} : { publicName }
          return { url: alice, assetCode: 'USD', assetScale: 2, ...name }
        },
      },
    }).auth.grants

  test('takes the names of its own accounts from walletAddresses.find, without a request', async () => {
    const asked: string[] = []
    const displayOf = async (url: string) => ({ name: `fetched ${asked.push(url)}` })
    const { displayOf: named } = wallet({ find: async () => undefined, displayOf }, '\u202eAlice ')
    expect(await named(alice)).toEqual({ uri: origin, name: 'Alice' })
    expect(await named(`${origin}/ALICE`)).toEqual({ uri: origin })
    expect(await named(`${origin}/broken`)).toEqual({ uri: origin })
    expect(asked).toEqual([])
    expect(await named(`${origin}.evil/a`)).toMatchObject({ name: 'fetched 1' })
    const nameless = wallet({ find: async () => undefined }, undefined)
    expect(await nameless.displayOf(alice)).toEqual({ uri: origin })
    expect(await nameless.displayOf(shop)).toEqual({ uri: shop })
  })

  test.each([{}, { find: async () => undefined, displayOf: 'x' }])(
    'refuses client keys without their methods',
    (clientKeys) => {
      expect(() => wallet(clientKeys as never, undefined)).toThrow(/clientKeys/)
    },
  )
})
