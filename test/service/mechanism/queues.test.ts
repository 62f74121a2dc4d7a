import { queryObjects } from 'node:v8'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { createQueues } from '../../../src/service/mechanism/queues.js'
import { isLong } from '../../support/runs.js'

describe('the queue of a key', () => {
  test('admits one caller at a time, in the order of the calls', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.scheduler(),
        fc.array(fc.constantFrom('one', 'two'), { minLength: 1, maxLength: 12 }),
        async (scheduler, keys) => {
          const queues = createQueues()
          const began: Record<string, number[]> = { one: [], two: [] }
          const within: Record<string, number> = { one: 0, two: 0 }
          const all = keys.map(async (key, number) => {
            const leave = await queues.take(key)
            began[key]?.push(number)
            within[key] = (within[key] ?? 0) + 1
            expect(within[key]).toBe(1)
            await scheduler.schedule(Promise.resolve(), `turn ${number}`)
            within[key] -= 1
            leave()
          })
          await scheduler.waitFor(Promise.all(all))
          for (const key of ['one', 'two']) {
            const asked = keys.flatMap((each, number) => (each === key ? [number] : []))
            expect(began[key]).toEqual(asked)
          }
        },
      ),
      { numRuns: 200 },
    )
  })

  test('does not delay callers with another key', async () => {
    const queues = createQueues()
    await queues.take('one')
    await queues.take('two')
  })

  test('does not admit a caller that arrives while another has yet to take its turn', async () => {
    const queues = createQueues()
    const leaveFirst = await queues.take('one')
    const second = queues.take('one')
    leaveFirst()
    let isAdmitted = false
    const third = queues.take('one').then(() => {
      isAdmitted = true
    })
    const leaveSecond = await second
    await new Promise((resolve) => setImmediate(resolve))
    expect(isAdmitted).toBe(false)
    leaveSecond()
    await third
  })

  test('is free again after its holder leaves', async () => {
    const queues = createQueues()
    for (let time = 0; time < 3; time++) (await queues.take('one'))()
    await queues.take('one')
  })

  // Counting the promises takes seconds on the heap of a worker that has run other files.
  test.runIf(isLong)('occupies no memory after its last holder leaves', async () => {
    const queues = createQueues()
    const promises = () => queryObjects(Promise, { format: 'count' })
    const before = promises()
    for (let key = 0; key < 10_000; key++) (await queues.take(`key ${key}`))()
    expect(promises() - before).toBeLessThan(5_000)
    await queues.take('key 0')
  })
})
