import { verify } from 'node:crypto'
import { createServer, type RequestListener } from 'node:http'
import type { Store } from 'open-payments-server'
import type { Commit, HttpRequest, HttpResponse } from 'open-payments-server/adapter'
import { toExpress } from 'open-payments-server/express'
import { migrate, postgresStore } from 'open-payments-server/postgres'
import type { Pool } from 'pg'
import { type Database, hasDatabase, poolSize, withDatabase } from './database.js'
import {
  type BenchWallet,
  benchWallet,
  creation,
  floorSignature,
  type Library,
  newToken,
  signed,
} from './fixtures.js'
import { createFloorTable, floorUpdate } from './floor.js'
import { type Contestant, creatingServer, load } from './http.js'
import {
  elapsedUs,
  type Figure,
  interleaved,
  median,
  medianFigure,
  ratioFigure,
} from './measure.js'
import { newPayer, type Payer, paymentRequests } from './payer.js'
import { cpuUsIn } from './profile.js'
import { createReferenceTables, referenceRotations } from './reference-statements.js'

/** Measures the store on PostgreSQL in statements, time and bytes; returns no figures without PostgreSQL. */
export async function onPostgres(library: Library): Promise<Figure[]> {
  if (!(await hasDatabase())) return []
  return withDatabase(async (database) => {
    const pool = database.connect()
    const { schema } = database
    await migrate(pool, { schema })
    await createReferenceTables(pool, schema)
    return [
      ...(await statementCounts(library, database)),
      ...(await databaseWork(library, database)),
      ...(await growth(library)),
      ...(await sizes(library)),
    ]
  })
}

/** Measures whole requests on PostgreSQL. */
export async function onPostgresBehindHttp(library: Library): Promise<Figure[]> {
  if (!(await hasDatabase())) return []
  return withDatabase(async ({ schema, connect }) => {
    const pool = connect()
    await migrate(pool, { schema })
    const rows = `SELECT i::text, 1, repeat('x', 1200) FROM generate_series(0, ${floorRows - 1}) i`
    await createFloorTable(pool, schema, rows)
    const wallet = benchWallet(library, postgresStore(pool, { schema }))
    return overHttp(library, wallet, pool, schema)
  })
}

/** Wraps a pool to count its statements. */
function counted(pool: Pool) {
  const counts = { statements: 0 }
  return {
    counts,
    query(statement: { name?: string; text: string; values: unknown[] }) {
      counts.statements += 1
      return pool.query(statement)
    },
  }
}

/** Counts the statements of each operation; each is one round trip. */
async function statementCounts(library: Library, { schema, connect }: Database): Promise<Figure[]> {
  const pool = counted(connect())
  const wallet = benchWallet(library, postgresStore(pool, { schema }))
  const { auth, resources, key } = wallet
  const figures: Figure[] = []
  async function count<Result>(
    name: string,
    most: number,
    run: () => Promise<Result>,
  ): Promise<Result> {
    pool.counts.statements = 0
    const result = await run()
    const value = pool.counts.statements
    figures.push({ name: `statements: ${name}`, value, unit: 'calls', target: { most } })
    return result
  }
  // The first write of a server also writes that its namespace is its own.
  await resources.handle(await creation(wallet, (await newToken(wallet)).value))
  const token = await count('grant request', 1, () => newToken(wallet))
  const rotation = await signed(key, { method: 'POST', url: token.manage, token: token.value })
  const rotated = await count('rotate', 2, () => auth.handle(rotation))
  const { value } = JSON.parse(rotated.body ?? '').access_token
  await count('introspect', 1, () => auth.introspect({ accessToken: value }))
  const request = await creation(wallet, value)
  const created = await count('create incoming payment', 2, () => resources.handle(request))
  const paymentId = resources.incomingPayments.idOf(JSON.parse(created.body ?? '').id) ?? ''
  const amount = { value: '1', assetCode: 'USD', assetScale: 2 }
  await count('receive', 3, () =>
    resources.incomingPayments.receive(paymentId, { transferId: 'one', amount }),
  )
  return figures
}

/** The store calls of one operation: a load and then a commit. */
interface StoreWork {
  readonly grantId: string
  readonly commit: Commit
}

/**
 * Performs an operation repeatedly without committing, and returns the store calls that it would have made.
 */
async function storeWorkOf(
  library: Library,
  { store, key }: Pick<BenchWallet, 'store' | 'key'>,
  count: number,
  run: (wallet: BenchWallet) => Promise<HttpResponse>,
): Promise<StoreWork[]> {
  const works: StoreWork[] = []
  let grantId = ''
  const keeping: Store = {
    ...store,
    load(keys) {
      for (const { kind, id } of keys) if (kind === 'grant') grantId = id
      return store.load(keys)
    },
    async commit(commit) {
      works.push({ grantId, commit })
      return true
    },
  }
  const wallet = benchWallet(library, keeping, {}, key)
  for (let i = 0; i < count; i++) {
    const { status } = await run(wallet)
    if (status >= 300) throw new Error(`the server responded with ${status}`)
  }
  return works
}

