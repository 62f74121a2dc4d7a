#!/usr/bin/env node
import { isCommand, runClient } from './client/command.js'
import { terminal } from './client/terminal.js'
import { runProgram } from './run.js'

const [command, ...args] = process.argv.slice(2)
process.exitCode = isCommand(command)
  ? await runClient(command, args, terminal())
  : await runProgram(process.argv.slice(2), {
      out: (text) => void process.stdout.write(text),
      err: (text) => void process.stderr.write(text),
      isInteractive: process.stderr.isTTY === true,
    })
