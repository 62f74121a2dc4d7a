import { generateKeyPairSync } from 'node:crypto'
import { createAuthenticatedClient, isPendingGrant } from '@interledger/open-payments'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Browser, browserOf } from './support/browser.js'
import { runningWallet, type TestWallet } from './support/running-wallet.js'

let wallet: TestWallet
let alice: Browser
let account: string
beforeAll(async () => {
  wallet = await runningWallet()
  alice = await browserOf(wallet.baseUrl, 'alice')
  account = `${wallet.baseUrl}/alice`
})
afterAll(() => wallet?.stop())

type Form = Readonly<Record<string, string>>

const page = (query: Form = {}) => `${wallet.baseUrl}/keys?${new URLSearchParams(query)}`

const publicKey = () => {
  const { kty, crv, x } = generateKeyPairSync('ed25519').publicKey.export({ format: 'jwk' })
  return { kty, crv, x }
}

/** Sends a form of the page as a browser does, and resolves to the status. */
async function sent(form: Form, browser = alice): Promise<number> {
  const { token } = await browser.open(page())
  const { status } = await browser.send(page(), { token, account, name: 'Shop', ...form })
  return status
}

async function published(): Promise<readonly { readonly kid: string; readonly x: string }[]> {
  const response = await fetch(`${account}/jwks.json`)
  return ((await response.json()) as { keys: { kid: string; x: string }[] }).keys
}

test('a key is published from when its owner adds it until the owner revokes it', async () => {
  const key = publicKey()
  expect(await sent({ key: JSON.stringify({ ...key, kid: 'shop-1' }) })).toBe(303)
  expect(await published()).toMatchObject([{ kid: 'shop-1', x: key.x }])
  expect((await alice.open(page())).text).toContain('shop-1')
  expect(await sent({ revoke: 'shop-1' })).toBe(303)
  expect(await published()).toEqual([])
})

test('an app that signs with a key of its owner is named by the name of the key', async () => {
  const { publicKey, privateKey } = generateKeyPairSync('ed25519')
  const key = JSON.stringify({ ...publicKey.export({ format: 'jwk' }), kid: 'browser-1' })
  expect(await sent({ name: 'Web Monetization', key })).toBe(303)
  const client = await createAuthenticatedClient({
    walletAddressUrl: account,
    keyId: 'browser-1',
    privateKey,
    logLevel: 'silent',
  })
  const actions = ['create' as const]
  const grant = await client.grant.request(
    { url: `${wallet.baseUrl}/auth` },
    {
      access_token: { access: [{ type: 'outgoing-payment', actions, identifier: account }] },
      interact: { start: ['redirect'] },
    },
  )
  if (!isPendingGrant(grant)) throw new Error('this access needs no consent')
  const { redirect } = grant.interact
  const { text, token } = await alice.open(redirect)
  expect(text).toMatch(/<h1><bdi>Web Monetization<\/bdi> asks to pay from your account/)
  expect(text).toMatch(/Key ID: <bdi>browser-1/)
  expect(await alice.send(redirect, { token, decision: 'approve' })).toMatchObject({ status: 200 })
  const apps = async () => (await alice.open(`${wallet.baseUrl}/apps`)).text
  expect(await apps()).toMatch(/<h2[^>]*><bdi>Web Monetization<\/bdi><\/h2>/)
  expect(await sent({ revoke: 'browser-1' })).toBe(303)
  expect(await apps()).toMatch(/<h2[^>]*><bdi>An app of yours<\/bdi><\/h2>/)
})

test('the link of an app fills the form after the login, and adds nothing', async () => {
  const link = page({ account, name: 'The "Shop"', key: JSON.stringify(publicKey()) })
  const { headers } = await fetch(link, { redirect: 'manual' })
  const login = new URL(headers.get('location') ?? '', wallet.baseUrl)
  const next = login.searchParams.get('next') ?? ''
  const { status, text } = await alice.open(wallet.baseUrl + next)
  expect(status).toBe(200)
  expect(text).toContain('value="The &#34;Shop&#34;"')
  expect(text).toContain('>\n{&#34;kty&#34;')
  expect(await published()).toEqual([])
})

test('other owners, other sites, and keys of another kind are refused', async () => {
  const key = JSON.stringify(publicKey())
  const bob = await browserOf(wallet.baseUrl, 'bob')
  expect((await bob.open(page({ account, key }))).status).toBe(403)
  expect(await sent({ key }, bob)).toBe(403)
  expect(await sent({ key, token: 'guessed' })).toBe(400)
  const { publicKey: other } = generateKeyPairSync('x25519')
  const pem = `${other.export({ format: 'pem', type: 'spki' })}`
  expect(await sent({ key: pem })).toBe(400)
  expect((await alice.open(page({ key: pem }))).text).toContain('This is a key of another kind.')
  const { privateKey } = generateKeyPairSync('ed25519')
  const secret = privateKey.export({ format: 'jwk' })
  expect((await alice.open(page({ key: JSON.stringify(secret) }))).text).not.toContain(secret.d)
  expect(await published()).toEqual([])
})

test('an account has 20 keys at most, and each has a kid of its own, also if added at once', async () => {
  const { token } = await alice.open(page())
  const add = (kid: string) =>
    alice.send(page(), { token, account, name: 'Shop', key: JSON.stringify(publicKey()), kid })
  const same = await Promise.all(['one', 'one', 'one'].map(add))
  expect(same.map(({ status }) => status).toSorted()).toEqual([303, 400, 400])
  for (let count = 2; count <= 18; count++) await add(`key-${count}`)
  const last = await Promise.all(['a', 'b', 'c', 'd'].map(add))
  expect(last.map(({ status }) => status).toSorted()).toEqual([303, 303, 400, 400])
  expect(await published()).toHaveLength(20)
})
