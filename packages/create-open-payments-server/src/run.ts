import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { basename, dirname, join, relative, resolve } from 'node:path'
import { type Output, runWith, UsageError } from 'open-payments-programs'
import { type Answers, answersIn, program } from './arguments.js'
import {
  type Database,
  databaseStart,
  databases,
  type Framework,
  frameworks,
  ProblemError,
} from './choices.js'
import { commandsOf, managerIn } from './package-manager.js'
import { filesOf } from './project.js'
import { type Ask, chosen } from './questions.js'

/** The parts of its process that the program uses. */
export interface Surroundings extends Output {
  readonly nodeVersion: string
  readonly environment: Readonly<Record<string, string | undefined>>
  readonly platform: NodeJS.Platform
  /** Whether the program runs from its source, whose version may not be published. */
  readonly isClone: boolean
  /** Absent without a terminal. */
  readonly ask: Ask | undefined
  readonly newSecret: () => string
}

interface Choice extends Pick<Answers, 'packages'> {
  readonly folder: string
  readonly framework: Framework
  readonly database: Database
}

const nodeMinOfSqlite = [22, 13] as const

/** Runs the program, and resolves to its exit code. */
export function runProgram(args: readonly string[], surroundings: Surroundings): Promise<number> {
  const { environment, nodeVersion, out, err } = surroundings
  return runWith(program, args, surroundings, async (given) => {
    try {
      const choice = await completed(answersIn(given, environment), surroundings)
      if (choice.database === 'sqlite') requireNodeOfSqlite(nodeVersion)
      write(choice, surroundings)
      out(nextSteps(choice, surroundings))
      return 0
    } catch (error) {
      if (!(error instanceof ProblemError)) throw error
      err(`${error.message}\n`)
      return 1
    }
  })
}

/**
 * Asks for the choices that the command line lacks. Without a terminal, takes the first choice that this Node.js can
 * run.
 */
async function completed(
  { folder, framework, database, packages }: Answers,
  { ask, nodeVersion }: Surroundings,
): Promise<Choice> {
  if (ask === undefined) {
    if (folder === undefined) throw new UsageError('expected a folder')
    const [first = 'postgres'] = Object.keys(databasesOn(nodeVersion)) as Database[]
    return { folder, framework: framework ?? 'express', database: database ?? first, packages }
  }
  return {
    packages,
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

function requireNodeOfSqlite(version: string): void {
  if (isAtLeast(version, nodeMinOfSqlite)) return
  const needs = `SQLite needs Node.js ${nodeMinOfSqlite.join('.')} or newer`
  throw new ProblemError(`${needs}, and this is ${version}: install it, or choose another database`)
}

/** Writes the files of the wallet into an empty folder. */
function write(choice: Choice, surroundings: Surroundings): void {
  try {
    writeInto(resolve(choice.folder), choice, surroundings)
  } catch (error) {
    if (error instanceof ProblemError || !(error instanceof Error)) throw error
    throw new ProblemError(error.message)
  }
}

function writeInto(folder: string, choice: Choice, { newSecret, environment }: Surroundings): void {
  const found = existsSync(folder) ? readdirSync(folder).filter((name) => name !== '.git') : []
  if (found.length > 0) {
    throw new ProblemError(`the folder is not empty, so nothing was written: ${folder}`)
  }
  const manifest = readFileSync(new URL('../package.json', import.meta.url), 'utf8')
  const { version } = JSON.parse(manifest)
  const manager = managerIn(environment)
  const specOf = packageSpecs(choice.packages, folder, version)
  const files = filesOf({ ...choice, name: packageName(folder), specOf, manager, newSecret })
  for (const [path, content] of files) {
    const file = join(folder, path)
    mkdirSync(dirname(file), { recursive: true })
    writeFileSync(file, content, path === '.env' ? { mode: 0o600 } : {})
  }
}

/** Returns how a wallet refers to a package of this version: in the registry, or by its tarball in a folder. */
function packageSpecs(tarballs: string | undefined, wallet: string, version: string) {
  return (name: string): string => {
    if (tarballs === undefined) return `^${version}`
    const tarball = resolve(tarballs, `${name}-${version}.tgz`)
    if (!existsSync(tarball)) {
      throw new ProblemError(
        `npm pack has not written this file, so nothing was written: ${tarball}`,
      )
    }
    return `file:${relative(wallet, tarball).replaceAll('\\', '/')}`
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

function nextSteps(
  { folder, framework, database, packages }: Choice,
  { environment, platform, isClone }: Surroundings,
): string {
  const path = relative(process.cwd(), resolve(folder)) || '.'
  const next = ['npm install', ...databaseStart[database], 'npm test', 'npm run dev']
  const spoken = next.map((step) => commandsOf(managerIn(environment), step))
  const steps = [`cd ${quoted(path, platform)}`, ...spoken]
  const written = `Wrote a wallet with ${frameworks[framework]} and ${database} to ${path}.`
  const clone =
    isClone && packages === undefined
      ? '\nIf npm does not have the packages of this clone yet, see --packages in the README of create-open-payments-server.\n'
      : ' '
  return `${written}${clone}Next:\n\n${steps.map((step) => `  ${step}\n`).join('')}\nIts README.md says what to replace.\n`
}

/** Quotes a path for the shell of a platform, if it has to be. A file of Windows cannot have a double quote. */
function quoted(path: string, platform: NodeJS.Platform): string {
  if (platform === 'win32') return /^[\w.\\:/@-]+$/.test(path) ? path : `"${path}"`
  return /^[\w./@-]+$/.test(path) ? path : `'${path.replaceAll("'", `'\\''`)}'`
}
