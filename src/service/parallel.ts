/** Runs a task for each item with limited concurrency. Rejects with the first error after all have ended. */
export async function inParallel<Item>(
  items: readonly Item[],
  concurrency: number,
  task: (item: Item) => Promise<void>,
): Promise<void> {
  const queue = items.values()
  const workers = Array.from({ length: Math.min(concurrency, items.length) }, async () => {
    for (const item of queue) await task(item)
  })
  const outcomes = await Promise.allSettled(workers)
  const failed = outcomes.find((outcome) => outcome.status === 'rejected')
  if (failed !== undefined) throw failed.reason
}
