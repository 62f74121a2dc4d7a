import { describe, expect, test } from 'vitest'
import { createLogin } from '../templates/wallet/src/login.js'

const baseUrl = 'https://wallet.example'

function loginAt(url = baseUrl) {
  const secret = new Uint8Array(32)
  return createLogin({
    baseUrl: url,
    sessionSecret: secret,
    paymentDetailsSecret: secret,
    demoPassword: 'a-password',
  })
}

const login = loginAt()

type Headers = readonly (readonly [string, string])[]

const got = (url: string, headers: Headers = []) =>
  login.page({ method: 'GET', url, headers, body: new Uint8Array() })

/** Opens the login in a new browser, and returns its cookie and the token of its form. */
async function opened(url = '/login', headers: Headers = []) {
  const page = await got(url, headers)
  const [, token = ''] = /name="token" value="([^"]+)"/.exec(`${page.body}`) ?? []
  const set = page.headers['set-cookie']
  return { cookie: `${set}`.split(';', 1)[0] ?? '', token, set }
}

function posted(
  { token, cookie }: { readonly token?: string; readonly cookie?: string },
  { url = '/login', password = 'a-password', headers = [] as Headers } = {},
) {
  const body = new URLSearchParams({ owner: 'alice', password, ...(token && { token }) })
  return login.page({
    method: 'POST',
    url,
    headers: [...headers, ...(cookie ? [['Cookie', cookie] as const] : [])],
    body: new TextEncoder().encode(`${body}`),
  })
}

describe('the form of the login of a new wallet', () => {
  test.each([
    ['no header', [], 303],
    ['same-origin', [['Sec-Fetch-Site', 'same-origin']], 303],
    ['none', [['Sec-Fetch-Site', 'none']], 200],
    ['same-site', [['Sec-Fetch-Site', 'same-site']], 200],
    ['cross-site', [['sec-fetch-site', 'cross-site']], 200],
  ] as [string, Headers, number][])(
    'is answered with the Sec-Fetch-Site: %s',
    async (_, headers, status) => {
      const answer = await posted(await opened(), { headers })
      expect(answer.status).toBe(status)
      expect(`${answer.headers['set-cookie']}`.startsWith('__Host-wallet=')).toBe(status === 303)
      if (status === 200) expect(answer.body).toContain('name="password"')
    },
  )

  test('signs nobody in without its token, or with the token of another browser', async () => {
    const [own, other] = [await opened(), await opened()]
    for (const token of ['', other.token, `${own.token}0`, own.token.toUpperCase()]) {
      const answer = await posted({ cookie: own.cookie, token })
      expect([answer.status, answer.headers['set-cookie']], token).toEqual([200, undefined])
    }
    expect((await posted({ cookie: other.cookie, token: own.token })).status).toBe(200)
    expect((await posted(own)).status).toBe(303)
  })

  test('works in two tabs of a browser: the second keeps the cookie of the first', async () => {
    const first = await opened()
    const second = await opened('/login', [['Cookie', `a=b; ${first.cookie}`]])
    expect(second.set).toBeUndefined()
    for (const { token } of [first, second]) {
      expect((await posted({ cookie: first.cookie, token })).status).toBe(303)
    }
  })

  test('says where the wallet is to a browser that did not keep the cookie', async () => {
    const { token } = await opened()
    const answer = await posted({ token })
    expect(answer.status).toBe(400)
    expect(answer.body).toContain('has not kept the cookie')
    expect(answer.body).toContain(`<a href="${baseUrl}/login">${baseUrl}</a>`)
    expect(answer.headers['set-cookie']).toMatch(/^__Host-wallet-form=/)
  })

  test('asks again after a wrong password', async () => {
    const browser = await opened()
    const answer = await posted(browser, { password: 'wrong' })
    expect([answer.status, answer.headers['set-cookie']]).toEqual([401, undefined])
    expect(answer.body).toContain(`name="token" value="${browser.token}"`)
  })
})

