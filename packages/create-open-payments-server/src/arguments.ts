import { parseArgs } from 'node:util'
import {
  type Database,
  databases,
  type Framework,
  frameworks,
  knownName,
  ProblemError,
} from './choices.js'

/** What the command line says. The program asks for the rest. */
export interface Arguments {
  readonly help: boolean
  readonly folder: string | undefined
  readonly framework: Framework | undefined
  readonly database: Database | undefined
}

export const usage = `Usage: npm create open-payments-server <folder> -- [options]

Writes a wallet that serves Open Payments, in TypeScript, into a new folder. Without options it asks; without a
terminal it takes the first choice.

  --framework <name>  ${Object.keys(frameworks).join(', ')}
  --database <name>   ${Object.keys(databases).join(', ')}; sqlite needs Node.js 22.13 or newer
  --help              print this text

Exit code: 0 if the wallet was written, 1 if it cannot be written, 2 if the arguments are invalid.
`

const options = {
  framework: { type: 'string' },
  database: { type: 'string' },
  help: { type: 'boolean' },
} as const

/** Throws a `ProblemError` for arguments that are not valid. */
export function readArguments(
  args: readonly string[],
  environment: Readonly<Record<string, string | undefined>>,
): Arguments {
  const { values, positionals } = parsed(args)
  const [folder, ...rest] = positionals
  if (rest.length > 0) throw new ProblemError(`expected one folder: ${positionals.join(' ')}`, 2)
  const { help = false, framework, database } = values
  for (const name of ['framework', 'database'] as const) {
    // npm reads options before a double dash itself.
    if (values[name] === undefined && environment[`npm_config_${name}`] !== undefined) {
      throw new ProblemError(`npm consumed --${name}: write -- before the options`, 2)
    }
  }
  return {
    help,
    folder,
    framework:
      framework === undefined ? undefined : knownName('--framework', framework, frameworks),
    database: database === undefined ? undefined : knownName('--database', database, databases),
  }
}

function parsed(args: readonly string[]) {
  const { tokens } = parseArgs({ args: [...args], strict: false, tokens: true, options })
  for (const token of tokens) {
    if (token.kind !== 'option' || Object.hasOwn(options, token.name)) continue
    const known = Object.keys(options).map((name) => `--${name}`)
    throw new ProblemError(`${token.rawName} is not known: the options are ${known.join(', ')}`, 2)
  }
  try {
    return parseArgs({ args: [...args], allowPositionals: true, options })
  } catch (error) {
    throw new ProblemError((error as Error).message, 2)
  }
}
