import { standardOutput, start } from 'open-payments-programs'

await start(async () => {
  const { runProgram } = await import('./run.js')
  const stopped = new Promise((resolve) => {
    for (const signal of ['SIGTERM', 'SIGINT'] as const) process.once(signal, resolve)
  })
  return (args) => runProgram(args, standardOutput, stopped)
})
