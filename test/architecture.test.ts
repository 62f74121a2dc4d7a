import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join, relative, sep } from 'node:path'
import { fileURLToPath } from 'node:url'
import ts from 'typescript'
import { describe, expect, test } from 'vitest'

const root = join(dirname(fileURLToPath(import.meta.url)), '..')

/**
 * The layers that each layer may import besides itself. No layer may import one that is missing from its
 * list.
 */
const mayImport: Record<string, readonly string[]> = {
  core: [],
  util: [],
  ports: ['core'],
  network: ['util'],
  protocol: ['core', 'ports', 'util'],
  'built-in': ['core', 'ports', 'protocol', 'util'],
  service: ['core', 'ports', 'protocol', 'util'],
  host: ['core', 'ports', 'protocol', 'service', 'util'],
  outbound: ['core', 'ports', 'protocol', 'network', 'util'],
  http: ['core', 'ports', 'protocol', 'service', 'host', 'util'],
  servers: ['core', 'ports', 'protocol', 'service', 'host', 'network', 'outbound', 'http', 'util'],
  index: [
    'core',
    'ports',
    'protocol',
    'built-in',
    'service',
    'host',
    'network',
    'outbound',
    'http',
    'servers',
    'util',
  ],
  'entry-core': ['core'],
  'entry-adapter': ['core', 'ports', 'http', 'util'],
  attempts: ['core', 'ports', 'protocol', 'service', 'host', 'util'],
  'entry-attempts': ['core', 'attempts'],
  library: ['index', 'entry-core', 'entry-adapter', 'entry-attempts'],
  adapters: ['index', 'entry-adapter'],
  testing: ['index', 'entry-core', 'entry-adapter', 'entry-attempts'],
  programs: ['index', 'testing'],
  doctor: ['index', 'entry-adapter', 'client', 'testing', 'programs'],
  client: ['index', 'entry-core', 'entry-adapter', 'protocol'],
  cli: ['index', 'client', 'testing', 'programs'],
  kysely: ['index', 'entry-adapter', 'adapters'],
  dynamodb: ['index', 'entry-adapter'],
  ilp: ['index', 'entry-core', 'entry-adapter', 'entry-attempts'],
  pages: ['index', 'entry-core', 'entry-adapter'],
  rafiki: ['index', 'entry-core', 'entry-adapter'],
  examples: [
    'index',
    'entry-core',
    'entry-adapter',
    'entry-attempts',
    'adapters',
    'testing',
    'programs',
    'client',
    'kysely',
    'dynamodb',
    'ilp',
    'pages',
    'rafiki',
    'create-open-payments-server',
  ],
  sandbox: [
    'index',
    'entry-core',
    'entry-adapter',
    'protocol',
    'http',
    'adapters',
    'testing',
    'programs',
    'pages',
    'create-open-payments-server',
  ],
}

/** The layers whose sources a package contains, and therefore imports by path. */
const contains: Record<string, readonly string[]> = {
  client: ['protocol'],
  kysely: ['adapters'],
  sandbox: ['protocol', 'http', 'adapters'],
}

