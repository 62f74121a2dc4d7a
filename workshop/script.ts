import {
  type Arguments,
  outliveReaders,
  type Program,
  type ProgramOptions,
  runWith,
  standardOutput,
  UsageError,
} from 'open-payments-programs'

const manifest = new URL('../package.json', import.meta.url)

/**
 * Runs a program for developers with the arguments of this process, and sets the exit code: 0 if `work` resolves to
 * true, 1 for false, 2 for arguments that are not valid.
 */
export async function runScript<const Known extends ProgramOptions>(
  script: Pick<Program<Known>, 'name' | 'usage' | 'options'>,
  work: (values: Arguments<Known>['values']) => Promise<boolean>,
): Promise<void> {
  outliveReaders(process.stdout, process.stderr)
  const args = process.argv.slice(2)
  process.exitCode = await runWith(
    { ...script, manifest },
    args,
    standardOutput,
    async ({ values }) => ((await work(values)) ? 0 : 1),
  )
}

/** Reads an integer of at least `least`. Throws a `UsageError` that names the option. */
export function wholeNumber(option: string, text: string, least = 0): number {
  const number = Number(text)
  if (/^\d+$/.test(text) && Number.isSafeInteger(number) && number >= least) return number
  throw new UsageError(`${option} must be an integer of at least ${least}`)
}

/** Reads a positive number, such as of minutes. Throws a `UsageError` that names the option. */
export function positiveNumber(option: string, text: string): number {
  const number = Number(text)
  if (Number.isFinite(number) && number > 0) return number
  throw new UsageError(`${option} must be a positive number`)
}
