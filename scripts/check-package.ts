import { execFileSync } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { build } from 'esbuild'

/**
 * Looks at the package as those who install it get it: packs it, installs the tarball in an empty project,
 * and loads every entry there in each way that Node has. Ends with an error at the first thing amiss.
 */
const root = process.cwd()
const packagesMax = 6
const bundleBytesMax = 64_000
/** Entries that need a peer of theirs, which is installed for them alone. */
const peers: Readonly<Record<string, string>> = { '/opentelemetry': '@opentelemetry/api' }
const entries = ['', '/express', '/fastify', '/hono', '/opentelemetry', '/postgres', '/testing']

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

const folder = mkdtempSync(join(tmpdir(), 'consumer-'))
try {
  const [packed] = JSON.parse(run('npm', ['pack', '--json', '--pack-destination', folder]))
  checkFiles(packed.files.map(({ path }: { path: string }) => path))
  check(
    'the package is small',
    packed.unpackedSize < 1_300_000,
    `${packed.unpackedSize} bytes unpacked`,
  )
  install(join(folder, packed.filename))
  checkLoading()
  checkTypes()
  await checkBundle()
} finally {
  rmSync(folder, { recursive: true, force: true })
}

/** A file more or less in the tarball is for somebody to notice. */
function checkFiles(files: readonly string[]): void {
  const named = files.filter((file) => !/^dist\/[a-z-]+-[\w-]{8}\.(?:d\.)?c?[jt]s$/.test(file))
  const expected = ['index', ...entries.filter(Boolean)].flatMap((name) =>
    ['js', 'cjs', 'd.ts', 'd.cts'].map((extension) => `dist/${name.replace('/', '')}.${extension}`),
  )
  const documents = ['CHANGELOG.md', 'LICENSE', 'README.md', 'SECURITY.md', 'package.json']
  expected.push('dist/migrations/0001_records.sql')
  const surplus = named.filter((file) => ![...expected, ...documents].includes(file))
  const missing = [...expected, ...documents].filter((file) => !named.includes(file))
  check(
    'the tarball holds what it should',
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
  check('few packages come along', others <= packagesMax, `${others} beside ours`)
  check(
    'nothing runs at installation',
    packages.every(([, { hasInstallScript }]) => !hasInstallScript),
  )
}

function checkLoading(): void {
  for (const entry of [...entries].sort((a, b) => Number(a in peers) - Number(b in peers))) {
    const peer = peers[entry]
    if (peer !== undefined) {
      const { version } = JSON.parse(
        readFileSync(join(root, `node_modules/${peer}/package.json`), 'utf8'),
      )
      run('npm', ['install', '--silent', '--no-audit', '--no-fund', `${peer}@${version}`], folder)
    }
    const name = `open-payments-server${entry}`
    const print = 'console.log(Object.keys(loaded).length)'
    const esm = `import * as loaded from ${JSON.stringify(name)}; ${print}`
    check(`import ${name}`, Number(run('node', ['--input-type=module', '-e', esm], folder)) > 0)
    const cjs = `const loaded = require(${JSON.stringify(name)}); ${print}`
    const off = '--no-experimental-require-module'
    check(
      `require ${name}, ES modules not allowed`,
      Number(run('node', [off, '-e', cjs], folder)) > 0,
    )
  }
}

/** The declarations stand on their own: nothing but Node's types is needed to use `.` and Express. */
function checkTypes(): void {
  const source = `
    import { createAuthorizationServer, memoryStore, type Store } from 'open-payments-server'
    import { toExpress } from 'open-payments-server/express'
    import { toHono } from 'open-payments-server/hono'
    const store: Store = memoryStore()
    export const mount = (options: Parameters<typeof createAuthorizationServer>[0]) =>
      [toExpress, toHono].map((to) => to(createAuthorizationServer({ ...options, store }).handle))
  `
  for (const [file, module] of [
    ['a.mts', 'NodeNext'],
    ['b.cts', 'NodeNext'],
    ['c.ts', 'Preserve'],
  ] as const) {
    writeFileSync(join(folder, file), source)
    const options = ['--noEmit', '--strict', '--skipLibCheck', 'false', '--target', 'es2022']
    const types = ['--typeRoots', join(root, 'node_modules/@types'), '--types', 'node']
    const resolution = [
      '--module',
      module,
      '--moduleResolution',
      module === 'NodeNext' ? module : 'bundler',
    ]
    try {
      run(
        'node',
        [join(root, 'node_modules/typescript/bin/tsc'), ...options, ...types, ...resolution, file],
        folder,
      )
      check(`types in ${file}`, true)
    } catch (error) {
      check(`types in ${file}`, false, String((error as { stdout?: string }).stdout))
    }
  }
}

/** For a platform that is no Node, where a \`node:\` import would not resolve. */
async function checkBundle(): Promise<void> {
  const { outputFiles } = await build({
    stdin: { contents: 'export * from "open-payments-server"', resolveDir: folder },
    bundle: true,
    minify: true,
    format: 'esm',
    platform: 'neutral',
    mainFields: ['module', 'main'],
    write: false,
  })
  const bytes = gzipSync(outputFiles[0]?.contents ?? '').length
  check(
    'it bundles for runtimes without Node, and small',
    bytes <= bundleBytesMax,
    `${bytes} bytes gzipped`,
  )
}

check('no tarball is left behind', !readdirSync(root).some((name) => name.endsWith('.tgz')))
