import { isDeepStrictEqual } from 'node:util'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { type Commit, type DomainEvent, memoryStore, type Store } from '../../../src/index.js'
import { changesOf } from '../../../src/service/mechanism/events.js'
import { paymentServices, type Written, withEventLog } from '../../support/outbox.js'
import { runs } from '../../support/runs.js'

/** A database with a standby that has not received the last commits when it takes over. */
function failingOver(commitsKept: number, commitsBefore: number) {
  const primary = withEventLog(memoryStore())
  const standby = withEventLog(memoryStore())
  let commits = 0
  let isLost = false
  const current = () => (isLost ? standby.store : primary.store)
  const store: Store = {
    load: (...query) => current().load(...query),
    list: (query) => current().list(query),
    due: (...query) => current().due(...query),
    remove: (...record) => current().remove(...record),
    async commit(commit: Commit) {
      if (isLost) return standby.store.commit(commit)
      commits += 1
      const committed = await primary.store.commit(commit)
      if (commits <= commitsKept) await standby.store.commit(commit)
      if (commits <= commitsBefore) return committed
      // The primary dies before it can respond, after consumers have read the commit.
      isLost = true
      throw new Error('the connection was lost')
    },
  }
  return { store, written: () => [...primary.written, ...standby.written] }
}

function clashes(written: readonly Written[]): readonly string[] {
  const seen = new Map<string, DomainEvent>()
  return written.flatMap(({ id, event }) => {
    const before = seen.get(id)
    seen.set(id, event)
    return before === undefined || isDeepStrictEqual(before, event) ? [] : [id]
  })
}

describe('the id of an event', () => {
  test('is not the id of an event with other content, after a failover that lost commits', async () => {
    const value = fc.constantFrom('1', '2', '3')
    const values = fc.array(value, { minLength: 1, maxLength: 8 })
    const lost = fc.nat({ max: 4 })
    await fc.assert(
      fc.asyncProperty(values, fc.nat({ max: 8 }), lost, async (amounts, before, lostCommits) => {
        const { store, written } = failingOver(Math.max(1, before - lostCommits), before)
        const setup = paymentServices({ store })
        const id = await setup.newPayment().catch(() => undefined)
        if (id === undefined) return
        for (const amount of amounts) await setup.receive(id, amount)
        expect(clashes(written())).toEqual([])
      }),
      { numRuns: runs(100) },
    )
  })

  test('is the same when a command is decided again on the record as it was', async () => {
    const { store, written } = failingOver(1, 1)
    const setup = paymentServices({ store })
    await setup.receive(await setup.newPayment(), '2')
    const ids = written().map(({ id }) => id)
    expect([ids.length, new Set(ids).size]).toEqual([4, 2])
  })

  test('orders the events of one commit, however many they are', () => {
    const next = { id: 'AbCdEfGhpayment', version: 12, commandId: 'command' }
    const event = { type: 'incoming-payment.received', at: 1 } as DomainEvent
    const events = Array.from({ length: 100 }, (_, at) => ({ ...event, at }))
    const [, ...changes] = changesOf(
      { recordsEvents: () => true },
      'incoming-payment',
      undefined,
      next,
      events,
    )
    const ids = changes.map((change) => change.next.id)
    expect([...ids].sort()).toEqual(ids)
  })

  test('is at most 128 characters, as the store contract requires', () => {
    const record = `${'n'.repeat(8)}${'h'.repeat(43)}`
    const next = { id: record, version: 9_999_999_999, commandId: 'c'.repeat(22) }
    const event = { type: 'outgoing-payment.failed', at: 1 } as DomainEvent
    const [, change] = changesOf(
      { recordsEvents: () => true },
      'outgoing-payment',
      undefined,
      next,
      [event],
    )
    expect(change?.next.id).toMatch(/^[A-Za-z0-9._-]{1,128}$/)
  })
})
