import fc from 'fast-check'
import type { DeliveredEvent, Store } from '../../src/index.js'
import { manualClock } from '../../test/support/clock.js'
import { type Fate, fates, lyingStore } from '../../test/support/proxy-store.js'
import { type Answer, alice, answerOf, createWorld, type World } from '../../test/support/world.js'
import type { CallerOptions } from './caller.js'
import { type Action, actions, createCustomer, seededNumbers } from './customer.js'
import { type Evidence, gather } from './evidence.js'
import { createJournal, type Journal, totalOf } from './journal.js'
import {
  breaches,
  eventsOfARecordAreDeliveredInOrder,
  everyPaymentHasReceivedExactlyWhatWasCounted,
  everyTransferIsCountedOnce,
  everyVersionOfAPaymentHasItsEvent,
  type Law,
  laws,
  lawsOfPeace,
  nothingWaitsToBeDelivered,
} from './laws.js'
import type { Wallet } from './wallet.js'

const customerNames = ['shop-1', 'shop-2', 'shop-3']

/** The actions of a history, and the reliability of its store. */
export interface Plan {
  readonly seed: number
  /** The percentage of store calls that go wrong. */
  readonly faultsPercent: number
  /** The actions of each customer, in sequence; the customers act concurrently. */
  readonly actions: readonly (readonly (Action | 'deliver events')[])[]
}

export const plans: fc.Arbitrary<Plan> = fc.record({
  seed: fc.integer(),
  faultsPercent: fc.integer({ min: 5, max: 60 }),
  actions: fc.tuple(
    ...customerNames.map(() =>
      fc.array(fc.constantFrom(...actions, 'deliver events' as const), { maxLength: 10 }),
    ),
  ),
})

export interface History {
  readonly breaches: readonly string[]
  readonly journal: Journal
  readonly struck: ReadonlyMap<Fate, number>
}

/** The delays after which an unfinished delivery is repeated: after a failure, or after a lost lease. */
const delivery = {
  leaseMs: 2_000,
  skewMaxMs: 1,
  backoffMs: 500,
  backoffMaxMs: 2_000,
  attemptsMax: 1_000,
}
const patienceMs = 5_000
const monthMs = 31 * 86_400_000

/**
 * Runs a plan on a store that misreports commits, then checks the outcome on a truthful store: immediately,
 * after all events have been delivered, and after all payments have expired.
 */
export async function live(store: Store, { seed, faultsPercent, actions }: Plan): Promise<History> {
  const random = seededNumbers(seed)
  let lies = true
  const liar = lyingStore(store, () => {
    if (!lies || random() * 100 >= faultsPercent) return 'works'
    return fates[1 + Math.floor(random() * (fates.length - 1))] ?? 'works'
  })
  const clock = manualClock()
  const world = createWorld({ store: liar.store, clock })
  for (const name of customerNames) world.client(name)
  const wallet = walletOf(world)
  const journal = createJournal()
  const delivered: DeliveredEvent[] = []

  async function deliver(): Promise<void> {
    clock.advance(1_000)
    const handler = (event: DeliveredEvent) => {
      if (lies && random() < 0.3) throw new Error('the handler fails')
      delivered.push(event)
    }
    for (const { events } of [world.auth, world.resources]) {
      await ignoringFaults(() => events.drain(handler, delivery))
    }
  }

  async function deliverAll(): Promise<void> {
    lies = false
    for (let i = 0; i < 10; i++) await deliver()
  }

  async function look(looked: readonly Law[]): Promise<string[]> {
    lies = false
    const records = liar.records
    const evidence = await gather(journal, { records, delivered: () => delivered, wallet })
    return breaches(looked, journal, evidence)
  }

  async function expireAll(): Promise<void> {
    lies = true
    clock.advance(monthMs)
    for (let i = 0; i < 20; i++) {
      await ignoringFaults(() => world.resources.sweep())
    }
    lies = false
    await world.resources.sweep()
  }

  const now = () => clock.now()
  const options = { wallet, journal, random, now, pause: async () => {}, patienceMs }
  await Promise.all(
    actions.map((own, index) =>
      act(own, { ...options, name: customerNames[index] ?? '' }, deliver),
    ),
  )
  const found = await look(laws)
  await deliverAll()
  found.push(...(await look([...laws, ...lawsOfPeace])))
  await expireAll()
  await deliverAll()
  found.push(...(await look(lawsOfPayments)))
  return { breaches: found, journal, struck: liar.struck }
}

async function act(
  own: Plan['actions'][number],
  options: CallerOptions,
  deliver: () => Promise<void>,
): Promise<void> {
  const customer = createCustomer(options)
  for (const action of own) {
    await (action === 'deliver events' ? deliver() : customer.act(action))
  }
}

const lawsOfPayments: readonly Law[] = [
  everyPaymentHasReceivedExactlyWhatWasCounted,
  everyTransferIsCountedOnce,
  everyVersionOfAPaymentHasItsEvent,
  eventsOfARecordAreDeliveredInOrder,
  nothingWaitsToBeDelivered,
  everyOpenPaymentExpiresOnce,
]

export function everyOpenPaymentExpiresOnce(_: Journal, { payments, delivered }: Evidence) {
  return [...payments.values()].flatMap(({ id, completed }) => {
    const expiries = delivered.filter(
      (event) => event.type === 'incoming-payment.expired' && event.incomingPaymentId === id,
    )
    const times = new Set(expiries.map((event) => event.id)).size
    return times === (completed ? 0 : 1) ? [] : [`${id} expired ${times} times`]
  })
}

function walletOf({ handle, auth, resources }: World): Wallet {
  return {
    send: async (request) => answerOf(await handle(request)),
    approve: (id) =>
      answered(() =>
        auth.interactions.approve(id, { resourceOwner: 'alice', walletAddresses: [alice] }),
      ),
    receive: (paymentId, funds) =>
      answered(() => resources.incomingPayments.receive(paymentId, funds)),
    introspect: (tokens) =>
      answered(async () => {
        const found: string[] = []
        for (const accessToken of tokens) {
          if ((await auth.introspect({ accessToken })).active) found.push(accessToken)
        }
        return found
      }),
  }
}

async function answered(call: () => Promise<unknown>): Promise<Answer> {
  try {
    return { status: 200, headers: {}, body: await call() }
  } catch {
    return { status: 503, headers: {}, body: undefined }
  }
}

async function ignoringFaults(call: () => Promise<unknown>): Promise<void> {
  try {
    await call()
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'ECONNRESET')) throw error
  }
}

/** Counts all outcomes over many histories. */
export function createTally() {
  const tally = { histories: 0, acknowledged: 0, unknown: 0, struck: 0 }
  return {
    tally,
    add({ journal, struck }: History): void {
      tally.histories += 1
      tally.acknowledged += totalOf(journal.acknowledged)
      tally.unknown += totalOf(journal.unknown)
      tally.struck += totalOf(struck) - (struck.get('works') ?? 0)
    },
  }
}
