import type { Instant, Telemetry } from '../../src/index.js'
import type { Draw } from './draw.js'
import type { Trace } from './trace.js'

/** A process of the simulated world, with a clock of its own. */
export interface Process {
  readonly name: string
  alive: boolean
  /** How far its clock is ahead of the simulated time, in milliseconds. */
  skewMs: number
}

export function createProcess(name: string, skewMs = 0): Process {
  return { name, alive: true, skewMs }
}

/** Something that can happen next, and the process in which it happens. */
interface Item {
  readonly process: Process
  readonly label: string
  readonly run: () => void
  /** What still happens if the process dies before: a commit that the database has already received. */
  readonly outlives?: () => void
}

interface Timer {
  readonly at: Instant
  readonly process: Process
  readonly run: () => void
}

/** A write that the database has received and that takes effect later, whatever happens to who sent it. */
interface Landing {
  readonly at: Instant
  readonly label: string
  readonly run: () => void
}

/** The longest time after which a write that the database received takes effect. */
const lateMaxMs = 30_000

export interface Pace {
  /** The longest time that passes from one step to the next, in milliseconds. */
  readonly tickMs: number
  /** How often the item that was added last goes first. With 100, operations run one after another. */
  readonly focusPercent: number
}

export type Scheduler = ReturnType<typeof createScheduler>

/** No item reads clocks more often. One that does would never wait for another item. */
const readsMax = 20_000

/** No life has more items in progress when it must come to rest. */
const restMax = 20_000

/**
 * Decides what happens next, and when. Exactly one item runs at a time, until all code that it resumed waits for
 * another item, so that the seed alone determines the order.
 *
 * @param breach receives what has no end.
 */
export function createScheduler(
  draw: Draw,
  trace: Trace,
  startAt: Instant,
  pace: Pace,
  breach: (text: string) => void,
) {
  const world = createProcess('world')
  const timers = new Map<number, Timer>()
  let landings: Landing[] = []
  let items: Item[] = []
  let now = startAt
  let current = world
  let verifying = 0
  let timerIds = 0
  let reads = 0
  let isEndless = false

  /** Verification is the only work of the library that ends in a later turn of the event loop. */
  async function quiet(): Promise<void> {
    do await new Promise<void>((resolve) => setImmediate(resolve))
    while (verifying > 0)
  }

  async function run({ process, label, run }: Item): Promise<void> {
    current = process
    reads = 0
    trace.note(`${now} ${process.name} ${label}`)
    run()
    await quiet()
    current = world
    if (reads <= readsMax) return
    isEndless = true
    breach(`${process.name} ${label}: what it does has no end`)
  }

  /** The time for the code of a process. A loop that waits for no other item ends here, with an error. */
  function readClock(): Instant {
    reads += 1
    if (reads > readsMax) throw new Error('an item without an end')
    return now
  }

  async function step(): Promise<boolean> {
    now += draw.below(pace.tickMs)
    settleWrites()
    ripen()
    const index = draw.chance(pace.focusPercent) ? items.length - 1 : draw.below(items.length || 1)
    const [item] = items.splice(index, 1)
    if (item === undefined) return false
    await run(item)
    return true
  }

  function awaitTimer(): void {
    const next = Math.min(...[...timers.values(), ...landings].map(({ at }) => at))
    if (Number.isFinite(next)) now = Math.max(now, next)
  }

  function ripen(): void {
    for (const [id, { at, process, run }] of timers) {
      if (at > now) continue
      timers.delete(id)
      items.push({ process, label: 'timer', run })
    }
  }

  /** Lets the writes take effect that are late by now, in the order of their times. */
  function settleWrites(): void {
    const due = landings.filter(({ at }) => at <= now).sort((a, b) => a.at - b.at)
    landings = landings.filter(({ at }) => at > now)
    for (const { label, run } of due) {
      trace.note(`${label} lands late`)
      run()
    }
  }

  function land(label: string, run: () => void): void {
    landings.push({ at: now + draw.below(lateMaxMs), label, run })
  }

  const post = (process: Process, label: string, run: () => void) =>
    void items.push({ process, label, run })

  return {
    world,
    draw,
    trace,
    now: () => now,
    readClock,
    current: () => current,
    post,
    /** Runs work in a process from now until all of it waits. */
    perform: (process: Process, label: string, work: () => void) =>
      run({ process, label, run: work }),
    /** Continues the current item in another process, such as a server that a message reaches. */
    enter(process: Process): void {
      current = process
    },
    /** Resolves to the value of `effect`, which takes place when the scheduler chooses it. */
    turn<Value>(label: string, effect: () => Value, outlives = false): Promise<Value> {
      const process = current
      return new Promise((resolve, reject) => {
        const run = () => {
          try {
            resolve(effect())
          } catch (error) {
            reject(error)
          }
        }
        items.push({ process, label, run, ...(outlives && { outlives: effect }) })
      })
    },
    after(ms: number, run: () => void, process = current): number {
      timers.set(++timerIds, { at: now + Math.max(0, ms), process, run })
      return timerIds
    },
    cancel: (id: number) => timers.delete(id),
    /** Lets a write take effect within a bounded time. */
    land,
    /**
     * Lets much time pass at once, in which late writes take effect first. It does not while a process waits for a
     * write: no write takes that long.
     */
    leap(ms: number): void {
      if (items.some(({ outlives }) => outlives !== undefined)) return
      const end = now + ms
      now = Math.min(end, Math.max(now, ...landings.map(({ at }) => at)))
      settleWrites()
      now = end
    },
    /** Drops everything that waits in a process. */
    kill(process: Process): void {
      process.alive = false
      const dropped = items.filter((item) => item.process === process)
      items = items.filter((item) => item.process !== process)
      for (const { label, outlives } of dropped) {
        if (outlives !== undefined && draw.chance(50)) land(label, outlives)
      }
      for (const [id, timer] of timers) if (timer.process === process) timers.delete(id)
    },
    /** How many items can happen next. */
    size: () => items.length,
    hasTimers: () => timers.size > 0 || landings.length > 0,
    /** Runs the next item, and resolves to false if there is none. Time passes first. */
    step,
    /** Lets time pass until the next timer. */
    awaitTimer,
    /** Runs all items, and `between` after each. With `timers`, time passes until no timer is left either. */
    async rest({ timers: all = false, between = async () => {} } = {}): Promise<void> {
      for (let steps = 0; steps < restMax; steps++) {
        // Each of the others may take as long to be cut off.
        if (isEndless) return
        if (await step()) await between()
        else if (all && (timers.size > 0 || landings.length > 0)) awaitTimer()
        else return
      }
      breach('the world does not come to rest')
    },
    /** A call that is answered at once takes time too. */
    pass(ms: number): void {
      now = readClock() + ms
    },
    /** Counts the verifications in progress. */
    telemetry: {
      observe(activity, work) {
        const result = work(() => undefined)
        if (activity.type !== 'verify') return result
        verifying += 1
        return result.finally(() => {
          verifying -= 1
        })
      },
    } satisfies Telemetry,
  }
}
