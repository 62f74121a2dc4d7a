import fc from 'fast-check'
import { type AttemptsOptions, askByRepeating } from 'open-payments-server/attempts'
import {
  type AttemptsSubject,
  attemptsConformance,
  attemptsProperty,
} from 'open-payments-server-testing'
import { closeAt, custodian, sendTo } from 'open-payments-test-support/custodian'
import { runs } from 'open-payments-test-support/runs'
import { describe, test } from 'vitest'

describe.each(['id', 'sum'] as const)('a custodian that is asked by %s keeps the laws', (by) => {
  for (const { name, run } of attemptsConformance(custodian(by))) test(name, run)

  test('in random histories', async () => {
    await fc.assert(attemptsProperty(fc, custodian(by)), { numRuns: runs(6_000, 60) })
  })
})

/**
 * A custodian that closes references needs no instant after which an order is not carried out. Its word about them is
 * trusted, so it does not deny what it has received.
 */
function closing(by: 'id' | 'sum', closeAfterMs: number): AttemptsSubject {
  const { otherSide, create } = custodian(by, (_, { fetch }) => ({
    close: closeAt(fetch),
    closeAfterMs,
    ...(by === 'id' && { notAfter: undefined as never }),
  }))
  return { otherSide, create }
}

describe.each([
  ['id', 60_000],
  ['id', 0],
  ['sum', 30_000],
] as const)('a custodian that is asked by %s and closes after %i ms keeps the laws', (by, ms) => {
  for (const { name, run } of attemptsConformance(closing(by, ms))) test(name, run)

  test('in random histories', async () => {
    await fc.assert(attemptsProperty(fc, closing(by, ms)), { numRuns: runs(3_000, 40) })
  })
})

/** Its key for repeats is the id of the settlement, and its orders have no end. */
const keyed = custodian('id', (_, { fetch }) => {
  const send: AttemptsOptions['send'] = ({ request, notAfter: _notAfter, ...order }) =>
    sendTo(fetch)({ ...order, request, reference: request.id })
  const ask = askByRepeating(send, { keptMs: 86_400_000 })
  return { send, ask, notAfter: undefined as never }
})

describe('a custodian whose orders are repeated under one key keeps the laws', () => {
  for (const { name, run } of attemptsConformance(keyed)) test(name, run)

  test('in random histories', async () => {
    await fc.assert(attemptsProperty(fc, keyed), { numRuns: runs(6_000, 60) })
  })
})
