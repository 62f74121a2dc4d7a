#!/usr/bin/env node
import { runProgram } from './run.js'

const stopped = new Promise((resolve) => {
  for (const signal of ['SIGTERM', 'SIGINT'] as const) process.once(signal, resolve)
})
const write = (stream: NodeJS.WriteStream) => (text: string) => void stream.write(text)

try {
  const terminal = { out: write(process.stdout), err: write(process.stderr) }
  process.exitCode = await runProgram(process.argv.slice(2), terminal, stopped)
} catch (error) {
  console.error(error)
  process.exitCode = 1
}
