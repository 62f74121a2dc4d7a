import fc from 'fast-check'
import { expect, test } from 'vitest'
import {
  type HostsSay,
  mayPay,
  pricing,
  serversProperty,
} from '../../examples/payment-limits/own-servers.js'
import { hostCall } from '../support/host-call.js'
import { runs } from '../support/runs.js'

test('A wallet passes its own servers to the search, which finds no way to overspend', async () => {
  await fc.assert(serversProperty(), { numRuns: runs(400) })
})

const mistakes: Readonly<Record<string, { readonly say: HostsSay; readonly found: RegExp }>> = {
  'a price at which more arrives than the wallet promised': {
    say: {
      mayPay,
      pricing: {
        async price(request) {
          const price = await pricing.price(request, hostCall)
          if (!price.ok) return price
          const { value, ...asset } = price.receiveAmount
          return { ...price, receiveAmount: { value: `${BigInt(value) * 2n}`, ...asset } }
        },
      },
    },
    found: /the price of payment 1 differs from the scene/,
  },
  'an account that refuses large payments': {
    say: {
      pricing,
      mayPay: ({ debitAmount }) =>
        BigInt(debitAmount.value) < 20n
          ? { ok: true }
          : { ok: false, refusal: 'funds_insufficient' },
    },
    found: /refused/,
  },
}

test.each(Object.entries(mistakes))('The search finds %s', async (_, { say, found }) => {
  const { failed, errorInstance } = await fc.check(serversProperty(say), {
    numRuns: runs(2_000, 200),
    endOnFailure: true,
  })
  expect(failed).toBe(true)
  expect((errorInstance as Error).message).toMatch(found)
})