async function doStoreWork(store: Store, { grantId, commit }: StoreWork): Promise<void> {
  await store.load([{ kind: 'grant', id: grantId }])
  if (!(await store.commit(commit))) throw new Error('the commit failed')
}

/** Rotates a new token in a wallet that records its commits instead of executing them. */
function rotation(wallet: BenchWallet) {
  return async (dry: BenchWallet): Promise<HttpResponse> => {
    const { value: token, manage: url } = await newToken(wallet)
    return dry.auth.handle(await signed(wallet.key, { method: 'POST', url, token }))
  }
}

/**
 * Measures the database's share of a rotation against the statements that the reference server sends for one.
 * Both are replayed in sequence, without the servers' own work between them.
 */
async function databaseWork(library: Library, { schema, connect }: Database): Promise<Figure[]> {
  const rotations = 200
  const store = postgresStore(connect(), { schema })
  const wallet = benchWallet(library, store)
  const reference = referenceRotations(connect(), schema)

  async function ours(): Promise<number> {
    const works = await storeWorkOf(library, wallet, rotations, rotation(wallet))
    const start = process.hrtime.bigint()
    for (const work of works) await doStoreWork(store, work)
    return Number(process.hrtime.bigint() - start) / rotations / 1_000
  }

  async function theirs(): Promise<number> {
    const start = process.hrtime.bigint()
    for (let i = 0; i < rotations; i++) await reference()
    return Number(process.hrtime.bigint() - start) / rotations / 1_000
  }

  const figures = await interleaved(11, { ours, theirs })
  return [
    medianFigure('database work of a rotation', figures.ours, 'µs'),
    medianFigure("the reference's nine statements", figures.theirs, 'µs'),
    ratioFigure(
      "database work of a rotation relative to the reference's statements",
      figures.ours,
      figures.theirs,
      { most: 0.35 },
    ),
  ]
}

const floorRows = 10_000
const httpRounds = 5
const requestsPerRound = 1_000
/** The number of requests after which the compiled code is stable; the floor needs fewer. */
const warmUps = 5_000

const operations = ['rotate', 'create', 'pay'] as const

/**
 * Measures rotation, and the creation of incoming payments and of outgoing ones by quote, behind HTTP, against a server
 * with the minimal database work, and the first two also against servers that only send their statements. Those of a
 * payment cannot be sent again: they change the budget of its grant at one version.
 */
async function overHttp(
  library: Library,
  wallet: BenchWallet,
  pool: Pool,
  schema: string,
): Promise<Figure[]> {
  const figures: Figure[] = []
  const throughput: Record<string, number[]> = {}
  let slowestMs = 0
  const floorWorks = floorWork(pool, schema)
  const contestants = (total: number) => ({
    floor: async () => leanServer(wallet, floorWorks),
    rotate: () => rotatingServer(wallet, total),
    create: () => creatingServer(wallet),
    pay: () => payingServer(wallet, total),
  })
  /** The statements of the operations. */
  const statements = (total: number) => ({
    rotateStatements: async () =>
      replayingServer(wallet, await storeWorkOf(library, wallet, total, rotation(wallet))),
    createStatements: async () => {
      const { value } = await newToken(wallet)
      const create = async ({ resources }: BenchWallet) =>
        resources.handle(await creation(wallet, value))
      return replayingServer(wallet, await storeWorkOf(library, wallet, total, create))
    },
  })
  for (const make of Object.values({ ...contestants(warmUps), ...statements(warmUps) })) {
    await load(await make(), warmUps, 16)
  }
  for (const connections of [1, 16, 64]) {
    const total = connections === 1 ? requestsPerRound / 2 : requestsPerRound
    const run = (contestant: () => Promise<Contestant>) => async () => {
      const result = await load(await contestant(), total, connections)
      slowestMs = Math.max(slowestMs, result.slowestMs)
      return result.perSecond
    }
    const { floor, rotate, create, pay } = contestants(total)
    const { rotateStatements, createStatements } = statements(total)
    const results = await interleaved(httpRounds, {
      floor: run(floor),
      rotate: run(rotate),
      rotateStatements: run(rotateStatements),
      create: run(create),
      createStatements: run(createStatements),
      pay: run(pay),
    })
    const under = `on PostgreSQL, ${connections} connection${connections === 1 ? '' : 's'}`
    for (const name of operations) {
      throughput[`${name} ${connections}`] = results[name]
      figures.push(medianFigure(`${name} ${under}`, results[name], 'requests/s'))
      if (connections > 16) continue
      const against = `${under}: throughput against`
      figures.push(ratioFigure(`${name} ${against} the floor server`, results[name], results.floor))
      if (name === 'pay') continue
      const alone = results[`${name}Statements`]
      figures.push(
        ratioFigure(`${name} ${against} its statements alone`, results[name], alone),
        ratioFigure(
          `statements of ${name} alone ${against} the floor server`,
          alone,
          results.floor,
        ),
      )
    }
    figures.push(medianFigure(`floor server ${under}`, results.floor, 'requests/s'))
  }
  for (const name of operations) {
    figures.push({
      name: `${name} on PostgreSQL with a pool of ${poolSize}: throughput at 64 connections relative to 16`,
      value: median(throughput[`${name} 64`] ?? []) / median(throughput[`${name} 16`] ?? []),
      unit: 'ratio',
      target: { least: 0.8 },
    })
  }
  for (const name of operations) {
    figures.push(await ownCpu(name, contestants(requestsPerRound)[name]))
  }
  const target = { most: 5_000 }
  figures.push({ name: 'slowest request of all of these', value: slowestMs, unit: 'ms', target })
  return figures
}

