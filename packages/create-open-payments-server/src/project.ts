import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type Database, databaseStart, type Framework } from './choices.js'
import { commandsOf, type PackageManager } from './package-manager.js'

export interface Project {
  readonly name: string
  readonly framework: Framework
  readonly database: Database
  /** Returns how the wallet refers to the library or another package of this project. */
  readonly specOf: (name: string) => string
  /** Whose commands the README names. */
  readonly manager: PackageManager
  readonly newSecret: () => string
}

const templates = fileURLToPath(new URL('../templates', import.meta.url))

/** Parts of files that the parts of a wallet share. npm would not pack files with the final names. */
const parts = ['package.part.json', 'README.part.md', 'env.example']

/** Returns the files of a wallet by path: the files of every wallet, and the files for its framework and database. */
export function filesOf(project: Project): ReadonlyMap<string, string> {
  const folders = ['wallet', `frameworks/${project.framework}`, `databases/${project.database}`]
  const files = new Map(folders.flatMap((folder) => [...filesIn(join(templates, folder))]))
  const part = (name: string) =>
    folders.flatMap((folder) => filesIn(join(templates, folder)).get(name) ?? [])
  const settings = part('env.example').join('')
  const manifest = manifestOf(
    project,
    part('package.part.json').map((text) => JSON.parse(text)),
  )
  const readme = part('README.part.md')
  for (const name of [...parts, 'gitignore']) files.delete(name)
  return new Map([
    ...files,
    ['package.json', `${JSON.stringify(manifest, null, 2)}\n`],
    ['README.md', readmeOf(project, readme)],
    ['.gitignore', part('gitignore').join('')],
    ['.env.example', settings],
    [
      '.env',
      settings.replace(/^\w+_(?:SECRET|PASSWORD)=$/gm, (line) => line + project.newSecret()),
    ],
  ])
}

function readmeOf({ name, database, manager }: Project, fragments: readonly string[]): string {
  const text = [`# ${name}`, ...fragments.map((fragment) => fragment.trim())].join('\n\n')
  const start = databaseStart[database].map((command) => `${command}\n`).join('')
  return `${commandsOf(manager, text.replace('{start}', start))}\n`
}

function filesIn(folder: string): ReadonlyMap<string, string> {
  const paths = readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map(({ parentPath, name }) => join(parentPath, name))
  return new Map(
    paths.map((path) => [
      path.slice(folder.length + 1).replaceAll('\\', '/'),
      // The marks of what the documents show are not for users.
      readFileSync(path, 'utf8').replace(/^\/\/ #(?:end)?region .*\n/gm, ''),
    ]),
  )
}

interface Manifest {
  readonly dependencies?: Readonly<Record<string, string>>
  readonly devDependencies?: Readonly<Record<string, string>>
}

function manifestOf({ name, specOf }: Project, fragments: readonly Manifest[]) {
  return {
    name,
    ...Object.assign({}, ...fragments),
    dependencies: merged(
      fragments.map(({ dependencies }) => dependencies),
      specOf,
    ),
    devDependencies: merged(
      fragments.map(({ devDependencies }) => devDependencies),
      specOf,
    ),
  }
}

/** What stands for a package of this project in the templates. */
const own = '^{version}'

function merged(
  some: readonly (Readonly<Record<string, string>> | undefined)[],
  specOf: Project['specOf'],
) {
  const entries = Object.entries<string>(Object.assign({}, ...some))
  return Object.fromEntries(
    entries
      .map(([name, spec]) => [name, spec === own ? specOf(name) : spec] as const)
      .sort(([one], [other]) => (one < other ? -1 : 1)),
  )
}
