import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join, relative, sep } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, test } from 'vitest'

const root = join(dirname(fileURLToPath(import.meta.url)), '..')

/** What each room may import beside itself. Whoever is not named may be imported by nobody below. */
const mayImport: Record<string, readonly string[]> = {
  core: [],
  ports: ['core'],
  protocol: ['core', 'ports'],
  storage: ['core', 'ports'],
  service: ['core', 'ports', 'protocol'],
  outbound: ['core', 'ports', 'protocol'],
  http: ['core', 'ports', 'protocol', 'service'],
  index: ['core', 'ports', 'protocol', 'storage', 'service', 'outbound', 'http'],
  adapters: ['index'],
  testing: ['index'],
  examples: ['index', 'adapters', 'testing'],
}

/** Packages, and the one file that each may be imported by (a folder for development tools). */
const packages: Record<string, string> = {
  // For tests alone, which run on Node: nothing else there signs at once.
  'node:crypto': 'src/testing/',
  '@noble/ed25519': 'src/protocol/http-signature/ed25519.ts',
  'structured-headers': 'src/protocol/http-signature/structured-fields.ts',
  valibot: 'src/protocol/',
  'temporal-polyfill/fns/PlainDate': 'src/core/interval.ts',
  '@opentelemetry/api': 'adapters/opentelemetry.ts',
  fastify: 'adapters/fastify.ts',
}

/** Packages that are imported for their types alone, and where: whoever uses them hands them in. */
const typesOnly: Record<string, string> = {
  'fast-check': 'src/testing/spending/',
}

const files = ['src', 'adapters', 'examples'].flatMap((folder) =>
  readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.ts'))
    .map((name) => join(folder, name)),
)

function roomOf(file: string): string {
  const [top = '', second = ''] = file.split(sep)
  return top === 'src' ? second.replace(/\.ts$/, '') : top
}

interface Import {
  readonly specifier: string
  readonly typeOnly: boolean
}

function importsOf(file: string): Import[] {
  const text = readFileSync(join(root, file), 'utf8')
  const statements = text.matchAll(/^(import|export)\s+(type\s+)?[^'"]*?from\s+'([^']+)'/gms)
  return [...statements].map(([, , type, specifier = '']) => ({
    specifier,
    typeOnly: type !== undefined,
  }))
}

/** The file that an import leads to, or `undefined` for another package. */
function target(file: string, specifier: string): string | undefined {
  const [, entry] = /^open-payments-server(?:\/(.+))?$/.exec(specifier) ?? []
  if (entry !== undefined) return join('adapters', `${entry}.ts`)
  if (specifier === 'open-payments-server') return join('src', 'index.ts')
  if (specifier === 'open-payments-server-testing') return join('src', 'testing', 'index.ts')
  if (!specifier.startsWith('.')) return undefined
  return relative(root, join(root, dirname(file), specifier)).replace(/\.js$/, '.ts')
}

describe('dependencies point one way', () => {
  test.each(files)('%s imports only what lies below it', (file) => {
    const room = roomOf(file)
    for (const { specifier } of importsOf(file)) {
      const other = target(file, specifier)
      if (other === undefined) continue
      const allowed = [room, ...(mayImport[room] ?? [])]
      expect(allowed, `${file} imports ${specifier}`).toContain(roomOf(other))
    }
  })

  test('examples and the testing kit import the library by its name, as a host does', () => {
    for (const file of files.filter((name) => ['examples', 'testing'].includes(roomOf(name)))) {
      for (const { specifier } of importsOf(file).filter(({ specifier }) =>
        specifier.startsWith('.'),
      )) {
        const other = target(file, specifier) ?? ''
        expect(roomOf(other), `${file} imports ${specifier}`).toBe(roomOf(file))
      }
    }
  })

  test('the library itself never imports its own package name', () => {
    const own = files.filter((name) => !['examples', 'testing'].includes(roomOf(name)))
    for (const file of own) {
      for (const { specifier } of importsOf(file)) {
        expect(specifier, file).not.toMatch(/^open-payments-server/)
      }
    }
  })

  test('the core imports no package but for months, and reads no clock and no randomness', () => {
    const months = join('src', 'core', 'interval.ts')
    for (const file of files.filter((name) => roomOf(name) === 'core')) {
      const packages = importsOf(file).filter(({ specifier }) => !specifier.startsWith('.'))
      const allowed = file === months ? ['temporal-polyfill/fns/PlainDate'] : []
      expect(packages.map(({ specifier }) => specifier)).toEqual(allowed)
      const code = readFileSync(join(root, file), 'utf8').replace(/\/\*[\s\S]*?\*\/|\/\/.*/g, '')
      expect(code).not.toMatch(/Date\.now|new Date\(\)|Math\.random|\bcrypto\b|\basync\b|\bthrow\b/)
    }
  })

  test('each package is imported where it belongs and nowhere else', () => {
    for (const file of files.filter((name) => !name.startsWith('examples'))) {
      for (const { specifier, typeOnly } of importsOf(file)) {
        if (target(file, specifier) !== undefined) continue
        if (specifier.startsWith('node:') && typeOnly) continue
        const place = (typeOnly && typesOnly[specifier]) || packages[specifier]
        expect(file, `${file} imports ${specifier}`).toMatch(place ?? /^$/)
      }
    }
  })

  test('nothing in the library imports a module of Node at run time', () => {
    const imports = files
      .filter((name) => !name.startsWith('examples') && roomOf(name) !== 'testing')
      .flatMap((file) => importsOf(file))
    expect(
      imports.filter(({ specifier, typeOnly }) => specifier.startsWith('node:') && !typeOnly),
    ).toEqual([])
  })
})
