/** Runs one task for each item, so many at a time; rejects with the first error once all have ended. */
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
