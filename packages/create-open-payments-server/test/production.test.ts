import { readFileSync } from 'node:fs'
import { createServer, request, type Server } from 'node:http'
import { type AddressInfo, connect, createServer as createLink, type Socket } from 'node:net'
import { openDatabase as openMariadb } from 'create-open-payments-server/databases/mariadb'
import { openDatabase as openPostgres } from 'create-open-payments-server/databases/postgres'
import { closeServer } from 'create-open-payments-server/wallet/close'
import { openDemoAccounts } from 'create-open-payments-server/wallet/ledger'
import { prepare } from 'create-open-payments-server/wallet/prepare'
import { withReadiness } from 'create-open-payments-server/wallet/readiness'
import type { Database } from 'create-open-payments-server/wallet/sql'
import { checkTables, migrate } from 'create-open-payments-server/wallet/tables'
import { emptyPglite } from 'open-payments-test-support/databases'
import { databaseOn } from 'open-payments-test-support/examples/created-wallet'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest'
import { databases } from '../src/choices.js'
import { filesOf } from '../src/project.js'

const read = (path: string) => readFileSync(path, 'utf8')
const guide = read('docs/production.md')

/** The members of a literal of the guide, by name. */
function membersAfter(start: string): Readonly<Record<string, string>> {
  const [, literal = ''] = guide.split(start)[1]?.match(/^([\s\S]*?)\n\s*\}/) ?? []
  const members = [...literal.matchAll(/^\s*(\w+): ([\w.]+),/gm)]
  return Object.fromEntries(members.map(([, name = '', value = '']) => [name, value]))
}

const pool = membersAfter('new Pool({')
const session = membersAfter('const sessionVariables = {')
const timeouts = Object.keys(pool).filter((name) => /time_?out/i.test(name))

const sourceOf = (database: keyof typeof databases) => {
  const project = {
    name: 'wallet',
    specOf: () => '^0.1.0',
    framework: 'express',
    manager: 'npm',
  } as const
  return filesOf({ ...project, database, newSecret: () => 'secret' })
}