describe('the cookies of a new wallet', () => {
  test.each([
    ['https://wallet.example', '__Host-wallet', true],
    ['https://localhost:8443', '__Host-wallet-8443', true],
    ['http://localhost:3000', 'wallet-3000', false],
    ['http://localhost:4000', 'wallet-4000', false],
  ])(
    'at %s have the name %s, so that wallets on one machine keep theirs',
    async (url, name, secure) => {
      const at = loginAt(url)
      const request = { method: 'GET', url: '/login', headers: [], body: new Uint8Array() }
      const form = `${(await at.page(request)).headers['set-cookie']}`
      const ended = `${at.signOut({ ...request, method: 'POST', url: '/apps' }).headers['set-cookie']}`
      expect(form.startsWith(`${name}-form=`)).toBe(true)
      expect(ended.startsWith(`${name}=;`)).toBe(true)
      for (const cookie of [form, ended]) {
        expect(cookie).toContain('; Path=/; HttpOnly; SameSite=Lax')
        expect(cookie.endsWith('; Secure')).toBe(secure)
      }
    },
  )
})

test.each([
  ['/keys', '/keys'],
  ['/keys?name=A+%22Shop%22&key=%7B%7D', '/keys?name=A+%22Shop%22&key=%7B%7D'],
  [`/keys?name='<"\r\nX: 1`, '/keys?name=%27%3C%22%0D%0AX%3A+1'],
  ['/apps?name=Shop', '/apps?name=Shop'],
  ['/send?to=https%3A%2F%2Fbank.example%2Fbob', '/send?to=https%3A%2F%2Fbank.example%2Fbob'],
  ['/consent/a-b_c.d', '/consent/a-b_c.d'],
  ['/confirm/a-b_c', '/confirm/a-b_c'],
  ['/elsewhere', '/apps'],
  ['//other.example/keys?a=b', '/apps'],
])('the login that %j needs leads to %j', async (url, expected) => {
  const request = { method: 'GET', url, headers: [], body: new Uint8Array() }
  const { headers } = login.redirect(request)
  const signedIn = await posted(await opened(), { url: `${headers['location']}` })
  expect(signedIn.headers['location']).toBe(expected)
})

test('signing out removes the cookie of the browser, and leads back to the page after the next login', async () => {
  const request = { method: 'POST', url: '/apps', headers: [], body: new Uint8Array() }
  const { status, headers } = login.signOut(request)
  expect([status, headers['location']]).toEqual([303, '/login?next=%2Fapps'])
  expect(headers['set-cookie']).toMatch(/^__Host-wallet=; Max-Age=0; Path=\/; .*Secure$/)
})

test('the session knows when the owner signed in, and the time zone of the browser if it is one', async () => {
  for (const [zone, timeZone] of [
    ['Europe/Berlin', 'Europe/Berlin'],
    ['America/Argentina/ComodRivadavia', 'America/Argentina/ComodRivadavia'],
    ['', undefined],
    ['x'.repeat(500), 'x'.repeat(64)],
  ] as const) {
    const { cookie, token } = await opened()
    const before = Date.now()
    const answer = await login.page({
      method: 'POST',
      url: '/login',
      headers: [['Cookie', cookie]],
      body: new TextEncoder().encode(
        `${new URLSearchParams({ owner: 'alice', password: 'a-password', token, zone })}`,
      ),
    })
    const session = `${answer.headers['set-cookie']}`.split(';', 1)[0] ?? ''
    const request = {
      method: 'GET',
      url: '/apps',
      headers: [['Cookie', session]],
      body: new Uint8Array(),
    } as const
    const owner = login.ownerOf(request)
    expect(owner).toEqual({
      id: 'alice',
      signedInAt: expect.any(Number),
      ...(timeZone && { timeZone }),
    })
    expect(owner?.signedInAt).toBeGreaterThanOrEqual(before)
    expect(owner?.signedInAt).toBeLessThanOrEqual(Date.now())
    const other = session.replace(/\.[\w-]*\.([\w-]*)$/, '.QXNpYS9Ub2t5bw.$1')
    expect(login.ownerOf({ ...request, headers: [['Cookie', other]] })).toBeUndefined()
  }
})

test('the login leads back to a page of apps with its query', async () => {
  const request = {
    method: 'GET',
    url: '/apps?limits=&account=a%2Fb',
    headers: [],
    body: new Uint8Array(),
  }
  const { headers } = login.redirect(request)
  const { location = '' } = headers
  expect(location).toBe(`/login?${new URLSearchParams({ next: '/apps?limits=&account=a%2Fb' })}`)
  const answer = await posted(await opened(location), { url: location })
  expect(answer.headers['location']).toBe('/apps?limits=&account=a%2Fb')
})
