import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { gzipSync } from 'node:zlib'
import { build } from 'esbuild'

/**
 * Checks the packages as a host installs them: packs them, installs the tarballs in an empty project, and loads every
 * entry there with `import`, with `require`, and as CommonJS. Sets the exit code to 1 if a check fails. With
 * `--keep <folder>` the tarballs stay in that folder, so a release publishes the tarballs that were checked. With
 * `--built` it packs what `npm run build` has written before.
 */
const root = process.cwd()
const packagesMax = 6
const unpackedBytesMax = 1_900_000
const bundleBytesMax = 106_000
const resourceServerBytesMax = 71_500
const remoteServerBytesMax = 75_000
/** Installed by this check alone: it brings a compiler of its own. */
const attw = '@arethetypeswrong/cli@0.18.5'
/** The oldest compiler that README.md names. */
const typescriptMin = '5.4.5'
/** The newest Kysely, which is an ES module only, and needs a newer library of the language. */
const kyselyNewest = '0.29.9'

/** The other packages, with the bytes that each may have unpacked. */
const annexes = [
  { name: 'testing', bytesMax: 720_000, isImported: true },
  { name: 'client', bytesMax: 180_000, isImported: true },
  { name: 'doctor', bytesMax: 460_000, isImported: true },
  { name: 'cli', bytesMax: 200_000, isImported: false },
  { name: 'sandbox', bytesMax: 1_950_000, isImported: true },
  { name: 'kysely', bytesMax: 250_000, isImported: true },
  { name: 'dynamodb', bytesMax: 60_000, isImported: true },
  { name: 'ilp', bytesMax: 260_000, isImported: true },
  { name: 'pages', bytesMax: 575_000, isImported: true },
  { name: 'rafiki', bytesMax: 120_000, isImported: true },
  { name: 'create-open-payments-server', bytesMax: 175_000, isImported: false },
]

