import { createHash, generateKeyPairSync } from 'node:crypto'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { type Accounts, demoAccounts } from '../../examples/wallet/accounts.js'
import { demoLogin } from '../../examples/wallet/demo-login.js'
import {
  memoryRegisteredKeys,
  type RegisteredKeys,
  registeredKeysMax,
} from '../../examples/wallet/registered-keys.js'
import { memorySecrets } from '../../examples/wallet/secrets.js'
import { cookieSession } from '../../examples/wallet/session.js'
import { openStorage, type WalletStorage } from '../../examples/wallet/storage.js'
import { createPages, formTokens } from '../../packages/pages/src/index.js'
import type { HttpRequest, HttpResponse } from '../../src/entry-adapter.js'
import type { Handler } from '../../src/index.js'
import { jwkOf, testKey } from '../support/keys.js'

const session = cookieSession(new Uint8Array(32))

const formKey = new Uint8Array(32)

function keysPage(keys: RegisteredKeys, accounts: Accounts): Handler {
  return createPages({
    auth: {} as Parameters<typeof createPages>[0]['auth'],
    keys,
    ownerOf(request) {
      const id = session.ownerOf(request)
      return id === undefined ? undefined : { id }
    },
    accountsOf: accounts.ownedBy,
    signIn: demoLogin(accounts, session).signIn,
    formKey,
  }).keys
}

type Form = Readonly<Record<string, string>>

/** Sends a request as the owner, or as nobody. */
async function sent(
  page: Handler,
  owner: string | undefined,
  { form, query = '', headers = [] }: { form?: Form; query?: string; headers?: [string, string][] },
): Promise<HttpResponse> {
  const [cookie = ''] = owner === undefined ? [] : session.cookieFor(owner).split(';')
  const field = await formTokens(formKey).field('keys', owner ?? '')
  const token = /value="(\w+)"/.exec(`${field}`)?.[1] ?? ''
  const request: HttpRequest = {
    method: form === undefined ? 'GET' : 'POST',
    url: `/keys${query}`,
    headers: [['Cookie', cookie], ...headers],
    body: new TextEncoder().encode(form && new URLSearchParams({ ...form, token }).toString()),
  }
  return page(request)
}

const bare = (name: string) => {
  const { kty, crv, x } = jwkOf(testKey(name))
  return { kty, crv, x }
}

let storage: WalletStorage
beforeAll(async () => {
  storage = await openStorage({ baseUrl: 'https://wallet.example' })
})
afterAll(() => storage.close())

let wallets = 0

