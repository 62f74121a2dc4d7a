import type { EventRecord } from '../../src/service/event-record.js'
import { isPending, placeOf } from '../../src/service/event-record.js'
import { beginWithinMs } from '../../src/service/events/claims.js'
import {
  type Action,
  type Answer,
  beginningAt,
  type ConsumerBounds,
  type Delivery,
  type Handled,
  isOverdue,
  type Observed,
  type State,
  type StoreAction,
} from '../../src/service/events/state.js'
import { step } from '../../src/service/events/step.js'
import {
  deliverySettings,
  type Effect,
  effectOf,
  type Known,
  type Stored,
  shortName,
} from './stored.js'

/** What a search begins with. */
export interface Scene {
  readonly name: string
  readonly events: readonly EventRecord[]
  readonly consumers: number
  readonly concurrency: number
  readonly bounds: ConsumerBounds
  /** How often each of these may happen in a path. */
  readonly may: Budget
  /** How long the handler of each record takes in peace, in milliseconds. Default 0. */
  readonly handlerMs?: Readonly<Record<string, number>>
  /** Within which time an event must be begun in peace that is the next one of its record. */
  readonly waitMaxMs?: number
  /** Whether the store answers before time passes. */
  readonly isPrompt?: boolean
  /** How many moves a path has. */
  readonly depth: number
}

export interface Budget {
  readonly failures: number
  /** How often a handler wants an event again 5 s later. */
  readonly postponements: number
  readonly lateAnswers: number
  readonly storeFaults: number
  readonly deaths: number
  readonly pauses: number
  /** How often 16 s pass in which no process gets on. */
  readonly leaps: number
}

/** A mistake, planted to show that the laws find it. */
export interface Mistake {
  readonly step?: typeof step
  readonly effectOf?: typeof effectOf
}

/** A delivery whose handler runs. */
export interface Running {
  readonly id: string
  readonly begunAt: number
}

/** A process that delivers events, in one call of `drain`. */
export interface Consumer {
  readonly known: Known
  readonly state: State
  readonly wakeAt: number
  readonly running: readonly Running[]
  /** The call of the store that is under way, and its answer once it took effect. */
  readonly call?: {
    readonly action: StoreAction
    readonly sentAt: number
    readonly answer?: Answer
  }
  /** Which events the last claim of a slice named, and when it was sent. */
  readonly named: ReadonlyMap<string, number>
  readonly isDead: boolean
  readonly isPaused: boolean
}

export interface World {
  readonly scene: Scene
  readonly mistake: Mistake
  readonly now: number
  readonly stored: Stored
  readonly consumers: readonly Consumer[]
  /** The events whose handler has resolved. */
  readonly handled: ReadonlySet<string>
  /** When the handler wants an event again. */
  readonly wanted: ReadonlyMap<string, number>
  /** The holders that have left a slice to others without a word. */
  readonly lost: ReadonlySet<string>
  readonly left: Budget
  readonly broken?: string
}

/** The instant at which everything begins. */
export const beginsAt = 1_000_000

export function worldOf(scene: Scene, mistake: Mistake): World {
  const events = new Map(scene.events.map((event) => [event.id, event]))
  const stored = { events, claims: new Map(), claimed: 0 }
  const { consumers: count, concurrency, bounds, may } = scene
  const consumers = Array.from({ length: count }, (_, index): Consumer => {
    const settings = {
      concurrency,
      limit: 1_000,
      pollMs: 1_000,
      attemptsMax: deliverySettings.attemptsMax,
    }
    const known = { name: 'AB'[index] ?? '', seen: new Map(), ended: new Map() }
    const state = beginningAt(0, settings, bounds)
    const rest = { running: [], named: new Map(), isDead: false, isPaused: false }
    return { known, state, wakeAt: beginsAt, ...rest }
  })
  return {
    scene,
    mistake,
    now: beginsAt,
    stored,
    consumers,
    handled: new Set(),
    wanted: new Map(),
    lost: new Set(),
    left: may,
  }
}