/** The packages that an entry needs besides the library. They are installed for the checks of it. */
const peers: Readonly<Record<string, readonly string[]>> = {
  '/opentelemetry': ['@opentelemetry/api'],
  '-kysely': ['kysely'],
  '-dynamodb': ['@aws-sdk/client-dynamodb'],
  '-ilp': ['@interledger/pay', 'ilp-packet', 'ilp-protocol-stream'],
  '-testing': ['fast-check'],
}
/** The packages whose names do not begin with that of the library. */
const named: Readonly<Record<string, string>> = {
  '-client': 'open-payments-client',
  '-doctor': 'open-payments-doctor',
  '-ilp': 'open-payments-ilp',
  '-pages': 'open-payments-pages',
  '-rafiki': 'open-payments-rafiki',
  '-sandbox': 'open-payments-sandbox',
}
const entries = [
  '',
  '/core',
  '/adapter',
  '/attempts',
  '/express',
  '/fastify',
  '/hono',
  '/opentelemetry',
  '/postgres',
  '/sqlite',
  ...annexes.filter(({ isImported }) => isImported).map(({ name }) => `-${name}`),
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

const { values } = parseArgs({
  options: { keep: { type: 'string' }, built: { type: 'boolean' } },
})
const folder = mkdtempSync(join(tmpdir(), 'consumer-'))
const tarballs = values.keep === undefined ? folder : resolve(values.keep)
try {
  mkdirSync(tarballs, { recursive: true })
  // The `prepack` script of the library builds all packages.
  const library = pack('.', ...(values.built ? ['--ignore-scripts'] : []))
  checkFiles(library)
  checkTarball(library, unpackedBytesMax, true)
  const packed = new Map<string, string>()
  for (const { name, bytesMax, isImported } of annexes) {
    const annex = pack(`./packages/${name}`, '--ignore-scripts')
    checkTarball(annex, bytesMax, isImported)
    packed.set(`-${name}`, join(tarballs, annex.filename))
  }
  checkProgram('open-payments-doctor', packed.get('-doctor') ?? '')
  checkProgram('open-payments', packed.get('-cli') ?? '')
  install(join(tarballs, library.filename))
  checkLoading(packed)
  checkIdentity()
  checkMonths()
  addPackages(`typescript-min@npm:typescript@${typescriptMin}`)
  checkTypes()
  checkNewestKysely()
  await checkBundles()
  checkPatch(join(tarballs, library.filename))
} finally {
  rmSync(folder, { recursive: true, force: true })
}

function pack(path: string, ...options: readonly string[]): Packed {
  const printed = run('npm', ['pack', path, '--json', '--pack-destination', tarballs, ...options])
  // The `prepack` script may print lines before the JSON.
  const [packed] = JSON.parse(printed.slice(printed.indexOf('[\n')))
  return packed
}

/** Checks the size, and with publint and Are the Types Wrong the entries and their declarations. */
function checkTarball(
  { filename, unpackedSize, files }: Packed,
  most: number,
  isImported: boolean,
): void {
  const size = `${unpackedSize} bytes unpacked, at most ${most}`
  check(`${filename} does not exceed its size limit`, unpackedSize <= most, size)
  const changes = files.some(({ path }) => path === 'CHANGELOG.md')
  check(`${filename} says what has changed`, changes)
  const tarball = join(tarballs, filename)
  checkRun(`publint: ${filename}`, 'npx', ['publint', '--strict', tarball])
  if (isImported)
    checkRun(`attw: ${filename}`, 'npx', ['--yes', attw, tarball, '--profile', 'node16'])
}

/** Checks that the tarball contains the expected files and no others. */
function checkFiles({ files }: Packed): void {
  const paths = files.map(({ path }) => path)
  const named = paths.filter((path) => !/^dist\/[a-z-]+-[\w-]{8}\.(?:js|d\.cts)$/.test(path))
  const names = ['index', ...entries.filter((entry) => entry.startsWith('/'))]
  const expected = names.flatMap((name) =>
    ['js', 'cjs', 'd.ts', 'd.cts'].map((extension) => `dist/${name.replace('/', '')}.${extension}`),
  )
  expected.push(
    'dist/library.js',
    'dist/library.cjs',
    'dist/migrations/0001_records.sql',
    'dist/migrations/reports/0001_reports.sql',
  )
  expected.push('dist/licenses.txt', 'CHANGELOG.md', 'LICENSE', 'README.md', 'package.json')
  expected.push('openapi.json')
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
  addPackages(tarball)
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

/** Runs a program without the library, as `npx` does. */
function checkProgram(name: string, tarball: string): void {
  const printed = run('npx', ['--yes', '-p', tarball, '--', name, '--help'], folder)
  check(`${name} runs alone`, printed.startsWith(`Usage: ${name}`))
}

/** Loads every entry, after the installation of the package that has it and of what it needs. */
function checkLoading(packed: ReadonlyMap<string, string>): void {
  for (const entry of entries) {
    const own = packed.get(entry)
    const wanted = [...(peers[entry] ?? []).map(locked), ...(own === undefined ? [] : [own])]
    if (wanted.length > 0) addPackages(...wanted)
    const name = named[entry] ?? `open-payments-server${entry}`
    const print = 'console.log(Object.keys(loaded).length)'
    const esm = `import * as loaded from ${JSON.stringify(name)}; ${print}`
    check(`import ${name}`, Number(run('node', ['--input-type=module', '-e', esm], folder)) > 0)
    const cjs = `const loaded = require(${JSON.stringify(name)}); ${print}
      import(${JSON.stringify(name)}).then((imported) => console.log(imported === loaded))`
    const [exported, isSame] = run('node', ['-e', cjs], folder).split('\n')
    check(`require ${name}`, Number(exported) > 0)
    check(`import and require ${name} load one module`, isSame === 'true')
    const commonjs = [
      '--no-experimental-require-module',
      '-e',
      `const loaded = require(${JSON.stringify(name)}); ${print}`,
    ]
    check(`require ${name} as CommonJS`, run('node', commonjs, folder).trim() === exported)
  }
}

/** Checks that the next patch of the library installs beside the packages of today: they must not keep a repair out. */
function checkPatch(tarball: string): void {
  const patched = mkdtempSync(join(folder, 'patched-'))
  run('tar', ['-xzf', tarball, '-C', patched])
  const from = join(patched, 'package')
  run('npm', ['version', 'patch', '--no-git-tag-version', '--ignore-scripts'], from)
  run('npm', ['pack', '--ignore-scripts', '--pack-destination', patched], from)
  const [next = ''] = readdirSync(patched).filter((name) => name.endsWith('.tgz'))
  const parameters = ['install', '--no-audit', '--no-fund', join(patched, next)]
  checkRun('the next patch of the library installs beside its packages', 'npm', parameters, folder)
  const installed = run('npm', ['ls', 'open-payments-server', '--parseable'], folder).trim()
  check('and there is one copy of it', installed.split('\n').length === 1, installed)
}

/** Checks that the entries share the classes of errors in CommonJS too, where `instanceof` must hold. */
function checkIdentity(): void {
  const print = `
    const [{ RawBodyError }, adapter] = ['', '/adapter'].map((entry) => require('open-payments-server' + entry))
    console.log(RawBodyError === adapter.RawBodyError)`
  const printed = run('node', ['--no-experimental-require-module', '-e', print], folder)
  check('the entries share their classes in CommonJS', printed.trim() === 'true')
}

function addPackages(...wanted: readonly string[]): void {
  run('npm', ['install', '--silent', '--no-audit', '--no-fund', ...wanted], folder)
}

/** Returns a package in the version of the lock file. */
function locked(name: string): string {
  const manifest = readFileSync(join(root, `node_modules/${name}/package.json`), 'utf8')
  return `${name}@${JSON.parse(manifest).version}`
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

/**
 * Checks that the declarations need only Node's types, Kysely for its store, and fast-check for the testing kit; and
 * that a host which emits declarations, as with Nest's CLI, may return whatever the library does: the compiler must
 * find each type by the entry that the host imports. A spread shows the types of all methods of a service.
 */
function checkTypes(): void {
  const using = `
    import { createAuthorizationServer, memoryStore, type Store } from 'open-payments-server'
    import { toExpress } from 'open-payments-server/express'
    import { toHono } from 'open-payments-server/hono'
    import { kyselyStore } from 'open-payments-server-kysely'
    import fc from 'fast-check'
    import type { Kysely } from 'kysely'
    import { createPages, type PagesOptions } from 'open-payments-pages'
    import { type Client, createClient } from 'open-payments-client'
    import { serverConformance } from 'open-payments-doctor'
    import { type Sandbox, startSandbox } from 'open-payments-sandbox'
    import { spendingProperty, type StoreSubject, storeConformance } from 'open-payments-server-testing'
    const store: Store = memoryStore()
    export const subject: StoreSubject = { store: () => store }
    export const cases = storeConformance(() => store)
    export const holds = () => fc.assert(spendingProperty(fc, subject), { numRuns: 1 })
    export const storeOn = (db: Kysely<unknown>) => kyselyStore(db, { dialect: 'sqlite' })
    export const pagesOf = (options: PagesOptions) => toExpress(createPages(options).consent)
    export const client = (privateKey: Parameters<typeof createClient>[0]['privateKey']): Client =>
      createClient({ keyId: '1', privateKey })
    export const sandbox = (): Promise<Sandbox> => startSandbox({ approve: ['all'] })
    export const serverCases = serverConformance({ walletAddress: 'https://wallet.example/alice' })
    export const mount = (options: Parameters<typeof createAuthorizationServer>[0]) =>
      [toExpress, toHono].map((to) => to(createAuthorizationServer({ ...options, store }).handle))
  `
  const returning = `
    import {
      type AuthorizationServer, type AuthorizationServerOptions, consumeEvents, createAuthorizationServer,
      createResourceServer, createSignatureVerifier, createWallet, createWalletAddressServer,
      type GrantAmendment, type GrantApproval, guardedFetch, ilpPaymentMethods, type IlpPaymentMethodsOptions,
      memoryStore, readClientKey, remoteClientKeys, remoteGrants, type RemoteGrantsOptions,
      type ResourceServer, type ResourceServerOptions, type WalletAddressServerOptions, type WalletOptions,
    } from 'open-payments-server'
    export const wallet = (options: WalletOptions) => ({ ...createWallet(options) })
    export const wallets = (options: WalletAddressServerOptions) =>
      ({ ...createWalletAddressServer(options) })
    export const authorization = (options: AuthorizationServerOptions) => {
      const auth = createAuthorizationServer(options)
      return { ...auth, ...auth.interactions, events: { ...auth.events } }
    }
    export const grants = (auth: AuthorizationServer) => ({ ...auth.grants })
    export const resources = (options: ResourceServerOptions) => {
      const server = createResourceServer(options)
      return { ...server, events: { ...server.events } }
    }
    export const incoming = (server: ResourceServer) => ({ ...server.incomingPayments })
    export const outgoing = (server: ResourceServer) => ({ ...server.outgoingPayments })
    export const receive = async (server: ResourceServer, paymentId: string) =>
      server.incomingPayments.receive(paymentId, {
        transferId: '1',
        amount: { value: '1', assetCode: 'USD', assetScale: 2 },
      })
    export const send = async (server: ResourceServer, paymentId: string) =>
      server.outgoingPayments.reportSent(paymentId, {
        sentAmount: { value: '1', assetCode: 'USD', assetScale: 2 },
        deliveredAmount: { value: '1', assetCode: 'USD', assetScale: 2 },
      })
    export const approve = async (auth: AuthorizationServer, approval: GrantApproval) =>
      auth.interactions.approve('1', approval)
    export const amend = async (auth: AuthorizationServer, amendment: GrantAmendment) =>
      auth.grants.amend('1', amendment)
    export const record = async (auth: AuthorizationServer) => {
      const { consent, interaction, continuation, tokens } = (await auth.grants.getRecord('1'))!
      return { consent, interaction, continuation, tokens }
    }
    export const store = () => ({ ...memoryStore() })
    export const keys = () => ({ ...remoteClientKeys() })
    export const introspection = (options: RemoteGrantsOptions) => ({ ...remoteGrants(options) })
    export const fetching = async (url: URL) => guardedFetch()(url)
    export const consume = (...given: Parameters<typeof consumeEvents>) =>
      ({ ...consumeEvents(...given) })
    export const verify = createSignatureVerifier({ url: 'https://wallet.example' })
    export const methods = (options: IlpPaymentMethodsOptions) => ({ ...ilpPaymentMethods(options) })
    export const key = (text: string) => readClientKey(text)
  `
  for (const compiler of compilers()) {
    for (const [extension, module, ...library] of [
      ['mts', 'NodeNext', '--lib', 'es2021'],
      ['cts', 'Node16', '--lib', 'es2021'],
      ['ts', 'Preserve'], // with the types of the DOM
    ] as const) {
      const sources = { [`using.${extension}`]: using, [`returning.${extension}`]: returning }
      compile(compiler, sources, module, ['--declaration', '--outDir', 'emitted', ...library])
    }
  }
}

/** Checks that the store of Kysely has its types beside the newest Kysely, and restores the one of the lock file. */
function checkNewestKysely(): void {
  const source = `
    import type { Kysely } from 'kysely'
    import { kyselyStore } from 'open-payments-server-kysely'
    export const storeOn = (db: Kysely<unknown>) => kyselyStore(db, { dialect: 'sqlite' })
  `
  addPackages(`kysely@${kyselyNewest}`)
  for (const compiler of compilers()) {
    for (const [file, module] of [
      ['kysely.mts', 'NodeNext'],
      ['kysely.ts', 'Preserve'],
    ] as const) {
      compile(compiler, { [file]: source }, module, ['--noEmit', '--lib', 'es2022'])
    }
  }
  addPackages(locked('kysely'))
}

/** The compilers of hosts: the oldest that can find the types, that of the lock file, and the newest. */
function compilers(): readonly (readonly [name: string, tsc: string])[] {
  return [
    [typescriptMin, join(folder, 'node_modules/typescript-min/bin/tsc')],
    ['of the lock file', join(root, 'node_modules/typescript/bin/tsc')],
    ['in Go', join(root, 'node_modules/typescript-7/bin/tsc')],
  ]
}

/** Checks that a compiler accepts the files of a host. */
function compile(
  [name, tsc]: readonly [name: string, tsc: string],
  sources: Readonly<Record<string, string>>,
  module: string,
  more: readonly string[],
): void {
  const files = Object.keys(sources)
  for (const file of files) writeFileSync(join(folder, file), sources[file] ?? '')
  const options = ['--strict', '--skipLibCheck', 'false', '--target', 'es2021', ...more]
  const types = ['--typeRoots', join(root, 'node_modules/@types'), '--types', 'node']
  const moduleResolution = module === 'Preserve' ? 'bundler' : module
  const resolution = ['--module', module, '--moduleResolution', moduleResolution]
  const parameters = [tsc, ...options, ...types, ...resolution, ...files]
  checkRun(`types in ${files.join(' and ')}, TypeScript ${name}`, 'node', parameters, folder)
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
  const remote = await bundledBytes('{ createResourceServer, remoteGrants }')
  check(
    'a bundle of a resource server in its own process does not exceed its size limit',
    remote <= remoteServerBytesMax,
    `${remote} of at most ${remoteServerBytesMax} bytes`,
  )
  for (const name of [
    'open-payments-server/postgres',
    'open-payments-server-kysely',
    'open-payments-server-dynamodb',
    'open-payments-client',
    'open-payments-pages',
  ]) {
    check(`a bundle of ${name} needs no module of Node.js`, (await bundledBytes('*', name)) > 0)
  }
}

/** Bundles exports with their dependencies as for Workers, and returns the size in bytes, minified and gzipped. */
async function bundledBytes(exported: string, name = 'open-payments-server'): Promise<number> {
  const { outputFiles } = await build({
    stdin: { contents: `export ${exported} from ${JSON.stringify(name)}`, resolveDir: folder },
    bundle: true,
    minify: true,
    format: 'esm',
    platform: 'neutral',
    conditions: ['workerd', 'worker', 'browser'],
    mainFields: ['browser', 'module', 'main'],
    write: false,
  })
  return gzipSync(outputFiles[0]?.contents ?? '').length
}

check(
  'the project folder contains no tarball',
  !readdirSync(root).some((name) => name.endsWith('.tgz')),
)
