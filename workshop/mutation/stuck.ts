import { AsyncLocalStorage } from 'node:async_hooks'
import { performance } from 'node:perf_hooks'
import { usedMs } from './order.js'

/*
 * Many a mutant leaves a test that never ends. Stryker would wait for its timeout, which must be long on a busy
 * machine, and then start another process.
 */

/** A test waits for nothing if nothing has happened in two of these periods, in milliseconds. */
const periodMs = 1_000
/** More executions of one changed expression than any test needs: the longest has less than a million. */
const hitsMax = 2_000_000

/** How Stryker ends a loop: by the number of executions in all tests together, which takes long to reach. */
interface Stryker {
  hitCount?: number
  hitLimit?: number
}

interface Running {
  /** When it has taken too much processor time. */
  readonly endsMs: number
  turns: number
  isStuck: boolean
  readonly fail: (error: Error) => void
}

const running = new AsyncLocalStorage<Running>()
const { setImmediate, setInterval, clearInterval } = globalThis
const utilization = performance.eventLoopUtilization.bind(performance)

function end(test: Running, problem: string): void {
  test.isStuck = true
  test.fail(new Error(`the test ${problem}`))
}

// What a stuck test has left behind must not go on beside the next test.
globalThis.setImmediate = ((...call: Parameters<typeof setImmediate>) => {
  const test = running.getStore()
  if (test === undefined) return setImmediate(...call)
  test.turns += 1
  if (!test.isStuck && test.turns % 100 === 0 && usedMs() > test.endsMs) end(test, 'goes on')
  return test.isStuck ? undefined : setImmediate(...call)
}) as typeof setImmediate

function limitHits(): void {
  const { __stryker__: stryker } = globalThis as { __stryker__?: Stryker }
  if (stryker?.hitLimit === undefined) return
  stryker.hitCount = 0
  stryker.hitLimit = Math.min(stryker.hitLimit, hitsMax)
}

/** Runs a test until it ends, or is found never to end. */
export async function untilStuck(mostMs: number, body: () => unknown): Promise<void> {
  limitHits()
  let timer: ReturnType<typeof setInterval> | undefined
  try {
    await new Promise((resolve, reject) => {
      const test: Running = { endsMs: usedMs() + mostMs, turns: 0, isStuck: false, fail: reject }
      let since = utilization()
      let quiet = 0
      timer = setInterval(() => {
        const { active } = utilization(since)
        since = utilization()
        quiet = active < periodMs / 50 ? quiet + 1 : 0
        if (quiet === 2) end(test, 'waits for nothing')
      }, periodMs)
      running.run(test, () => Promise.resolve(body()).then(resolve, reject))
    })
  } finally {
    clearInterval(timer)
  }
}
