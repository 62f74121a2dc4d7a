import { standardOutput, start } from 'open-payments-programs'

await start(async () => {
  const { runProgram } = await import('./run.js')
  const terminal = { ...standardOutput, isInteractive: process.stderr.isTTY === true }
  return (args) => runProgram(args, terminal)
})
