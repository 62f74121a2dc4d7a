import { setTimeout as sleep } from 'node:timers/promises'

/** Work that goes on beside the requests. */
export interface Background {
  /** Begins nothing new, and resolves when what has begun is over. */
  stop(): Promise<void>
}

/** Does something again and again, with this pause between, in milliseconds; an error ends that turn only. */
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
