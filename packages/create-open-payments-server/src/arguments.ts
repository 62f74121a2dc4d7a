import {
  type Arguments,
  type Program,
  type ProgramOptions,
  UsageError,
} from 'open-payments-programs'
import { type Database, databases, type Framework, frameworks, knownName } from './choices.js'

/** The choices on the command line. The program asks for the rest. */
export interface Answers {
  readonly folder: string | undefined
  readonly framework: Framework | undefined
  readonly database: Database | undefined
  /** A folder with tarballs of the packages. */
  readonly packages: string | undefined
}

const usage = `Usage: npm create open-payments-server <folder> -- [options]

Writes a wallet that serves Open Payments, in TypeScript, into a new folder. Without options it asks; without a
terminal it takes the first choice that this Node.js can run.

  --framework <name>  ${Object.keys(frameworks).join(', ')}
  --database <name>   ${Object.keys(databases).join(', ')}; sqlite needs Node.js 22.13 or newer
  --packages <folder> installs the packages of this project from the tarballs of npm pack in a folder
  -h, --help          print this text
  --version           print the version

Exit code: 0 if the wallet was written, 1 if it cannot be written, 2 if the arguments are invalid.
`

export const program = {
  name: 'npm create open-payments-server --',
  usage,
  manifest: new URL('../package.json', import.meta.url),
  options: {
    framework: { type: 'string' },
    database: { type: 'string' },
    packages: { type: 'string' },
  },
  othersMax: 1,
} as const satisfies Program<ProgramOptions>

/** Throws a `UsageError` for values that are not valid. */
export function answersIn(
  {
    values: { framework, database, packages },
    positionals: [folder],
  }: Arguments<typeof program.options>,
  environment: Readonly<Record<string, string | undefined>>,
): Answers {
  for (const [name, value] of Object.entries({ framework, database, packages })) {
    // npm reads options before a double dash itself.
    if (value === undefined && environment[`npm_config_${name}`] !== undefined) {
      throw new UsageError(`npm consumed --${name}: write -- before the options`)
    }
  }
  return {
    folder,
    packages,
    framework:
      framework === undefined ? undefined : knownName('--framework', framework, frameworks),
    database: database === undefined ? undefined : knownName('--database', database, databases),
  }
}