describe.each<[string, () => RegisteredKeys]>([
  ['in memory', memoryRegisteredKeys],
  ['in a database', () => storage.keys],
])('the keys of apps, %s', (_, open) => {
  let accounts: Accounts
  let keys: RegisteredKeys
  let page: Handler
  let alice: string
  beforeEach(async () => {
    keys = open()
    // The database is the same for all tests, and the accounts are not.
    const baseUrl = `https://wallet-${wallets++}.example`
    alice = `${baseUrl}/alice`
    accounts = await demoAccounts(baseUrl, memorySecrets(), keys)
    page = keysPage(keys, accounts)
  })

  const add = (form: Form, owner = 'alice') =>
    sent(page, owner, { form: { account: alice, name: 'Shop', ...form } })
  const shown = async (query = '') => (await sent(page, 'alice', { query })).body
  /** What the wallet address publishes, besides the key of the demo. */
  const published = async () => {
    const { keys = [] } = (await accounts.published.find(alice)) ?? {}
    expect(keys[0]?.kid).toBe('alice-1')
    return keys.slice(1)
  }

  test('are published from when they are added until they are revoked', async () => {
    const { x } = bare('app')
    const { status, headers } = await add({ key: JSON.stringify({ ...bare('app'), kid: 'app-1' }) })
    expect([status, headers['location']]).toEqual([
      303,
      `?account=${encodeURIComponent(alice)}&done=added`,
    ])
    expect(await published()).toEqual([{ kid: 'app-1', x }])
    const thumbprint = createHash('sha256').update(`{"crv":"Ed25519","kty":"OKP","x":"${x}"}`)
    const body = await shown()
    for (const fact of [
      'Shop',
      'app-1',
      thumbprint.digest('base64url').slice(0, 12),
      'Added on ',
    ]) {
      expect(body).toContain(fact)
    }
    expect((await add({ revoke: 'app-1' })).status).toBe(303)
    expect(await published()).toEqual([])
    expect(await shown()).toContain('Your account has no keys.')
  })

  test('get the kid of the form, else that of the key, else a random one', async () => {
    const named = JSON.stringify({ ...bare('one'), kid: 'of-the-key' })
    await add({ key: named, kid: 'of-the-form' })
    await add({ key: JSON.stringify({ ...bare('two'), kid: 'of-the-key' }) })
    await add({ key: JSON.stringify(bare('three')) })
    const random = expect.stringMatching(/^[\w-]{36}$/)
    expect((await published()).map(({ kid }) => kid)).toEqual(['of-the-form', 'of-the-key', random])
  })

  test('are refused with a reason, and then nothing is added', async () => {
    await add({ key: JSON.stringify(bare('first')), kid: 'first' })
    const before = await published()
    const pem = generateKeyPairSync('ed448').publicKey.export({ format: 'pem', type: 'spki' })
    const other = JSON.stringify(bare('other'))
    for (const [form, reason] of [
      [{ key: `${pem}` }, 'This is a key of another kind.'],
      [{ key: other, name: ' ' }, 'name of 1 to 64 characters'],
      [{ key: other, name: 'n'.repeat(65) }, 'name of 1 to 64 characters'],
      [{ key: other, name: 'no\0name' }, 'name of 1 to 64 characters'],
      [{ key: other, name: 'Shop\u202egro.live' }, 'name of 1 to 64 characters'],
      [{ key: other, name: '\u2066Shop' }, 'name of 1 to 64 characters'],
      [{ key: other, name: 'Sh\u200bop' }, 'name of 1 to 64 characters'],
      [{ key: other, kid: 'schlüssel' }, 'A key ID has 1 to 256 characters'],
      [{ key: other, kid: 'first' }, 'already has a key with this key ID'],
      [{ key: other, kid: 'alice-1' }, 'already has a key with this key ID'],
      [{ key: JSON.stringify(bare('first')), kid: 'second' }, 'already has this key'],
    ] as const) {
      const { status, body } = await add(form)
      expect([status, body]).toEqual([400, expect.stringContaining(reason)])
    }
    expect(await published()).toEqual(before)
  })

  test('are 20 at most, with the one of the demo, also if all are added at once', async () => {
    const all = Array.from({ length: registeredKeysMax + 3 }, (_, n) =>
      add({ key: JSON.stringify(bare(`key ${n}`)), kid: `key-${n}` }),
    )
    const statuses = (await Promise.all(all)).map(({ status }) => status)
    expect(statuses.filter((status) => status === 400)).toHaveLength(3)
    expect(await published()).toHaveLength(19)
    const [gone] = await published()
    await add({ revoke: gone?.kid ?? '' })
    expect((await add({ key: JSON.stringify(bare('late')) })).status).toBe(303)
    const { body } = await add({ key: JSON.stringify(bare('later')) })
    expect(body).toContain('Your account has 20 keys')
  })

  test('with one kid are one, if two are added at once', async () => {
    const both = ['one', 'two'].map((name) => add({ key: JSON.stringify(bare(name)), kid: 'same' }))
    const statuses = (await Promise.all(both)).map(({ status }) => status)
    expect(statuses.toSorted()).toEqual([303, 400])
    expect(await published()).toHaveLength(1)
  })

  test('change for their owner only, and only through the pages of the wallet', async () => {
    const key = JSON.stringify(bare('app'))
    await add({ key, kid: 'app-1' })
    const before = await published()
    const link = `?${new URLSearchParams({ account: alice, key })}`
    expect((await sent(page, 'bob', { query: link })).status).toBe(403)
    expect((await add({ key: JSON.stringify(bare('mine')) }, 'bob')).status).toBe(403)
    expect((await add({ revoke: 'app-1' }, 'bob')).status).toBe(403)
    for (const site of ['cross-site', 'same-site']) {
      const headers: [string, string][] = [['Sec-Fetch-Site', site]]
      const form = { account: alice, revoke: 'app-1' }
      expect((await sent(page, 'alice', { form, headers })).status).toBe(403)
    }
    expect(
      (await sent(page, undefined, { form: { account: alice, revoke: 'app-1' } })).status,
    ).toBe(403)
    expect(await published()).toEqual(before)
  })
})

