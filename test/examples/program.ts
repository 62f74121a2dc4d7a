import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { cp, mkdir, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { PGlite } from '@electric-sql/pglite'
import { freePort } from '../../examples/wallet/free-port.js'

const root = join(import.meta.dirname, '../..')
const walletScript = 'examples/wallet/main.ts'
/** How a program ends that was asked to stop and did. */
export const exited = { code: 0, signal: null }

export type Program = ReturnType<typeof run>

const running = new Set<ChildProcess>()

/** Ends what a failed test has left behind. */
export function killPrograms(): void {
  for (const child of running) child.kill('SIGKILL')
}

/** A program that runs beside the tests, what it has printed, and how it ended. */
export function run(script: string, environment: Record<string, string>) {
  // Some of the names are taken: Vite has a BASE_URL of its own.
  const { BASE_URL: _, PORT: __, ADAPTER: ___, ...inherited } = process.env
  const { DATABASE_URL: ____, DATA_DIR: _____, ROLE: ______, ...rest } = inherited
  const env = { ...rest, NO_COLOR: '1', ...environment }
  const child = spawn(process.execPath, ['--import', 'tsx', script], { cwd: root, env })
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

/** Resolves once it holds of what the program has printed; rejects if the program ends before. */
export async function untilPrinted(
  { child, printed, ended }: Program,
  expected: string | ((out: string) => boolean),
): Promise<void> {
  const holds = () =>
    typeof expected === 'string' ? printed.out.includes(expected) : expected(printed.out)
  const over = ended.then(() => {
    throw new Error(`it ended before it printed what was expected: ${printed.out}${printed.err}`)
  })
  const stdout = child.stdout as NonNullable<ChildProcess['stdout']>
  while (!holds()) await Promise.race([once(stdout, 'data'), over])
  over.catch(() => undefined)
}

/** Runs the wallet without waiting for it. */
export function runWallet(environment: Record<string, string>): Program {
  return run(walletScript, environment)
}

/** What the wallet prints last when it is ready, in each role. */
const ready: Readonly<Record<string, RegExp>> = {
  both: /funds arrive at.*\n/,
  auth: /owners look at.*\n/,
  resource: /RESOURCE_SERVER_KEY=.*\n/,
}

/** The wallet, or one side of it, as a program of its own that takes requests. */
export async function startedWallet(environment: Record<string, string> = {}) {
  const port = Number(environment['PORT'] ?? (await freePort()))
  const program = runWallet({ PORT: `${port}`, ...environment })
  const last = ready[environment['ROLE'] ?? 'both']
  await untilPrinted(program, (out) => last?.test(out) ?? false)
  return { ...program, port, baseUrl: `http://localhost:${port}` }
}

/** Data directories that need no preparing: most of a first start is the making of a database. */
export async function dataDirectories() {
  const parent = await mkdtemp(join(tmpdir(), 'wallet-test-'))
  const template = join(parent, 'template')
  await mkdir(template)
  const database = await PGlite.create(join(template, 'pglite'))
  await database.close()
  let made = 0
  return {
    parent,
    async create(): Promise<string> {
      const path = join(parent, `data-${++made}`)
      await cp(template, path, { recursive: true })
      return path
    },
    remove: () => rm(parent, { recursive: true, force: true }),
  }
}
