import type { Scheduler } from 'fast-check'
import type { Stored } from '../../src/entry-adapter.js'
import { type MayReceive, memoryStore, type Store } from '../../src/index.js'
import { namespaceOf } from '../../src/protocol/credential.js'
import { isUuid } from '../../src/protocol/uuid.js'
import {
  type DomainEvent,
  type EventRecord,
  sliceCount,
  sliceNamespace,
} from '../../src/service/event-record.js'
import { createServerEvents, type ServerEvents } from '../../src/service/events/server-events.js'
import { createIncomingPayments } from '../../src/service/incoming-payment.js'
import { namespaceOfServer } from '../../src/service/namespace.js'
import { storeOfPublicIds } from '../../src/service/public-ids.js'
import { retired, type SweepOptions, sweepKinds } from '../../src/service/sweep.js'
import type { Pacing } from '../../src/service/time.js'
import { boundedStore } from './bounded-store.js'
import { contextWithRunner, unguardedCall } from './calls.js'
import { type ManualClock, manualClock, startOfTests } from './clock.js'
import { hostCall } from './host-call.js'
import { usd } from './incoming-payments.js'
import { seededRandom } from './random.js'
import { scheduledStore } from './stores.js'
import { bob, resourceServer } from './world.js'

export interface SetupOptions {
  readonly store?: Store
  readonly clock?: ManualClock
  /** Delays every response of the store for any length of time. */
  readonly scheduler?: Scheduler
  /** Two processes have two seeds. */
  readonly seed?: string
  readonly serverUrl?: string
  readonly retentionMs?: number
  /** Default: `retentionMs`. */
  readonly unpaidRetentionMs?: number
  readonly recordsEvents?: boolean
  /** Decides concurrent arrivals of funds in one commit, as the servers do. Default false. */
  readonly combines?: boolean
  readonly mayReceive?: MayReceive
  /** The stopwatch and the pauses of the process. Default: those of `pacingBy(clock)`. */
  readonly pacing?: Pacing
}

/** Returns an outbox whose consumers have one clock, unless a test says otherwise. */
function oneClock(outbox: ServerEvents): ServerEvents {
  return {
    ...outbox,
    drain: (handler, options) => outbox.drain(handler, { skewMaxMs: 0, ...options }),
  }
}

/** What waits for a clock to move. */
const sleepers = new WeakMap<ManualClock, Set<() => void>>()

/** Lets those that wait for a clock know when a test moves it. */
function sleepersOf(clock: ManualClock): Set<() => void> {
  const known = sleepers.get(clock)
  if (known !== undefined) return known
  const waiting = new Set<() => void>()
  const { advance, set } = clock
  const moving =
    <Args extends unknown[]>(move: (...args: Args) => void) =>
    (...args: Args) => {
      move(...args)
      for (const wake of [...waiting]) wake()
    }
  Object.assign(clock, { advance: moving(advance), set: moving(set) })
  sleepers.set(clock, waiting)
  return waiting
}

/** Pauses of a command pass at once; other pauses end when the test has moved the clock. */
function pacingBy(clock: ManualClock, scheduler: Scheduler | undefined): Pacing {
  let slept = 0
  const waiting = sleepersOf(clock)
  const elapsedMs = () => clock.now() - startOfTests + slept
  return {
    elapsedMs,
    async sleep(ms, signal) {
      if (signal === undefined) {
        slept += ms
        await scheduler?.schedule(Promise.resolve(), 'pause')
        return
      }
      const endsAt = elapsedMs() + ms
      await new Promise<void>((resolve) => {
        function wake() {
          if (signal?.aborted !== true && elapsedMs() < endsAt) return
          waiting.delete(wake)
          signal?.removeEventListener('abort', wake)
          resolve()
        }
        waiting.add(wake)
        signal?.addEventListener('abort', wake)
        wake()
      })
    },
  }
}

export type Setup = ReturnType<typeof paymentServices>

