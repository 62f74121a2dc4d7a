import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { basename, dirname, join, relative, resolve } from 'node:path'
import { type Arguments, readArguments, usage } from './arguments.js'
import { databaseStart, databases, frameworks, ProblemError } from './choices.js'
import { filesOf } from './project.js'
import { type Ask, chosen } from './questions.js'

/** What the program needs of its process. */
export interface Surroundings {
  readonly nodeVersion: string
  readonly environment: Readonly<Record<string, string | undefined>>
  /** Absent without a terminal. */
  readonly ask: Ask | undefined
  readonly newSecret: () => string
  readonly out: (text: string) => void
  readonly err: (text: string) => void
}

type Choice = Required<{
  [Key in 'folder' | 'framework' | 'database']: NonNullable<Arguments[Key]>
}>

/** The first minor version of each major version that loads ES modules with `require`. */
const nodeMins: Readonly<Record<number, number>> = { 20: 19, 22: 12 }
const nodeMinOfSqlite = [22, 13] as const

/** Runs the program, and resolves to its exit code. */
export async function runProgram(
  args: readonly string[],
  surroundings: Surroundings,
): Promise<number> {
  const { environment, nodeVersion, out, err } = surroundings
  try {
    const given = readArguments(args, environment)
    if (given.help) {
      out(usage)
      return 0
    }
    requireNode(nodeVersion)
    const choice = await completed(given, surroundings)
    if (choice.database === 'sqlite') requireNodeOfSqlite(nodeVersion)
    write(choice, surroundings)
    out(nextSteps(choice))
    return 0
  } catch (error) {
    if (!(error instanceof ProblemError)) throw error
    err(`${error.message}\n${error.exitCode === 2 ? `\n${usage}` : ''}`)
    return error.exitCode
  }
}

/** Asks for what the command line does not say. Without a terminal, the first choice counts. */
async function completed(
  { folder, framework, database }: Arguments,
  { ask, nodeVersion }: Surroundings,
): Promise<Choice> {
  if (ask === undefined) {
    if (folder === undefined) throw new ProblemError('expected a folder', 2)
    return { folder, framework: framework ?? 'express', database: database ?? 'sqlite' }
  }
  return {
    folder: folder ?? ((await ask('Folder [wallet]: ')) || 'wallet'),
    framework: framework ?? (await chosen(ask, 'Framework:', frameworks)),
    database: database ?? (await chosen(ask, 'Database:', databasesOn(nodeVersion))),
  }
}

function databasesOn(nodeVersion: string): Partial<typeof databases> {
  const { sqlite: _, ...others } = databases
  return isAtLeast(nodeVersion, nodeMinOfSqlite) ? databases : others
}

function isAtLeast(version: string, least: readonly [number, number]): boolean {
  const [major = 0, minor = 0] = version.split('.').map(Number)
  return major > least[0] || (major === least[0] && minor >= least[1])
}

function requireNode(version: string): void {
  const [major = 0, minor = 0] = version.split('.').map(Number)
  if (major > 22 || minor >= (nodeMins[major] ?? Number.POSITIVE_INFINITY)) return
  const needs = 'open-payments-server needs Node.js 20.19, or 22.12 or newer'
  throw new ProblemError(`${needs}, and this is ${version}: install it`, 1)
}

function requireNodeOfSqlite(version: string): void {
  if (isAtLeast(version, nodeMinOfSqlite)) return
  const needs = `SQLite needs Node.js ${nodeMinOfSqlite.join('.')} or newer`
  throw new ProblemError(
    `${needs}, and this is ${version}: install it, or choose another database`,
    1,
  )
}

/** Writes the files of the wallet into an empty folder. */
function write(choice: Choice, surroundings: Surroundings): void {
  try {
    writeInto(resolve(choice.folder), choice, surroundings)
  } catch (error) {
    if (error instanceof ProblemError || !(error instanceof Error)) throw error
    throw new ProblemError(error.message, 1)
  }
}

function writeInto(folder: string, choice: Choice, { newSecret }: Surroundings): void {
  const found = existsSync(folder) ? readdirSync(folder).filter((name) => name !== '.git') : []
  if (found.length > 0) {
    throw new ProblemError(`the folder is not empty, so nothing was written: ${folder}`, 1)
  }
  const manifest = readFileSync(new URL('../package.json', import.meta.url), 'utf8')
  const { version } = JSON.parse(manifest)
  const files = filesOf({ ...choice, name: packageName(folder), version, newSecret })
  for (const [path, content] of files) {
    const file = join(folder, path)
    mkdirSync(dirname(file), { recursive: true })
    writeFileSync(file, content, path === '.env' ? { mode: 0o600 } : {})
  }
}

/** Returns the name of a folder as npm accepts it for a package. */
function packageName(folder: string): string {
  const name = basename(folder)
    .toLowerCase()
    .replace(/[^a-z0-9._-]+/g, '-')
    .replace(/^[._-]+/, '')
  return name || 'wallet'
}

function nextSteps({ folder, framework, database }: Choice): string {
  const path = relative(process.cwd(), resolve(folder)) || '.'
  const steps = [`cd ${path}`, 'npm install', ...databaseStart[database], 'npm test', 'npm run dev']
  const written = `Wrote a wallet with ${frameworks[framework]} and ${database} to ${path}.`
  return `${written} Next:\n\n${steps.map((step) => `  ${step}\n`).join('')}\nIts README.md says what to replace.\n`
}
