import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { type Commit, type Stored, storeBounds } from '../../src/entry-adapter.js'
import { memoryStore, type Store } from '../../src/index.js'
import { paymentServices, withEventLog } from '../support/outbox.js'
import { runs } from '../support/runs.js'

/** Loses the response to some commits: they take effect, or not, and the promise rejects. */
function losingResponses(store: Store, faults: ('none' | 'before' | 'after')[]): Store {
  return {
    ...store,
    async commit(commit: Commit) {
      const fault = faults.shift() ?? 'none'
      if (fault === 'before') throw new Error('the connection was lost before the commit')
      const committed = await store.commit(commit)
      if (fault === 'after') throw new Error('the connection was lost after the commit')
      return committed
    },
  }
}

function countingCommits(store: Store) {
  const sizes: number[] = []
  return {
    sizes,
    store: {
      ...store,
      commit(commit: Commit) {
        sizes.push(commit.changes.length)
        return store.commit(commit)
      },
    },
  }
}

/** A transfer is a record, and its event another one; the payment is changed once. */
const inOne = Math.floor((storeBounds.commitSize - 1) / 2)

describe('concurrent arrivals for one payment', () => {
  test('share a commit, and each has the result of its own', async () => {
    const { store, sizes } = countingCommits(memoryStore())
    const setup = paymentServices({ store, combines: true })
    const id = await setup.newPayment()
    sizes.length = 0
    const values = Array.from({ length: 1 + inOne + 5 }, (_, index) => `${index + 1}`)
    const results = await Promise.all(values.map((value) => setup.receive(id, value)))
    let total = 0
    for (const [index, result] of results.entries()) {
      total += index + 1
      expect(result).toMatchObject({ ok: true, changed: true, payment: { received: `${total}` } })
    }
    expect(await setup.payments.load(id)).toMatchObject({ received: `${total}`, version: 4 })
    // A payment, and a transfer and an event for each arrival.
    expect(sizes).toEqual([3, 1 + 2 * inOne, 1 + 2 * 5])
    const { lastEvent: _, ...state } = (await setup.payments.load(id)) as Stored
    expect(results.at(-1)).toMatchObject({ payment: state })
  })

  test('add up to the results that callers received, whatever responses of the database are lost', async () => {
    const fault = fc.constantFrom('none' as const, 'before' as const, 'after' as const)
    const arrival = fc.record({
      process: fc.nat({ max: 1 }),
      value: fc.integer({ min: 1, max: 4 }),
      transferId: fc.constantFrom('a', 'b', 'c', 'd', 'e', 'f', 'g', 'h'),
    })
    const lists = fc.array(arrival, { minLength: 2, maxLength: 16 })
    await fc.assert(
      fc.asyncProperty(
        fc.scheduler(),
        lists,
        fc.array(fault, { maxLength: 4 }),
        async (scheduler, arrivals, faults) => {
          const { store, written } = withEventLog(memoryStore())
          const before = paymentServices({ store })
          const id = await before.newPayment('12')
          const processes = ['one', 'two'].map((seed) =>
            paymentServices({
              store: losingResponses(store, [...faults]),
              seed,
              scheduler,
              combines: true,
            }),
          )
          const settled = Promise.allSettled(
            arrivals.map(({ process, value, transferId }) =>
              processes[process]?.receive(id, `${value}`, transferId),
            ),
          )
          await scheduler.waitFor(settled)
          const results = await settled
          const payment = await before.payments.load(id)
          let counted = 0
          const once = new Set<string>()
          for (const [index, result] of results.entries()) {
            if (result.status === 'rejected' || !result.value?.ok || !result.value.changed) continue
            const { value, transferId } = arrivals[index] ?? { value: 0, transferId: '' }
            expect(once).not.toContain(transferId)
            once.add(transferId)
            counted += value
          }
          const isCertain = results.every(({ status }) => status === 'fulfilled')
          if (isCertain) expect(Number(payment?.received)).toBe(counted)
          else expect(Number(payment?.received)).toBeGreaterThanOrEqual(counted)
          const received = written.filter(({ event }) => event.type === 'incoming-payment.received')
          const totals = received.map(
            ({ event }) => 'receivedAmount' in event && event.receivedAmount,
          )
          expect(new Set(totals.map((total) => (total ? total.value : ''))).size).toBe(
            received.length,
          )
        },
      ),
      { numRuns: runs(200) },
    )
  })

  test('have the results of one commit each, in some order', async () => {
    const arrival = fc.record({
      value: fc.constantFrom('0', '1', '2', '3', `${2n ** 64n - 1n}`),
      transferId: fc.constantFrom('a', 'b', 'c', 'd', 'e', 'f'),
    })
    const met = new Set<string>()
    await fc.assert(
      fc.asyncProperty(
        fc.option(fc.constantFrom('3', '6', '12'), { nil: undefined }),
        fc.array(arrival, { minLength: 2, maxLength: 12 }),
        async (incomingAmount, arrivals) => {
          const [shared, apart] = [paymentServices({ combines: true }), paymentServices()]
          const id = await shared.newPayment(incomingAmount)
          expect(await apart.newPayment(incomingAmount)).toBe(id)
          const results = await Promise.all(
            arrivals.map(({ value, transferId }) => shared.receive(id, value, transferId)),
          )
          const isChange = (index: number) => results[index]?.ok && results[index].changed
          const [first = 0, ...others] = arrivals.keys()
          // Behind a change of their commit, those that change nothing are decided after the others.
          const place = (index: number) =>
            isChange(index) ? 1 : others.slice(0, others.indexOf(index)).some(isChange) ? 2 : 0
          const ordered = others.toSorted((a, b) => place(a) - place(b))
          for (const index of [first, ...ordered]) {
            const { value = '', transferId = '' } = arrivals[index] ?? {}
            const expected = await apart.receive(id, value, transferId)
            const told = results[index]
            met.add(expected.ok ? `${expected.changed}` : expected.refusal)
            if (!expected.ok || !told?.ok) expect(told).toEqual(expected)
            else {
              const { received, completed } = expected.payment
              expect(told.changed).toBe(expected.changed)
              expect(told.payment).toMatchObject({ received, completed })
            }
          }
          const found = (await apart.payments.load(id)) as Stored | undefined
          const { version: _, commandId: __, lastEvent: ___, ...state } = found ?? {}
          expect(await shared.payments.load(id)).toMatchObject(state)
        },
      ),
      { numRuns: runs(300) },
    )
    const every = ['amount_invalid', 'false', 'payment_completed', 'transfer_mismatch', 'true']
    expect([...met].toSorted()).toEqual(every)
  })
})
