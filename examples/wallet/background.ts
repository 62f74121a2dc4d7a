import { setTimeout as sleep } from 'node:timers/promises'

/** Work that runs in addition to requests. */
export interface Background {
  /** Starts nothing new, and resolves when current work has finished. */
  stop(): Promise<unknown>
}

/** Repeats work with a pause between runs, in milliseconds. An error ends only the current run. */
export function repeatedly(
  pauseMs: number,
  task: (signal: AbortSignal) => Promise<void>,
  onError: (error: unknown) => void,
): Background {
  const controller = new AbortController()
  const { signal } = controller

  async function run(): Promise<void> {
    while (!signal.aborted) {
      await task(signal).catch(onError)
      await sleep(pauseMs, undefined, { signal }).catch(() => undefined)
    }
  }

  const running = run()
  return {
    async stop() {
      controller.abort()
      await running
    },
  }
}
