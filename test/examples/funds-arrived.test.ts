import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { fundsArrived } from '../../examples/integration/funds.js'
import type { IncomingPaymentView, MayReceive } from '../../src/index.js'
import { runs } from '../support/runs.js'
import { createSpendingWorld, usd } from '../support/spending.js'
import { bob } from '../support/world.js'

/** A wallet whose rail reports arrivals, with two payments to Bob: of 5.00, and of any amount. */
async function receiving(mayReceive: MayReceive) {
  const world = createSpendingWorld({ resources: { policy: { mayReceive } } })
  const { incomingPayments } = world.resources
  const payments: IncomingPaymentView[] = []
  for (const [idempotencyKey, incomingAmount] of [
    ['invoice', usd(500)] as const,
    ['open'] as const,
  ]) {
    const more = incomingAmount && { incomingAmount }
    const created = await incomingPayments.create({ walletAddress: bob, idempotencyKey, ...more })
    if (!created.ok) throw new Error(created.reason)
    payments.push(created.payment)
  }
  const found = (address: string) => payments.find(({ paymentId }) => paymentId === address)
  const services = {
    incomingPayments: { ...incomingPayments, findByIlpAddress: async (to: string) => found(to) },
  }
  const arrive = (payment: number, transferId: string, value: number) =>
    fundsArrived(services, payments[payment]?.paymentId ?? 'unknown', transferId, `${value}`)
  return { world, incomingPayments, payments, arrive }
}

describe('funds that arrive', () => {
  const report = fc.record({
    payment: fc.nat(2),
    transfer: fc.nat(3),
    value: fc.constantFrom(100, 500, 600),
    /** What `mayReceive` says, and whether the payment is completed, before the report. */
    says: fc.constantFrom('yes', 'yes', 'no', 'later'),
    completes: fc.boolean(),
  })

  test('are credited once or returned once, never both, in any order of reports and answers', async () => {
    const seen = { credit: 0, return: 0, later: 0, 'credited before': 0 }
    const property = fc.asyncProperty(fc.array(report, { maxLength: 12 }), async (reports) => {
      let says = 'yes'
      const answer: MayReceive = ({ type }) => {
        if (type === 'creation' || says === 'yes') return { ok: true }
        if (says === 'no') return { ok: false, refusal: 'payment_not_allowed' }
        return { ok: false, refusal: 'review_required', retryAt: Date.now() + 1_000 }
      }
      const { incomingPayments, payments, arrive } = await receiving(answer)
      const [credited, returned] = [new Map<string, number>(), new Set<string>()]
      for (const { payment, transfer, value, ...before } of reports) {
        says = before.says
        const id = `transfer-${transfer}`
        if (before.completes) await incomingPayments.complete(payments[0]?.paymentId ?? '')
        const outcome = await arrive(payment, id, value)
        seen[outcome]++
        // An address that was never given out has no payment, whatever else its transfer has paid.
        if (outcome === 'return' && payment < 2) returned.add(id)
        if (outcome === 'credit') {
          expect(credited.has(id)).toBe(false)
          credited.set(id, value)
        }
        for (const each of returned) expect(credited.has(each)).toBe(false)
      }
      let received = 0n
      for (const { paymentId } of payments) {
        received += BigInt((await incomingPayments.get(paymentId))?.receivedAmount.value ?? 0)
      }
      expect(received).toBe(BigInt([...credited.values()].reduce((sum, each) => sum + each, 0)))
    })
    await fc.assert(property, { numRuns: runs(2_000, 150) })
    for (const [what, count] of Object.entries(seen)) expect(count, what).toBeGreaterThan(0)
  })
})
