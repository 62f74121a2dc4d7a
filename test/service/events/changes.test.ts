import { expect, test } from 'vitest'
import { memoryStore, type Store } from '../../../src/index.js'
import { changeEvents, removeEvents } from '../../../src/service/events/changes.js'
import { paymentServices, storedEvents } from '../../support/outbox.js'

test('a removal that fails is tried again for the time that the store may take', async () => {
  const setup = paymentServices()
  await setup.newPayment()
  const { pacing, storeTimeoutMs } = setup.context
  const triedAt: number[] = []
  const remove: Store['remove'] = async () => {
    triedAt.push(pacing.elapsedMs())
    throw new Error('the store is away')
  }
  const beganAt = pacing.elapsedMs()
  const context = { ...setup.context, store: { ...setup.store, remove } }
  const removed = removeEvents(context, await storedEvents(setup))
  await expect(removed).rejects.toThrow('the store is away')
  expect(triedAt.length).toBeGreaterThan(10)
  expect(triedAt.at(-1)).toBe(beganAt + storeTimeoutMs)
})

test('events that the caller has loaded are changed without loading them again', async () => {
  const store = memoryStore()
  let loads = 0
  const load: Store['load'] = (keys) => {
    loads += 1
    return store.load(keys)
  }
  const setup = paymentServices({ store: { ...store, load }, combines: true })
  for (let i = 0; i < 3; i++) await setup.newPayment()
  const events = await storedEvents(setup)
  loads = 0
  const changes = events.map((before) => ({ before, next: { ...before, attempts: 7 } }))
  const changed = await changeEvents(setup.context, changes)
  expect([...changed.values()].map(({ attempts }) => attempts)).toEqual([7, 7, 7])
  expect(loads).toBe(0)
})
