#!/usr/bin/env node
import { runClient } from './command.js'
import { terminal } from './terminal.js'

process.exitCode = await runClient(process.argv.slice(2), terminal())
