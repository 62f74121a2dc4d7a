export { type ManualClock, manualClock, startOfTests } from 'open-payments-server-testing'

/** Resolves when all code that was resumed waits for something else. */
export async function turns(count = 20): Promise<void> {
  for (let turn = 0; turn < count; turn++) {
    await new Promise<void>((resolve) => setImmediate(resolve))
  }
}

/** Lets time pass on a clock until the work is done. */
export async function whileTimePasses<Result>(
  clock: { advance(ms: number): void },
  work: Promise<Result>,
  stepMs = 250,
): Promise<Result> {
  let isDone = false
  const settled = work.finally(() => {
    isDone = true
  })
  settled.catch(() => undefined)
  for (await turns(4); !isDone; await turns(4)) clock.advance(stepMs)
  return settled
}
