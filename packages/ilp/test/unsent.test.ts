import { outcomeOf, streamPacket } from 'open-payments-test-support/ilp'
import { afterEach, expect, test, vi } from 'vitest'
import { sendOverHttp } from '../src/index.js'

afterEach(() => vi.unstubAllGlobals())

const details = {
  id: '1',
  ilpAddress: 'test.bank.bob',
  sharedSecret: Buffer.alloc(32, 7).toString('base64'),
}
const sender = { url: 'https://peer.example/ilp', token: 'secret' }

test.each([
  ['T01', 'no connection was established', 'EHOSTUNREACH', 'connect'],
  ['T01', 'the peer has no address', 'ENOTFOUND', 'getaddrinfo'],
  ['R00', 'the network breaks after the packet was sent', 'EHOSTUNREACH', 'read'],
  ['R00', 'the network breaks while the packet is sent', 'EHOSTUNREACH', 'write'],
  ['R00', 'the peer closes the connection', 'ECONNRESET', 'read'],
])('the outcome is %s if %s', async (outcome, _, code, syscall) => {
  const cause = Object.assign(new Error(code), { code, syscall })
  vi.stubGlobal('fetch', () => Promise.reject(new TypeError('fetch failed', { cause })))
  const packet = streamPacket(details, { amount: 700n, expiresAt: Date.now() + 30_000 })
  expect(outcomeOf(await sendOverHttp(sender)(packet))).toBe(outcome)
})
