/** Skips the time during which a commit is retried. */
export async function impatiently<Result>(work: () => Promise<Result>): Promise<Result> {
  const { now } = performance
  let elapsedMs = 0
  performance.now = () => (elapsedMs += 10_000)
  try {
    return await work()
  } finally {
    performance.now = now
  }
}