/** The built library with its adapters, and the packages that it depends on. */
const ownFiles = /^(?!.*node_modules).*\/dist\/|node_modules\/(valibot|structured-headers|@noble)\//

/**
 * Measures the CPU time of the code of the library and its store in a request. Its ratio to the time of the whole
 * process would follow the cost of sockets and of the driver.
 */
async function ownCpu(name: string, contestant: () => Promise<Contestant>): Promise<Figure> {
  const values: number[] = []
  for (let round = 0; round < httpRounds; round++) {
    const server = await contestant()
    const cpuUs = await cpuUsIn(ownFiles, () => load(server, requestsPerRound, 16))
    values.push(cpuUs / requestsPerRound)
  }
  return {
    ...medianFigure(`CPU of the library and its store, ${name} on PostgreSQL`, values, 'µs'),
    target: { most: name === 'pay' ? 220 : 120 },
  }
}

/** A server that verifies a signature, does some work and returns as many bytes as an operation would. */
function leanServer({ key }: BenchWallet, work: () => Promise<unknown>): Contestant {
  const { base, signature } = floorSignature(key)
  const answer = JSON.stringify({ access_token: 'x'.repeat(500) })
  const listener: RequestListener = (incoming, response) => {
    incoming.on('data', () => undefined)
    incoming.on('end', async () => {
      const verified = await new Promise<boolean>((resolve) => {
        verify(null, base, key.publicKey, signature, (_error, good) => resolve(good))
      })
      await work()
      response.statusCode = verified ? 200 : 401
      response.setHeader('content-type', 'application/json')
      response.end(answer)
    })
  }
  const request: HttpRequest = {
    method: 'POST',
    url: '/',
    headers: [['host', 'wallet.example']],
    body: new Uint8Array(),
  }
  return { server: createServer(listener), requests: async () => [request] }
}

/** Reads one row by its key and updates it at its version, with prepared statements. */
function floorWork(pool: Pool, schema: string): () => Promise<void> {
  const select = {
    name: 'floor_select',
    text: `SELECT version, value FROM ${schema}.floor WHERE id = $1`,
  }
  const update = floorUpdate(pool, schema)
  let next = 0
  return async () => {
    const id = String(next++ % floorRows)
    const { rows } = await pool.query({ ...select, values: [id] })
    await update({ id, ...rows[0] })
  }
}

/** A server that repeats the store calls of an operation, each recorded one once. */
function replayingServer(wallet: BenchWallet, works: readonly StoreWork[]): Contestant {
  const queue = works.values()
  return leanServer(wallet, async () => {
    const { value: work, done } = queue.next()
    if (done) throw new Error('no recorded work is left')
    await doStoreWork(wallet.store, work)
  })
}

/** Creates one grant for each rotation, because a token can be rotated only once. */
async function rotatingServer(wallet: BenchWallet, total: number): Promise<Contestant> {
  const tokens: { readonly value: string; readonly manage: string }[] = []
  for (let i = 0; i < total; i++) tokens.push(await newToken(wallet))
  return {
    server: createServer(toExpress(wallet.auth.handle)),
    requests: () =>
      Promise.all(
        tokens.map(({ value: token, manage: url }) =>
          signed(wallet.key, { method: 'POST', url, token }),
        ),
      ),
    refusal: () => wallet.refusals.last,
  }
}

