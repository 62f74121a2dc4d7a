import { type Move, remembered, type System } from '../exhaustive/search.js'
import {
  answer,
  type Budget,
  type Consumer,
  changed,
  end,
  type Mistake,
  observe,
  passTime,
  type Scene,
  takeEffect,
  type World,
  wakeAll,
  worldOf,
} from './consumers.js'
import { brokenInPeace } from './peace.js'
import { type Stored, shortName } from './stored.js'

/** All that may happen to the consumers of a scene, in all orders. */
export function consumersOf(scene: Scene, mistake: Mistake = {}, inPeace = true): System<World> {
  const begins = startAll(worldOf(scene, mistake))
  return {
    name: scene.name,
    begins: [moved('all begin', begins)],
    moves: movesOf,
    broken: (world) => (inPeace ? brokenInPeace(world) : undefined),
    parts: ({ now, left, handled, wanted, stored, consumers }) => [
      `${now} ${Object.values(left).join()} ${[...handled].join()} ${[...wanted].join()}`,
      textOfStored(stored),
      ...consumers.map(textOfConsumer),
    ],
  }
}

function startAll(world: World): World {
  return world.consumers.reduce((all, _, index) => observe(all, index, [{ type: 'time' }]), world)
}

const moved = (label: string, next: World): Move<World> => ({ label, next, broken: next.broken })

function* movesOf(world: World): Iterable<Move<World>> {
  for (const [index, consumer] of world.consumers.entries())
    yield* movesOfConsumer(world, index, consumer)
  if (world.scene.isPrompt && world.consumers.some(({ call }) => call !== undefined)) return
  if (world.left.leaps > 0) {
    yield moved('16 s pass at once', wakeAll(spent(world, 'leaps'), world.now + 16_000))
  }
  const later = passTime(world)
  if (later !== world) yield moved(`${(later.now - world.now) / 1_000} s pass`, later)
}

const spent = (world: World, of: keyof Budget): World => ({
  ...world,
  left: { ...world.left, [of]: world.left[of] - 1 },
})

function* movesOfConsumer(world: World, index: number, consumer: Consumer): Iterable<Move<World>> {
  const { call, running, isDead, isPaused, state, known } = consumer
  const { left } = world
  if (isDead) return
  if (isPaused) {
    const awake = changed(world, index, { ...consumer, isPaused: false })
    return yield moved(`${known.name} goes on`, observe(awake, index, [{ type: 'time' }]))
  }
  if (call?.answer !== undefined) yield moved(`${known.name} has its answer`, answer(world, index))
  else if (call !== undefined) {
    const acted = takeEffect(world, index)
    const name = `${known.name}: ${call.action.type}`
    yield moved(name, acted.broken === undefined ? answer(acted, index) : acted)
    if (left.lateAnswers > 0) yield moved(`${name}, answered later`, spent(acted, 'lateAnswers'))
    if (left.storeFaults > 0) {
      const failed = { type: 'store failed', error: new Error('away') } as const
      yield moved(`${name} fails`, answer(spent(world, 'storeFaults'), index, failed))
      yield moved(`${name}, its answer is lost`, answer(spent(acted, 'storeFaults'), index, failed))
    }
  }
  for (const { id } of running) {
    yield moved(`${known.name} has handled ${shortName(id)}`, end(world, index, id, 'done'))
    if (left.failures > 0) {
      const failed = end(spent(world, 'failures'), index, id, 'failed')
      yield moved(`${known.name} fails to handle ${shortName(id)}`, failed)
    }
    if (left.postponements > 0) {
      const postponed = end(spent(world, 'postponements'), index, id, 'postponed')
      yield moved(`${known.name} postpones ${shortName(id)}`, postponed)
    }
  }
  if (state.isOver) return
  if (left.deaths > 0) {
    const dead = { ...consumer, isDead: true }
    yield moved(`${known.name} dies`, changed(spent(world, 'deaths'), index, dead))
  }
  if (left.pauses > 0) {
    const paused = { ...consumer, isPaused: true }
    yield moved(`${known.name} stands still`, changed(spent(world, 'pauses'), index, paused))
  }
}

const replacer = (_: string, value: unknown): unknown => {
  if (value instanceof Map) return [...value]
  if (value instanceof Set) return [...value]
  return value === Number.POSITIVE_INFINITY ? 'never' : value
}

const textOfStored = remembered((stored: Stored) => JSON.stringify(stored, replacer))
const textOfConsumer = remembered((consumer: Consumer) => JSON.stringify(consumer, replacer))