describe('the page of keys', async () => {
  const keys = memoryRegisteredKeys()
  const accounts = await demoAccounts('https://wallet.example', memorySecrets(), keys)
  const page = keysPage(keys, accounts)
  const linked = (query: Form) => sent(page, 'alice', { query: `?${new URLSearchParams(query)}` })
  const escaped = (text: string) => text.replaceAll('"', '&#34;')

  test('is filled by the link of an app, which adds nothing', async () => {
    const account = 'https://wallet.example/alice'
    const key = JSON.stringify(bare('app'))
    const { status, body } = await linked({ account, name: 'Shop', key })
    expect(status).toBe(200)
    expect(body).toContain('value="Shop"')
    expect(body).toContain(`>\n${escaped(key)}</textarea>`)
    expect(await keys.of(account)).toEqual([])
  })

  test('shows no text of a link that reorders what is around it', async () => {
    const { body = '' } = await linked({ name: 'Shop\u202egro.live', kid: 'a\u2066b' })
    expect(body).toContain('value="Shop\ufffdgro.live"')
    expect(body).toContain('value="a\ufffdb"')
  })

  test('repeats no private key, and no other text that is not a public key', async () => {
    const { privateKey } = generateKeyPairSync('ed25519')
    const { d = '', ...open } = privateKey.export({ format: 'jwk' })
    for (const key of [JSON.stringify({ ...open, d }), `x${d}`, `{"kty":"OKP","${d}`]) {
      for (const response of [
        await linked({ key }),
        await sent(page, 'alice', { form: { key } }),
      ]) {
        expect(response.status).toBe(400)
        expect(response.body).not.toContain(d)
      }
    }
  })

  test('escapes what a link and an owner write', async () => {
    const markup = `</textarea><img src=x onerror=alert(1)>"'`
    const key = JSON.stringify({ ...bare('app'), kid: markup })
    expect((await linked({ name: markup, kid: markup, key })).body).not.toContain('<img')
    await sent(page, 'alice', { form: { name: markup, key } })
    const { body = '' } = await linked({})
    expect(body).not.toContain('<img')
    expect(body.match(/img src=x/g)?.length).toBeGreaterThan(2)
  })

  test('permits its own script only, and no request to anywhere', async () => {
    const { body = '', headers } = await linked({})
    const [, nonce = ''] = /<script nonce="([^"]{24})">/.exec(`${body}`) ?? []
    expect(body).toContain(`<style nonce="${nonce}">`)
    expect(body.match(/<script/g)).toHaveLength(1)
    const policy = `${headers['content-security-policy']}`.split('; ')
    expect(policy).toEqual([
      "default-src 'none'",
      `style-src 'nonce-${nonce}'`,
      `script-src 'nonce-${nonce}'`,
      "form-action 'self'",
      "frame-ancestors 'none'",
      "base-uri 'none'",
    ])
  })

  test('signs visitors in as the owner that they choose, and leads back to the link', async () => {
    const query = '?name=Shop'
    const { status, body } = await sent(page, undefined, { query })
    expect([status, body]).toEqual([403, expect.stringContaining('value="carol"')])
    const { headers } = await sent(page, undefined, { query, form: { owner: 'carol' } })
    expect(headers['location']).toBe('/keys?name=Shop')
    expect(headers['set-cookie']).toBe(session.cookieFor('carol'))
    expect(
      (await sent(page, undefined, { form: { owner: 'mallory' } })).headers,
    ).not.toHaveProperty('set-cookie')
  })
})