describe('what the production guide demands of connections', () => {
  test('is time-outs of the driver below those of the store, and time-outs of the server', () => {
    expect(timeouts).toEqual([
      'connectionTimeoutMillis',
      'query_timeout',
      'statement_timeout',
      'idle_in_transaction_session_timeout',
    ])
    for (const name of timeouts.slice(0, 3)) {
      expect(Number(pool[name]?.replace('_', '')), name).toBeLessThan(3_000)
    }
    expect(Object.keys(session)).toEqual([
      'wsrep_sync_wait',
      'innodb_lock_wait_timeout',
      'idle_transaction_timeout',
      'max_statement_time',
    ])
  })

  test.each([
    ['a created wallet', sourceOf('postgres').get('src/database.ts') ?? ''],
    ["Nest's example", read('examples/frameworks/nest/src/database.module.ts')],
    ['the stack', read('examples/stack/database.ts')],
  ])('is what %s opens PostgreSQL with', (_, source) => {
    for (const name of timeouts) expect(source).toContain(`${name}: ${pool[name]},`)
    expect(source).toContain("pool.on('error'")
    expect(source).toContain("pool.on('connect'")
  })

  test("is what Nest's example has of readiness, rates and metrics, and its guide shows", () => {
    const nest = (name: string) => read(`examples/frameworks/nest/src/${name}.ts`)
    const shown = read('docs/frameworks.md')
    const needed = {
      'ready.controller': ["@Controller('ready')", 'checkTables(this.pool)', 'onModuleDestroy()'],
      wallet: ['rateLimit: perMinute(300)'],
      'open-payments.module': ['observeBacklog(', 'beforeApplicationShutdown()'],
      'database.module': ['onApplicationShutdown()'],
      start: ['enableShutdownHooks()', "exclude: ['ready']"],
    }
    for (const [name, lines] of Object.entries(needed)) {
      for (const line of lines)
        expect([nest(name), shown]).toEqual(Array(2).fill(expect.stringContaining(line)))
    }
    const limiter = (sourceOf('postgres').get('src/rate-limit.ts') ?? '').trim()
    expect(nest('rate-limit').trim()).toBe(limiter)
  })

  test('is what a created wallet opens MariaDB with', () => {
    const { wsrep_sync_wait: _ofGalera, ...single } = session
    const source = sourceOf('mariadb').get('src/database.ts') ?? ''
    for (const [name, value] of Object.entries(single))
      expect(source).toContain(`${name}: ${value}`)
  })

  test.skipIf(process.env['TEST_DATABASE_URL'] === undefined)(
    'holds on the connections of a created wallet to PostgreSQL, and not while it migrates',
    async () => {
      const settings = async (options: { readonly migrates?: boolean }) => {
        const database = openPostgres(process.env['TEST_DATABASE_URL'] ?? '', options)
        const [one] = await database.sql('SHOW statement_timeout')
        const [other] = await database.sql('SHOW idle_in_transaction_session_timeout')
        await database.close()
        return { ...one, ...other }
      }
      const served = {
        statement_timeout: '1500ms',
        idle_in_transaction_session_timeout: '5s',
      }
      expect(await settings({})).toEqual(served)
      expect(await settings({ migrates: true })).not.toMatchObject(served)
    },
  )

  test.skipIf(process.env['TEST_MARIADB_URL'] === undefined)(
    'holds on the connections of a created wallet to MariaDB, and not while it migrates',
    async () => {
      const url = (process.env['TEST_MARIADB_URL'] ?? '').replace(/^mariadb:/, 'mysql:')
      const settings = async (options: { readonly migrates?: boolean }) => {
        const database = openMariadb(url, options)
        const names = Object.keys(session).filter((name) => name !== 'wsrep_sync_wait')
        const [row = {}] = await database.sql(`SELECT ${names.map((name) => `@@${name}`).join()}`)
        await database.close()
        return Object.values(row).map(Number)
      }
      expect(await settings({})).toEqual([1, 5, 1.5])
      expect((await settings({ migrates: true })).slice(1)).not.toEqual([5, 1.5])
    },
  )

  test.skipIf(process.env['TEST_MARIADB_URL'] === undefined)(
    'ends a statement that a frozen MariaDB does not answer, and goes on when it answers again',
    async () => {
      const url = new URL((process.env['TEST_MARIADB_URL'] ?? '').replace(/^mariadb:/, 'mysql:'))
      const link = await freezableLink(Number(url.port || 3306), url.hostname)
      url.host = `127.0.0.1:${link.port}`
      const database = openMariadb(url.href)
      try {
        expect(await database.sql('SELECT 1 AS one')).toHaveLength(1)
        link.freeze()
        await expect(database.sql('SELECT 1 AS one')).rejects.toThrow('Query inactivity timeout')
        const lost = database.transaction(async (sql) => sql('SELECT 1 AS one'))
        await expect(lost).rejects.toThrow(/timeout|ETIMEDOUT/)
        link.thaw()
        await expect.poll(async () => database.sql('SELECT 1 AS one')).toHaveLength(1)
      } finally {
        await database.close()
        link.close()
      }
    },
  )
})