/** Packages, and the one file that may import each of them (folders for development tools). */
const packages: Record<string, string | RegExp> = {
  // The testing kit and programs run on Node only, and no other module there signs synchronously.
  'node:async_hooks': 'packages/sandbox/src/sandbox.ts',
  'node:child_process': 'packages/cli/src/terminal.ts',
  'node:crypto': /^(?:programs|packages.(?:testing|doctor|cli|sandbox|ilp|rafiki))\b/,
  'node:buffer': /^programs.src.exchange\.ts$/,
  'node:dns/promises': 'programs/src/network.ts',
  'node:events': 'packages/doctor/src/lone-query.ts',
  'node:fs':
    /^(?:programs.src.program|packages.(?:doctor.src.arguments|cli.src.files)|adapters.postgres.reports.text)\.ts$/,
  'node:http': /^packages.(?:cli.src.grants|sandbox.src.front|doctor.src.lone-query)\.ts$/,
  'node:https': 'packages/doctor/src/lone-query.ts',
  'node:net':
    /^(?:programs.src.(?:free-port|network)|packages.doctor.src.checks.wallet-address)\.ts$/,
  'node:os': 'packages/cli/src/files.ts',
  'node:path': 'packages/cli/src/files.ts',
  'node:readline/promises': 'programs/src/question.ts',
  'node:stream': 'packages/doctor/src/lone-query.ts',
  'node:timers/promises': /^packages.(?:cli.src.wire|sandbox.src.front|ilp.src.receiver)\.ts$/,
  'node:tls': 'packages/doctor/src/network.ts',
  'node:util': /^(?:programs.src.arguments|packages.doctor.src.conformance.expectations)\.ts$/,
  // Neither the state machines nor the contracts of the ports.
  valibot:
    /^(?:src.(?!core|ports)\w+|packages.client.src.(?:bodies|grant|outgoing-payments|quotes|receiver)\.ts)/,
  '@noble/ed25519': /^src.protocol.http-signature.ed25519(?:-portable)?\.ts$/,
  'structured-headers': /^src.protocol.(?:http-signature.|idempotency-key\.ts)/,
  'date-fns/addMonths': 'src/core/interval.ts',
  '@date-fns/utc/date/mini': 'src/core/interval.ts',
  '@opentelemetry/api': 'adapters/opentelemetry.ts',
  fastify: 'adapters/fastify.ts',
  '@interledger/pay': 'packages/ilp/src/sender.ts',
  'ilp-packet': 'packages/ilp/src/',
  'ilp-protocol-stream/dist/src/packet.js': 'packages/ilp/src/',
}

/** Programs and development tools, which run on Node only. */
const onNode = ['testing', 'programs', 'doctor', 'cli', 'sandbox', 'ilp', 'rafiki']

/** Packages imported for their types only, and where: the caller passes in the implementation. */
const typesOnly: Record<string, string | RegExp> = {
  'fast-check': /^packages.testing.src.(?:spending.|attempts\.ts$)/,
  kysely: 'packages/kysely/src/',
  '@aws-sdk/client-dynamodb': 'packages/dynamodb/src/',
}

function filesIn(...folders: readonly string[]): string[] {
  return folders.flatMap((folder) =>
    readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
      .filter((name) => name.endsWith('.ts') && !/\b(?:node_modules|dist)\b/.test(name))
      .map((name) => join(folder, name)),
  )
}

const annexes = [
  'testing',
  'client',
  'doctor',
  'cli',
  'kysely',
  'dynamodb',
  'ilp',
  'pages',
  'rafiki',
  'sandbox',
].map((name) => join('packages', name, 'src'))
const files = filesIn('src', 'adapters', 'examples', join('programs', 'src'), ...annexes)

function layerOf(file: string): string {
  const [top = '', second = ''] = file.split(sep)
  return top === 'src' || top === 'packages' ? second.replace(/\.ts$/, '') : top
}

interface Import {
  readonly specifier: string
  readonly typeOnly: boolean
}

