/** The time for which the library also retries a commit that loses, in milliseconds. */
const deadlineMs = 3_000
const pauseMaxMs = 64

/** Runs a call again after errors that contention causes, for up to 3 s. Then it rejects with the last one. */
export async function retried<Result>(
  run: () => Result | Promise<Result>,
  isTransient: (error: unknown) => boolean,
): Promise<Result> {
  const startedAt = performance.now()
  for (let attempt = 1; ; attempt++) {
    try {
      return await run()
    } catch (error) {
      if (!isTransient(error) || performance.now() - startedAt > deadlineMs) throw error
      await pauseAfter(attempt)
    }
  }
}

/** Random pauses prevent repeated collisions. */
export async function pauseAfter(attempt: number): Promise<void> {
  const pauseMs = Math.random() * Math.min(pauseMaxMs, 2 ** attempt)
  await new Promise((resolve) => setTimeout(resolve, pauseMs))
}
