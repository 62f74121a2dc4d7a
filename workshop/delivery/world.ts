import type { EventHandler, Store } from '../../src/index.js'
import {
  type EventRecord,
  placeOf,
  sliceCount,
  sliceNamespace,
} from '../../src/service/event-record.js'
import { beginWithinMs, type ClaimRecord } from '../../src/service/events/claims.js'
import type { DrainOptions } from '../../src/service/events/drain-options.js'
import type { Pacing } from '../../src/service/time.js'
import { manualClock } from '../../test/support/clock.js'
import { paymentServices, withoutSlice } from '../../test/support/outbox.js'
import { type Fate, fates, lyingStore } from '../../test/support/proxy-store.js'
import { createDraw, type Draw } from '../simulation/draw.js'

/** The time in which consumers and writers live: milliseconds from any start. */
export interface Time {
  readonly now: () => number
  readonly pacing: Pacing
}

/** What happens to a consumer. Another one is started in the place of a dead one. */
export interface Accident {
  readonly kind: 'dies' | 'pauses'
  readonly atMs: number
  readonly forMs: number
}

export interface Plan {
  readonly seed: string
  readonly streams: number
  /** The number of events of each stream. */
  readonly events: number
  readonly consumers: number
  /** How far each clock may be off. */
  readonly skewMs: number
  /** The time in which the events are written. */
  readonly writingMs: number
  /** The longest time until the store has a call, and until the caller has the answer. */
  readonly latencyMs: number
  /** `due` may answer with each record as it was up to this long ago. */
  readonly lagMs: number
  /** How many calls of the store go wrong. */
  readonly faultsPercent: number
  /** How many deliveries fail. */
  readonly failsPercent: number
  readonly handler: {
    readonly mostMs: number
    readonly slowPercent: number
    readonly slowMs: number
  }
  readonly accidents: readonly Accident[]
  readonly options: DrainOptions
  /** How long everything may take after the last write and the last accident. */
  readonly withinMs: number
}

export const calm: Plan = {
  seed: '1',
  streams: 30,
  events: 3,
  consumers: 3,
  skewMs: 30_000,
  writingMs: 3_000,
  latencyMs: 20,
  lagMs: 0,
  faultsPercent: 0,
  failsPercent: 0,
  handler: { mostMs: 20, slowPercent: 0, slowMs: 0 },
  accidents: [],
  options: {},
  withinMs: 10_000,
}

/** A mistake in each process of the consumers, planted to show that the laws find it. */
export interface Mistake {
  readonly store?: (store: Store) => Store
  /** The stopwatch and the clock of a process stand still while it is paused. */
  readonly isBlindToPauses?: boolean
}

export interface Report {
  /** The violations of laws. */
  readonly problems: readonly string[]
  /** How many events were handled successfully more than once. */
  readonly repeats: number
  readonly written: number
  readonly setAside: number
  /** How long the events waited, from their commit to the beginning of their first delivery, in ascending order. */
  readonly waits: readonly number[]
  /** How long after the last write and the last accident all was delivered and removed. */
  readonly tookMs: number
}

/** A process that delivers events. */
interface Consumer {
  readonly name: string
  isDead: boolean
  pausedUntil: number
  pausedMs: number
}

interface Begun {
  readonly id: string
  readonly stream: string
  readonly consumer: Consumer
  /** Whether another consumer may take the event, because this one stood still. */
  isExcused: boolean
}

