import { execFileSync, spawnSync } from 'node:child_process'
import {
  cpSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { importedByPath } from '../../test/support/imports.js'

/**
 * Runs the tests of each package against its tarball: in an empty folder, with the tarballs of the library and of the
 * other packages in the place of their sources. Left out are the test files that import an internal module, which no
 * tarball contains. Sets the exit code to 1 if a test fails.
 *
 *   npm run check:tarballs              all packages; build them first
 *   npm run check:tarballs -- pages     some
 */
const { positionals } = parseArgs({ allowPositionals: true })
const packages = readdirSync('packages')
const chosen = positionals.length > 0 ? positionals : packages
const folder = mkdtempSync(join(tmpdir(), 'tarballs-'))
try {
  unpackAll()
  for (const name of chosen) testOf(name)
} finally {
  rmSync(folder, { recursive: true, force: true })
}

/** Unpacks the tarballs into `node_modules`, beside what else is installed. */
function unpackAll(): void {
  mkdirSync(join(folder, 'node_modules'))
  for (const name of readdirSync('node_modules')) {
    const installed = join('node_modules', name)
    const isOwn = lstatSync(installed).isSymbolicLink()
    if (!isOwn) symlinkSync(resolve(installed), join(folder, installed))
  }
  for (const path of ['.', ...packages.map((name) => `./packages/${name}`)]) {
    const { name } = JSON.parse(readFileSync(join(path, 'package.json'), 'utf8'))
    const args = ['pack', path, '--json', '--ignore-scripts', '--pack-destination', folder]
    const [{ filename }] = JSON.parse(execFileSync('npm', args, { encoding: 'utf8' }))
    const target = join(folder, 'node_modules', name)
    mkdirSync(target)
    execFileSync('tar', ['xzf', join(folder, filename), '-C', target, '--strip-components=1'])
  }
  const { devDependencies } = JSON.parse(readFileSync('package.json', 'utf8'))
  const manifest = { private: true, type: 'module', devDependencies }
  writeFileSync(join(folder, 'package.json'), JSON.stringify(manifest))
  // None of these is published: what the tests of several packages, its programs and its examples share.
  for (const path of ['test/support', 'programs', 'examples']) {
    const filter = (source: string) => !source.includes('node_modules')
    cpSync(path, join(folder, path), { recursive: true, filter })
  }
}

/** Whether a test file, and what it imports of its folder, imports nothing of `src` but the face of the package. */
function usesFace(test: string, name: string, seen = new Set<string>()): boolean {
  if (seen.has(test)) return true
  seen.add(test)
  return importedByPath(test).every((file) =>
    file.startsWith(join('packages', name, 'src'))
      ? file === join('packages', name, 'src', 'index.ts')
      : file.startsWith(join('packages', name, 'templates')) || usesFace(file, name, seen),
  )
}

function testOf(name: string): void {
  const own = join('packages', name)
  const { name: published } = JSON.parse(readFileSync(join(own, 'package.json'), 'utf8'))
  const tests = readdirSync(join(own, 'test'), { recursive: true, encoding: 'utf8' })
    .filter((path) => path.endsWith('.test.ts') && !path.endsWith('.long.test.ts'))
    .map((path) => join('test', path))
  const faced = tests.filter((path) => usesFace(join(own, path), name))
  const place = join(folder, 'packages', name)
  mkdirSync(join(folder, 'packages'), { recursive: true })
  cpSync(join(folder, 'node_modules', published), place, { recursive: true })
  cpSync(join(own, 'test'), join(place, 'test'), { recursive: true })
  writeFileSync(join(place, 'vitest.config.mjs'), configOf(faced))
  const said = `${published}: ${faced.length} of ${tests.length} test files use its face alone`
  // A package whose face no test uses would be published unseen.
  if (faced.length === 0) {
    console.log(`FAIL ${said}`)
    process.exitCode = 1
    return
  }
  const vitest = resolve('node_modules/vitest/vitest.mjs')
  const run = spawnSync(process.execPath, [vitest, 'run'], { cwd: place, encoding: 'utf8' })
  console.log(`${run.status === 0 ? 'ok  ' : 'FAIL'} ${said}`)
  if (run.status === 0) return
  console.log(run.stdout, run.stderr)
  process.exitCode = 1
}

function configOf(tests: readonly string[]): string {
  const templates = join(folder, 'node_modules/create-open-payments-server/templates')
  const alias = {
    '../src/index.js': '../dist/index.js',
    '../../src/index.js': '../../dist/index.js',
    'open-payments-test-support': join(folder, 'test/support'),
    'open-payments-programs': join(folder, 'programs/src/index.ts'),
    'create-open-payments-server/wallet': join(templates, 'wallet/src'),
    ...Object.fromEntries(
      ['frameworks/fastify', 'frameworks/express', 'frameworks/hono'].map((name) => [
        `create-open-payments-server/${name}`,
        join(templates, name, 'src/server.ts'),
      ]),
    ),
    ...Object.fromEntries(
      ['databases/postgres', 'databases/mariadb', 'databases/sqlite'].map((name) => [
        `create-open-payments-server/${name}`,
        join(templates, name, 'src/database.ts'),
      ]),
    ),
  }
  const test = {
    include: tests,
    setupFiles: [join(folder, 'test/support/seed.ts')],
    env: { TEST_DEPTH: 'short' },
    testTimeout: 300_000,
    hookTimeout: 300_000,
    expect: { poll: { timeout: 120_000, interval: 20 } },
  }
  return `export default ${JSON.stringify({ resolve: { alias }, test })}`
}
