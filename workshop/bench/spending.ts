import type { Store } from 'open-payments-server'
import type { Commit, Stored } from 'open-payments-server/adapter'
import { migrate, postgresStore } from 'open-payments-server/postgres'
import { publicUrl } from '../../src/http/target.js'
import { hostPricing, hostWalletAddresses } from '../../src/servers/host-ports.js'
import { serviceContext, sharedGroup } from '../../src/servers/options.js'
import { policyOptions, resourcePolicy } from '../../src/servers/resource-policy.js'
import { newCall } from '../../src/service/context.js'
import { createPaymentCreation } from '../../src/service/create-outgoing-payment.js'
import type { IntrospectAndLoad } from '../../src/service/introspection.js'
import { createQuotes } from '../../src/service/quote.js'
import { createSeenBudgets } from '../../src/service/seen-budgets.js'
import { readInput } from '../../src/util/input.js'
import { type Database, hasDatabase, withDatabase } from './database.js'
import {
  type BenchWallet,
  benchWallet,
  client,
  type Library,
  pricing,
  resourceServer,
  bob as walletAddress,
  walletAddresses,
} from './fixtures.js'
import { createFloorTable, floorUpdate } from './floor.js'
import {
  elapsedUs,
  type Figure,
  interleaved,
  median,
  medianFigure,
  perCallUs,
  ratioFigure,
} from './measure.js'
import { completePayments, newPayer, newQuotes, type Payer, pay, paymentRequests } from './payer.js'

const rounds = 15
const creationsPerRound = 100
const completedCount = 100_000
/** The number of creations after which the compiled code is stable. */
const warmUps = 2_000

/** Measures the lookup of a limit's window, and a payment under a grant with earlier payments. */
export async function spending(library: Library): Promise<Figure[]> {
  return [
    ...(await windowLookup()),
    ...(await inMemory(library)),
    ...((await hasDatabase()) ? await onPostgres(library) : []),
  ]
}

/** Finding the window of this instant in an interval that began in 1970, and in one that began yesterday. */
async function windowLookup(): Promise<Figure[]> {
  const { parseInterval, windowAt } = await import('open-payments-server/core')
  const now = Date.now()
  const lookups = (start: string, duration: string) => {
    const parsed = parseInterval(`R/${start}/${duration}`)
    if (!parsed.ok) throw new Error(parsed.problem)
    const interval = parsed.value
    return () =>
      perCallUs(20, () => {
        for (let i = 0; i < 1_000; i++) {
          if (windowAt(interval, now + i) === undefined) throw new Error('no window found')
        }
      })
  }
  const yesterday = new Date(now - 86_400_000).toISOString()
  const figures: Figure[] = []
  for (const duration of ['PT1S', 'P1M']) {
    const thousand = await interleaved(31, {
      old: lookups('1970-01-31T00:00:00Z', duration),
      recent: lookups(yesterday, duration),
    })
    const name = `window lookup, ${duration} since 1970`
    const old = thousand.old.map((us) => us / 1_000)
    figures.push(
      medianFigure(name, old, 'µs'),
      ratioFigure(
        `${name}, relative to an interval since yesterday`,
        thousand.old,
        thousand.recent,
        {
          most: 5,
        },
      ),
    )
  }
  return figures
}

/**
 * Creation through `handle` on the memory store, under a grant with earlier payments and under fresh ones.
 */
async function inMemory(library: Library): Promise<Figure[]> {
  const wallet = benchWallet(library)
  const payer = await newPayer(benchWallet(library))
  await completePayments(payer, completedCount)
  await warmUp(wallet)
  const figures = await interleaved(rounds, {
    completed: () => creationUs(payer),
    fresh: async () => creationUs(await newPayer(wallet)),
  })
  return growthFigures('memory', figures.completed, figures.fresh)
}

function growthFigures(
  store: string,
  completed: readonly number[],
  fresh: readonly number[],
): Figure[] {
  const name = `pay by quote after 100,000 completed payments, ${store}, through handle`
  return [
    medianFigure(name, completed, 'µs'),
    ratioFigure(`${name}, relative to a fresh grant`, completed, fresh, { most: 1.2 }),
  ]
}

