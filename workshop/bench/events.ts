import { type ChildProcess, fork } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { hasDatabase } from './database.js'
import type { ConsumerResult } from './event-consumer.js'
import { type StoreName, storeKinds, withPlace } from './event-stores.js'
import { type BenchWallet, benchWallet, bob, type Library } from './fixtures.js'
import { type Figure, median } from './measure.js'

const kinds = [
  { name: 'fast handlers', handlerMs: 0, count: 2_000 },
  { name: 'handlers of 50 ms', handlerMs: 50, count: 600 },
]
const amount = { value: '1', assetCode: 'USD', assetScale: 2 }
const slowMs = 8_000

/**
 * Measures on each store how fast up to 8 processes deliver events, with how many calls, and how long events wait while
 * one handler of their process is slow. Reports ratios, because the speed is that of the machine.
 */
export async function events(library: Library): Promise<Figure[]> {
  if (!(await hasDatabase())) return []
  const figures: Figure[] = []
  for (const name of Object.keys(storeKinds) as StoreName[]) {
    if (!storeKinds[name].isHere) console.error(`${name}: skipped`)
    else figures.push(...(await eventsOn(name, library)))
  }
  return figures
}

function eventsOn(storeName: StoreName, library: Library): Promise<Figure[]> {
  return withPlace(storeName, async (place) => {
    const { store, close } = await storeKinds[storeName].open(place)
    const wallet = benchWallet(library, store)
    const figures: Figure[] = []
    for (const { name, handlerMs, count } of kinds) {
      const rates: number[] = []
      for (const n of storeKinds[storeName].processes) {
        const running = { storeName, place, n, handlerMs, count }
        const { perSecond, callsPerEvent } = await deliver(wallet, running)
        rates.push(perSecond)
        const processes = `${n} ${n === 1 ? 'process' : 'processes'}`
        const title = `${storeName}, ${name}, ${processes}`
        console.error(`${title}: ${perSecond.toFixed(0)} events/s`)
        figures.push({
          name: `${title}: calls of the store for 100 events`,
          value: 100 * callsPerEvent,
          unit: 'calls',
          target: { most: storeName === 'PostgreSQL' && handlerMs === 0 ? 25 : 100 },
        })
        if (n > 1) {
          const value = perSecond / (rates[0] ?? Number.NaN)
          figures.push({ name: `${title}: events a second, relative to 1`, value, unit: 'ratio' })
        }
      }
    }
    if (storeName === 'PostgreSQL') {
      figures.push(...(await besideASlowHandler(wallet)), ...(await besideALongRecord(wallet)))
    }
    await close()
    return figures
  })
}

/** Records one event of each of as many payments. */
async function record({ resources }: BenchWallet, count: number): Promise<void> {
  const { incomingPayments } = resources
  let left = count
  await Promise.all(
    Array.from({ length: 16 }, async () => {
      while (left-- > 0) {
        const created = await incomingPayments.create({
          walletAddress: bob,
          idempotencyKey: randomUUID(),
        })
        if (!created.ok) throw new Error(created.reason)
        const { paymentId } = created.payment
        await incomingPayments.receive(paymentId, { transferId: paymentId, amount })
      }
    }),
  )
}

interface Delivering {
  readonly storeName: StoreName
  readonly place: string
  /** The number of processes. */
  readonly n: number
  readonly handlerMs: number
  readonly count: number
}

async function deliver(wallet: BenchWallet, { storeName, place, n, handlerMs, count }: Delivering) {
  await record(wallet, count)
  const consumer = fileURLToPath(new URL('event-consumer.js', import.meta.url))
  const args = [storeName, place, String(handlerMs)]
  const children = Array.from({ length: n }, () => fork(consumer, args))
  await Promise.all(children.map((child) => once(child, 'message')))
  for (const child of children) child.send('start')
  const startedAt = performance.now()
  let results: ConsumerResult[] = []
  const sum = (of: keyof ConsumerResult) => results.reduce((all, each) => all + each[of], 0)
  do {
    await sleep(50)
    results = await Promise.all(children.map(ask))
  } while (sum('delivered') < count && performance.now() - startedAt < 300_000)
  const seconds = (performance.now() - startedAt) / 1_000
  for (const child of children) child.send('stop')
  await Promise.all(children.map((child) => once(child, 'exit')))
  return { perSecond: sum('delivered') / seconds, callsPerEvent: sum('calls') / sum('delivered') }
}

async function ask(child: ChildProcess): Promise<ConsumerResult> {
  const answer = once(child, 'message')
  child.send('count')
  const [result] = (await answer) as [ConsumerResult]
  return result
}

/** Measures how long events wait whose process also has a handler that takes 8 s. */
async function besideASlowHandler(wallet: BenchWallet): Promise<Figure[]> {
  const waits: number[] = []
  let isFirst = true
  const stop = new AbortController()
  const draining = (async () => {
    while (!stop.signal.aborted) {
      await wallet.resources.events.drain(
        async ({ at }) => {
          if (isFirst) {
            isFirst = false
            await sleep(slowMs)
          } else waits.push(Date.now() - at)
        },
        { signal: stop.signal, limit: 100_000 },
      )
      await sleep(1_000)
    }
  })()
  await record(wallet, 1)
  await sleep(2_500)
  for (let i = 0; i < 20; i++) {
    await record(wallet, 1)
    await sleep(150)
  }
  while (waits.length < 20) await sleep(100)
  stop.abort()
  await draining
  const name = 'wait of an event beside a handler of 8 s'
  return [
    { name: `${name}, median`, value: median(waits), unit: 'ms', target: { most: 1_500 } },
    { name: `${name}, longest`, value: Math.max(...waits), unit: 'ms', target: { most: 2_500 } },
  ]
}

const manyEvents = 600

/** Measures how long events wait beside those of one payment that arrives in many transfers. */
export async function besideALongRecord({ resources }: BenchWallet): Promise<Figure[]> {
  const { events, incomingPayments } = resources
  const recordedAt = new Map<string, number>()
  const waits: number[] = []
  const stop = new AbortController()

  async function newPayment(): Promise<string> {
    const idempotencyKey = randomUUID()
    const created = await incomingPayments.create({ walletAddress: bob, idempotencyKey })
    if (!created.ok) throw new Error(created.reason)
    return created.payment.paymentId
  }
  const receive = (paymentId: string, transferId: string) =>
    incomingPayments.receive(paymentId, { transferId, amount })

  const long = await newPayment()
  for (let begun = 0; begun < manyEvents; begun += 20) {
    await Promise.all(Array.from({ length: 20 }, (_, i) => receive(long, `${long} ${begun + i}`)))
  }
  const draining = (async () => {
    while (!stop.signal.aborted) {
      await events.drain(
        async (event) => {
          const at = 'incomingPaymentId' in event && recordedAt.get(event.incomingPaymentId)
          if (at) waits.push(performance.now() - at)
          await sleep(20)
        },
        { signal: stop.signal, concurrency: 2, limit: 100_000 },
      )
      await sleep(200)
    }
  })()
  for (let i = 0; i < 60; i++) {
    await sleep(50)
    const paymentId = await newPayment()
    await receive(paymentId, paymentId)
    recordedAt.set(paymentId, performance.now())
  }
  while (waits.length < recordedAt.size) await sleep(100)
  stop.abort()
  await draining
  const name = `wait of an event beside a record with ${manyEvents}`
  return [
    { name: `${name}, median`, value: median(waits), unit: 'ms' },
    { name: `${name}, longest`, value: Math.max(...waits), unit: 'ms', target: { most: 1_000 } },
  ]
}
