import { createHash, generateKeyPairSync } from 'node:crypto'
import type { Handler } from 'open-payments-server'
import type { HttpRequest, HttpResponse } from 'open-payments-server/adapter'
import { jwkOf, testKey } from 'open-payments-test-support/keys'
import { beforeEach, describe, expect, test } from 'vitest'
import { createPages, formTokens, type OwnerKeys } from '../src/index.js'
import { memoryKeys } from './memory-keys.js'

const formKey = new Uint8Array(32)
const alice = 'https://wallet.example/alice'
/** Another account of Alice. */
const savings = 'https://wallet.example/alice-savings'

/** The page of a wallet in which the request names its owner. */
function keysPage(keys: OwnerKeys): Handler {
  return createPages({
    auth: {} as Parameters<typeof createPages>[0]['auth'],
    keys,
    ownerOf({ headers }) {
      const [, id] = headers.find(([name]) => name === 'X-Owner') ?? []
      return id === undefined ? undefined : { id }
    },
    accountsOf: async (owner) => [
      { url: `https://wallet.example/${owner}`, assetCode: 'USD', assetScale: 2 },
      ...(owner === 'alice' ? [{ url: savings, assetCode: 'EUR', assetScale: 2 }] : []),
    ],
    signIn: () => ({ status: 303, headers: { location: '/login' } }),
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
  const field = await formTokens(formKey).field('keys', owner ?? '')
  const token = /value="(\w+)"/.exec(`${field}`)?.[1] ?? ''
  const request: HttpRequest = {
    method: form === undefined ? 'GET' : 'POST',
    url: `/keys${query}`,
    headers: [...(owner === undefined ? [] : [['X-Owner', owner] as const]), ...headers],
    body: new TextEncoder().encode(form && new URLSearchParams({ ...form, token }).toString()),
  }
  return page(request)
}

const bare = (name: string) => {
  const { kty, crv, x } = jwkOf(testKey(name))
  return { kty, crv, x }
}

let keys: OwnerKeys
let page: Handler
beforeEach(() => {
  keys = memoryKeys()
  page = keysPage(keys)
})

describe('the keys of apps', () => {
  const add = (form: Form, owner = 'alice') =>
    sent(page, owner, { form: { account: alice, name: 'Shop', ...form } })
  const shown = async (query = '') => (await sent(page, 'alice', { query })).body
  const published = async () => (await keys.of(alice)).map(({ kid, x }) => ({ kid, x }))

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
      [{ key: JSON.stringify(bare('first')), kid: 'second' }, 'already has this key'],
    ] as const) {
      const { status, body } = await add(form)
      expect([status, body]).toEqual([400, expect.stringContaining(reason)])
    }
    expect(await published()).toEqual(before)
  })

  test('are shown for all accounts of their owner, and each can be revoked', async () => {
    const added = async (account: string, name: string, kid: string) => {
      const form = { account, name, kid, key: JSON.stringify(bare(name)) }
      expect((await sent(page, 'alice', { form })).status).toBe(303)
    }
    await added(alice, 'Shop', 'shop-1')
    await added(savings, 'Extension', 'extension-1')
    const { body = '' } = await sent(page, 'alice', {})
    for (const [name, account] of [
      ['Shop', alice],
      ['Extension', savings],
    ] as const) {
      const card = body.split('<article').find((each) => each.includes(`<bdi>${name}</bdi>`)) ?? ''
      expect(card).toContain(`name="account" value="${account}"`)
      expect(card).toContain(`Account: <bdi>${account}</bdi>`)
    }
    const form = { account: savings, revoke: 'extension-1' }
    expect((await sent(page, 'alice', { form })).status).toBe(303)
    expect([await keys.of(alice), await keys.of(savings)]).toMatchObject([[{ name: 'Shop' }], []])
  })

  test('are refused, with the number, if the wallet keeps no more', async () => {
    for (let n = 0; n < 20; n++) await add({ key: JSON.stringify(bare(`key ${n}`)) })
    const { status, body } = await add({ key: JSON.stringify(bare('later')) })
    expect([status, body]).toEqual([400, expect.stringContaining('Your account has 20 keys')])
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
    const revoking = { form: { account: alice, revoke: 'app-1' } }
    const { status, body } = await sent(page, undefined, revoking)
    expect([status, body]).toEqual([403, expect.stringContaining('href="/login"')])
    expect(await published()).toEqual(before)
  })
})

describe('the page of keys', () => {
  const linked = (query: Form) => sent(page, 'alice', { query: `?${new URLSearchParams(query)}` })
  const escaped = (text: string) => text.replaceAll('"', '&#34;')

  test('is filled by the link of an app, which adds nothing', async () => {
    const key = JSON.stringify(bare('app'))
    const { status, body } = await linked({ account: alice, name: 'Shop', key })
    expect(status).toBe(200)
    expect(body).toContain('value="Shop"')
    expect(body).toContain(`>\n${escaped(key)}</textarea>`)
    expect(await keys.of(alice)).toEqual([])
  })

  test('adds a key from the base64 in which a browser extension shows it, and shows what it has read', async () => {
    const key = JSON.stringify({ ...bare('app'), kid: 'extension-1' })
    for (const encoding of ['base64', 'base64url'] as const) {
      const { body } = await linked({ key: Buffer.from(key).toString(encoding) })
      expect(body).toContain(`>\n${escaped(key)}</textarea>`)
    }
    const form = { name: 'Extension', key: Buffer.from(key).toString('base64') }
    expect((await sent(page, 'alice', { form })).status).toBe(303)
    const x = bare('app').x
    expect(await keys.of(alice)).toMatchObject([{ kid: 'extension-1', x, name: 'Extension' }])
  })

  test('does not publish a private key that is the kid of the form', async () => {
    const { privateKey } = generateKeyPairSync('ed25519')
    const kid = privateKey.export({ format: 'der', type: 'pkcs8' }).toString('base64')
    const form = { name: 'Shop', key: JSON.stringify(bare('app')), kid }
    const { status, body } = await sent(page, 'alice', { form })
    expect(status).toBe(400)
    expect(body).not.toContain(escaped(kid))
    expect(await keys.of(alice)).toEqual([])
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
      "img-src 'self'",
      "form-action 'self'",
      "frame-ancestors 'none'",
      "base-uri 'none'",
    ])
  })
})
