import type { Handler, MayPay } from 'open-payments-server'
import { type TestKey, testKey } from 'open-payments-test-support/keys'
import { createSpendingWorld, outgoingItem, pay, usd } from 'open-payments-test-support/spending'
import { alice, bob, interactionId } from 'open-payments-test-support/world'
import { describe, expect, test } from 'vitest'
import { createPages, languages, type OwnedKey, type PagesOptions, seeOther } from '../src/index.js'
import { textOf } from './text.js'

const owned = (name: string, key: TestKey): OwnedKey => ({
  kid: key.kid,
  x: key.x,
  name,
  addedAt: 0,
})

/** A wallet whose owner alice has registered keys, each by the name of its test key. */
async function wallet(
  names: Readonly<Record<string, string>>,
  more: Partial<PagesOptions> = {},
  language = 'en',
) {
  const registered = Object.entries(names).map(([key, name]) => owned(name, testKey(key)))
  const mayPay: MayPay = ({ outgoingPaymentId: id, isConfirmed }) => {
    const url = `https://wallet.example/confirm/${id}`
    const until = world.clock.now() + 600_000
    return isConfirmed ? { ok: true } : { ok: false, refusal: 'confirmation_required', url, until }
  }
  const world = createSpendingWorld({ resources: { policy: { mayPay } } })
  const { auth, resources, clock, clientKeys } = world
  clientKeys.displayOf = async (url) => ({ name: url === alice ? 'Alice' : 'Bob & Co' })
  const accounts = { alice: [{ url: alice, publicName: 'Alice', assetCode: 'USD', assetScale: 2 }] }
  const keys = {
    of: async (url: string) => (url === alice ? registered : []),
    add: async () => 'full' as const,
    revoke: async () => undefined,
  }
  const pages = createPages({
    auth,
    resources,
    clock,
    ownerOf: () => ({ id: 'alice', language }),
    accountsOf: (owner) => (owner === 'alice' ? accounts.alice : []),
    signIn: () => seeOther('/login'),
    formKey: new Uint8Array(32).fill(7),
    keys,
    ...more,
  })

  async function shown(handle: Handler, url: string) {
    const { body = '' } = await handle({ method: 'GET', url, headers: [], body: new Uint8Array() })
    return textOf(body)
  }

  let nonces = 0
  /** A client that signs with one of the keys of an account. All its keys are published, as a wallet does. */
  async function asks(key: string, walletAddress = alice) {
    const published = Object.keys(names).map(testKey)
    const client = world.client(key, { walletAddress, nonces })
    nonces += 100
    clientKeys.publish(walletAddress, ...published, testKey(key))
    const access = [outgoingItem({ debitAmount: usd(5_000) })]
    const { body } = await client.request(access, { start: ['redirect'] })
    const id = interactionId(body.interact.redirect)
    return { client, id, continuation: body.continue }
  }

  /** The same client, once alice has approved its request. */
  async function connected(key: string) {
    const { client, id, continuation } = await asks(key)
    await auth.interactions.approve(id, { resourceOwner: 'alice', walletAddresses: [alice] })
    clock.advance(5_000)
    const { body } = await client.continue(continuation)
    const { access_token: accessToken } = body
    return { client, accessToken, grantId: id.split('.')[0] ?? '' }
  }

  /** The id of a payment that waits for alice. */
  async function waiting(key: string) {
    const { client, accessToken } = await connected(key)
    const { body } = await pay(
      client,
      accessToken.value,
      100,
      {},
      { headers: [['Idempotency-Key', 'k']] },
    )
    return body.error.details.url.split('/').at(-1)
  }

  return {
    ...{ world, registered, asks, connected, waiting },
    consent: (id: string) => shown(pages.consent, `/consent/${id}`),
    confirmation: (id: string) => shown(pages.confirmation, `/confirm/${id}`),
    apps: (query = '') => shown(pages.connectedApps, `/apps${query}`),
  }
}

const named = { extension: 'Web Monetization' }
/** What a page says of the app that signs with the key of the extension, in place of the name of the account. */
const ofExtension =
  'Web Monetization https://wallet.example/alice It uses a key of your account. Key ID: extension-key'

