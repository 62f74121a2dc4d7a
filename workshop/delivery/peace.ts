import { isPending } from '../../src/service/event-record.js'
import {
  answer,
  type Consumer,
  changed,
  end,
  observe,
  passTime,
  takeEffect,
  type World,
  worldOf,
} from './consumers.js'
import { isBehind, shortName } from './stored.js'

/** How long everything may take until all is delivered: a handler that has died has a lease. */
const endsWithinMs = 300_000
const movesMax = 4_000

/**
 * Lets the consumers work undisturbed from a state on, with a new one in place of one that has died or has ended. Says
 * which law is broken: all events are delivered, the calls end, no slice remains taken, and nobody waits too long.
 */
export function brokenInPeace(from: World): string | undefined {
  const begunAt = from.now
  let world = awakened(from)
  const firstDue = new Map<string, number>()
  for (let moves = 0; moves < movesMax; moves++) {
    if (world.broken !== undefined) return world.broken
    const late = waitsTooLong(world, firstDue)
    if (late !== undefined) return late
    if (isOver(world)) return claimsLeft(world)
    if (world.now - begunAt > endsWithinMs) return stillThere(world)
    world = next(world)
  }
  return 'end: the consumers go on for ever'
}

/** Ends all pauses, and starts consumers in place of those that have died. */
function awakened(world: World): World {
  let next = world
  for (const [index, consumer] of world.consumers.entries()) {
    if (consumer.isDead) next = restarted(next, index)
    else if (consumer.isPaused) {
      const awake = changed(next, index, { ...consumer, isPaused: false })
      next = observe(awake, index, [{ type: 'time' }])
    }
  }
  return next
}

/** Starts another call of `drain`: in the same process, which knows the same claims, or in a new one. */
function restarted(world: World, index: number): World {
  const before = world.consumers[index] as Consumer
  const [fresh] = worldOf({ ...world.scene, consumers: 1 }, {}).consumers as [Consumer]
  const known = before.isDead
    ? { name: `${before.known.name}'`, seen: new Map(), ended: new Map() }
    : before.known
  return observe(changed(world, index, { ...fresh, known }), index, [{ type: 'time' }])
}

function next(world: World): World {
  for (const [index, { call, running }] of world.consumers.entries()) {
    if (call !== undefined) {
      const acted = takeEffect(world, index)
      return acted.broken === undefined ? answer(acted, index) : acted
    }
    const done = running.find(({ id, begunAt }) => world.now >= begunAt + handlerMsOf(world, id))
    if (done !== undefined) return end(world, index, done.id, 'done')
  }
  const over = world.consumers.findIndex(({ state }) => state.isOver)
  const ends = world.consumers.flatMap(({ running }) =>
    running.map(({ id, begunAt }) => begunAt + handlerMsOf(world, id)),
  )
  // A consumer polls again a second after its call has ended.
  const later = passTime(world, Math.min(world.now + 1_000, ...ends))
  return over === -1 || later.now < world.now + 1_000 ? later : restarted(later, over)
}

const handlerMsOf = ({ scene }: World, id: string) =>
  scene.handlerMs?.[shortName(id).replace(/\d+$/, '')] ?? 0

const isOver = ({ stored, consumers }: World) =>
  consumers.every(({ state }) => state.isOver) && ![...stored.events.values()].some(isPending)

function claimsLeft({ stored, scene, left, lost }: World): string | undefined {
  const held = [...stored.claims.values()].find(
    ({ holder }) => holder !== undefined && !lost.has(holder),
  )
  const isTroubled = left.deaths + left.storeFaults < scene.may.deaths + scene.may.storeFaults
  return held === undefined || isTroubled ? undefined : `claims: slice ${held.id} is not given up`
}

function stillThere({ stored }: World): string {
  const left = [...stored.events.values()].filter(isPending)
  const names = left.map(({ id }) => shortName(id)).join()
  return left.length === 0 ? 'end: a call does not end' : `at least once: ${names} not delivered`
}

/** Notes since when the next event of each record waits. */
function waitsTooLong(world: World, since: Map<string, number>): string | undefined {
  const { scene, stored, now, consumers, handled } = world
  if (scene.waitMaxMs === undefined) return undefined
  const begun = new Set(consumers.flatMap(({ running }) => running.map(({ id }) => id)))
  for (const record of stored.events.values()) {
    const { id, dueAt = now, attempts } = record
    if (handled.has(id) || begun.has(id) || attempts > 0 || dueAt > now || isBehind(stored, record))
      continue
    const at = since.get(id) ?? now
    since.set(id, at)
    if (now - at > scene.waitMaxMs) return `wait: ${shortName(id)} waits ${now - at} ms`
  }
  return undefined
}
