/** Settles as the work does, or rejects when the signal aborts, even if the work ignores the signal. */
export async function untilAborted<Value>(
  signal: AbortSignal,
  work: Promise<Value>,
): Promise<Value> {
  let abort = () => {}
  const aborted = new Promise<never>((_, reject) => {
    abort = () => reject(signal.reason)
    if (signal.aborted) abort()
    signal.addEventListener('abort', abort, { once: true })
  })
  try {
    return await Promise.race([work, aborted])
  } finally {
    signal.removeEventListener('abort', abort)
  }
}
