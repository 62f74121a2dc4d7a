import { spawnSync } from 'node:child_process'
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { runProgram, type Surroundings } from '../src/run.js'

let home: string
let wallet: string
beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), 'create-'))
  wallet = join(home, 'My Wallet')
})
afterEach(() => rmSync(home, { recursive: true }))

/** Runs the program, and returns its exit code and output. */
async function ran(args: readonly string[], surroundings: Partial<Surroundings> = {}) {
  const printed = { out: '', err: '' }
  const code = await runProgram(args, {
    nodeVersion: '22.13.0',
    environment: {},
    platform: 'linux',
    ask: undefined,
    isClone: false,
    newSecret: () => 'secret',
    out: (text) => {
      printed.out += text
    },
    err: (text) => {
      printed.err += text
    },
    ...surroundings,
  })
  return { code, ...printed }
}

/** Answers questions in order, and keeps them. */
function answering(...answers: readonly string[]) {
  const questions: string[] = []
  const ask = async (question: string) => {
    questions.push(question)
    return answers[questions.length - 1] ?? ''
  }
  return { questions, ask }
}

const written = (path: string) => readFileSync(join(wallet, path), 'utf8')

describe('the arguments', () => {
  test('--help prints how to use the program, and writes nothing', async () => {
    const { code, out } = await ran([wallet, '--help'])
    expect([code, existsSync(wallet)]).toEqual([0, false])
    expect(out).toMatch(/^Usage: npm create open-payments-server/)
  })

  test.each([
    [
      'an unknown option',
      ['--framwork', 'hono'],
      'unknown option --framwork: did you mean --framework?',
    ],
    ['an option without a value', ['--framework'], '--framework needs a value'],
    ['an unknown framework', ['--framework', 'expres'], 'one of express, fastify, hono: expres'],
    [
      'an unknown database',
      ['--database=postgresql'],
      'one of sqlite, postgres, mariadb: postgresql',
    ],
    ['a second folder', ['other'], 'unexpected argument: other'],
  ])('refuses %s with the exit code 2', async (_, args, message) => {
    const { code, out, err } = await ran([wallet, ...args])
    expect([code, out, existsSync(wallet)]).toEqual([2, '', false])
    expect(err).toContain(message)
    expect(err).toMatch(/^See .* --help\.$/m)
  })

  test('without a folder and a terminal are refused', async () => {
    expect(await ran([])).toMatchObject({ code: 2, err: expect.stringContaining('a folder') })
  })

  test('that npm consumed are named', async () => {
    const environment = { npm_config_framework: 'hono' }
    const { code, err } = await ran([wallet], { environment })
    expect([code, err]).toEqual([2, expect.stringContaining('write -- before the options')])
  })
})

describe('the packages of this project', () => {
  const names = ['client', 'pages', 'server', 'cli', 'doctor', 'server-testing'].map(
    (name) => `open-payments-${name}`,
  )
  const { version } = JSON.parse(
    readFileSync('packages/create-open-payments-server/package.json', 'utf8'),
  )
  const specs = () => {
    const { dependencies, devDependencies } = JSON.parse(written('package.json'))
    return names.map((name) => ({ ...dependencies, ...devDependencies })[name])
  }

  test('come from the registry, in the version of the program', async () => {
    expect((await ran([wallet])).code).toBe(0)
    expect(specs()).toEqual(names.map(() => `^${version}`))
  })

  test('come from the tarballs in the folder of --packages, wherever the program runs', async () => {
    const packed = join(home, 'packed')
    mkdirSync(packed)
    for (const name of names) writeFileSync(join(packed, `${name}-${version}.tgz`), '')
    const { code, out } = await ran([wallet, '--packages', packed], { isClone: true })
    expect([code, out]).toEqual([0, expect.not.stringContaining('--packages')])
    expect(specs()).toEqual(names.map((name) => `file:../packed/${name}-${version}.tgz`))
  })

  test('are not replaced by tarballs that do not exist: nothing is written', async () => {
    const { code, err } = await ran([wallet, '--packages', home])
    expect([code, existsSync(wallet)]).toEqual([1, false])
    expect(err).toContain(join(home, `open-payments-client-${version}.tgz`))
  })

  test('may not be published, of which the program warns in a clone', async () => {
    const { code, out } = await ran([wallet], { isClone: true })
    expect([code, out]).toEqual([0, expect.stringContaining('see --packages in the README')])
  })
})

describe('the questions', () => {
  test('are asked for what the arguments do not say', async () => {
    const { questions, ask } = answering('3', 'postgres')
    expect((await ran([wallet], { ask })).code).toBe(0)
    expect(questions).toHaveLength(2)
    const { dependencies } = JSON.parse(written('package.json'))
    expect(Object.keys(dependencies)).toEqual([
      '@hono/node-server',
      '@opentelemetry/api',
      'hono',
      'open-payments-client',
      'open-payments-pages',
      'open-payments-server',
      'pg',
    ])
  })

  test('are repeated until the answer is one of the choices', async () => {
    const { questions, ask } = answering('koa', '4', 'Fastify', '')
    expect((await ran([wallet], { ask })).code).toBe(0)
    expect(questions).toHaveLength(4)
    expect(written('src/server.ts')).toContain("from 'fastify'")
    expect(written('src/database.ts')).toContain("from 'node:sqlite'")
  })

  test('offer no database that this Node.js cannot run', async () => {
    const { questions, ask } = answering('1', '')
    expect((await ran([wallet], { ask, nodeVersion: '20.19.0' })).code).toBe(0)
    expect(questions.join()).not.toContain('sqlite')
    expect(written('src/database.ts')).toContain("from 'pg'")
  })

  test('are not asked without a terminal: the first choice counts', async () => {
    expect((await ran([wallet])).out).toContain('Express 5 and sqlite')
  })

  test('are not asked without a terminal: a database counts that this Node.js can run', async () => {
    const { code, out } = await ran([wallet], { nodeVersion: '20.19.0' })
    expect([code, out]).toEqual([0, expect.stringContaining('Express 5 and postgres')])
  })
})

