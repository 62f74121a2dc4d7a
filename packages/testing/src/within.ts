/** Rejects after this time with an error that names the time and the problem of the case. */
export function within<Result>(
  timeoutMs: number,
  problem: string,
  work: Promise<Result>,
): Promise<Result> {
  let timer: ReturnType<typeof setTimeout> | undefined
  const timeout = new Promise<never>((_, reject) => {
    timer = setTimeout(() => {
      reject(new Error(`within ${timeoutMs} ms the case ${problem}`))
    }, timeoutMs)
  })
  return Promise.race([work, timeout]).finally(() => clearTimeout(timer))
}
