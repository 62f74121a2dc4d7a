import { outliveReaders } from './program.js'

/** The first minor version of each major version of Node.js that loads ES modules with `require`. */
const minorMins: Readonly<Record<number, number>> = { 20: 19, 22: 12 }

/** Says which versions of Node.js are supported, if this one is not. */
export function nodeProblem(version: string): string | undefined {
  const [major = 0, minor = 0] = version.split('.').map(Number)
  if (major > 22 || minor >= (minorMins[major] ?? Number.POSITIVE_INFINITY)) return undefined
  return `This program needs Node.js 20.19, or 22.12 or newer. This is ${version}.`
}

/**
 * Loads a program, runs it with the arguments of this process, and sets the exit code. On a Node.js that is not
 * supported it only says so: the program may need what that version lacks.
 */
export async function start(
  load: () => Promise<(args: readonly string[]) => Promise<number>>,
): Promise<void> {
  outliveReaders(process.stdout, process.stderr)
  const problem = nodeProblem(process.versions.node)
  if (problem === undefined) {
    const run = await load()
    process.exitCode = await run(process.argv.slice(2))
  } else {
    process.stderr.write(`${problem}\n`)
    process.exitCode = 1
  }
}
