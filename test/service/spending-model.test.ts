import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { histories } from '../support/spending-histories.js'
import { play } from '../support/spending-player.js'
import { servedWallet, serverWallet } from '../support/spending-wallets.js'

describe('a wallet agrees with an independent book', () => {
  const met = new Map<string, number>()

  test('when its services are called, for any history of grants, payments and reports', async () => {
    const property = fc.asyncProperty(histories(60), (history) =>
      play(servedWallet(), history, met),
    )
    await fc.assert(property, { numRuns: 800 })
  }, 120_000)

  test('when its servers receive signed requests', async () => {
    const property = fc.asyncProperty(histories(60), (history) => play(serverWallet(), history))
    await fc.assert(property, { numRuns: 20 })
  })

  test('and the histories contain every outcome many times', () => {
    const answers = {
      quote: 'made amount_invalid receiver_invalid',
      pay: 'paid limits_exceeded amount_invalid amount_too_small token_unknown',
      'pay with a key': 'paid limits_exceeded request_differs token_unknown',
      'pay by a quote':
        'paid limits_exceeded quote_expired quote_mismatch quote_unknown request_differs',
      repeat: 'the_same_payment paid limits_exceeded token_unknown identifier_foreign',
      begin: 'done payment_begun payment_lapsed payment_over payment_unknown',
      cancel: 'done payment_begun payment_over',
      settle: 'done payment_not_begun payment_over totals_exceeded totals_receded',
      fail: 'done payment_not_begun payment_over payment_sent totals_exceeded totals_receded',
      lapse: 'some none',
      purge: 'a_budget no_budget',
      rotate: 'done over',
      revoke: 'done with_payments_in_flight',
    }
    for (const [step, names] of Object.entries(answers)) {
      for (const answer of names.split(' ')) {
        const name = `${step}: ${answer}`
        expect(met.get(name) ?? 0, name).toBeGreaterThan(5)
      }
    }
  })
})
