import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'

const root = join(import.meta.dirname, '../..')
/** The exit of a program that stopped on request. */
export const exited = { code: 0, signal: null }

export type Program = ReturnType<typeof runNode>

const running = new Set<ChildProcess>()

/** Ends the programs that a failed test left behind. */
export function killPrograms(): void {
  for (const child of running) child.kill('SIGKILL')
}

/** Runs a script of the repository next to the tests. */
export function run(script: string, environment: Record<string, string>): Program {
  return runNode(['--import', 'tsx', script], environment)
}

/** A run of Node.js next to the tests, with its output and its exit. */
export function runNode(args: readonly string[], environment: Record<string, string>, cwd = root) {
  // Some of the names are in use: Vite sets a BASE_URL of its own.
  const { BASE_URL: _, PORT: __, ADAPTER: ___, ...inherited } = process.env
  const { DATABASE_URL: ____, DATA_DIR: _____, ...rest } = inherited
  const env = { ...rest, NO_COLOR: '1', OUTBOUND_TIMEOUT_MS: '60000', ...environment }
  const child = spawn(process.execPath, args, { cwd, env })
  running.add(child)
  child.once('close', () => running.delete(child))
  const printed = { out: '', err: '' }
  child.stdout.on('data', (chunk) => {
    printed.out += chunk
  })
  child.stderr.on('data', (chunk) => {
    printed.err += chunk
  })
  const ended = once(child, 'close').then(([code, signal]) => ({ code, signal }))
  return { child, printed, ended }
}

/** Resolves once the output matches; rejects if the program ends before. */
export async function untilPrinted(
  { child, printed, ended }: Program,
  expected: string | ((out: string) => boolean),
): Promise<void> {
  const holds = () =>
    typeof expected === 'string' ? printed.out.includes(expected) : expected(printed.out)
  const over = ended.then(() => {
    throw new Error(`the program ended before the expected output: ${printed.out}${printed.err}`)
  })
  const stdout = child.stdout as NonNullable<ChildProcess['stdout']>
  while (!holds()) await Promise.race([once(stdout, 'data'), over])
  over.catch(() => undefined)
}