/** Delivers the events of some payments by a plan, and reports every violation of a law. */
export async function deliverAll(
  base: Store,
  time: Time,
  plan: Plan,
  mistake: Mistake = {},
): Promise<Report> {
  const draw = createDraw(plan.seed)
  const startAt = manualClock().now()
  const problems: string[] = []
  const writtenAt = new Map<string, number>()
  const recordIds = new Map<string, string>()
  const successes = new Map<string, number>()
  const firstBegun = new Map<string, number>()
  const setAside = new Set<string>()
  const ongoing = new Set<Begun>()
  let lastWrittenAt = time.now()
  let troubledAt = time.now()

  const watched: Store = {
    ...base,
    due: lagging(base, time, plan.lagMs, createDraw(`${plan.seed} lag`)),
    async commit(commit) {
      const committed = await base.commit(commit)
      if (!committed) return false
      for (const { kind, next, expectedVersion } of commit.changes) {
        if (kind !== 'event' || !('event' in next)) continue
        const { id, setAsideAt } = next as EventRecord
        if (setAsideAt !== undefined) setAside.add(id)
        if (expectedVersion !== 0) continue
        lastWrittenAt = time.now()
        writtenAt.set(id, lastWrittenAt)
        recordIds.set(withoutSlice(id), id)
      }
      return true
    },
  }

  function servicesOf(name: string, consumer?: Consumer) {
    const random = createDraw(`${plan.seed} ${name}`)
    const offMs = random.below(2 * plan.skewMs + 1) - plan.skewMs
    const sentAt = new Map<string, number>()

    /** Passes time in which the process may be paused or die. */
    async function wait(ms: number, signal?: AbortSignal): Promise<void> {
      if (ms > 0) await time.pacing.sleep(ms, signal)
      while (consumer !== undefined) {
        if (consumer.isDead) await new Promise<never>(() => undefined)
        if (consumer.pausedUntil <= time.now()) return
        await time.pacing.sleep(consumer.pausedUntil - time.now())
      }
    }
    const latency = () => wait(plan.latencyMs > 0 ? random.below(plan.latencyMs) : 0)
    const { store: lying } = lyingStore(watched, (): Fate => {
      if (consumer === undefined || !random.chance(plan.faultsPercent)) return 'works'
      return fates[1 + random.below(fates.length - 1)] ?? 'works'
    })
    const late =
      <Args extends unknown[], Result>(call: (...args: Args) => Promise<Result>) =>
      async (...args: Args): Promise<Result> => {
        await latency()
        const outcome = call(...args)
        outcome.catch(() => undefined)
        await latency()
        return outcome
      }
    const commit = late(lying.commit)
    const store: Store = {
      load: late(lying.load),
      list: late(lying.list),
      due: late(lying.due),
      remove: late(lying.remove),
      commit(sent) {
        for (const { next } of sent.changes) {
          for (const id of (next as Partial<ClaimRecord>).started ?? []) sentAt.set(id, time.now())
        }
        return commit(sent)
      },
    }
    const pausedMs = () => (mistake.isBlindToPauses ? (consumer?.pausedMs ?? 0) : 0)
    const services = paymentServices({
      store: consumer === undefined ? store : (mistake.store?.(store) ?? store),
      clock: { ...manualClock(), now: () => Math.floor(startAt + time.now() + offMs - pausedMs()) },
      pacing: {
        elapsedMs: () => time.pacing.elapsedMs() - pausedMs(),
        async sleep(ms, signal) {
          await time.pacing.sleep(ms, signal)
          await wait(0)
        },
      },
      seed: `${plan.seed} ${name}`,
    })
    return { services, wait, sentAt }
  }

  /** Checks what must be true when the handler is called. */
  function begin(id: string, consumer: Consumer, sentAt: number | undefined): Begun {
    const { stream, place } = placeOf(id)
    if (!firstBegun.has(id)) firstBegun.set(id, time.now())
    for (const other of writtenAt.keys()) {
      const { stream: otherStream, place: otherPlace } = placeOf(other)
      if (otherStream !== stream || otherPlace >= place) continue
      if (!successes.has(other) && !setAside.has(other)) problems.push(`${id} overtook ${other}`)
    }
    for (const other of ongoing) {
      if (other.stream !== stream || other.isExcused) continue
      problems.push(`${consumer.name} began ${id} beside ${other.id} of ${other.consumer.name}`)
    }
    // The stopwatch of the consumer starts before the call.
    if (sentAt === undefined) problems.push(`${id} was begun without a claim`)
    else if (time.now() - sentAt > beginWithinMs) problems.push(`${id} was begun late`)
    const delivery = { id, stream, consumer, isExcused: false }
    ongoing.add(delivery)
    return delivery
  }

  const controller = new AbortController()
  const consumers: Consumer[] = []

  function start(): void {
    const consumer: Consumer = {
      name: `consumer ${consumers.length + 1}`,
      isDead: false,
      pausedUntil: 0,
      pausedMs: 0,
    }
    consumers.push(consumer)
    const { services, wait, sentAt } = servicesOf(consumer.name, consumer)
    const random: Draw = createDraw(`${plan.seed} handler of ${consumer.name}`)
    const handler: EventHandler = async (event) => {
      const id = recordIds.get(withoutSlice(event.id)) ?? ''
      const delivery = begin(id, consumer, sentAt.get(id))
      try {
        const { mostMs, slowPercent, slowMs } = plan.handler
        await wait(random.chance(slowPercent) ? slowMs : random.below(mostMs + 1))
        if (random.chance(plan.failsPercent)) throw new Error('the handler failed')
        successes.set(id, (successes.get(id) ?? 0) + 1)
      } finally {
        ongoing.delete(delivery)
      }
    }
    const { signal } = controller
    const endless = { limit: Number.MAX_SAFE_INTEGER, pollMs: 500, skewMaxMs: 2 * plan.skewMs }
    async function consume(): Promise<void> {
      while (!signal.aborted && !consumer.isDead) {
        await services.outbox
          .drain(handler, { ...endless, ...plan.options, signal })
          .catch(() => undefined)
        await wait(500, signal)
      }
    }
    void consume()
  }

  const { services: writer } = servicesOf('writer')
  for (let i = 0; i < plan.consumers; i++) start()

  const writing = Array.from({ length: plan.streams }, async (_, stream) => {
    await time.pacing.sleep(draw.below(plan.writingMs / plan.events + 1))
    const payment = await writer.newPayment()
    for (let event = 1; event < plan.events; event++) {
      await time.pacing.sleep(draw.below(plan.writingMs / plan.events + 1))
      await writer.receive(payment, '1', `${stream} ${event}`)
    }
  })
  const striking = plan.accidents.map(async ({ atMs, kind, forMs }) => {
    await time.pacing.sleep(atMs)
    const alive = consumers.filter((each) => !each.isDead && each.pausedUntil <= time.now())
    const consumer = draw.pick(alive)
    if (consumer === undefined) return
    if (kind === 'pauses') {
      consumer.pausedUntil = time.now() + forMs
      for (const delivery of ongoing) if (delivery.consumer === consumer) delivery.isExcused = true
      await time.pacing.sleep(forMs)
      consumer.pausedMs += forMs
    } else {
      consumer.isDead = true
      for (const delivery of ongoing) if (delivery.consumer === consumer) ongoing.delete(delivery)
      start()
    }
    troubledAt = time.now()
  })
  await Promise.all([...writing, ...striking])

  const isOver = () => [...writtenAt.keys()].every((id) => successes.has(id) || setAside.has(id))
  const namespace = await writer.context.namespace()
  async function left(): Promise<readonly string[]> {
    const slices = Array.from({ length: sliceCount }, (_, slice) =>
      base.due('event', sliceNamespace(namespace, slice), Number.MAX_SAFE_INTEGER, 1_000),
    )
    return (await Promise.all(slices)).flat().map(({ id }) => id)
  }
  const settledAt = Math.max(lastWrittenAt, troubledAt)
  while (time.now() < settledAt + plan.withinMs && !(isOver() && (await left()).length === 0)) {
    await time.pacing.sleep(100)
  }
  const tookMs = time.now() - settledAt
  controller.abort()
  for (const id of writtenAt.keys()) {
    if (!successes.has(id) && !setAside.has(id)) problems.push(`${id} was not delivered in time`)
  }
  for (const id of await left()) problems.push(`${id} is left`)
  let repeats = 0
  for (const count of successes.values()) repeats += count - 1
  return {
    problems,
    repeats,
    written: writtenAt.size,
    setAside: setAside.size,
    waits: Array.from(firstBegun, ([id, at]) => at - (writtenAt.get(id) ?? at)).sort(
      (a, b) => a - b,
    ),
    tookMs,
  }
}

