import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { gzipSync } from 'node:zlib'
import { build } from 'esbuild'

/**
 * Checks the packages as a host installs them: packs them, installs the tarballs in an empty project, and
 * loads every entry there with `import` and with `require`. Sets the exit code to 1 if a check fails. With
 * `--keep <folder>` the tarballs stay in that folder, so a release publishes the tarballs that were checked.
 */
const root = process.cwd()
const packagesMax = 1
const unpackedBytesMax = 700_000
const testingUnpackedBytesMax = 330_000
const creatorUnpackedBytesMax = 100_000
const bundleBytesMax = 66_000
const resourceServerBytesMax = 40_000
const remoteServerBytesMax = 44_500
/** Entries with an optional peer dependency. They are checked last, because the peer is installed for them. */
const peers: Readonly<Record<string, string>> = {
  '/opentelemetry': '@opentelemetry/api',
  '-testing': 'fast-check',
}
const entries = [
  '',
  '/core',
  '/adapter',
  '/express',
  '/fastify',
  '/hono',
  '/kysely',
  '/opentelemetry',
  '/postgres',
  '/sqlite',
  '-testing',
]

interface Packed {
  readonly filename: string
  readonly unpackedSize: number
  readonly files: readonly { readonly path: string }[]
}

function run(command: string, parameters: readonly string[], cwd = root): string {
  return execFileSync(command, parameters, {
    cwd,
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'inherit'],
  })
}

function check(what: string, holds: boolean, detail = ''): void {
  console.log(`${holds ? 'ok  ' : 'FAIL'} ${what}${detail && `: ${detail}`}`)
  if (!holds) process.exitCode = 1
}

function checkRun(what: string, command: string, parameters: readonly string[], cwd = root): void {
  try {
    run(command, parameters, cwd)
    check(what, true)
  } catch (error) {
    check(what, false, String((error as { stdout?: string }).stdout))
  }
}

const { values } = parseArgs({ options: { keep: { type: 'string' } } })
const folder = mkdtempSync(join(tmpdir(), 'consumer-'))
const tarballs = values.keep === undefined ? folder : resolve(values.keep)
try {
  mkdirSync(tarballs, { recursive: true })
  // The `prepack` script of the library builds all packages.
  const library = pack('.')
  const testing = pack('./packages/testing', '--ignore-scripts')
  const creator = pack('./packages/create-open-payments-server', '--ignore-scripts')
  checkFiles(library)
  checkSize('the library does not exceed its size limit', library, unpackedBytesMax)
  checkSize('the testing kit does not exceed its size limit', testing, testingUnpackedBytesMax)
  checkSize(
    'the program that creates wallets does not exceed its size limit',
    creator,
    creatorUnpackedBytesMax,
  )
  for (const { filename } of [library, testing]) checkTarball(join(tarballs, filename))
  checkRun('publint: the program that creates wallets', 'npx', [
    'publint',
    '--strict',
    join(tarballs, creator.filename),
  ])
  install(join(tarballs, library.filename))
  checkProgram()
  checkLoading(join(tarballs, testing.filename))
  checkMonths()
  checkTypes()
  await checkBundles()
} finally {
  rmSync(folder, { recursive: true, force: true })
}

function pack(path: string, ...options: readonly string[]): Packed {
  const printed = run('npm', ['pack', path, '--json', '--pack-destination', tarballs, ...options])
  // The `prepack` script may print lines before the JSON.
  const [packed] = JSON.parse(printed.slice(printed.indexOf('[\n')))
  return packed
}

function checkSize(what: string, { unpackedSize }: Packed, most: number): void {
  check(what, unpackedSize <= most, `${unpackedSize} bytes unpacked, at most ${most}`)
}

/** Checks entry points and declarations with publint and Are the Types Wrong. */
function checkTarball(tarball: string): void {
  checkRun(`publint: ${tarball}`, 'npx', ['publint', '--strict', tarball])
  checkRun(`attw: ${tarball}`, 'npx', ['attw', tarball, '--profile', 'node16'])
}

