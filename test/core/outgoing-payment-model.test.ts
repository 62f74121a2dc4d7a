import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { playBooked, stories } from '../support/booked-play.js'
import { runs } from '../support/runs.js'
import { machineWallet } from '../support/spending-machines.js'

describe('the core decisions agree with the testing kit and with an independent book', () => {
  test('for any history of grants, payments and reports', async () => {
    const property = fc.asyncProperty(stories, (story) => playBooked(machineWallet(), story))
    await fc.assert(property, { numRuns: runs(1_000) })
  })

  test('for histories that contain every outcome', async () => {
    const met = new Map<string, number>()
    const property = fc.asyncProperty(stories, (story) => playBooked(machineWallet(), story, met))
    await fc.assert(property, { numRuns: runs(1_500, 500), seed: 1 })
    expect(met.get('pay with a key: paid')).toBeGreaterThan(runs(1_000))
    expect(met.get('report-sent: done')).toBeGreaterThan(runs(500))
    const answers = {
      quote: 'made amount_invalid receiver_invalid',
      pay: 'paid limits_exceeded amount_invalid amount_too_small token_unknown',
      'pay with a key': 'paid limits_exceeded request_differs token_unknown',
      'pay by a quote':
        'paid limits_exceeded quote_expired quote_mismatch quote_unknown request_differs',
      repeat: 'the_same_payment paid limits_exceeded token_unknown identifier_foreign',
      begin: 'done payment_begun payment_lapsed payment_over payment_unknown',
      cancel: 'done payment_begun payment_over',
      'report-sent': 'done payment_not_begun payment_over totals_exceeded totals_receded',
      fail: 'done payment_not_begun payment_over payment_sent totals_exceeded totals_receded',
      lapse: 'some none',
      remove: 'a_budget no_budget',
      rotate: 'done over',
      revoke: 'done with_payments_in_flight',
    }
    for (const [step, names] of Object.entries(answers)) {
      for (const answer of names.split(' ')) {
        const name = `${step}: ${answer}`
        expect(met.get(name) ?? 0, name).toBeGreaterThan(runs(5, 1))
      }
    }
  })
})
