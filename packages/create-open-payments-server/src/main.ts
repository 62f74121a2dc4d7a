#!/usr/bin/env node
import { randomBytes } from 'node:crypto'
import { questionsOn } from './questions.js'
import { runProgram } from './run.js'

process.exitCode = await runProgram(process.argv.slice(2), {
  nodeVersion: process.versions.node,
  environment: process.env,
  ask: process.stdin.isTTY === true ? questionsOn(process.stdin, process.stdout) : undefined,
  newSecret: () => randomBytes(32).toString('base64url'),
  out: (text) => void process.stdout.write(text),
  err: (text) => void process.stderr.write(text),
})
