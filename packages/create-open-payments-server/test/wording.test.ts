import { expect, test } from 'vitest'
import { describeAccess, describeTotal } from '../templates/wallet/src/wording.js'

const debitAmount = { value: '500', assetCode: 'USD', assetScale: 2 }

test.each([
  ['2026-12-01T00:00:00Z/P1M', 'every month'],
  ['2026-12-01T00:00:00Z/P2W', 'every 2 weeks'],
  ['2026-12-01T00:00:00Z/PT90M', 'every 90 minutes'],
  ['2026-12-01T00:00:00Z/P1M10D', 'every 1 month and 10 days'],
  ['P1D/2026-12-01T00:00:00Z', 'every day'],
  ['2026-12-01T00:00:00Z/2026-12-02T00:00:00Z', 'every day'],
  ['2026-12-01T00:00:00Z/2026-12-15T00:00:00Z', 'every 2 weeks'],
  ['2026-12-01T00:00:00Z/2026-12-01T01:30:00Z', 'every 1 hour and 30 minutes'],
  ['2026-12-01T00:00:00Z/2026-12-01T00:00:00.001Z', 'every 0.001 seconds'],
])('the created wallet says the length of the period: %s', (span, expected) => {
  const limits = { debitAmount, interval: `R/${span}` }
  const item = { type: 'outgoing-payment', actions: ['create'], limits } as const
  expect(describeAccess(item)[1]).toContain(`spend at most USD 5.00 ${expected}, the `)
  expect(describeTotal({ items: 2, ...limits })).toContain(`USD 5.00 ${expected}, the `)
})

test('the created wallet says how often a period repeats', () => {
  const limits = { debitAmount, interval: 'R12/2026-12-01T00:00:00Z/P1M' }
  expect(describeAccess({ type: 'outgoing-payment', actions: ['create'], limits })[1]).toBe(
    'spend at most USD 5.00 every month, 12 times, the first from ' +
      'Tue, 01 Dec 2026 00:00 UTC until Fri, 01 Jan 2027 00:00 UTC',
  )
})
