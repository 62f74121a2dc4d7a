import { expect, test } from 'vitest'
import { createLogin } from '../templates/wallet/src/login.js'

const login = createLogin({
  baseUrl: 'https://wallet.example',
  sessionSecret: 's',
  paymentDetailsSecret: 'p',
  demoPassword: 'a-password',
} as unknown as Parameters<typeof createLogin>[0])

test.each([
  ['same-origin', 303],
  ['same-site', 200],
  ['cross-site', 200],
])(
  'the login of a new wallet answers a form with the Sec-Fetch-Site %s with %i',
  async (site, expected) => {
    const { status, headers } = await login.page({
      method: 'POST',
      url: '/login',
      headers: [['Sec-Fetch-Site', site]],
      body: new TextEncoder().encode('owner=alice&password=a-password'),
    })
    expect(status).toBe(expected)
    expect('set-cookie' in headers).toBe(expected === 303)
  },
)

test.each([
  ['/keys', '/keys'],
  ['/keys?name=A+%22Shop%22&key=%7B%7D', '/keys?name=A+%22Shop%22&key=%7B%7D'],
  [`/keys?name='<"\r\nX: 1`, '/keys?name=%27%3C%22%0D%0AX%3A+1'],
  ['/apps?name=Shop', '/apps'],
  ['/consent/a-b_c.d', '/consent/a-b_c.d'],
  ['/confirm/a-b_c', '/confirm/a-b_c'],
  ['/elsewhere', '/apps'],
  ['//other.example/keys?a=b', '/apps'],
])('the login that %j needs leads to %j', async (url, expected) => {
  const request = { method: 'GET', url, headers: [], body: new Uint8Array() }
  const { headers } = login.redirect(request)
  const form = new TextEncoder().encode('owner=alice&password=a-password')
  const signedIn = await login.page({
    ...request,
    method: 'POST',
    url: `${headers['location']}`,
    body: form,
  })
  expect(signedIn.headers['location']).toBe(expected)
})

test('signing out ends the session of the browser, and leads back to the page after the next login', async () => {
  const request = { method: 'POST', url: '/apps', headers: [], body: new Uint8Array() }
  const { status, headers } = login.signOut(request)
  expect([status, headers['location']]).toEqual([303, '/login?next=%2Fapps'])
  expect(headers['set-cookie']).toMatch(/^__Host-wallet=; Max-Age=0; Path=\/; .*Secure$/)
})
