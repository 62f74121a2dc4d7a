import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { readSettings } from '../templates/wallet/src/settings.js'

beforeEach(() => {
  const secret = Buffer.alloc(32).toString('base64url')
  for (const name of ['SESSION_SECRET', 'PAYMENT_DETAILS_SECRET']) vi.stubEnv(name, secret)
  for (const name of ['DATABASE', 'DEMO_PASSWORD']) vi.stubEnv(name, 'x')
  for (const name of ['PORT', 'HOST', 'BASE_URL']) vi.stubEnv(name, undefined)
})
afterEach(() => vi.unstubAllEnvs())

test('A new wallet listens on loopback, unless HOST names another address', () => {
  expect(readSettings().host).toBe('localhost')
  vi.stubEnv('HOST', '')
  expect(readSettings().host).toBe('localhost')
  vi.stubEnv('HOST', '0.0.0.0')
  expect(readSettings()).toMatchObject({ host: '0.0.0.0', baseUrl: 'http://localhost:3000' })
})
