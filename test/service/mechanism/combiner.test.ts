import { describe, expect, test } from 'vitest'
import { ContentionError } from '../../../src/index.js'
import { createCombiner, waitingMax } from '../../../src/service/mechanism/combiner.js'

const most = 5

/** A combiner whose batches end, and whose waits run out, when the test says so. */
function setUp() {
  const batches: { commands: readonly number[]; end: (error?: unknown) => void }[] = []
  const waits: (() => void)[] = []
  const combiner = createCombiner({
    elapsedMs: () => 0,
    sleep: (_ms, signal) =>
      new Promise((resolve) => {
        waits.push(resolve)
        signal?.addEventListener('abort', () => resolve())
      }),
  })
  const decideAll = (commands: readonly number[]) =>
    new Promise<readonly string[]>((resolve, reject) => {
      const end = (error?: unknown) =>
        error === undefined ? resolve(commands.map((each) => `result ${each}`)) : reject(error)
      batches.push({ commands, end })
    })
  const run = (command: number, key = 'payment') => combiner.run(key, command, decideAll, most)
  return { run, batches, waits }
}

/** Lets all promises that can settle do so. */
const settled = () => new Promise<void>((resolve) => setImmediate(resolve))

describe('commands on one record', () => {
  test('begin at once if no other is in progress, and otherwise together when it ends', async () => {
    const { run, batches } = setUp()
    const results = [1, 2, 3].map((command) => run(command))
    expect(batches.map(({ commands }) => commands)).toEqual([[1]])
    batches[0]?.end()
    await settled()
    expect(batches.map(({ commands }) => commands)).toEqual([[1], [2, 3]])
    batches[1]?.end()
    expect(await Promise.all(results)).toEqual(['result 1', 'result 2', 'result 3'])
  })

  test('have no result before the commit that decides them ends', async () => {
    const { run, batches } = setUp()
    const done: number[] = []
    for (const command of [1, 2, 3]) void run(command).then(() => done.push(command))
    await settled()
    expect(done).toEqual([])
    batches[0]?.end()
    await settled()
    expect(done).toEqual([1])
    batches[1]?.end()
    await settled()
    expect(done).toEqual([1, 2, 3])
  })

  test('are decided in the order of their arrival, at most so many in one commit', async () => {
    const { run, batches } = setUp()
    const all = Array.from({ length: 2 * most + 2 }, (_, index) => index)
    const results = Promise.all(all.map((command) => run(command)))
    for (let ended = 0; ended < 4; ended++) {
      batches[ended]?.end()
      await settled()
    }
    await results
    expect(batches.map(({ commands }) => commands.length)).toEqual([1, most, most, 1])
    expect(batches.flatMap(({ commands }) => commands)).toEqual(all)
  })

  test('do not wait for those on another record', () => {
    const { run, batches } = setUp()
    void run(1)
    void run(2, 'another')
    expect(batches.map(({ commands }) => commands)).toEqual([[1], [2]])
  })

  test('all reject with the error of their commit, and later ones proceed', async () => {
    const { run, batches } = setUp()
    const first = run(1)
    const failing = Promise.allSettled([run(2), run(3)])
    batches[0]?.end()
    await first
    await settled()
    const later = run(4)
    batches[1]?.end(new Error('the store failed'))
    const reasons = (await failing).map((each) => each.status === 'rejected' && `${each.reason}`)
    expect(reasons).toEqual(['Error: the store failed', 'Error: the store failed'])
    await settled()
    batches[2]?.end()
    expect(await later).toBe('result 4')
    await settled()
    // The record is free again.
    void run(5)
    expect(batches.at(-1)?.commands).toEqual([5])
  })

  test('are refused if they waited too long or too many wait, and are then never decided', async () => {
    const { run, batches, waits } = setUp()
    const first = run(0)
    const waiting = Array.from({ length: waitingMax }, (_, index) => run(index + 1))
    await expect(run(-1)).rejects.toThrow(ContentionError)
    waits[1]?.()
    await expect(waiting[1]).rejects.toThrow(ContentionError)
    batches[0]?.end()
    await first
    await settled()
    for (let ended = 1; ended < batches.length; ended++) {
      batches[ended]?.end()
      await settled()
    }
    const decided = batches.flatMap(({ commands }) => commands)
    expect(decided).toHaveLength(waitingMax)
    expect(decided).not.toContain(2)
    expect(decided).not.toContain(-1)
  })
})
