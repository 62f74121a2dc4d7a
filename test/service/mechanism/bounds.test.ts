import { describe, expect, test } from 'vitest'
import { type Commit, memoryStore, type Store, storeBounds } from '../../../src/index.js'
import { commitSizeOf } from '../../../src/testing/conformance/trial.js'
import { paymentServices } from '../../support/outbox.js'

/** A store that notes every commit and the limit of every query. */
function noted() {
  const commits: Commit[] = []
  const limits: number[] = []
  const store = memoryStore()
  const noting: Store = {
    ...store,
    commit(commit) {
      commits.push(commit)
      return store.commit(commit)
    },
    due(kind, namespace, before, limit) {
      limits.push(limit)
      return store.due(kind, namespace, before, limit)
    },
    list(query) {
      limits.push(query.limit)
      return store.list(query)
    },
  }
  return { store: noting, commits, limits }
}

/** Services with one payment whose events, more than a commit may contain, are all due. */
async function manyEvents(count: number) {
  const { store, commits, limits } = noted()
  const setup = paymentServices({ store })
  const id = await setup.newPayment()
  for (let i = 1; i < count; i++) await setup.receive(id)
  return { setup, commits, limits }
}

describe('the library calls a store within storeBounds', () => {
  const fail = async () => {
    throw new Error('no')
  }

  test('when it reschedules more events than one commit may contain', async () => {
    const { setup, commits } = await manyEvents(200)
    await setup.outbox.drain(fail, { limit: 300 })
    commits.length = 0
    await setup.outbox.drain(fail, { limit: 300 })
    const rescheduled = commits.filter(({ changes }) => changes.length > 1)
    expect(rescheduled.map(({ changes }) => changes.length)).toEqual([90, 90, 19])
    for (const commit of commits) {
      expect(commitSizeOf(commit)).toBeLessThanOrEqual(storeBounds.commitSize)
    }
  })

  test('when it drains and lists with greater limits', async () => {
    const { setup, limits } = await manyEvents(1)
    for (let i = 1; i < 120; i++) await setup.newPayment()
    await setup.outbox.drain(fail, { limit: 1_000_000, attemptsMax: 1 })
    const listed = await setup.outbox.listSetAside(1_000_000)
    expect(listed).toHaveLength(120)
    expect(await setup.outbox.listSetAside(3)).toEqual(listed.slice(0, 3))
    expect(Math.max(...limits)).toBe(storeBounds.dueLimit)
  })

  test('when an operation writes one payment, with at most 10 of the size', async () => {
    const { commits } = await manyEvents(3)
    const sizes = commits.map(commitSizeOf)
    expect(Math.max(...sizes)).toBeLessThanOrEqual(10)
  })
})