describe('an app that signs with a key of the owner’s account has the owner’s name for the key', () => {
  test('on the consent page', async () => {
    const { asks, consent } = await wallet(named)
    const text = await consent((await asks('extension')).id)
    expect(text).toContain('Web Monetization asks to pay from your account')
    expect(text).toContain('It uses a key of your account. Key ID: extension-key')
    expect(text).not.toContain('Alice asks')
    expect(text).not.toContain('The app chose its name')
  })

  test('on the page that confirms a payment', async () => {
    const { waiting, confirmation } = await wallet(named)
    const text = await confirmation(await waiting('extension'))
    expect(text).toContain('Web Monetization asks you to confirm a payment')
    expect(text).toContain('It uses a key of your account. Key ID: extension-key')
    expect(text).not.toContain('Alice asks')
  })

  test('among the connected apps, on its own page, and in the search', async () => {
    const { connected, apps } = await wallet(named)
    const { grantId } = await connected('extension')
    for (const query of ['', `?app=${grantId}`, '?search=monetization']) {
      expect(await apps(query), query).toContain(ofExtension)
    }
    expect(await apps('?search=nothing')).toContain('No connected app matches this search.')
  })

  test('when its access was removed, and among the ended apps, also once the key is revoked', async () => {
    const { connected, apps, world, registered } = await wallet(named)
    const { grantId } = await connected('extension')
    await world.auth.grants.revoke(grantId)
    expect(await apps(`?removed=${grantId}`)).toContain('Web Monetization no longer has access')
    expect(await apps('?ended')).toContain(ofExtension)
    registered.length = 0
    expect(await apps('?ended')).toContain(
      ofExtension.replace('Web Monetization', 'An app of yours'),
    )
  })

  test('among the ended apps when the record of its grant has been replaced', async () => {
    const { connected, apps, world } = await wallet(named)
    const { grantId } = await connected('extension')
    await world.auth.grants.revoke(grantId)
    world.clock.advance(31 * 86_400_000)
    await world.auth.sweep()
    expect(await world.auth.grants.getRecord(grantId)).toBeUndefined()
    expect(await apps('?ended')).toContain(ofExtension)
  })

  test.each(Object.keys(languages))('in the language %s', async (tag) => {
    const { asks, waiting, consent, confirmation, apps } = await wallet(named, {}, tag)
    const { ownAppKey, nameUnproved } = languages[tag as keyof typeof languages]
    const paymentId = await waiting('extension')
    const pages = [
      await consent((await asks('extension')).id),
      await confirmation(paymentId),
      await apps(),
    ]
    for (const text of pages) {
      expect(text).toContain('Web Monetization')
      expect(text).toContain(ownAppKey)
      expect(text).not.toContain(nameUnproved)
    }
  })
})

describe('the name of a key', () => {
  test('that two keys have tells them apart by their ids', async () => {
    const { connected, apps } = await wallet({ extension: 'Browser', other: 'Browser' })
    await connected('extension')
    await connected('other')
    const text = await apps()
    expect(text.match(/Key ID: [\w-]+/g)).toEqual(['Key ID: other-key', 'Key ID: extension-key'])
  })

  test('is not that of another key with the same id, which an app can choose', async () => {
    const { connected, apps, registered } = await wallet(named)
    await connected('extension')
    registered.splice(0, 1, { ...owned('Bank', testKey('thief')), kid: 'extension-key' })
    expect(await apps()).toContain('An app of yours')
    expect(await apps()).not.toContain('Bank')
  })

  test('is absent if the wallet has no page of keys: the name of the account names no app', async () => {
    const { asks, consent } = await wallet(named, { keys: undefined } as never)
    const text = await consent((await asks('extension')).id)
    expect(text).toContain('An app of yours asks to pay from your account')
    expect(text).toContain('Key ID: extension-key')
  })

  test('names no app of another account', async () => {
    const { asks, consent } = await wallet(named)
    const text = await consent((await asks('extension', bob)).id)
    expect(text).toContain('Bob & Co asks to pay from your account')
    expect(text).toContain('The app chose its name')
    expect(text).not.toContain('Web Monetization')
  })

  test('follows the key with which the app rotates its token', async () => {
    const { connected, apps, world } = await wallet({ extension: 'Phone', other: 'Laptop' })
    const { accessToken } = await connected('extension')
    expect(await apps()).toContain('Phone')
    const laptop = world.client('other', { walletAddress: alice })
    expect((await laptop.rotate(accessToken)).status).toBe(200)
    expect(await apps()).toContain('Laptop')
  })
})
