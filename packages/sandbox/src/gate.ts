/** Lets requests pass, except during a change that no request may see half done. */
export interface Gate {
  /** Begins work as soon as nothing is changing. */
  pass<Result>(work: () => Promise<Result>): Promise<Result>
  /** Begins a change when the work that has passed is done, or after the time limit. Other work waits for its end. */
  close<Result>(change: () => Promise<Result>): Promise<Result>
}

/** @param waitMaxMs how long a change waits for work, at most. */
export function openGate(waitMaxMs = 5_000): Gate {
  const passed = new Set<Promise<unknown>>()
  let closed: Promise<unknown> | undefined
  return {
    async pass(work) {
      while (closed !== undefined) await closed
      const working = work()
      passed.add(working)
      return working.finally(() => passed.delete(working))
    },
    close(change) {
      const before = closed
      const changing = (async () => {
        await before
        await doneWithin(waitMaxMs, [...passed])
        return change()
      })()
      const ended: Promise<void> = changing.then(
        () => open(),
        () => open(),
      )
      const open = () => {
        if (closed === ended) closed = undefined
      }
      closed = ended
      return changing
    },
  }
}

/** Resolves when all work is done, at the latest after the time limit. */
async function doneWithin(limitMs: number, work: readonly Promise<unknown>[]): Promise<void> {
  let timer: ReturnType<typeof setTimeout> | undefined
  const limit = new Promise((resolve) => {
    timer = setTimeout(resolve, limitMs)
  })
  await Promise.race([Promise.allSettled(work), limit])
  clearTimeout(timer)
}
