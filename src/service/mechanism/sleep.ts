/** The longest that a timer can be set for: a longer one would end at once. */
const timerMaxMs = 2 ** 31 - 1

/** Resolves after this time, or as soon as the signal is given; then no timer is left behind. */
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