/** One process that serves incoming payments and their events, without HTTP. */
export function paymentServices(options: SetupOptions = {}) {
  const { clock = manualClock(), scheduler, seed = 'seed', retentionMs = 60_000 } = options
  const { store = memoryStore(), serverUrl = resourceServer, recordsEvents = true } = options
  const unrun = {
    store: storeOfPublicIds(
      boundedStore(scheduler === undefined ? store : scheduledStore(store, scheduler)),
      namespaceOfServer(serverUrl).namespace,
    ),
    givenStore: store,
    clock,
    random: seededRandom(seed),
    pacing: options.pacing ?? pacingBy(clock, scheduler),
    ...namespaceOfServer(serverUrl),
    grantNamespace: () => namespaceOf(serverUrl),
    signatureRules: { ageMaxMs: 300_000, skewMaxMs: 60_000 },
    serverUrl,
    recordsEvents: () => recordsEvents,
    storeTimeoutMs: 3_000,
  }
  const context = contextWithRunner(unrun, { sharesCommits: options.combines ?? false })
  const { mayReceive } = options
  const payments = createIncomingPayments(
    context,
    {
      walletAddresses: { find: async () => ({ url: bob, assetCode: 'USD', assetScale: 2 }) },
      paymentMethods: { detailsOf: async () => [], paymentIdOf: () => undefined },
      mayReceive: mayReceive && (async (query) => mayReceive(query, hostCall)),
    },
    {
      expiryDefaultMs: 60_000,
      expiryMaxMs: 10_000_000,
      retentionMs,
      unpaidRetentionMs: options.unpaidRetentionMs ?? retentionMs,
    },
  )

  /** Creates a payment of an amount, or without one, and resolves to its id. */
  async function newPayment(incomingAmount?: string): Promise<string> {
    const amount = incomingAmount === undefined ? {} : { incomingAmount: usd(incomingAmount) }
    const request = { walletAddress: bob, ...amount }
    const created = await payments.create(request, 'https://shop.example', unguardedCall(context))
    if (!created.ok) throw new Error(created.reason)
    return created.payment.id
  }

  let transfers = 0
  return {
    context,
    clock,
    store,
    payments,
    outbox: oneClock(createServerEvents(context)),
    newPayment,
    receive: (paymentId: string, value = '1', transferId = `${seed} ${++transfers}`) =>
      payments.receive(paymentId, { transferId, amount: usd(value) }),
    /** Does what `ResourceServer.sweep` does, as far as it concerns incoming payments. */
    sweep: (options?: SweepOptions) =>
      sweepKinds(context, [payments.swept, retired('transfer'), retired('replay')], options),
  }
}

/** An event record from a commit that took effect. */
export interface Written {
  readonly id: string
  readonly event: DomainEvent
}

/** The same store, with every event that is written to it. */
export function withEventLog(store: Store): { readonly store: Store; readonly written: Written[] } {
  const written: Written[] = []
  return {
    written,
    store: {
      ...store,
      async commit(commit) {
        const committed = await store.commit(commit)
        if (!committed) return false
        for (const { kind, next, expectedVersion } of commit.changes) {
          // The claim of a slice is no event.
          if (kind !== 'event' || expectedVersion !== 0 || !('event' in next)) continue
          written.push({ id: next.id, event: (next as EventRecord).event })
        }
        return true
      },
    },
  }
}

/**
 * Returns the part of an event's id that tells its position: its record, the kind of it, and the number of the event.
 * Without the namespace, which a record with a public id has only in the store.
 */
export function positionOf(eventId: string): string {
  const [recordId = '', kind, place] = eventId.split('.')
  const publicId = recordId.slice(8)
  return `${isUuid(publicId) ? publicId : recordId}.${kind}.${Number(place)}`
}

/** Returns the undelivered events of a server. */
export async function eventsIn(store: Store, namespace: string): Promise<readonly EventRecord[]> {
  const slices = Array.from({ length: sliceCount }, (_, slice) =>
    store.due('event', sliceNamespace(namespace, slice), Number.MAX_SAFE_INTEGER, 10_000),
  )
  return (await Promise.all(slices)).flat() as Stored[] as EventRecord[]
}

export async function storedEvents({ store, context }: Setup): Promise<readonly EventRecord[]> {
  return eventsIn(store, await context.namespace())
}

/** Returns what the id of an event's record has in common with the id under which the event is delivered. */
export function withoutSlice(id: string): string {
  return id.slice(0, 7) + id.slice(8)
}
