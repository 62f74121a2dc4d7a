import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { custodianAt } from '../../examples/custodian/custodian.js'
import { custodianSettlements } from '../../examples/custodian/settlements.js'
import { createAccounts } from '../../examples/custodian/stand-in/accounts.js'
import { custodianApi } from '../../examples/custodian/stand-in/api.js'
import { manualClock } from '../support/clock.js'
import { runs, some } from '../support/runs.js'
import { createSpendingWorld } from '../support/spending.js'
import { bob } from '../support/world.js'
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

  test('sends nothing back if a notice comes again after its payment was removed', async () => {
    const clock = manualClock()
    const { store, resources } = createSpendingWorld({ clock })
    const accounts = createAccounts({ journal: [], append: () => undefined })
    accounts.open(bob, 0n)
    const api = custodianApi(accounts, clock.now)
    const fetch = (async (url: string, init?: RequestInit) =>
      api(new Request(url, init))) as typeof globalThis.fetch
    const custodian = custodianAt('https://custodian.example', fetch)
    const { handle, arrived, drivers } = custodianSettlements({
      resources,
      custodian,
      store,
      clock,
    })
    const created = await resources.incomingPayments.create({
      walletAddress: bob,
      idempotencyKey: 'one',
    })
    if (!created.ok) throw new Error(created.reason)
    const { paymentId } = created.payment
    accounts.arrive({ transferId: 'tx/1', payment: paymentId, value: '700' })
    expect(await arrived('tx/1', paymentId, '700')).toBeUndefined()
    await resources.events.drain(handle)
    clock.advance(2 * 366 * 86_400_000)
    const swept = [resources, ...Object.values(drivers)]
    for (let round = 0; round < 3; round++) {
      for (const each of swept) while ((await each.sweep()).more);
    }
    expect(await resources.incomingPayments.get(paymentId)).toBeUndefined()
    expect(await arrived('tx/1', paymentId, '700')).toBeUndefined()
    expect(accounts.books()).toMatchObject({ payouts: [], balances: { [bob]: '700' } })
  })

  test('does each once in any history', async () => {
    const property = fc.asyncProperty(histories(fc), async (history) => {
      await runCustody(history)
    })
    await fc.assert(property, { numRuns: runs(1_500, 6) })
  })
})

describe('the laws find each mistake', () => {
  test.each(some(Object.entries(mistakes), 4))('%s', async (_, { mistake, foundBy }) => {
    const found = runCustody(named[foundBy] ?? healthy, { mistake })
    await expect(found).rejects.toThrow(CustodyError)
    if (process.env['SHOW']) console.log(await found.catch((error) => error.message))
  })
})
