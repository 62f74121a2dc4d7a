import type { Scheduler } from 'fast-check'
import { type MayReceive, memoryStore, type Store } from '../../src/index.js'
import { namespaceOf } from '../../src/protocol/credential.js'
import type { ServerEvents } from '../../src/service/events/delivery.js'
import { createServerEvents } from '../../src/service/events/outbox.js'
import type { DomainEvent, EventRecord } from '../../src/service/events/record.js'
import { createIncomingPayments } from '../../src/service/incoming-payment.js'
import { namespaceOfServer } from '../../src/service/namespace.js'
import { retired, type SweepOptions, sweepKinds } from '../../src/service/sweep.js'
import type { Pacing } from '../../src/service/time.js'
import { boundedStore } from './bounded-store.js'
import { contextWithRunner, unguardedCall } from './calls.js'
import { type ManualClock, manualClock } from './clock.js'
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
}

/** Returns an outbox whose consumers have one clock, unless a test says otherwise. */
function oneClock(outbox: ServerEvents): ServerEvents {
  return {
    ...outbox,
    drain: (handler, options) => outbox.drain(handler, { skewMaxMs: 0, ...options }),
  }
}

/** A pacing in which no command waits too long. */
const patient: Pacing = {
  elapsedMs: () => 0,
  sleep: (_ms, signal) =>
    new Promise((resolve) => signal?.addEventListener('abort', () => resolve())),
}

export type Setup = ReturnType<typeof paymentServices>

/** One process that serves incoming payments and their events, without HTTP. */
export function paymentServices(options: SetupOptions = {}) {
  const { clock = manualClock(), scheduler, seed = 'seed', retentionMs = 60_000 } = options
  const { store = memoryStore(), serverUrl = resourceServer, recordsEvents = true } = options
  let slept = 0
  const unrun = {
    store: boundedStore(scheduler === undefined ? store : scheduledStore(store, scheduler)),
    givenStore: store,
    clock,
    random: seededRandom(seed),
    pacing: {
      elapsedMs: () => slept,
      async sleep(ms: number, signal?: AbortSignal) {
        if (signal !== undefined) return patient.sleep(ms, signal)
        slept += ms
        await scheduler?.schedule(Promise.resolve(), 'pause')
      },
    },
    ...namespaceOfServer(serverUrl),
    grantNamespace: () => namespaceOf(serverUrl),
    signatureRules: { ageMaxMs: 300_000, skewMaxMs: 60_000 },
    serverUrl,
    recordsEvents: () => recordsEvents,
    storeTimeoutMs: 3_000,
  }
  const context = contextWithRunner(unrun, { sharesCommits: options.combines ?? false })
  const payments = createIncomingPayments(
    context,
    {
      walletAddresses: { find: async () => ({ url: bob, assetCode: 'USD', assetScale: 2 }) },
      paymentMethods: { detailsOf: async () => [], paymentIdOf: () => undefined },
      mayReceive: options.mayReceive,
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
      sweepKinds(
        context,
        [payments.swept, retired(context, 'transfer'), retired(context, 'replay')],
        options,
      ),
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
          if (kind !== 'event' || expectedVersion !== 0) continue
          written.push({ id: next.id, event: (next as EventRecord).event })
        }
        return true
      },
    },
  }
}

/** Returns the part of an event's id that tells its position: record, kind, version and number. */
export function positionOf(eventId: string): string {
  return eventId.split('.').slice(0, 4).join('.')
}
