import { readFileSync } from 'node:fs'
import { posix } from 'node:path'
import { describe, expect, test } from 'vitest'
import { databases, frameworks } from '../src/choices.js'
import { filesOf, type Project } from '../src/project.js'

const { version, devDependencies } = JSON.parse(readFileSync('package.json', 'utf8'))

const projects = Object.keys(frameworks).flatMap((framework) =>
  Object.keys(databases).map((database) => ({ framework, database })),
) as readonly Pick<Project, 'framework' | 'database'>[]

function written(project: Pick<Project, 'framework' | 'database'>) {
  const specOf = () => `^${version}`
  return filesOf({ ...project, name: 'wallet', specOf, manager: 'npm', newSecret: () => 'secret' })
}

/** The specifiers of the imports of a file. */
function importsOf(text: string): readonly string[] {
  return [...text.matchAll(/^(?:import|export)\s[^'"]*?from\s+'([^']+)'/gms)].map(
    ([, specifier = '']) => specifier,
  )
}

// `npm run types` checks their types: `rootDirs` of tsconfig.json joins the folders of the templates. `.ci/create`
// installs, builds and runs them.
describe.each(projects)('the wallet with $framework on $database', (project) => {
  const files = written(project)
  const manifest = JSON.parse(files.get('package.json') ?? '')

  test('has each file that one of its files imports', () => {
    for (const [path, text] of files) {
      if (!path.endsWith('.ts')) continue
      for (const specifier of importsOf(text).filter((each) => each.startsWith('.'))) {
        const file = posix.join(posix.dirname(path), specifier).replace(/\.js$/, '.ts')
        expect([...files.keys()], path).toContain(file)
      }
    }
  })

  test('depends on each package that one of its files imports, and the program needs none for tests', () => {
    const { dependencies, devDependencies: development } = manifest
    for (const [path, text] of files) {
      if (!path.endsWith('.ts')) continue
      const known = Object.keys(
        path.startsWith('src/') ? dependencies : { ...dependencies, ...development },
      )
      for (const specifier of importsOf(text)) {
        if (/^(?:\.|node:)/.test(specifier)) continue
        const [name] = /^(?:@[^/]+\/)?[^/]+/.exec(specifier) ?? []
        expect(known, path).toContain(name)
      }
    }
  })

  test('names its scripts and variables as they are', () => {
    const readme = files.get('README.md') ?? ''
    for (const [, script = ''] of readme.matchAll(/`npm (?:run )?(\w+)`/g)) {
      expect(manifest.scripts).toHaveProperty(script)
    }
    for (const [, path = ''] of readme.matchAll(/`((?:src|test)\/[\w./-]+)`/g)) {
      expect([...files.keys()]).toContain(path)
    }
    const settings = files.get('.env.example') ?? ''
    const read = [...files].filter(([path]) => /^src\/(?:settings|start)/.test(path)).join('\n')
    for (const [, variable = ''] of settings.matchAll(/^(\w+)=/gm)) expect(read).toContain(variable)
  })

  test('gives secrets to the variables that need one, and to no other', () => {
    const before = files.get('.env.example')?.split('\n') ?? []
    const after = files.get('.env')?.split('\n') ?? []
    const filled = before.flatMap((line, index) =>
      line === after[index] ? [] : [line.replace(/=.*/, '')],
    )
    expect(filled).toEqual(['SESSION_SECRET', 'PAYMENT_DETAILS_SECRET', 'DEMO_PASSWORD'])
  })

  test('contains no part of a template', () => {
    const names = [...files.keys()]
    expect(names.filter((name) => /part\.|^gitignore|^env\./.test(name))).toEqual([])
    expect([...files.values()].filter((text) => text.trim() === '')).toEqual([])
  })
})

describe('the packages of the wallets', () => {
  test('have the versions that this repository tests', () => {
    for (const project of projects) {
      const manifest = JSON.parse(written(project).get('package.json') ?? '')
      const { '@types/node': _, ...development } = manifest.devDependencies
      for (const [name, range] of Object.entries({ ...manifest.dependencies, ...development })) {
        const expected = name.startsWith('open-payments-') ? version : devDependencies[name]
        expect(range, name).toBe(`^${expected}`)
      }
    }
  })

  test('are compiled with the rules of this repository', () => {
    const template = 'packages/create-open-payments-server/templates/wallet/tsconfig.json'
    const own = JSON.parse(readFileSync('tsconfig.json', 'utf8')).compilerOptions
    const { lib, ...others } = JSON.parse(readFileSync(template, 'utf8')).compilerOptions
    expect(own).toMatchObject(others)
    expect(own.lib).toEqual(expect.arrayContaining(lib))
  })
})
