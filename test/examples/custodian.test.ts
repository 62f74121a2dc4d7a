import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { runs } from '../support/runs.js'
import { histories } from './custodian-histories.js'
import { mistakes, named } from './custodian-mistakes.js'
import { CustodyError, healthy, runCustody } from './custodian-world.js'

describe('a wallet whose ledger is a custodian behind an API', () => {
  test('holds, debits, credits and refunds', async () => {
    const counts = await runCustody({
      ...healthy,
      payments: [
        { value: 2_500, reviewMs: 0 },
        { value: 1_000, reviewMs: 600_000 },
      ],
      arrivals: [
        { value: 700, to: 'open' },
        { value: 300, to: 'completed' },
      ],
    })
    expect(counts).toMatchObject({ failed: 0, failures: 0, transfers: 4 })
  })

  test('pays no more than the account has', async () => {
    const payments = [6_000, 3_000, 5_000].map((value) => ({ value, reviewMs: 0 }))
    expect(await runCustody({ ...healthy, payments })).toMatchObject({ failures: 1, failed: 0 })
  })

  test.each(Object.entries(named))('does each once if %s', async (_, history) => {
    await runCustody(history)
  })

  test('does each once in any history', async () => {
    const property = fc.asyncProperty(histories(fc), async (history) => {
      await runCustody(history)
    })
    await fc.assert(property, { numRuns: runs(1_500, 12) })
  })
})

describe('the laws find each mistake', () => {
  test.each(Object.entries(mistakes))('%s', async (_, { mistake, foundBy }) => {
    const found = runCustody(named[foundBy] ?? healthy, { mistake })
    await expect(found).rejects.toThrow(CustodyError)
    if (process.env['SHOW']) console.log(await found.catch((error) => error.message))
  })
})
