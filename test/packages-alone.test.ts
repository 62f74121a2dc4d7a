import { readdirSync, readFileSync } from 'node:fs'
import { join, normalize, sep } from 'node:path'
import { describe, expect, test } from 'vitest'
import { importsIn } from './support/imports.js'

const packages = readdirSync('packages')

/** The sources of the library that a package contains: its build puts them into the package. */
const contains: Readonly<Record<string, readonly RegExp[]>> = {
  client: [/^src.protocol\b/],
  kysely: [/^adapters.(?:postgres|sql)\b/],
  sandbox: [/^src.(?:protocol|http)\b/, /^adapters.node-request\b/],
}

/** A page of a program, which a browser opens: the program publishes no module. */
const opened = ['test/browser/pages.test.ts imports packages/cli/src/finish-page.ts']

function filesIn(folder: string): readonly string[] {
  return readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.ts') && !/\b(?:node_modules|dist)\b/.test(name))
    .map((name) => join(folder, name))
}

const imports = new Map<string, readonly string[]>()

function importsOf(file: string): readonly string[] {
  const known = imports.get(file) ?? importsIn(readFileSync(file, 'utf8'))
  imports.set(file, known)
  return known
}

/** The files that a file imports by their paths. */
function importedBy(file: string): readonly string[] {
  return importsOf(file)
    .filter((specifier) => specifier.startsWith('.'))
    .map((specifier) => normalize(join(file, '..', specifier)).replace(/\.js$/, '.ts'))
}

/** The files of the support that a package's tests use, directly or through others. */
function supportOf(name: string): ReadonlySet<string> {
  const support = /^open-payments-test-support\/(.+)$/
  const used = new Set<string>()
  const visit = (file: string): void => {
    if (used.has(file)) return
    used.add(file)
    importedBy(file)
      .filter((other) => other.startsWith(join('test', 'support') + sep))
      .forEach(visit)
  }
  for (const file of filesIn(join('packages', name))) {
    for (const specifier of importsOf(file)) {
      const [, module] = support.exec(specifier) ?? []
      if (module !== undefined) visit(join('test', 'support', `${module}.ts`))
    }
  }
  return used
}

test.each([
  "import { a } from '../a.js'",
  "import type { A } from '../a.js'",
  "export * from '../a.js'",
  "import '../a.js'",
  "const a = await import('../a.js')",
  "type A = import('../a.js').A",
  "vi.mock('../a.js', () => ({}))",
  "vi.mock(import('../a.js'))",
])('%s is an import', (text) => {
  expect(importsIn(`/** import '../b.js' */\n${text}\n`)).toContain('../a.js')
  expect(importsIn(`/** ${text} */\n// ${text}\n`)).toEqual([])
})

describe.each(packages)('the package in packages/%s', (name) => {
  const folder = join('packages', name) + sep

  test('imports no file outside of its folder', () => {
    const reached = filesIn(folder).flatMap((file) => {
      const own = file.startsWith(join(folder, 'src')) ? (contains[name] ?? []) : []
      return importedBy(file)
        .filter((other) => !other.startsWith(folder) && !own.some((each) => each.test(other)))
        .map((other) => `${file} imports ${other}`)
    })
    expect(reached).toEqual([])
  })

  test('has tests whose support imports the library and the other packages by their names', () => {
    const reached = [...supportOf(name)].flatMap((file) =>
      importedBy(file)
        .filter((other) => /^(?:src|adapters|packages|programs)\b/.test(other))
        .map((other) => `${file} imports ${other}`),
    )
    expect(reached).toEqual([])
  })

  test('is imported by its name, never by a path', () => {
    const outside = ['src', 'adapters', 'examples', 'programs', 'test', 'assurance', 'scripts']
    const reached = outside.flatMap(filesIn).flatMap((file) =>
      importedBy(file)
        .filter((other) => other.startsWith(folder))
        .map((other) => `${file} imports ${other}`),
    )
    expect(reached.filter((each) => !opened.includes(each.replaceAll(sep, '/')))).toEqual([])
  })
})