/** A link to a server, which carries no answers while it is frozen. Its new connections then have no answer either. */
async function freezableLink(port: number, host: string) {
  let isFrozen = false
  const sockets = new Set<Socket>()
  const server = createLink((near) => {
    const far = connect(port, host)
    sockets.add(near).add(far)
    near.on('error', () => far.destroy()).on('close', () => far.destroy())
    far.on('error', () => near.destroy()).on('close', () => near.destroy())
    near.on('data', (bytes) => far.write(bytes))
    far.on('data', (bytes) => {
      if (!isFrozen) near.write(bytes)
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    port: (server.address() as AddressInfo).port,
    freeze() {
      isFrozen = true
    },
    thaw() {
      isFrozen = false
    },
    close() {
      for (const socket of sockets) socket.destroy()
      server.close()
    },
  }
}

describe.each(Object.keys(databases) as (keyof typeof databases)[])(
  'a created wallet on %s',
  (database) => {
    const files = sourceOf(database)
    const main = files.get('src/main.ts') ?? ''

    test('does what the checklist of the guide asks of its program', () => {
      expect(guide).toMatch(/\[Rates are limited\][\s\S]*\[Readiness\][\s\S]*\[shutdown\]/)
      expect(main).toContain('rateLimit: perMinute(')
      expect(main).toContain('observeBacklog({')
      for (const signal of ['SIGTERM', 'SIGINT'])
        expect(main).toContain(`once(process, '${signal}')`)
      expect(files.get('src/start.ts')).toMatch(/withReadiness\([\s\S]*await listen\(/)
      expect(files.get('src/listen.ts')).toContain('keepAliveTimeout = 65_000')
      expect(main).not.toContain('migrate(')
    })

    test('shows no marks of the documents', () => {
      for (const [path, text] of files) expect(text, path).not.toMatch(/#(?:end)?region/)
    })
  },
)

describe('the start of a created wallet', () => {
  const baseUrl = 'https://wallet.example'
  let database: Database
  beforeAll(async () => {
    database = databaseOn(await emptyPglite())
  })
  beforeEach(async () => {
    await database.sql('DROP SCHEMA public CASCADE')
    await database.sql('CREATE SCHEMA public')
  })
  afterEach(() => {
    vi.unstubAllEnvs()
  })
  afterAll(() => database.close())

  const accounts = async () => database.sql('SELECT owner FROM accounts ORDER BY owner')

  test('creates tables and accounts with money for a first try', async () => {
    await prepare(database, baseUrl)
    expect(await accounts()).toEqual([{ owner: 'alice' }, { owner: 'bob' }])
  })

  test('in production refuses a database that no step of the deployment has migrated', async () => {
    vi.stubEnv('NODE_ENV', 'production')
    await expect(prepare(database, baseUrl)).rejects.toThrow(/: run npm run migrate$/)
    await database.migrateRecords()
    await expect(prepare(database, baseUrl)).rejects.toThrow('the tables of this wallet')
    expect(await database.sql("SELECT 1 FROM pg_tables WHERE tablename = 'accounts'")).toEqual([])
  })

  test('in production opens no account, and accepts the tables of a later version', async () => {
    await migrate(database)
    await database.sql('INSERT INTO wallet_migrations (version) VALUES (99)')
    vi.stubEnv('NODE_ENV', 'production')
    await prepare(database, baseUrl)
    expect(await accounts()).toEqual([])
    await openDemoAccounts(database, baseUrl)
    await prepare(database, baseUrl)
  })

  test('answers a load balancer by what is wrong, and says it to its operator alone', async () => {
    const printed = vi.spyOn(console, 'warn').mockImplementation(() => undefined)
    const others = async () => ({ status: 404, headers: {}, body: '' })
    const handle = withReadiness(others, () => checkTables(database))
    const asked = (url: string) =>
      handle({ method: 'GET', url, headers: [], body: new Uint8Array() })
    expect(await asked('/ready')).toMatchObject({ status: 503, body: 'not ready' })
    expect(`${printed.mock.calls}`).toMatch(/^The wallet is not ready: .*tables/)
    await migrate(database)
    expect(await asked('/ready?verbose')).toMatchObject({ status: 200, body: 'ready' })
    expect(await asked('/readyx')).toMatchObject({ status: 404 })
    printed.mockRestore()
  })
})

describe('the shutdown', () => {
  test('begins at both signals in what the documents show', () => {
    for (const source of [guide, read('examples/stack/main.ts')]) {
      for (const signal of ['SIGTERM', 'SIGINT']) expect(source).toContain(`'${signal}'`)
    }
  })

  async function listening(server: Server): Promise<number> {
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    return (server.address() as AddressInfo).port
  }

  test('ends under connections that clients keep and use, and answers each request', async () => {
    const server = createServer((_, response) => setImmediate(() => response.end('done')))
    const port = await listening(server)
    const { Agent } = await import('node:http')
    const agent = new Agent({ keepAlive: true, maxSockets: 8 })
    let answered = 0
    const asked = () =>
      new Promise<void>((resolve, reject) => {
        request({ port, host: '127.0.0.1', agent }, (response) => {
          response.resume().on('end', () => {
            answered += 1
            resolve()
          })
        })
          .on('error', reject)
          .end()
      })
    let isOver = false
    const refused: string[] = []
    const busy = Array.from({ length: 8 }, async () => {
      while (!isOver) {
        try {
          await asked()
        } catch (error) {
          if (server.listening) refused.push(`${error}`)
          return
        }
      }
    })
    await expect.poll(() => answered).toBeGreaterThan(50)
    await closeServer(server, { drainMs: 200 })
    isOver = true
    await Promise.all(busy)
    agent.destroy()
    expect(refused).toEqual([])
  })

  test('ends requests that are never answered, and connections that send nothing', async () => {
    const server = createServer(() => undefined)
    const port = await listening(server)
    const asked = new Promise<string>((resolve) => {
      request({ port, host: '127.0.0.1' })
        .on('error', ({ message }) => resolve(message))
        .end()
    })
    await expect.poll(() => connectionsOf(server)).toBe(1)
    await closeServer(server, { drainMs: 0, endMs: 100 })
    expect(await asked).toBe('socket hang up')
  })
})

function connectionsOf(server: Server): Promise<number> {
  return new Promise((resolve, reject) =>
    server.getConnections((error, count) => (error ? reject(error) : resolve(count))),
  )
}
