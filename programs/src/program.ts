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

/** Where a process writes, as far as this file needs it. */
type Stream = Pick<NodeJS.WriteStream, 'on' | 'write'>

/**
 * Lets a program do its work to the end when its output has no reader any more, such as after `| head -1`: its exit
 * code says what happened, not who has read it. Output that is lost for another reason is named on the other stream.
 */
export function outliveReaders(stdout: Stream, stderr: Stream): void {
  for (const [lost, other] of [
    [stdout, stderr],
    [stderr, stdout],
  ] as const) {
    let isTold = false
    lost.on('error', ({ code, message }: NodeJS.ErrnoException) => {
      if (isTold || code === 'EPIPE') return
      isTold = true
      other.write(`The output is lost: ${onOneLine(code ?? message)}\n`)
    })
  }
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