function importsOf(file: string): Import[] {
  // Without docstrings, whose examples import the library.
  const text = readFileSync(join(root, file), 'utf8').replace(/^\/\*\*[\s\S]*?\*\//gm, '')
  const statements = text.matchAll(/^(import|export)\s+(type\s+)?[^'"]*?from\s+'([^']+)'/gms)
  return [...statements].map(([, , type, specifier = '']) => ({
    specifier,
    typeOnly: type !== undefined,
  }))
}

/** Returns the file of an import, or `undefined` for another package. */
function target(file: string, specifier: string): string | undefined {
  const [, annex, entry] = /^open-payments-server(?:-(\w+)|\/(.+))?$/.exec(specifier) ?? []
  if (specifier === 'open-payments-client') return join('packages', 'client', 'src', 'index.ts')
  if (specifier === 'open-payments-ilp') return join('packages', 'ilp', 'src', 'index.ts')
  if (specifier === 'open-payments-pages') return join('packages', 'pages', 'src', 'index.ts')
  if (specifier === 'open-payments-rafiki') return join('packages', 'rafiki', 'src', 'index.ts')
  if (specifier === 'open-payments-programs') return join('programs', 'src', 'index.ts')
  const [, created] = /^create-open-payments-server\/(.+)$/.exec(specifier) ?? []
  if (created !== undefined) return join('packages', 'create-open-payments-server', created)
  if (annex !== undefined) return join('packages', annex, 'src', 'index.ts')
  if (/^(?:core|adapter|attempts)$/.test(entry ?? '')) return join('src', `entry-${entry}.ts`)
  if (entry !== undefined) return join('adapters', `${entry}.ts`)
  if (specifier === 'open-payments-server') return join('src', 'index.ts')
  if (!specifier.startsWith('.')) return undefined
  return relative(root, join(root, dirname(file), specifier)).replace(/\.js$/, '.ts')
}

describe('the direction of dependencies', () => {
  test.each(files)('%s imports only the layers below it', (file) => {
    const layer = layerOf(file)
    for (const { specifier } of importsOf(file)) {
      const other = target(file, specifier)
      if (other === undefined) continue
      const allowed = [layer, ...(mayImport[layer] ?? [])]
      expect(allowed, `${file} imports ${specifier}`).toContain(layerOf(other))
    }
  })

  test('no files import each other, directly or through others, not even for types', () => {
    const imported = new Map(
      files.map((file) => [
        file,
        importsOf(file).flatMap(({ specifier }) => target(file, specifier) ?? []),
      ]),
    )
    const done = new Set<string>()
    function visit(file: string, path: readonly string[]): void {
      if (path.includes(file)) expect.fail([...path.slice(path.indexOf(file)), file].join(' → '))
      if (done.has(file)) return
      for (const other of imported.get(file) ?? []) visit(other, [...path, file])
      done.add(file)
    }
    for (const file of files) visit(file, [])
  })

  test('writes import no operation, only what stands below both', () => {
    const folder = join('src', 'service', 'write')
    const below = [
      'event-record',
      'load',
      'namespace',
      'public-ids',
      'store-errors',
      'store-guard',
      'time',
    ].map((name) => join('src', 'service', `${name}.ts`))
    for (const file of files.filter((name) => name.startsWith(folder))) {
      const others = importsOf(file).flatMap(({ specifier }) => target(file, specifier) ?? [])
      const services = others.filter((other) => layerOf(other) === 'service')
      const own = services.filter((other) => !other.startsWith(folder))
      expect(below, file).toEqual(expect.arrayContaining(own))
    }
  })

  test('the examples and the other packages import the library by its name, as a host does', () => {
    for (const file of files.filter((name) => /^(?:examples|packages|programs)/.test(name))) {
      const layer = layerOf(file)
      for (const { specifier } of importsOf(file).filter(({ specifier }) =>
        specifier.startsWith('.'),
      )) {
        const other = target(file, specifier) ?? ''
        const own = [layer, ...(contains[layer] ?? [])]
        expect(own, `${file} imports ${specifier}`).toContain(layerOf(other))
      }
    }
  })

  test('the network is imported by its one face', () => {
    const folder = join('src', 'network')
    for (const file of files.filter((name) => !name.startsWith(folder))) {
      for (const { specifier } of importsOf(file)) {
        const other = target(file, specifier) ?? ''
        if (other.startsWith(folder)) expect(other, file).toBe(join(folder, 'index.ts'))
      }
    }
  })

  test('the library never imports its own package name', () => {
    for (const file of files.filter((name) => /^(?:src|adapters)/.test(name))) {
      for (const { specifier } of importsOf(file)) {
        expect(specifier, file).not.toMatch(/^open-payments-server/)
      }
    }
  })

  test('the core imports no package except for calendar months, and reads neither a clock nor randomness', () => {
    const months = join('src', 'core', 'interval.ts')
    for (const file of files.filter((name) => layerOf(name) === 'core')) {
      const packages = importsOf(file).filter(({ specifier }) => !specifier.startsWith('.'))
      const allowed = file === months ? ['@date-fns/utc/date/mini', 'date-fns/addMonths'] : []
      expect(packages.map(({ specifier }) => specifier)).toEqual(allowed)
      const code = readFileSync(join(root, file), 'utf8').replace(/\/\*[\s\S]*?\*\/|\/\/.*/g, '')
      expect(code).not.toMatch(/Date\.now|new Date\(\)|Math\.random|\bcrypto\b|\basync\b|\bthrow\b/)
    }
  })

  test('each package is imported only by its designated files', () => {
    for (const file of files.filter((name) => !name.startsWith('examples'))) {
      for (const { specifier, typeOnly } of importsOf(file)) {
        if (target(file, specifier) !== undefined) continue
        if (specifier.startsWith('node:') && typeOnly) continue
        const place = (typeOnly && typesOnly[specifier]) || packages[specifier]
        expect(file, `${file} imports ${specifier}`).toMatch(place ?? /^$/)
      }
    }
  })

  test('the library imports no Node module at run time', () => {
    const imports = files
      .filter((name) => !name.startsWith('examples') && !onNode.includes(layerOf(name)))
      // The build replaces it.
      .filter((name) => name !== join('adapters', 'postgres', 'reports', 'text.ts'))
      .flatMap((file) => importsOf(file))
    expect(
      imports.filter(({ specifier, typeOnly }) => specifier.startsWith('node:') && !typeOnly),
    ).toEqual([])
  })

  // This is about results. Inputs may be told apart by their members, such as `'quoteId' in input`.
  test('refusals are recognized by `ok`', () => {
    const starter = join('packages', 'create-open-payments-server')
    const starters = filesIn(join(starter, 'src'), join(starter, 'templates'))
    const readers = [...files, ...starters, ...filesIn(join('test', 'support'))]
    const byMember = readers.filter((file) =>
      /'(?:ok|outcome|refusal|reason|problems?|value|error|verified|closed)' in /.test(
        readFileSync(join(root, file), 'utf8'),
      ),
    )
    expect(byMember).toEqual([])
  })

  test('no function has more than 100 lines', () => {
    const long = filesIn('src', 'adapters').flatMap((file) => {
      const source = ts.createSourceFile(
        file,
        readFileSync(join(root, file), 'utf8'),
        ts.ScriptTarget.Latest,
        true,
      )
      const lineOf = (at: number) => source.getLineAndCharacterOfPosition(at).line
      const found: string[] = []
      const visit = (node: ts.Node): void => {
        const lines = lineOf(node.end) - lineOf(node.getStart()) + 1
        if (ts.isFunctionLike(node) && lines > 100) {
          found.push(`${file}:${lineOf(node.getStart()) + 1}: ${lines} lines`)
        }
        ts.forEachChild(node, visit)
      }
      visit(source)
      return found
    })
    expect(long).toEqual([])
  })

  // The other form is `given`. An empty string, a zero or `false` that is present must not be left out.
  test('a member is absent by a spread whose condition is a boolean', () => {
    const others = files
      .filter((file) => !file.startsWith('examples') && !file.startsWith('programs'))
      .flatMap((file) => {
        const text = readFileSync(join(root, file), 'utf8')
        const found = text.match(
          /\.\.\.\((?:[^()]*\? \{\} :|[^;]*?: \{\}\)|([\w.]+) && \{ \1\b).*/g,
        )
        return (found ?? []).map((each) => `${file}: ${each}`)
      })
    expect(others).toEqual([])
  })
})