/** The same on PostgreSQL, against the minimum that a payment can cost there: one conditional row update. */
async function onPostgres(library: Library): Promise<Figure[]> {
  return withDatabase((few) =>
    withDatabase(async (many) => {
      const fresh = await walletOn(library, few)
      const wallet = await walletOn(library, many)
      const payer = await newPayer(wallet)
      await completePayments(payer, completedCount)
      const update = await floorUpdates(many)
      await warmUp(fresh)
      const create = serviceOf(payer)
      const figures = await interleaved(rounds, {
        update: () => medianUs(Array.from({ length: creationsPerRound }), update),
        commit: async () => {
          const commits = await commitsOf(library, payer)
          return medianUs(commits, async (commit) => {
            if (!(await wallet.store.commit(commit))) throw new Error('the commit failed')
          })
        },
        statements: async () => medianUs(await commitsOf(library, payer), statementsOf(payer)),
        service: async () => medianUs(await newQuotes(payer, creationsPerRound), create),
        completed: () => creationUs(payer),
        fresh: async () => creationUs(await newPayer(fresh)),
      })
      const commandId = 'relative to one such UPDATE'
      const commit = 'pay by quote, PostgreSQL, store.commit alone'
      const statements =
        'pay by quote, PostgreSQL, its loads and commit without the work between them'
      const service = 'pay by quote, PostgreSQL, introspection, loads, decision and commit'
      const handle = 'pay by quote, PostgreSQL, through handle with its signature'
      return [
        ...growthFigures('PostgreSQL', figures.completed, figures.fresh),
        medianFigure('one prepared conditional UPDATE among 100,000 rows', figures.update, 'µs'),
        medianFigure(commit, figures.commit, 'µs'),
        ratioFigure(`${commit}, ${commandId}`, figures.commit, figures.update, { most: 1.6 }),
        medianFigure(statements, figures.statements, 'µs'),
        ratioFigure(`${statements}, ${commandId}`, figures.statements, figures.update),
        medianFigure(service, figures.service, 'µs'),
        ratioFigure(`${service}, ${commandId}`, figures.service, figures.update, { most: 2.5 }),
        ratioFigure(`${handle}, ${commandId}`, figures.completed, figures.update),
        await atOnce(fresh),
      ]
    }),
  )
}

/** Concurrent payments of several clients, each under its own grant. */
async function atOnce(wallet: BenchWallet): Promise<Figure> {
  const payers = await Promise.all(Array.from({ length: 16 }, () => newPayer(wallet)))
  const { perSecond } = await interleaved(5, { perSecond: () => throughput(payers) })
  return medianFigure(
    `pay by quote, PostgreSQL, through handle, ${payers.length} at a time, each under its own grant`,
    perSecond,
    'requests/s',
  )
}

async function throughput(payers: readonly Payer[]): Promise<number> {
  const each = 25
  const requests = await Promise.all(payers.map((payer) => paymentRequests(payer, each)))
  const us = await elapsedUs(() =>
    Promise.all(
      payers.map(async ({ wallet }, i) => {
        for (const request of requests[i] ?? []) await pay(wallet, request)
      }),
    ),
  )
  return (payers.length * each * 1_000_000) / us
}

async function walletOn(library: Library, { schema, connect }: Database): Promise<BenchWallet> {
  const pool = connect()
  await migrate(pool, { schema })
  return benchWallet(library, postgresStore(pool, { schema }))
}

/** Updates the stored payments one after the other, each copied to a table with the minimal columns. */
async function floorUpdates({ schema, connect }: Database): Promise<() => Promise<void>> {
  const pool = connect()
  const table = `${schema}.floor`
  const records = `${schema}.open_payments_records`
  const payments = `SELECT id, version, value FROM ${records} WHERE kind = 'outgoing-payment'`
  await createFloorTable(pool, schema, `${payments} ORDER BY random()`)
  await pool.query(`VACUUM ANALYZE ${records}`)
  await pool.query(`VACUUM ANALYZE ${table}`)
  await pool.query('CHECKPOINT')
  const { rows } = await pool.query(`SELECT id, version, value FROM ${table} ORDER BY random()`)
  const update = floorUpdate(pool, schema)
  let next = 0
  return () => update(rows[next++ % rows.length])
}

