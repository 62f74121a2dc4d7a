import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { parse } from 'yaml'

interface Step {
  readonly uses?: string
  readonly run?: string
}

interface Job {
  readonly uses?: string
  readonly steps?: readonly Step[]
  readonly permissions?: Readonly<Record<string, string>>
  readonly services?: Readonly<Record<string, { readonly image: string }>>
  readonly strategy?: { readonly matrix: Readonly<Record<string, readonly unknown[]>> }
}

function read(path: string): string {
  return readFileSync(path, 'utf8')
}

function readPackage(folder: string) {
  return JSON.parse(read(join(folder, 'package.json')))
}

const library = readPackage('.')
const testing = readPackage('packages/testing')
const creator = readPackage('packages/create-open-payments-server')
const workflows = readdirSync('.github/workflows').map((name) => `.github/workflows/${name}`)

function jobsOf(path: string): Readonly<Record<string, Job>> {
  return parse(read(path)).jobs
}

describe('npm scripts', () => {
  const documents = ['README.md', 'CONTRIBUTING.md', '.ci/run', '.github/pull_request_template.md']
  const docs = readdirSync('docs').filter((name) => name.endsWith('.md'))

  test.each([...documents, ...workflows, ...docs.map((name) => `docs/${name}`)])(
    'in %s exist',
    (path) => {
      const named = read(path).matchAll(/npm (?:run (?:--silent )?([\w:-]+)|(test|start))\b/g)
      for (const [, script, short] of named) {
        expect(library.scripts, path).toHaveProperty([script ?? short ?? ''])
      }
    },
  )
})

describe.each(workflows)('the workflow %s', (path) => {
  test('has jobs with steps, or calls an existing workflow', () => {
    const jobs = Object.values(jobsOf(path))
    expect(jobs.length).toBeGreaterThan(0)
    for (const { uses, steps } of jobs) {
      if (uses === undefined) expect(steps?.length).toBeGreaterThan(0)
      else expect(existsSync(uses), uses).toBe(true)
    }
  })

  test('gives jobs no write access except for an identity token', () => {
    const { permissions } = parse(read(path))
    expect(permissions).toEqual({ contents: 'read' })
    for (const { permissions = {} } of Object.values(jobsOf(path))) {
      const writable = Object.keys(permissions).filter((name) => permissions[name] === 'write')
      expect(['', 'id-token']).toContain(writable.join())
    }
  })
})

describe('the workflow for changes', () => {
  const jobs = jobsOf('.github/workflows/ci.yml')

  test('tests the oldest supported and later Node versions, with and without databases', () => {
    const { node = [], databases } = jobs['test']?.strategy?.matrix ?? {}
    expect(library.engines.node).toBe(`^${node[0]}.0 || >=${node[1]}.0`)
    expect(node).toEqual(['20.19', '22.12', '22', '24', '26'])
    expect(databases).toEqual([false, true])
  })

  test('uses the images of compose.yaml', () => {
    const services = Object.entries(parse(read('compose.yaml')).services)
    const images = jobs['test']?.services ?? {}
    for (const [name, service] of services) {
      const { image } = service as { readonly image: string }
      expect(images[name]?.image).toBe(`\${{ matrix.databases && '${image}' || '' }}`)
    }
    expect(Object.keys(images)).toHaveLength(services.length)
  })

  test('runs every npm script that .ci/run runs', () => {
    const scriptsIn = (text: string) =>
      [...text.matchAll(/npm (?:run (?:--silent )?)?([\w:]+)/g)].map(([, name]) => name)
    const steps = Object.values(jobs).flatMap((job) => job.steps ?? [])
    const run = scriptsIn(steps.map((step) => step.run ?? '').join('\n'))
    expect(run).toEqual(expect.arrayContaining(scriptsIn(read('.ci/run'))))
  })
})

describe('the workflow for releases', () => {
  const { publish } = jobsOf('.github/workflows/release.yml')
  const commands = (publish?.steps ?? []).map(({ run = '' }) => run)

  test('publishes the checked tarballs with provenance', () => {
    expect(publish?.permissions).toMatchObject({ 'id-token': 'write' })
    const checked = commands.findIndex((command) => command.includes('check:package -- --keep'))
    const published = commands.findIndex((command) => command.includes('npm publish'))
    expect(checked).toBeGreaterThan(-1)
    expect(published).toBeGreaterThan(checked)
    expect(commands[published]).toContain('--provenance')
    expect(commands[published]).toContain(
      `for name in ${library.name} ${testing.name} ${creator.name};`,
    )
  })
})

describe('the packages', () => {
  test('have the same version, which the testing kit requires of the library', () => {
    expect([testing.version, creator.version]).toEqual([library.version, library.version])
    expect(testing.peerDependencies[library.name]).toBe(library.version)
  })

  test('name the same repository', () => {
    const { url } = library.repository
    expect(testing.repository).toEqual({ type: 'git', url, directory: 'packages/testing' })
    const directory = 'packages/create-open-payments-server'
    expect(creator.repository).toEqual({ type: 'git', url, directory })
    const home = url.replace(/^git\+/, '').replace(/\.git$/, '')
    for (const { homepage, bugs } of [library, testing, creator]) {
      expect({ homepage, bugs }).toEqual({
        homepage: `${home}#readme`,
        bugs: { url: `${home}/issues` },
      })
    }
  })

  test('have the same license text and support the same Node versions', () => {
    for (const [folder, { engines }] of [
      ['testing', testing],
      ['create-open-payments-server', creator],
    ]) {
      expect(read(`packages/${folder}/LICENSE`)).toBe(read('LICENSE'))
      expect(engines).toEqual(library.engines)
    }
  })

  test('are built before they are packed', () => {
    expect(library.scripts.prepack).toContain('run --silent build')
    expect(testing.scripts.prepack).toContain('run --silent build')
    expect(creator.scripts.prepack).toContain('run --silent build')
  })
})
