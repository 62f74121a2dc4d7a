import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { createTurns } from '../../src/service/turns.js'

describe('turns at one thing', () => {
  test('are taken one after another, in the order in which they were asked for', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.scheduler(),
        fc.array(fc.constantFrom('one', 'two'), { minLength: 1, maxLength: 12 }),
        async (scheduler, keys) => {
          const turns = createTurns()
          const began: Record<string, number[]> = { one: [], two: [] }
          const within: Record<string, number> = { one: 0, two: 0 }
          const all = keys.map(async (key, number) => {
            const leave = await turns.take(key)
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

  test('at another thing are not waited for', async () => {
    const turns = createTurns()
    await turns.take('one')
    await turns.take('two')
  })

  test('are free again once they were left', async () => {
    const turns = createTurns()
    for (let time = 0; time < 3; time++) (await turns.take('one'))()
    await turns.take('one')
  })
})