/** Checks that the tarball contains the expected files and no others. */
function checkFiles({ files }: Packed): void {
  const paths = files.map(({ path }) => path)
  const named = paths.filter((path) => !/^dist\/[a-z-]+-[\w-]{8}\.(?:js|d\.cts)$/.test(path))
  const names = ['index', ...entries.filter((entry) => entry.startsWith('/'))]
  const expected = names.flatMap((name) =>
    ['js', 'cjs', 'd.ts', 'd.cts'].map((extension) => `dist/${name.replace('/', '')}.${extension}`),
  )
  const inner = ['authorization-server', 'resource-server', 'remote-introspection', 'client-keys']
  expected.push(
    ...inner.map((name) => `dist/${name}.js`),
    'dist/migrations/0001_records.sql',
    'dist/migrations/reports/0001_reports.sql',
  )
  expected.push('dist/licenses.txt', 'dist/cli/main.js')
  expected.push('LICENSE', 'README.md', 'package.json')
  const surplus = named.filter((path) => !expected.includes(path))
  const missing = expected.filter((path) => !named.includes(path))
  check(
    'the tarball contains the expected files and no others',
    surplus.length + missing.length === 0,
    [...surplus, ...missing].join(', '),
  )
}

function install(tarball: string): void {
  writeFileSync(join(folder, 'package.json'), '{"private":true}')
  run('npm', ['install', '--silent', '--no-audit', '--no-fund', tarball], folder)
  const lock = JSON.parse(readFileSync(join(folder, 'node_modules/.package-lock.json'), 'utf8'))
  const packages = Object.entries<{ hasInstallScript?: boolean }>(lock.packages)
  const others = packages.length - 1
  check(
    'few dependencies are installed',
    others <= packagesMax,
    `${others} of at most ${packagesMax}`,
  )
  check(
    'no package has an install script',
    packages.every(([, { hasInstallScript }]) => !hasInstallScript),
  )
}

function checkProgram(): void {
  const printed = run('npx', ['--no-install', 'open-payments-server', '--help'], folder)
  check('the program runs', printed.startsWith('Usage: open-payments-server doctor'))
}

function checkLoading(testing: string): void {
  for (const entry of [...entries].sort((a, b) => Number(a in peers) - Number(b in peers))) {
    const peer = peers[entry]
    if (peer !== undefined) {
      installPeer(peer, ...(entry === '-testing' ? [testing] : []))
    }
    const name = `open-payments-server${entry}`
    const print = 'console.log(Object.keys(loaded).length)'
    const esm = `import * as loaded from ${JSON.stringify(name)}; ${print}`
    check(`import ${name}`, Number(run('node', ['--input-type=module', '-e', esm], folder)) > 0)
    const cjs = `const loaded = require(${JSON.stringify(name)}); ${print}
      import(${JSON.stringify(name)}).then((imported) => console.log(imported === loaded))`
    const [exported, isSame] = run('node', ['-e', cjs], folder).split('\n')
    check(`require ${name}`, Number(exported) > 0)
    check(`import and require ${name} load one module`, isSame === 'true')
  }
}

/** Installs a package in the version of the lock file, and tarballs that need it. */
function installPeer(name: string, ...tarballs: readonly string[]): void {
  const manifest = readFileSync(join(root, `node_modules/${name}/package.json`), 'utf8')
  const wanted = [`${name}@${JSON.parse(manifest).version}`, ...tarballs]
  run('npm', ['install', '--silent', '--no-audit', '--no-fund', ...wanted], folder)
}

