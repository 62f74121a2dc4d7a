import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { isAbove } from '../templates/wallet/src/confirmation.js'
import { readSettings } from '../templates/wallet/src/settings.js'

beforeEach(() => {
  const secret = Buffer.alloc(32).toString('base64url')
  for (const name of ['SESSION_SECRET', 'PAYMENT_DETAILS_SECRET']) vi.stubEnv(name, secret)
  for (const name of ['DATABASE', 'DEMO_PASSWORD']) vi.stubEnv(name, 'x')
  for (const name of ['PORT', 'HOST', 'BASE_URL', 'CONFIRM_ABOVE']) vi.stubEnv(name, undefined)
})
afterEach(() => vi.unstubAllEnvs())

test('A new wallet listens on loopback, unless HOST names another address', () => {
  expect(readSettings().host).toBe('localhost')
  vi.stubEnv('HOST', '')
  expect(readSettings().host).toBe('localhost')
  vi.stubEnv('HOST', '0.0.0.0')
  expect(readSettings()).toMatchObject({ host: '0.0.0.0', baseUrl: 'http://localhost:3000' })
})

test('A new wallet lets its owners confirm no payment, unless CONFIRM_ABOVE says from which amount', () => {
  const mustConfirm = (value: string) =>
    isAbove(readSettings().confirmAbove)({
      debitAmount: { value, assetCode: 'USD', assetScale: 2 },
    })
  expect(mustConfirm('18446744073709551615')).toBe(false)
  vi.stubEnv('CONFIRM_ABOVE', '')
  expect(mustConfirm('18446744073709551615')).toBe(false)
  vi.stubEnv('CONFIRM_ABOVE', '50')
  expect([mustConfirm('5000'), mustConfirm('5001')]).toEqual([false, true])
  for (const invalid of ['fifty', '-1', '1.5', '50 USD']) {
    vi.stubEnv('CONFIRM_ABOVE', invalid)
    expect(() => readSettings()).toThrow('CONFIRM_ABOVE must be a number of whole dollars or euros')
  }
})
