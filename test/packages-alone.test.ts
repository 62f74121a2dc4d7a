import { readdirSync } from 'node:fs'
import { join, sep } from 'node:path'
import { describe, expect, test } from 'vitest'
import {
  importedByPath,
  importsIn,
  importsOf,
  modulesIn,
  modulesThatNeed,
} from './support/imports.js'

const packages = readdirSync('packages')

/** The sources of the library that a package contains: its build puts them into the package. */
const contains: Readonly<Record<string, readonly RegExp[]>> = {
  client: [/^src.protocol\b/],
  kysely: [/^adapters.(?:postgres|sql)\b/],
  sandbox: [/^src.(?:protocol|http)\b/, /^adapters.node-request\b/],
}

/** The packages whose programs and modules need another package, which is removed with them. */
const users: Readonly<Record<string, readonly string[]>> = {
  client: ['cli', 'create-open-payments-server', 'doctor', 'sandbox'],
  'create-open-payments-server': ['sandbox'],
  doctor: ['create-open-payments-server'],
  kysely: ['create-open-payments-server'],
  pages: ['create-open-payments-server', 'sandbox'],
  testing: ['cli', 'create-open-payments-server', 'doctor', 'sandbox'],
}

/** The tests of the library alone: those of its layers. */
const layers =
  /^test.(?:built-in|core|host|http|network|openapi|outbound|protocol|servers|service|util)\b/

/** A page of a program, which a browser opens: the program publishes no module. */
const opened = ['test/browser/pages.test.ts imports packages/cli/src/finish-page.ts']

/** The files of the support that a package's tests use, directly or through others. */
function supportOf(name: string): ReadonlySet<string> {
  const support = /^open-payments-test-support\/(.+)$/
  const used = new Set<string>()
  const visit = (file: string): void => {
    if (used.has(file)) return
    used.add(file)
    importedByPath(file)
      .filter((other) => other.startsWith(join('test', 'support') + sep))
      .forEach(visit)
  }
  for (const file of modulesIn(join('packages', name))) {
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
    const reached = modulesIn(folder).flatMap((file) => {
      const own = file.startsWith(join(folder, 'src')) ? (contains[name] ?? []) : []
      return importedByPath(file)
        .filter((other) => !other.startsWith(folder) && !own.some((each) => each.test(other)))
        .map((other) => `${file} imports ${other}`)
    })
    expect(reached).toEqual([])
  })

  test('has tests whose support imports the library and the other packages by their names', () => {
    const reached = [...supportOf(name)].flatMap((file) =>
      importedByPath(file)
        .filter((other) => /^(?:src|adapters|packages|programs)\b/.test(other))
        .map((other) => `${file} imports ${other}`),
    )
    expect(reached).toEqual([])
  })

  test('is imported by its name, never by a path', () => {
    const outside = ['src', 'adapters', 'examples', 'programs', 'test', 'workshop']
    const reached = outside.flatMap(modulesIn).flatMap((file) =>
      importedByPath(file)
        .filter((other) => other.startsWith(folder))
        .map((other) => `${file} imports ${other}`),
    )
    expect(reached.filter((each) => !opened.includes(each.replaceAll(sep, '/')))).toEqual([])
  })

  test('can be removed with what needs it, and leaves the library, its tests and the other packages', () => {
    const needing = [...modulesThatNeed(name)]
    const others = needing.filter((file) => /^packages.[\w-]+.(?:src|templates)\b/.test(file))
    expect([...new Set(others.map((file) => file.split(sep)[1]))].toSorted()).toEqual(
      users[name] ?? [],
    )
    const left = needing.filter((file) => /^(?:src|adapters)\b/.test(file))
    expect(left).toEqual([])
    // All tests use the testing kit.
    if (name === 'testing') return
    expect(needing.filter((file) => /^programs\b/.test(file) || layers.test(file))).toEqual([])
  })
})
