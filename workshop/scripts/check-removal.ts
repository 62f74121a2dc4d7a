import { execFileSync, spawnSync } from 'node:child_process'
import {
  cpSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readlinkSync,
  rmSync,
  symlinkSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { modulesThatNeed } from '../../test/support/imports.js'

/**
 * Checks that packages can be removed: copies the repository without a folder of `packages`, and without the modules
 * that need it, and checks the types of the rest. Sets the exit code to 1 if a check fails.
 *
 *   npm run check:removal                  each package alone
 *   npm run check:removal -- pages ilp     these, each alone
 *   npm run check:removal -- --together    all at once but the testing kit, which all tests use
 *   npm run check:removal -- --together --tests    and then runs the tests of the library's layers
 */
const kit = 'testing'
const layers = ['core', 'host', 'http', 'network', 'outbound', 'protocol', 'servers', 'service']
const packages = readdirSync('packages')

const { values, positionals } = parseArgs({
  options: { together: { type: 'boolean' }, tests: { type: 'boolean' } },
  allowPositionals: true,
})
const chosen = positionals.length > 0 ? positionals : packages
const removals = values.together
  ? [chosen.filter((name) => name !== kit)]
  : chosen.map((name) => [name])

for (const names of removals) {
  const folder = mkdtempSync(join(tmpdir(), 'removed-'))
  try {
    const left = copyWithout(names, folder)
    check(names, `the types of ${left} files`, folder, 'typescript-7/bin/tsc', '-p', '.')
    if (values.tests) {
      const tests = layers.map((layer) => `test/${layer}/`)
      check(names, 'the tests of the layers', folder, 'vitest/vitest.mjs', 'run', ...tests)
    }
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

/** Copies the repository, with what is installed, but without these packages. Returns the number of files. */
function copyWithout(names: readonly string[], folder: string): number {
  const needing = new Set(names.flatMap((name) => [...modulesThatNeed(name)]))
  const isRemoved = (file: string) =>
    needing.has(file) || names.some((name) => file.startsWith(`packages/${name}/`))
  const files = execFileSync('git', ['ls-files', '-z'], { encoding: 'utf8' })
    .split('\0')
    .filter((file) => file !== '' && !isRemoved(file))
  for (const file of files) {
    mkdirSync(join(folder, dirname(file)), { recursive: true })
    cpSync(file, join(folder, file))
  }
  mkdirSync(join(folder, 'node_modules'))
  for (const name of readdirSync('node_modules')) {
    const installed = join('node_modules', name)
    // npm links the packages of this repository by relative paths, which here lead to the copy.
    const isOwn = lstatSync(installed).isSymbolicLink()
    symlinkSync(isOwn ? readlinkSync(installed) : resolve(installed), join(folder, installed))
  }
  return files.length
}

function check(names: readonly string[], what: string, cwd: string, ...command: string[]): void {
  const [program = '', ...args] = command
  const path = resolve('node_modules', program)
  const { status, stdout } = spawnSync(process.execPath, [path, ...args], { cwd, encoding: 'utf8' })
  console.log(`${status === 0 ? 'ok  ' : 'FAIL'} without ${names.join(', ')}: ${what}`)
  if (status === 0) return
  console.log(stdout)
  process.exitCode = 1
}
