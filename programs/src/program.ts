import { readFileSync } from 'node:fs'
import { type Arguments, type ProgramOptions, readArguments, UsageError } from './arguments.js'
import { onOneLine } from './text.js'

/** Where a program writes. */
export interface Output {
  out(text: string): void
  err(text: string): void
}

/** The output of this process. */
export const standardOutput: Output = {
  out: (text) => void process.stdout.write(text),
  err: (text) => void process.stderr.write(text),
}

/** A program on the command line, which also has `--help`, `-h` and `--version`. */
export interface Program<Known extends ProgramOptions> {
  /** What a user types to run it. */
  readonly name: string
  /** What `--help` prints. */
  readonly usage: string
  /** The file `package.json` whose version `--version` prints. */
  readonly manifest: URL
  readonly options: Known
  /** How many other arguments it takes at most. Default: 0. */
  readonly othersMax?: number
}

/**
 * Reads the arguments, and resolves to the exit code: that of `work`; 0 after `--help` and `--version`; 2 for arguments
 * that are not valid, also if `work` throws a `UsageError`.
 */
export async function runWith<const Known extends ProgramOptions>(
  program: Program<Known>,
  args: readonly string[],
  { out, err }: Output,
  work: (given: Arguments<Known>) => Promise<number>,
): Promise<number> {
  try {
    const given = readArguments(args, program.options, program.othersMax ?? 0)
    const { help, version } = given.values as { help?: boolean; version?: boolean }
    if (help !== true && version !== true) return await work(given)
    out(help === true ? program.usage : `${versionIn(program.manifest)}\n`)
    return 0
  } catch (error) {
    if (!(error instanceof UsageError)) throw error
    err(`${onOneLine(error.message)}\nSee ${program.name} --help.\n`)
    return 2
  }
}

export function versionIn(manifest: URL): string {
  return JSON.parse(readFileSync(manifest, 'utf8')).version
}
