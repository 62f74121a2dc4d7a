#!/usr/bin/env node
import { runProgram } from './run.js'

process.exitCode = await runProgram(process.argv.slice(2), {
  out: (text) => void process.stdout.write(text),
  err: (text) => void process.stderr.write(text),
  isInteractive: process.stderr.isTTY === true,
})
