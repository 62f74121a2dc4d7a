/** Returns a function that runs each operation after all that were passed to it before have settled. */
export function createSerialQueue() {
  let last: Promise<unknown> = Promise.resolve()
  return <Result>(operation: () => Promise<Result>): Promise<Result> => {
    const result = last.then(operation)
    last = result.catch(() => undefined)
    return result
  }
}