describe('the program', () => {
  test('says what to do next', async () => {
    const { out } = await ran([wallet, '--database', 'mariadb'])
    expect(out).toMatch(
      /cd .*\n {2}npm install\n {2}docker compose up --wait\n {2}npm test\n {2}npm run dev/,
    )
  })

  test.each([
    'wallet',
    'My Wallet',
    "bob's",
    'x$(touch owned)',
    'w;touch owned',
    '日本',
    '@acme/a.b-c_d',
    'a\nb',
  ])('leads a shell into the folder %j, and nowhere else', async (name) => {
    const { out } = await ran([join(home, name)])
    const [, command = ''] = /^ {2}(cd [\s\S]*?)\n {2}npm install$/m.exec(out) ?? []
    const line = `${command} && test -f package.json && pwd -P`
    const shell = spawnSync('sh', ['-c', line], { encoding: 'utf8' })
    expect([shell.status, shell.stdout]).toEqual([0, `${realpathSync(join(home, name))}\n`])
    expect(existsSync('owned')).toBe(false)
    expect(existsSync(join(home, name, 'owned'))).toBe(false)
  })

  test('quotes the folder for the shells of Windows', async () => {
    const { out } = await ran([wallet], { platform: 'win32' })
    expect(out).toMatch(/^ {2}cd ".*My Wallet"$/m)
  })

  test.each([
    [
      'npm/11.6.2 node/v24.1.0 linux x64 workspaces/false',
      'npm install',
      'npm test',
      'npm run dev',
    ],
    ['pnpm/10.34.9 npm/? node/v22.1.0 linux x64', 'pnpm install', 'pnpm run test', 'pnpm run dev'],
    ['yarn/1.22.22 npm/? node/v22.1.0 linux x64', 'yarn install', 'yarn run test', 'yarn run dev'],
    ['bun/1.3.4 npm/? node/v24.3.0 linux x64', 'bun install', 'bun run test', 'bun run dev'],
    ['another/1.0.0 node/v24.3.0 linux x64', 'npm install', 'npm test', 'npm run dev'],
  ])('speaks the package manager that runs it: %s', async (agent, ...commands) => {
    const { out } = await ran([wallet], { environment: { npm_config_user_agent: agent } })
    for (const command of commands) {
      expect(out).toMatch(new RegExp(`^ {2}${command}$`, 'm'))
      expect(written('README.md')).toMatch(new RegExp(`^${command}$`, 'm'))
    }
    const [manager = ''] = commands[0]?.split(' ') ?? []
    const others = ['npm', 'pnpm', 'yarn', 'bun'].filter((other) => other !== manager)
    const named = new RegExp(`\\b(?:${others.join('|')}) (?:install|test|run|start)`)
    expect(`${out}${written('README.md')}`).not.toMatch(named)
  })

  test('keeps a folder that is not empty', async () => {
    mkdirSync(wallet)
    writeFileSync(join(wallet, 'notes.txt'), 'mine')
    const { code, err } = await ran([wallet])
    expect([code, err]).toEqual([1, expect.stringContaining('the folder is not empty')])
    expect(existsSync(join(wallet, 'package.json'))).toBe(false)
  })

  test('says that it cannot write where a file is', async () => {
    writeFileSync(wallet, 'mine')
    const { code, err } = await ran([wallet])
    expect([code, err]).toEqual([1, expect.stringMatching(/^ENOTDIR.*\n$/)])
  })

  test('writes into an empty repository', async () => {
    mkdirSync(join(wallet, '.git'), { recursive: true })
    expect((await ran([wallet])).code).toBe(0)
  })

  test('writes no wallet with SQLite on a Node.js that cannot run it', async () => {
    const { code, err } = await ran([wallet, '--database', 'sqlite'], { nodeVersion: '20.19.0' })
    expect([code, err]).toEqual([1, expect.stringContaining('SQLite needs Node.js 22.13 or newer')])
    expect(existsSync(wallet)).toBe(false)
    const other = await ran([wallet, '--database', 'postgres'], { nodeVersion: '20.19.0' })
    expect(other.code).toBe(0)
  })

  test('gives the wallet the name of its folder, and secrets that only its owner can read', async () => {
    await ran([wallet])
    expect(JSON.parse(written('package.json')).name).toBe('my-wallet')
    expect(written('README.md')).toMatch(/^# my-wallet\n/)
    expect(written('.env')).toMatch(/^SESSION_SECRET=secret$/m)
    expect(written('.env.example')).toMatch(/^SESSION_SECRET=$/m)
    expect(written('.gitignore').split('\n')).toContain('.env')
    expect(statSync(join(wallet, '.env')).mode & 0o077).toBe(0)
  })
})
