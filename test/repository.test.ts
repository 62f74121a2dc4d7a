import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { parse } from 'yaml'

interface Step {
  readonly uses?: string
  readonly run?: string
}

interface Job {
  readonly needs?: string
  readonly uses?: string
  readonly container?: string
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
const annexes = readdirSync('packages').map((name) => {
  const directory = `packages/${name}`
  return { directory, manifest: readPackage(directory) }
})
const workflows = readdirSync('.github/workflows').map((name) => `.github/workflows/${name}`)

function jobsOf(path: string): Readonly<Record<string, Job>> {
  return parse(read(path)).jobs
}

describe('npm scripts', () => {
  const documents = [
    'README.md',
    'CONTRIBUTING.md',
    '.ci/run',
    '.ci/nightly',
    '.github/pull_request_template.md',
  ]
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

test('no comment is wider than 120 characters, which the formatter does not check', () => {
  const folders = ['src', 'adapters', 'programs', 'packages', 'examples', 'workshop', 'test']
  const files = folders.flatMap((folder) =>
    readdirSync(folder, { recursive: true, encoding: 'utf8' })
      .filter((name) => name.endsWith('.ts') && !/(node_modules|dist)\//.test(name))
      .map((name) => join(folder, name)),
  )
  const wide = files.flatMap((path) =>
    read(path)
      .split('\n')
      .filter((line) => line.length > 120 && /^ *(\*|\/\/|\/\*)/.test(line))
      .map((line) => `${path}: ${line}`),
  )
  expect(wide).toEqual([])
})

test('no docstring goes on in a new line although the next word fits into 100 characters', () => {
  const prose = /^( *\* )(?![-@|`\d])\S.*[^.:?]$/
  const sources = ['src', 'adapters'].flatMap((folder) =>
    readdirSync(folder, { recursive: true, encoding: 'utf8' })
      .filter((name) => name.endsWith('.ts'))
      .map((name) => join(folder, name)),
  )
  const broken = sources.flatMap((path) => {
    const lines = read(path)
      .replace(/^ *\* ```[\s\S]*?```$/gm, '')
      .split('\n')
    return lines.filter((line, i) => {
      const [, next = ''] = /^ *\* (?=[a-z`])(\S+)/.exec(lines[i + 1] ?? '') ?? []
      return prose.test(line) && next !== '' && `${line} ${next}`.length <= 100
    })
  })
  expect(broken).toEqual([])
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

  test('names actions by the digest of a commit, with the version that it had', () => {
    const used = [...read(path).matchAll(/^ *- uses: (.*)$/gm)].map(([, action]) => action)
    expect(used.length).toBeGreaterThan(0)
    for (const action of used) expect(action).toMatch(/^[\w/-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$/)
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

describe('what npm installs', () => {
  /** The oldest supported version, of the ranges that packages use: `>=20`, `^20.19.0 || >=22.12.0`, `20 || 22.x`. */
  const oldest = [20, 19, 0]

  function runsOn(range: string): boolean {
    return range.split('||').some((alternative) =>
      [...alternative.matchAll(/(>=|<=?|\^|~|>)?\s*v?(\d+)(?:\.(\d+))?(?:\.(\d+))?/g)].every(
        ([, comparator = '', ...numbers]) => {
          const given = numbers.map((number) => Number(number ?? 0))
          const at = oldest.findIndex((number, index) => number !== given[index])
          const difference = at < 0 ? 0 : (oldest[at] ?? 0) - (given[at] ?? 0)
          if (comparator.startsWith('<')) return difference < 0
          return difference >= 0 && (comparator.startsWith('>') || oldest[0] === given[0])
        },
      ),
    )
  }

  test.each(['.', 'examples/stack', 'examples/frameworks', 'site', 'test/browser'])(
    'in %s runs on the oldest supported Node, or is optional, so npm warns of no engine',
    (folder) => {
      const { packages } = JSON.parse(read(join(folder, 'package-lock.json'))) as {
        readonly packages: Readonly<
          Record<
            string,
            { readonly optional?: true; readonly engines?: { readonly node?: string } }
          >
        >
      }
      const refusing = Object.entries(packages).flatMap(([path, { optional, engines }]) =>
        optional || engines?.node === undefined || runsOn(engines.node)
          ? []
          : [`${path}: ${engines.node}`],
      )
      expect(refusing).toEqual([])
    },
  )
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
})

describe.each([
  ['.ci/run', 'ci.yml'],
  ['.ci/nightly', 'nightly.yml'],
])('each part of %s', (script, workflow) => {
  const bodies = [...read(script).matchAll(/^run_(\w+)\(\) \{\n(.*?)^\}$/gms)]
  const parts = bodies.map(([, part]) => part)
  const jobs = Object.values(jobsOf(`.github/workflows/${workflow}`))

  test(`has a job of ${workflow}`, () => {
    const steps = jobs.flatMap((job) => job.steps ?? [])
    const names = steps.flatMap(({ run = '' }) =>
      run.startsWith(`${script} `) ? [run.slice(script.length + 1)] : [],
    )
    expect(names.toSorted()).toEqual(parts.toSorted())
    expect(parts.length).toBeGreaterThan(3)
  })

  test('is run when no part is named', () => {
    const calls = [...read(script).matchAll(/^run_(\w+)$/gm)].map(([, part]) => part)
    expect(calls.toSorted()).toEqual(parts.toSorted())
  })

  test.each(bodies.map(([, part = '', body = '']) => [part, body]))(
    'may install packages of Debian in its job: %s',
    (part, body) => {
      const job = jobs.find(({ steps = [] }) =>
        steps.some(({ run }) => run === `${script} ${part}`),
      )
      const installs = /^ *need |apt-get install/m.test(withPrograms(body))
      if (installs) expect(job?.container, 'Debian, as root').toMatch(/^node:\S+-bookworm$/)
    },
  )
})

/** Commands, and those of the programs of `.ci` that they call. */
function withPrograms(text: string, seen = new Set<string>()): string {
  const named = [...text.matchAll(/\.ci\/(\w+)/g)].map(([, name = '']) => name)
  const called = new Set(named.filter((name) => existsSync(`.ci/${name}`) && !seen.has(name)))
  for (const name of called) seen.add(name)
  return [text, ...[...called].map((name) => withPrograms(read(`.ci/${name}`), seen))].join('\n')
}

test('each program of .ci is called by another one', () => {
  const programs = readdirSync('.ci').filter((name) => name !== 'run' && name !== 'nightly')
  const texts = readdirSync('.ci').map((name) => ({ name, text: read(`.ci/${name}`) }))
  for (const program of programs) {
    const callers = texts.filter(
      ({ name, text }) => name !== program && text.includes(`.ci/${program}`),
    )
    expect(callers.length, program).toBeGreaterThan(0)
  }
})

describe('the workflow for releases', () => {
  const jobs = jobsOf('.github/workflows/release.yml')
  const { pack, publish } = jobs
  const commands = (publish?.steps ?? []).map(({ run = '' }) => run)
  const mayPublish = (job: (typeof jobs)[string]) => job.permissions?.['id-token'] === 'write'

  test('builds and checks the tarballs in a job that cannot publish', () => {
    expect(Object.keys(jobs).filter((name) => mayPublish(jobs[name] ?? {}))).toEqual(['publish'])
    const steps = pack?.steps ?? []
    const checked = steps.findIndex(({ run }) => run?.includes('check:package -- --keep'))
    const handedOver = steps.findIndex(({ uses }) => uses?.startsWith('actions/upload-artifact@'))
    expect(checked).toBeGreaterThan(-1)
    expect(handedOver).toBeGreaterThan(checked)
  })

  // Each package that runs there could publish as the project.
  test('installs nothing but one version of npm in the job that publishes', () => {
    expect(publish?.needs).toBe('pack')
    const installs = commands.flatMap(
      (command) => command.match(/\bnp[mx] (?!view|publish).*/g) ?? [],
    )
    expect(installs).toEqual([expect.stringMatching(/^npm install --global npm@\d+\.\d+\.\d+$/)])
    const actions = (publish?.steps ?? []).flatMap(({ uses = '' }) => uses.split('@')[0] || [])
    expect(actions).toEqual(['actions/setup-node', 'actions/download-artifact'])
  })

  test('publishes the checked tarballs with provenance', () => {
    const published = commands.findIndex((command) => command.includes('npm publish'))
    expect(commands[published]).toContain('--provenance')
    const [, names = ''] = /for name in ([^;]+);/.exec(commands[published] ?? '') ?? []
    const all = [library.name, ...annexes.map(({ manifest }) => manifest.name)]
    expect(names.split(' ').sort()).toEqual(all.sort())
  })
})

describe('the packages', () => {
  test('are the library, the testing kit, the doctor, the clients, the sandbox, the pages, the stores for Kysely and DynamoDB, the rail, the package for hosts of Rafiki and the creator of wallets', () => {
    expect(library.name).toBe('open-payments-server')
    expect(annexes.map(({ manifest }) => manifest.name).sort()).toEqual([
      'create-open-payments-server',
      'open-payments-cli',
      'open-payments-client',
      'open-payments-doctor',
      'open-payments-ilp',
      'open-payments-pages',
      'open-payments-rafiki',
      'open-payments-sandbox',
      'open-payments-server-dynamodb',
      'open-payments-server-kysely',
      'open-payments-server-testing',
    ])
  })

  describe.each(annexes)('in $directory', ({ directory, manifest }) => {
    test('have the version of the library, and accept each patch of it', () => {
      expect(manifest.version).toBe(library.version)
      const accepted = `^${library.version.replace(/\d+$/, '0')}`
      const { [library.name]: required = accepted } = manifest.peerDependencies ?? {}
      expect(required).toBe(accepted)
    })

    test('need nothing else at run time', () => {
      expect(manifest.dependencies).toBeUndefined()
    })

    test('find the library in this repository, because the registry may not have it', () => {
      const needsLibrary = library.name in (manifest.peerDependencies ?? {})
      expect(manifest.devDependencies?.[library.name]).toBe(needsLibrary ? 'file:../..' : undefined)
    })

    test('name the repository', () => {
      const { type, url } = library.repository
      expect(manifest.repository).toEqual({ type, url, directory })
      const { homepage, bugs } = library
      expect(manifest).toMatchObject({ homepage, bugs })
    })

    test('have the same license text and support the same Node versions', () => {
      expect(read(`${directory}/LICENSE`)).toBe(read('LICENSE'))
      expect(manifest.engines).toEqual(library.engines)
    })

    test('are built before they are packed', () => {
      expect(manifest.scripts.prepack).toContain('run --silent build')
    })
  })

  test('have programs that run in a clone, too', () => {
    const programs = annexes.filter(({ manifest }) => manifest.bin !== undefined)
    expect(programs).toHaveLength(4)
    const launchers = programs.map(({ directory, manifest }) => {
      const { bin, files } = manifest
      expect([[...new Set(Object.values(bin))], files]).toEqual([
        ['bin.js'],
        expect.arrayContaining(['bin.js']),
      ])
      return read(`${directory}/bin.js`)
    })
    expect(new Set(launchers).size).toBe(1)
  })

  test('are built before the library is packed', () => {
    expect(library.scripts.prepack).toContain('run --silent build')
  })
})
