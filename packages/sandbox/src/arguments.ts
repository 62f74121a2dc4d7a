import {
  type Arguments,
  type Program,
  type ProgramOptions,
  UsageError,
} from 'open-payments-programs'
import type { SandboxOptions } from './sandbox.js'

/** The parsed command line. */
export interface SandboxArguments extends SandboxOptions {
  readonly json: boolean
}

const usage = `Usage: open-payments-sandbox [options]

Starts two Open Payments wallets that pay each other, for tests: no database, and nothing is kept.

  --port <number>    port of the first wallet; the second has the next one. 4100 by default, 0 for free ones
  --host <address>   address or name to listen on; only loopback by default. URLs name localhost in any case, and pages
                     are served at localhost and at this name only
  --approve <rule>   approves requests for consent without a page: all, a client or an account, by name or URL
  --deny <rule>      denies them; both options can be repeated, and a name outweighs all
  --json             prints one line of JSON with all URLs, accounts and keys when the sandbox is ready
  -h, --help         prints this text
  --version          prints the version

When both wallets accept requests, it prints "open-payments-sandbox is ready". Page and controls: /sandbox.
Exit code: 0 after SIGINT or SIGTERM, 2 for an invalid option, 3 if a port is in use, 1 for any other error.
`

export const program = {
  name: 'open-payments-sandbox',
  usage,
  manifest: new URL('../package.json', import.meta.url),
  options: {
    port: { type: 'string' },
    host: { type: 'string' },
    approve: { type: 'string', multiple: true },
    deny: { type: 'string', multiple: true },
    json: { type: 'boolean' },
  },
} as const satisfies Program<ProgramOptions>

/** Throws a `UsageError` for values that are not valid. */
export function sandboxArguments({
  values: { port, host, approve = [], deny = [], json = false },
}: Arguments<typeof program.options>): SandboxArguments {
  if (port !== undefined && !/^\d{1,5}$/.test(port)) {
    throw new UsageError('--port must be a number')
  }
  return {
    approve,
    deny,
    json,
    ...(port !== undefined && { port: Number(port) }),
    ...(host !== undefined && { host }),
  }
}
