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