type Due = Awaited<ReturnType<Store['due']>>

/** `due` of a store that answers with each record as it was some time ago. */
function lagging(store: Store, time: Time, lagMs: number, draw: Draw): Store['due'] {
  if (lagMs === 0) return store.due
  const answers = new Map<string, { readonly at: number; readonly found: Due }[]>()
  return async (kind, namespace, before, limit, from = Number.MIN_SAFE_INTEGER) => {
    const found = await store.due(kind, namespace, Number.MAX_SAFE_INTEGER, 10_000)
    const earlier = answers.get(namespace) ?? []
    answers.set(namespace, earlier)
    earlier.push({ at: time.now(), found })
    while ((earlier[1]?.at ?? time.now()) < time.now() - lagMs) earlier.shift()
    const ids = new Set(earlier.flatMap((answer) => answer.found.map(({ id }) => id)))
    return [...ids]
      .flatMap((id) => {
        const seen = draw.pick(earlier)?.found.find((record) => record.id === id)
        const { dueAt = Number.NaN } = seen ?? {}
        return seen !== undefined && from <= dueAt && dueAt <= before ? [seen] : []
      })
      .sort((a, b) => (a.dueAt ?? 0) - (b.dueAt ?? 0) || (a.id < b.id ? -1 : 1))
      .slice(0, limit)
  }
}
