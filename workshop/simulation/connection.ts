import type { Commit } from '../../src/entry-adapter.js'
import type { Store } from '../../src/index.js'
import type { Database } from './database.js'
import type { Weather } from './faults.js'
import type { Scheduler } from './scheduler.js'

/** The state of the world's faults: absent once the life is over and peace begins. */
export interface Climate {
  weather: Weather
  /** Whether calls of the store are answered at once, without another actor in between. */
  isPeaceful: boolean
  /** How many faults have occurred at stores and ports. */
  faults: number
}

/**
 * The store as one process sees it. Each call is sent, takes effect and is answered at moments that the scheduler
 * chooses. A write may be rejected; it may take effect although its response is an error, false or missing; it may take
 * effect long after the caller has stopped waiting. A read may fail, and its response may be old when it arrives.
 */
export function connect(scheduler: Scheduler, database: Database, climate: Climate): Store {
  const { draw } = scheduler

  function fault(text: string): Error {
    climate.faults += 1
    scheduler.trace.note(text)
    return new Error(text)
  }

  function atOnce<Value>(effect: () => Value): Value {
    scheduler.pass(1)
    return effect()
  }

  async function read<Value>(label: string, effect: () => Value): Promise<Value> {
    if (climate.isPeaceful) return atOnce(effect)
    if (draw.chance(climate.weather.readFailsPercent)) {
      throw await scheduler.turn(`${label} fails`, () => fault('the read failed'))
    }
    const value = await scheduler.turn(label, effect)
    // The response is under way while others write.
    if (draw.chance(30)) await scheduler.turn(`${label} answered`, () => undefined)
    return value
  }

  /** @param denied the answer of a write that did not take effect. */
  async function write<Answer>(
    label: string,
    effect: () => Answer,
    denied: Answer,
  ): Promise<Answer> {
    if (climate.isPeaceful) return atOnce(effect)
    if (!draw.chance(climate.weather.writeLiesPercent)) {
      const written = await scheduler.turn(label, effect, true)
      if (draw.chance(30)) await scheduler.turn(`${label} answered`, () => undefined)
      return written
    }
    const lie = draw.one('rejected', 'error', 'false', 'never', 'late')
    climate.faults += 1
    if (lie === 'rejected') {
      throw await scheduler.turn(`${label} rejected`, () => fault('the write was rejected'))
    }
    if (lie === 'late') return late(label, effect)
    await scheduler.turn(`${label}, answered by ${lie}`, effect, true)
    if (lie === 'never') return new Promise(() => undefined)
    if (lie === 'error') throw fault('the response was lost')
    return denied
  }

  function late<Answer>(label: string, effect: () => Answer): Promise<Answer> {
    return new Promise((resolve) => {
      const caller = scheduler.current()
      scheduler.land(label, () => {
        const written = effect()
        if (caller.alive) scheduler.post(caller, `${label} answered`, () => resolve(written))
      })
    })
  }

  return {
    load: (keys) => read(`load ${keys.map(({ kind }) => kind)}`, () => database.load(keys)),
    list: (query) => read(`list ${query.kind}`, () => database.list(query)),
    due(kind, namespace, before, limit, from) {
      const lags = draw.chance(climate.weather.lagPercent)
      return read(`due ${kind}`, () => database.due({ kind, namespace, before, limit, from, lags }))
    },
    commit: (commit) => write(`commit ${kindsOf(commit)}`, () => database.commit(commit), false),
    remove: (records) =>
      write(
        `remove ${records.map(({ kind }) => kind)}`,
        () => database.remove(records),
        records.map(() => false),
      ),
  }
}

function kindsOf({ changes }: Commit): string {
  return changes.map(({ kind, next }) => `${kind} ${next.id} ${next.version}`).join(', ')
}