/** Checks that the packed copy of date-fns adds months in UTC, in whichever time zone the host runs. */
function checkMonths(): void {
  const print = `
    process.env.TZ = 'America/New_York'
    const { value } = core.parseInterval('R/2025-01-31T00:00:00Z/P1M')
    console.log(new Date(core.windowAt(value, Date.UTC(2025, 2, 1)).start).toISOString())
  `
  for (const [format, load] of [
    ['module', `import * as core from 'open-payments-server/core'`],
    ['commonjs', `const core = require('open-payments-server/core')`],
  ]) {
    const start = run('node', [`--input-type=${format}`, '-e', `${load};${print}`], folder).trim()
    check(`months in UTC: ${format}`, start === '2025-02-28T00:00:00.000Z', start)
  }
}

/** Checks that the declarations need only Node's types, Kysely for its store, and fast-check for the testing kit. */
function checkTypes(): void {
  installPeer('kysely')
  const source = `
    import { createAuthorizationServer, memoryStore, type Store } from 'open-payments-server'
    import { toExpress } from 'open-payments-server/express'
    import { toHono } from 'open-payments-server/hono'
    import { kyselyStore } from 'open-payments-server/kysely'
    import fc from 'fast-check'
    import type { Kysely } from 'kysely'
    import { serverConformance, spendingProperty, type StoreSubject, storeConformance } from 'open-payments-server-testing'
    const store: Store = memoryStore()
    export const subject: StoreSubject = { store: () => store }
    export const cases = storeConformance(() => store)
    export const holds = () => fc.assert(spendingProperty(fc, subject), { numRuns: 1 })
    export const storeOn = (db: Kysely<unknown>) => kyselyStore(db, { dialect: 'sqlite' })
    export const serverCases = serverConformance({ walletAddress: 'https://wallet.example/alice' })
    export const mount = (options: Parameters<typeof createAuthorizationServer>[0]) =>
      [toExpress, toHono].map((to) => to(createAuthorizationServer({ ...options, store }).handle))
  `
  for (const [file, module] of [
    ['a.mts', 'NodeNext'],
    ['b.cts', 'Node16'],
    ['c.ts', 'Preserve'],
  ] as const) {
    writeFileSync(join(folder, file), source)
    const options = ['--noEmit', '--strict', '--skipLibCheck', 'false', '--target', 'es2022']
    const types = ['--typeRoots', join(root, 'node_modules/@types'), '--types', 'node']
    const moduleResolution = module === 'Preserve' ? 'bundler' : module
    const resolution = ['--module', module, '--moduleResolution', moduleResolution]
    const tsc = join(root, 'node_modules/typescript/bin/tsc')
    checkRun(`types in ${file}`, 'node', [tsc, ...options, ...types, ...resolution, file], folder)
  }
}

/** Bundles for a platform other than Node, where a `node:` import does not resolve. */
async function checkBundles(): Promise<void> {
  const all = await bundledBytes('*')
  check(
    'a bundle of all exports does not exceed its size limit',
    all <= bundleBytesMax,
    `${all} of at most ${bundleBytesMax} bytes`,
  )
  const one = await bundledBytes('{ createResourceServer }')
  check(
    'a bundle of a resource server does not exceed its size limit',
    one <= resourceServerBytesMax,
    `${one} of at most ${resourceServerBytesMax} bytes`,
  )
  const remote = await bundledBytes('{ createResourceServer, remoteIntrospection }')
  check(
    'a bundle of a resource server in its own process does not exceed its size limit',
    remote <= remoteServerBytesMax,
    `${remote} of at most ${remoteServerBytesMax} bytes`,
  )
}

/** Bundles exports with their dependencies, and returns the size in bytes, minified and gzipped. */
async function bundledBytes(exported: string): Promise<number> {
  const { outputFiles } = await build({
    stdin: { contents: `export ${exported} from "open-payments-server"`, resolveDir: folder },
    bundle: true,
    minify: true,
    format: 'esm',
    platform: 'neutral',
    mainFields: ['module', 'main'],
    write: false,
  })
  return gzipSync(outputFiles[0]?.contents ?? '').length
}

check(
  'the project folder contains no tarball',
  !readdirSync(root).some((name) => name.endsWith('.tgz')),
)