/** Returns the commits of sequential creations, from a store that records and does not execute them. */
async function commitsOf(library: Library, payer: Payer): Promise<readonly Commit[]> {
  const { store, key } = payer.wallet
  const commits: Commit[] = []
  const written = new Map<string, Stored>()
  const keeping: Store = {
    ...store,
    async load(keys) {
      const found = await store.load(keys)
      return keys.map(({ kind, id }, i) => written.get(`${kind} ${id}`) ?? found[i])
    },
    async commit(commit) {
      commits.push(commit)
      for (const { kind, next } of commit.changes) written.set(`${kind} ${next.id}`, next)
      return true
    },
  }
  const wallet = benchWallet(library, keeping, {}, key)
  for (const request of await paymentRequests(payer, creationsPerRound)) await pay(wallet, request)
  return commits
}

/**
 * The store calls of a payment, in as many round trips as the library takes: grant, quote and budget, commit.
 */
function statementsOf({ wallet, grantId }: Payer, change = (store: Store) => store) {
  const store = change(wallet.store)
  return async (commit: Commit) => {
    await store.load([{ kind: 'grant', id: grantId }])
    const read = { 'outgoing-payment': 'quote', budget: 'budget' } as const
    const keys = commit.changes.flatMap(({ kind, next: { id } }) =>
      kind === 'outgoing-payment' || kind === 'budget' ? { kind: read[kind], id } : [],
    )
    await store.load(keys)
    if (!(await store.commit(commit))) throw new Error('the commit failed')
  }
}

/** A payment after its signature was verified: introspection, loads, decision and commit. */
function serviceOf({ wallet, token: accessToken }: Payer, change = (store: Store) => store) {
  const introspect: IntrospectAndLoad = wallet.auth.introspect
  const store = change(wallet.store)
  const url = publicUrl(resourceServer)
  const context = serviceContext(readInput('', sharedGroup, { store }), 'resourceServer', url, url)
  const { spending: policy } = resourcePolicy(readInput('policy', policyOptions, {}), 1_000)
  const accounts = hostWalletAddresses(walletAddresses, 1_000)
  const priced = hostPricing(pricing, 1_000, resourceServer)
  const quotes = createQuotes(
    context,
    { walletAddresses: accounts, pricing: priced },
    policy.quotes,
  )
  const ports = {
    hasGrants: true,
    walletAddresses: accounts,
    quotes,
    seenBudgets: createSeenBudgets(),
  }
  const creation = createPaymentCreation(context, ports, policy)
  const renew = () => Promise.reject(new Error('the commit failed'))
  return async (quoteId: string) => {
    const input = { walletAddress, quoteId }
    const payment = await creation.prepare(input, introspect)
    const token = await payment.introspect({ accessToken })
    if (!token.active) throw new Error('the token is not active')
    const answer = await payment.create(
      { client, token, renew },
      {
        ...newCall(context),
        proof: {
          key: token.key,
          signature: context.random.getRandomValues(new Uint8Array(64)),
          createdAt: Date.now(),
        },
        replay: undefined,
        run: context.run,
      },
    )
    if (!answer.ok) throw new Error(answer.reason)
  }
}

async function warmUp(wallet: BenchWallet): Promise<void> {
  const payer = await newPayer(wallet)
  for (const request of await paymentRequests(payer, warmUps)) await pay(wallet, request)
}

/** Returns the median time of sequential creations through `handle`. */
async function creationUs(payer: Payer): Promise<number> {
  const requests = await paymentRequests(payer, creationsPerRound)
  return medianUs(requests, (request) => pay(payer.wallet, request))
}

async function medianUs<Item>(
  items: readonly Item[],
  run: (item: Item) => Promise<unknown>,
): Promise<number> {
  const times: number[] = []
  for (const item of items) times.push(await elapsedUs(() => run(item)))
  return median(times)
}
