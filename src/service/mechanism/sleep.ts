/** The longest delay of a timer: a longer one would fire immediately. */
const timerMaxMs = 2 ** 31 - 1

/** Resolves after the delay, or as soon as the signal is aborted, and clears its timer. */
export function sleep(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal?.aborted) return resolve()
    const timer = setTimeout(end, Math.min(ms, timerMaxMs))
    signal?.addEventListener('abort', end)
    function end() {
      clearTimeout(timer)
      signal?.removeEventListener('abort', end)
      resolve()
    }
  })
}
