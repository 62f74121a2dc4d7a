import { fork } from 'node:child_process'
import { once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import type { Store } from 'open-payments-server'
import type { HttpRequest } from 'open-payments-server/adapter'
import { migrate, postgresStore } from 'open-payments-server/postgres'
import type { Accounts } from './account-payers.js'
import { type Database, hasDatabase, withDatabase } from './database.js'
import {
  type BenchWallet,
  benchWallet,
  bob,
  type Library,
  newToken,
  resourceServer,
  signed,
} from './fixtures.js'
import { type Figure, interleaved, medianFigure, ratioFigure } from './measure.js'
import { newPayer, paymentRequests } from './payer.js'

const callers = 64
const servers = 2
const receives = 1_000
const rounds = 3

/** The time of one call of a store on another machine, in milliseconds. */
const callMs = 30
const payers = 32
const rotations = 32

/**
 * Measures how many arrivals for one payment are counted, compared with arrivals for many payments; how fast payments
 * from one account are whose owner has set a limit for it, compared with those from many; and how fast payments under
 * one grant and rotations of one token are on a store of which each call takes 30 ms.
 */
export async function hotAccount(library: Library): Promise<Figure[]> {
  const distant = [...(await measurePayments(library)), ...(await measureRotations(library))]
  if (!(await hasDatabase())) return distant
  return [
    ...distant,
    ...(await withDatabase((database) => measureReceives(library, database))),
    ...(await withDatabase(measureLimitedAccount)),
  ]
}

/** Returns a memory store whose calls take as long as those of a database on another machine, once it is asked to. */
function distantStore(library: Library) {
  const memory = library.memoryStore()
  const distance = { callMs: 0, calls: 0 }
  const distant =
    <Args extends unknown[], Answer>(call: (...args: Args) => Promise<Answer>) =>
    async (...args: Args) => {
      distance.calls += 1
      if (distance.callMs > 0) await sleep(distance.callMs)
      return call(...args)
    }
  const { load, commit } = memory
  const store: Store = {
    ...memory,
    load: distant(load),
    commit: distant(commit),
  }
  return { store, distance }
}

/** Requests at the same time: how many succeed, in which time, with how many calls of the store. */
async function storm(
  distance: { callMs: number; calls: number },
  requests: readonly HttpRequest[],
  handle: BenchWallet['auth']['handle'],
) {
  Object.assign(distance, { callMs, calls: 0 })
  const start = performance.now()
  const answers = await Promise.all(requests.map((request) => handle(request)))
  const ms = performance.now() - start
  distance.callMs = 0
  const succeeded = answers.filter(({ status }) => status < 300).length
  return { ms, succeeded, calls: distance.calls }
}

async function measurePayments(library: Library): Promise<Figure[]> {
  const { store, distance } = distantStore(library)
  const wallet = benchWallet(library, store)
  const runs = []
  for (let round = 0; round < rounds; round++) {
    const requests = await paymentRequests(await newPayer(wallet), payers)
    runs.push(await storm(distance, requests, wallet.resources.handle))
  }
  const name = `${payers} payments at once under one grant, ${callMs} ms for each store call`
  return stormFigures(name, runs)
}

async function measureRotations(library: Library): Promise<Figure[]> {
  const { store, distance } = distantStore(library)
  const wallet = benchWallet(library, store)
  const runs = []
  for (let round = 0; round < rounds; round++) {
    const { value: token, manage: url } = await newToken(wallet)
    const requests: HttpRequest[] = []
    for (let age = 0; age < rotations; age++) {
      requests.push(await secondsAgo(age, () => signed(wallet.key, { method: 'POST', url, token })))
    }
    runs.push(await storm(distance, requests, wallet.auth.handle))
  }
  const name = `${rotations} rotations at once of one token, ${callMs} ms for each store call`
  return stormFigures(name, runs)
}

/** Signs a request as if so many seconds ago: of equal requests of one second, only one is accepted. */
async function secondsAgo<Result>(age: number, sign: () => Promise<Result>): Promise<Result> {
  const { Date: Present } = globalThis
  globalThis.Date = class extends Present {
    constructor(at: number | string | Date = Present.now() - age * 1_000) {
      super(at)
    }
  } as DateConstructor
  try {
    return await sign()
  } finally {
    globalThis.Date = Present
  }
}

function stormFigures(
  name: string,
  runs: readonly { readonly ms: number; readonly succeeded: number; readonly calls: number }[],
): Figure[] {
  const each = (of: 'ms' | 'succeeded' | 'calls') => runs.map((run) => run[of])
  return [
    medianFigure(name, each('ms'), 'ms'),
    medianFigure(`${name}, succeeded`, each('succeeded'), 'calls'),
    medianFigure(`${name}, calls of the store`, each('calls'), 'calls'),
  ]
}

async function measureReceives(library: Library, database: Database): Promise<Figure[]> {
  const pool = database.connect()
  const { schema } = database
  await migrate(pool, { schema })
  const wallet = benchWallet(library, postgresStore(pool, { schema }))
  const ids: string[] = []
  for (let i = 0; i < callers; i++) ids.push(await newPayment(wallet))
  const refused = { one: 0, many: 0 }
  const rates = await interleaved(rounds, {
    one: () => receivesPerSecond(wallet, ids.slice(0, 1), () => refused.one++),
    many: () => receivesPerSecond(wallet, ids, () => refused.many++),
  })
  const name = `receives from ${callers} callers`
  return [
    ratioFigure(`${name}: into one payment / into ${callers}`, rates.one, rates.many, {
      least: 0.5,
    }),
    medianFigure(`${name} into one payment`, rates.one, 'requests/s'),
    medianFigure(`${name} into ${callers} payments`, rates.many, 'requests/s'),
    { name: `${name} into one payment, refused`, value: refused.one, unit: 'calls' },
  ]
}

/**
 * Measures payments of many callers, each under a grant of its own, by servers in processes of their own on one
 * database: from one account with a limit of its owner, and from as many such accounts as callers.
 */
async function measureLimitedAccount({ schema, connect }: Database): Promise<Figure[]> {
  await migrate(connect(), { schema })
  const program = fileURLToPath(new URL('account-payers.js', import.meta.url))
  const own = callers / servers
  const children = Array.from({ length: servers }, (_, index) =>
    fork(program, [schema, String(index * own), String(own)]),
  )
  const answers = () => Promise.all(children.map((child) => once(child, 'message')))
  const tell = (message: string) => {
    for (const child of children) child.send(message)
  }
  await answers()
  const paymentsPerSecond = async (accounts: Accounts) => {
    tell(accounts)
    await answers()
    const start = performance.now()
    tell('begin')
    const counts = (await answers()).map(([count]) => count as number)
    return (counts.reduce((sum, count) => sum + count) * 1_000) / (performance.now() - start)
  }
  const rates = await interleaved(rounds, {
    one: () => paymentsPerSecond('one'),
    many: () => paymentsPerSecond('many'),
  })
  tell('end')
  const name = `payments of ${callers} callers at ${servers} servers`
  return [
    ratioFigure(`${name}: from one limited account / from ${callers}`, rates.one, rates.many, {
      least: 0.9,
    }),
    medianFigure(`${name} from one limited account`, rates.one, 'requests/s'),
    medianFigure(`${name} from ${callers} limited accounts`, rates.many, 'requests/s'),
  ]
}

async function newPayment(wallet: BenchWallet): Promise<string> {
  const { value } = await newToken(wallet)
  const url = `${resourceServer}/incoming-payments`
  // Without an amount, so that the payment stays open.
  const request = {
    method: 'POST',
    url,
    token: value,
    body: JSON.stringify({ walletAddress: bob }),
  }
  const { body } = await wallet.resources.handle(await signed(wallet.key, request))
  const id = wallet.resources.incomingPayments.idOf(JSON.parse(String(body)).id)
  if (id === undefined) throw new Error('no payment was created')
  return id
}

let transfers = 0

/** Reports arrivals from all callers at the same time. A refused report is repeated. */
async function receivesPerSecond(
  { resources }: BenchWallet,
  ids: readonly string[],
  onRefusal: () => void,
): Promise<number> {
  const amount = { value: '1', assetCode: 'USD', assetScale: 2 }
  let left = receives
  async function call(id: string): Promise<void> {
    while (left > 0) {
      left -= 1
      const transferId = `transfer ${transfers++}`
      const report = () => resources.incomingPayments.receive(id, { transferId, amount })
      for (let done = false; !done; ) {
        await report().then(({ ok }) => {
          if (!ok) throw new Error('the payment accepts no funds')
          done = true
        }, onRefusal)
      }
    }
  }
  const start = performance.now()
  await Promise.all(Array.from({ length: callers }, (_, i) => call(ids[i % ids.length] ?? '')))
  return (receives * 1_000) / (performance.now() - start)
}