const momentAt = (now: number) => ({ elapsedMs: now, now })

export function changed(world: World, index: number, consumer: Consumer): World {
  return { ...world, consumers: world.consumers.with(index, consumer) }
}

/** Lets a consumer observe something, and begins what it does then. */
export function observe(world: World, index: number, observed: readonly Observed[]): World {
  const consumer = world.consumers[index]
  if (consumer === undefined) return world
  const decide = world.mistake.step ?? step
  const { state, actions, wakeAt } = decide(consumer.state, observed, momentAt(world.now))
  let next = changed(world, index, { ...consumer, state, wakeAt })
  const stopped: Observed[] = []
  for (const action of actions) {
    if (action.type === 'stop') {
      const handled: Handled = { type: 'failed', error: action.reason }
      stopped.push({ type: 'ended', id: action.id, handled })
      next = withoutHandler(next, index, action.id)
    } else next = perform(next, index, action)
  }
  if (next.broken === undefined) next = { ...next, ...brokenIn(next, index) }
  return stopped.length > 0 ? observe(next, index, stopped) : next
}

function perform(world: World, index: number, action: Exclude<Action, { type: 'stop' }>): World {
  const consumer = world.consumers[index] as Consumer
  if (action.type === 'abandon') {
    const { holder = '' } = action.claim
    const ended = new Map(consumer.known.ended).set(action.slice, holder)
    const known = { ...consumer.known, ended }
    const lost = new Set(world.lost).add(holder)
    return changed({ ...world, lost }, index, { ...consumer, known })
  }
  if (action.type !== 'handle') {
    const named = new Map(consumer.named)
    if (action.type === 'claim') for (const id of action.started) named.set(id, world.now)
    return changed(world, index, { ...consumer, named, call: { action, sentAt: world.now } })
  }
  const { id } = action.delivery.record
  const broken = world.broken ?? brokenByBeginning(world, consumer, action.delivery)
  const running = [...consumer.running, { id, begunAt: world.now }]
  const next = changed(world, index, { ...consumer, running })
  return broken === undefined ? next : { ...next, broken }
}

/** Says which law is broken if a consumer begins a delivery now. */
function brokenByBeginning(
  world: World,
  consumer: Consumer,
  delivery: Delivery,
): string | undefined {
  const { id } = delivery.record
  const { stream, place } = placeOf(id)
  const earlier = [...world.stored.events.values()].find(
    (other) =>
      isPending(other) &&
      placeOf(other.id).stream === stream &&
      placeOf(other.id).place < place &&
      !world.handled.has(other.id),
  )
  const wantedAt = world.wanted.get(id) ?? world.now
  if (wantedAt > world.now) return `later: ${shortName(id)} was begun too early`
  const isCounted = delivery.attempt > 1
  if (isCounted && world.scene.may.postponements > 0)
    return `later: ${shortName(id)} lost an attempt`
  if (earlier !== undefined) return `order: ${shortName(id)} overtook ${shortName(earlier.id)}`
  for (const other of world.consumers) {
    const beside = other.running.find((each) => placeOf(each.id).stream === stream)
    if (beside === undefined || other.isDead) continue
    // A consumer that stood still cannot stop its handler, which sees by its signal that it is too late.
    if (other.isPaused && isOverdue(other.state, beside.id, momentAt(world.now))) continue
    return `one handler: ${consumer.known.name} began ${shortName(id)} beside ${other.known.name}`
  }
  const sentAt = consumer.named.get(id)
  if (sentAt === undefined) return `claim: ${shortName(id)} was begun without a claim`
  if (world.now - sentAt >= beginWithinMs) return `claim: ${shortName(id)} was begun late`
  return undefined
}

