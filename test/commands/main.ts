import { execFileSync } from 'node:child_process'
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { freePort } from 'open-payments-programs'
import { demoPassword } from '../../examples/demo/browser.js'
import { commandBlocksIn, commandsIn, nextStepsIn, withValues } from './documents.js'
import { pageIn, type Reader, readerIn } from './reader.js'
import { startRegistry } from './registry.js'

// Types every command of the README, of the start pages, and of a created wallet, as a reader does: in a new clone, and
// with the packages of a folder, which is the argument. A command that is added to one of them is typed, too.
const [, , tarballs = ''] = process.argv
const root = resolve('.')
const home = mkdtempSync(join(tmpdir(), 'commands-'))
const browser = browserOf(join(home, 'browser'))
// A response that is an error counts as one.
writeFileSync(join(home, '.curlrc'), 'fail\n')
const blocks = commandBlocksIn(readFileSync('README.md', 'utf8'))
/** What needs published packages. All other commands are for a clone. */
const needsPackages = /\bnpm (?:create|install) (?:create-)?open-payments-/
let typed = 0

const scenes = [
  inClone(blocks.filter((commands) => !commands.some((each) => needsPackages.test(each)))),
  withPackages(blocks.filter((commands) => commands.some((each) => needsPackages.test(each)))),
]
try {
  // At once, because each waits for packages most of the time. Both end before their folder is removed.
  for (const ended of await Promise.allSettled(scenes)) {
    if (ended.status === 'rejected') throw ended.reason
  }
  console.log(`All ${typed} commands work as the documents show them.`)
} finally {
  rmSync(home, { recursive: true, force: true })
}

async function inClone(blocks: readonly (readonly string[])[]): Promise<void> {
  const folder = join(home, 'clone')
  execFileSync('git', ['clone', '--quiet', root, folder])
  const { reader, origin } = await placeIn(folder, {})
  try {
    for (const block of blocks) await typeAll(reader, block, origin)
    await typeAll(reader, await commandsOn(origin), origin)
    const sandbox = `npx open-payments-sandbox --approve all --port ${await freePort()}`
    const page = pageIn(await typeAll(reader, [sandbox], origin))
    await typeAll(reader, await commandsOn(page), origin)
  } finally {
    await reader.leave()
  }
}

async function withPackages(blocks: readonly (readonly string[])[]): Promise<void> {
  const registry = await startRegistry(resolve(tarballs), npm('config', 'get', 'registry'))
  // npx would run what it has kept of an earlier version.
  const env = { npm_config_registry: registry.url, npm_config_cache: join(home, 'cache') }
  try {
    for (const [index, block] of blocks.entries()) {
      const folder = join(home, `packages-${index}`)
      mkdirSync(folder)
      const { reader, origin } = await placeIn(folder, env)
      try {
        const steps = nextStepsIn(await typeAll(reader, block, origin))
        if (steps.length > 0) await followSteps(reader, folder, steps, origin)
      } finally {
        await reader.leave()
      }
    }
  } finally {
    registry.close()
  }
}

/** Types what `npm create` prints, then what the README of the wallet adds, and what its page shows. */
async function followSteps(
  reader: Reader,
  folder: string,
  steps: readonly string[],
  origin: string,
): Promise<void> {
  await typeAll(reader, steps, origin)
  const wallet = steps.find((step) => step.startsWith('cd '))?.slice('cd '.length) ?? ''
  const readme = commandBlocksIn(readFileSync(join(folder, wallet, 'README.md'), 'utf8')).flat()
  const page = await commandsOn(origin)
  const others = [...readme.map((each) => withValues(each, origin)), ...page]
  await typeAll(
    reader,
    [...new Set(others)].filter((each) => !steps.includes(each)),
    origin,
  )
}

async function typeAll(
  reader: Reader,
  commands: readonly string[],
  origin: string,
): Promise<string> {
  const printed: string[] = []
  for (const command of commands) printed.push(await reader.type(withValues(command, origin)))
  typed += commands.length
  return printed.join('\n')
}

async function commandsOn(url: string): Promise<readonly string[]> {
  const response = await fetch(url, { headers: { accept: 'text/html' } })
  const commands = commandsIn(await response.text())
  if (commands.length === 0) throw new Error(`${url} shows no command`)
  return commands
}

/** A reader in a folder, whose wallet has a port of its own and a password that the browser knows. */
async function placeIn(folder: string, env: NodeJS.ProcessEnv) {
  const port = await freePort()
  const origin = `http://localhost:${port}`
  const outside = Object.entries(process.env).filter(([name]) => !/^npm_(?!config_)/.test(name))
  const reader = readerIn(folder, {
    ...Object.fromEntries(outside),
    PORT: `${port}`,
    BASE_URL: origin,
    DEMO_PASSWORD: demoPassword,
    BROWSER: browser,
    CURL_HOME: home,
    XDG_CONFIG_HOME: `${folder}-settings`,
    ...env,
  })
  return { reader, origin }
}

/** Writes a program that opens a page as Alice does. */
function browserOf(file: string): string {
  const tsx = import.meta.resolve('tsx')
  const owner = join(import.meta.dirname, 'owner.ts')
  const tsconfig = resolve('tsconfig.json')
  const command = `TSX_TSCONFIG_PATH='${tsconfig}' exec '${process.execPath}' --import '${tsx}' '${owner}' "$1"`
  writeFileSync(file, `#!/bin/sh\n${command}\n`)
  chmodSync(file, 0o755)
  return file
}

function npm(...args: readonly string[]): string {
  return execFileSync('npm', [...args], { encoding: 'utf8' }).trim()
}
