import type { Pacing } from '../../src/service/time.js'

export type VirtualTime = ReturnType<typeof virtualTime>

/** Time that passes only while everything waits for it, so that minutes take milliseconds. */
export function virtualTime(startAt = 0) {
  let now = startAt
  let timers: { readonly at: number; readonly run: () => void }[] = []

  function after(ms: number, run: () => void): () => void {
    const timer = { at: now + Math.max(0, ms), run }
    // Timers of the same instant run in the order in which they were set.
    const index = timers.findLastIndex(({ at }) => at <= timer.at)
    timers.splice(index + 1, 0, timer)
    return () => {
      timers = timers.filter((each) => each !== timer)
    }
  }

  const pacing: Pacing = {
    elapsedMs: () => now,
    sleep: (ms, signal) =>
      new Promise((resolve) => {
        if (signal?.aborted) return resolve()
        const cancel = after(ms, end)
        signal?.addEventListener('abort', end)
        function end() {
          cancel()
          signal?.removeEventListener('abort', end)
          resolve()
        }
      }),
  }

  return {
    now: () => now,
    pacing,
    sleep: (ms: number) => pacing.sleep(ms),
    /** The number of timers that have not fired. */
    timers: () => timers.length,
    /** Lets time pass until the work is done. */
    async until<Result>(work: Promise<Result>): Promise<Result> {
      let isDone = false
      const settled = work.finally(() => {
        isDone = true
      })
      settled.catch(() => undefined)
      for (;;) {
        await new Promise<void>((resolve) => setImmediate(resolve))
        if (isDone) return settled
        const next = timers.shift()
        if (next === undefined) continue
        now = next.at
        next.run()
      }
    },
  }
}