/** Says which law the state of a consumer breaks. */
function brokenIn(world: World, index: number): Pick<World, 'broken'> | undefined {
  const { state, wakeAt, call, known } = world.consumers[index] as Consumer
  const { bounds, settings } = state
  const most = 2 * bounds.batchMax + 2 * settings.concurrency
  const sizes = [state.holds, state.others, state.blockedSlices, state.soon, state.widths]
  if (state.deliveries.size > most) return { broken: `memory: ${state.deliveries.size} deliveries` }
  if (sizes.some(({ size }) => size > bounds.slices)) return { broken: 'memory: too many slices' }
  if (!state.isOver && call === undefined && wakeAt <= world.now) {
    return { broken: `end: ${known.name} goes round without time passing` }
  }
  if (state.isOver && state.holds.size > 0) return { broken: `claims: ${known.name} keeps a slice` }
  return undefined
}

export function withoutHandler(world: World, index: number, id: string): World {
  const consumer = world.consumers[index] as Consumer
  const running = consumer.running.filter((each) => each.id !== id)
  return changed(world, index, { ...consumer, running })
}

/** Lets a handler end. */
export function end(world: World, index: number, id: string, type: Handled['type']): World {
  const retryAt = world.now + 5_000
  const handled: Handled = type === 'failed' ? { type, error: 'no' } : { type, retryAt }
  const handledIds = type === 'done' ? new Set(world.handled).add(id) : world.handled
  const wanted = type === 'postponed' ? new Map(world.wanted).set(id, retryAt) : world.wanted
  const next = withoutHandler({ ...world, handled: handledIds, wanted }, index, id)
  return observe(next, index, [{ type: 'ended', id, handled }])
}

/** Lets the call of a consumer take effect, without its answer. */
export function takeEffect(world: World, index: number): World {
  const consumer = world.consumers[index] as Consumer
  const { call, known } = consumer
  if (call === undefined || call.answer !== undefined) return world
  const act = world.mistake.effectOf ?? effectOf
  const { stored, answer, known: next }: Effect = act(call.action, world.stored, known, world.now)
  const lost = [...world.stored.events.keys()].find(
    (id) => !stored.events.has(id) && !world.handled.has(id),
  )
  const acted = changed({ ...world, stored }, index, {
    ...consumer,
    known: next,
    call: { ...call, answer },
  })
  return lost === undefined
    ? acted
    : { ...acted, broken: `at least once: ${shortName(lost)} is lost` }
}

/** Lets a consumer have the answer of its call. */
export function answer(world: World, index: number, given?: Answer): World {
  const { call, ...consumer } = world.consumers[index] as Consumer
  const observed = given ?? call?.answer
  if (observed === undefined) return world
  return observe(changed(world, index, consumer), index, [observed])
}

/** Lets time pass until something is due, at most until `until`. */
export function passTime(world: World, until = Number.POSITIVE_INFINITY): World {
  const alive = world.consumers.filter(({ isDead, isPaused }) => !isDead && !isPaused)
  const ends = alive.flatMap(({ running, wakeAt, state }) => [
    ...(state.isOver ? [] : [wakeAt]),
    ...running.map(({ begunAt }) => begunAt + deliverySettings.leaseMs),
  ])
  const now = Math.min(until, ...ends.filter((at) => at > world.now))
  return now === Number.POSITIVE_INFINITY ? world : wakeAll(world, now)
}

/** Lets all consumers that are due get on at an instant. */
export function wakeAll(world: World, now: number): World {
  let next: World = { ...world, now }
  for (const [index, { running, wakeAt, state, isDead, isPaused }] of world.consumers.entries()) {
    if (isDead || isPaused) continue
    for (const { id, begunAt } of running) {
      if (now - begunAt >= deliverySettings.leaseMs) next = end(next, index, id, 'failed')
    }
    if (wakeAt <= now && !state.isOver) next = observe(next, index, [{ type: 'time' }])
  }
  return next
}
