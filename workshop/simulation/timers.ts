import type { Scheduler } from './scheduler.js'

/**
 * Replaces the timers and the stopwatch of the runtime, which the library uses for retries and time limits, by
 * those of the scheduler while `work` runs.
 */
export async function withSimulatedTimers<Result>(
  scheduler: Scheduler,
  work: () => Promise<Result>,
): Promise<Result> {
  const { setTimeout: realSet, clearTimeout: realClear } = globalThis
  const handles = new Map<object, number>()

  const set = (callback: () => void, ms = 0) => {
    const handle = { ref: () => handle, unref: () => handle, hasRef: () => true }
    handles.set(handle, scheduler.after(ms, callback))
    return handle
  }
  const clear = (handle: object) => {
    const id = handles.get(handle)
    if (id === undefined) return realClear(handle as NodeJS.Timeout)
    handles.delete(handle)
    scheduler.cancel(id)
  }

  Object.assign(globalThis, { setTimeout: set, clearTimeout: clear })
  Object.defineProperty(performance, 'now', { value: scheduler.readClock, configurable: true })
  try {
    return await work()
  } finally {
    Object.assign(globalThis, { setTimeout: realSet, clearTimeout: realClear })
    Reflect.deleteProperty(performance, 'now')
  }
}