/** Pays by quotes, each connection in turn under the grant of another client. */
async function payingServer(wallet: BenchWallet, total: number): Promise<Contestant> {
  const clients = 16
  const payers: Payer[] = []
  for (let i = 0; i < clients; i++) payers.push(await newPayer(wallet))
  return {
    server: createServer(toExpress(wallet.resources.handle)),
    async requests() {
      const each = Math.ceil(total / clients)
      const ofPayers = await Promise.all(payers.map((payer) => paymentRequests(payer, each)))
      const inTurn = Array.from({ length: each }, (_, i) => ofPayers.flatMap((own) => own[i] ?? []))
      return inTurn.flat().slice(0, total)
    },
    refusal: () => wallet.refusals.last,
  }
}

/** Measures a rotation and an introspection among a thousand grants and among a million. */
async function growth(library: Library): Promise<Figure[]> {
  return withDatabase((few) =>
    withDatabase(async (many) => {
      const beside = {
        few: await besideGrants(library, few, 1_000),
        many: await besideGrants(library, many, 1_000_000),
      }
      const figures = await interleaved(7, {
        rotateFew: () => beside.few('rotate'),
        rotateMany: () => beside.many('rotate'),
        introspectFew: () => beside.few('introspect'),
        introspectMany: () => beside.many('introspect'),
      })
      const name = (operation: string) => `${operation} among 1,000,000 grants, relative to 1,000`
      const target = { most: 1.25 }
      return [
        ratioFigure(name('rotate'), figures.rotateMany, figures.rotateFew, target),
        ratioFigure(name('introspect'), figures.introspectMany, figures.introspectFew, target),
      ]
    }),
  )
}

/** Stores grants and returns how to measure the median of an operation on another grant, in µs. */
async function besideGrants(library: Library, { schema, connect }: Database, count: number) {
  const pool = connect()
  await migrate(pool, { schema })
  const store = postgresStore(pool, { schema })
  const wallet = benchWallet(library, store)
  const table = `${schema}.open_payments_records`
  await copiesOfAGrant(wallet, store, pool, table, count)
  await pool.query(`VACUUM ANALYZE ${table}`)
  await pool.query('CHECKPOINT')
  return async (operation: 'rotate' | 'introspect') => {
    const times: number[] = []
    for (let i = 0; i < 100; i++) {
      const { manage: url, value } = await newToken(wallet)
      const request = await signed(wallet.key, { method: 'POST', url, token: value })
      times.push(
        await elapsedUs(() =>
          operation === 'rotate'
            ? wallet.auth.handle(request)
            : wallet.auth.introspect({ accessToken: value }),
        ),
      )
    }
    return median(times)
  }
}

/** Fills the table with copies of a real grant, each with its own id. */
async function copiesOfAGrant(
  wallet: BenchWallet,
  store: Store,
  pool: Pool,
  table: string,
  count: number,
): Promise<void> {
  const { value } = await newToken(wallet)
  const id = value.slice(4, value.indexOf('.'))
  const [grant] = await store.load([{ kind: 'grant', id }])
  const text = `INSERT INTO ${table} (kind, id, version, value, due_at)
    SELECT 'grant', $1 || md5(i::text), 1, replace($2, $3, $1 || md5(i::text)), $4::bigint + i
    FROM generate_series(1, $5::int) i`
  const due = grant?.dueAt ?? null
  await pool.query(text, [id.slice(0, 8), JSON.stringify(grant), id, due, count])
}

/** Measures the bytes on disk, including indexes, of an issued grant and of a pending payment. */
async function sizes(library: Library): Promise<Figure[]> {
  return [
    {
      name: 'storage of a grant, with its indexes',
      value: await bytesPerRecord(library, async (wallet) => void (await newToken(wallet))),
      unit: 'bytes',
    },
    {
      name: 'storage of an incoming payment, with its indexes',
      value: await bytesPerRecord(
        library,
        async (wallet, token) =>
          void (await wallet.resources.handle(await creation(wallet, token))),
      ),
      unit: 'bytes',
    },
  ]
}

function bytesPerRecord(
  library: Library,
  store: (wallet: BenchWallet, token: string) => Promise<void>,
): Promise<number> {
  const count = 2_000
  return withDatabase(async ({ schema, connect }) => {
    const pool = connect()
    await migrate(pool, { schema })
    const table = `${schema}.open_payments_records`
    const options = { recordsEvents: false }
    const wallet = benchWallet(library, postgresStore(pool, { schema }), options)
    const bytes = async (): Promise<number> => {
      await pool.query(`VACUUM FULL ${table}`)
      const { rows } = await pool.query(`SELECT pg_total_relation_size('${table}')::int AS bytes`)
      return rows[0].bytes
    }
    const { value } = await newToken(wallet)
    const before = await bytes()
    for (let i = 0; i < count; i++) await store(wallet, value)
    return ((await bytes()) - before) / count
  })
}
