import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { piped } from './support/piped.js'

const programs = [
  'examples/created-wallet/main.ts',
  'examples/demo/main.ts',
  'packages/create-open-payments-server/src/main.ts',
  'packages/cli/src/main.ts',
  'packages/doctor/src/main.ts',
  'packages/sandbox/src/main.ts',
]

/** Programs for developers, which run from the repository. */
const scripts = [
  'workshop/bench/endurance/main.ts',
  'workshop/delivery/main.ts',
  'workshop/inputs/main.ts',
  'workshop/simulation/main.ts',
]

interface Ended {
  readonly code: number
  readonly out: string
  readonly err: string
}

/** Runs a program, on Node.js of another version if `before` says so. */
function ran(
  main: string,
  args: readonly string[],
  before: readonly string[] = [],
): Promise<Ended> {
  const all = ['--import', 'tsx', ...before, main, ...args]
  return new Promise((resolve) => {
    execFile(process.execPath, all, (error, out, err) => {
      resolve({ code: error === null ? 0 : Number(error.code), out, err })
    })
  })
}

const { version } = JSON.parse(readFileSync('package.json', 'utf8'))
const older = "Object.defineProperty(process.versions, 'node', { value: '18.20.8' })"

describe.each([...programs, ...scripts])('%s', (main) => {
  test('explains itself with --help and -h', async () => {
    const [long, short] = [await ran(main, ['--help']), await ran(main, ['-h'])]
    expect(long).toMatchObject({ code: 0, out: expect.stringMatching(/^Usage: /), err: '' })
    expect(short).toEqual(long)
    for (const line of long.out.split('\n')) expect(line.length, line).toBeLessThanOrEqual(120)
  })

  test('prints its version', async () => {
    expect(await ran(main, ['--version'])).toEqual({ code: 0, out: `${version}\n`, err: '' })
  })

  test.each([
    ['stdout', '--help', 0],
    ['stderr', '--halp', 2],
  ] as const)('keeps its exit code if nobody reads %s after %s', async (name, option, expected) => {
    const { child, printed, ended } = piped([main, option])
    child[name].destroy()
    expect([await ended, printed]).toEqual([expected, { out: '', err: '' }])
  })

  test('knows which option was meant, with the exit code 2', async () => {
    const { code, out, err } = await ran(main, ['--halp'])
    expect([code, out]).toEqual([2, ''])
    expect(err).toMatch(/^unknown option --halp: did you mean --help\?\nSee .* --help\.\n$/)
  })
})

describe.each(programs)('%s, which people install', (main) => {
  test('names the options of every program in its help', async () => {
    const { out } = await ran(main, ['--help'])
    for (const option of ['-h, --help', '--version']) expect(out).toContain(option)
  })

  test('names the versions of Node.js that it needs before it does anything', async () => {
    const import18 = ['--import', `data:text/javascript,${encodeURIComponent(older)}`]
    expect(await ran(main, ['--help'], import18)).toEqual({
      code: 1,
      out: '',
      err: 'This program needs Node.js 20.19, or 22.12 or newer. This is 18.20.8.\n',
    })
  })
})

test('A server whose output nobody reads any more serves on, and ends with 0', async () => {
  const { child, printed, ended } = piped(['packages/sandbox/src/main.ts', '--port', '0'])
  await expect.poll(() => printed.out).toMatch(/is ready\n$/)
  child.stdout.destroy()
  child.stderr.destroy()
  const [wallet = ''] = /http\S+\/alice/.exec(printed.out) ?? []
  for (const path of ['', '/nothing', '']) {
    await (await fetch(`${wallet}${path}`)).arrayBuffer()
  }
  expect((await fetch(wallet)).status).toBe(200)
  child.kill('SIGTERM')
  expect(await ended).toBe(0)
})
