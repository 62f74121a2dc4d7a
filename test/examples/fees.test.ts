import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { arrivingFor, debitFor, priceWithFee } from '../../examples/integration/fees.js'
import { usd } from '../support/spending.js'

const amount = fc.bigInt(1n, 2n ** 63n)

describe('a price with a fee', () => {
  test('of 100.00 is 100.60, of which 100.00 arrives', () => {
    const price = { ok: true, debitAmount: usd(10_060), receiveAmount: usd(10_000) }
    expect(priceWithFee('arrival', usd(10_000))).toEqual(price)
    expect(priceWithFee('debit', usd(10_060))).toEqual(price)
  })

  test('lets as much arrive as its debit pays for, and no more', () => {
    fc.assert(
      fc.property(amount, (debit) => {
        const price = priceWithFee('debit', usd(debit))
        const arrives = price.ok ? BigInt(price.receiveAmount.value) : 0n
        if (price.ok) expect(debitFor(arrives)).toBeLessThanOrEqual(debit)
        expect(debitFor(arrives + 1n)).toBeGreaterThan(debit)
      }),
    )
  })

  test('debits no more for an amount than the least debit of which as much arrives', () => {
    fc.assert(
      fc.property(amount, (arrives) => {
        expect(arrivingFor(debitFor(arrives))).toBe(arrives)
        expect(arrivingFor(debitFor(arrives) - 1n)).toBeLessThan(arrives)
      }),
    )
  })

  test('names the least debit if nothing would arrive', () => {
    const refusal = { ok: false, refusal: 'amount_too_small', minDebitAmount: usd(12) }
    expect(priceWithFee('debit', usd(11))).toEqual(refusal)
    expect(priceWithFee('debit', usd(12))).toMatchObject({ receiveAmount: usd(1) })
  })
})
