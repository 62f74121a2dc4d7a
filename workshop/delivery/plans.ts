import { memoryStore } from '../../src/index.js'
import { virtualTime } from '../../test/support/virtual-time.js'
import { calm, deliverAll, type Mistake, type Plan, type Report } from './world.js'

/** Delivers events by a plan, in a few milliseconds. */
export function live(plan: Plan, mistake?: Mistake): Promise<Report> {
  const time = virtualTime()
  return time.until(deliverAll(memoryStore(), time, plan, mistake))
}

/** Says what is wrong with the deliveries: without an accident, no event may be delivered again. */
export function problemsOf(
  { streams, events, accidents }: Plan,
  { problems, repeats, written }: Report,
): readonly string[] {
  return [
    ...problems,
    ...(written === streams * events ? [] : [`${written} events were written`]),
    ...(accidents.length > 0 || repeats === 0 ? [] : [`${repeats} events were delivered again`]),
  ]
}

const slow = { mostMs: 20, slowPercent: 5, slowMs: 4_000 }
const pauses = [400, 900, 1_400, 1_900, 2_400].map(
  (atMs) => ({ kind: 'pauses', atMs, forMs: 20_000 }) as const,
)
export const die = { kind: 'dies', atMs: 1_200, forMs: 0 } as const

/** Times after which each event must have been delivered: a handler that died has at most 20 s. */
export const plans = {
  'with 3 consumers whose clocks differ': calm,
  'with events at long intervals': { ...calm, streams: 10, writingMs: 60_000, withinMs: 30_000 },
  'with many events of each record': { ...calm, streams: 4, events: 25, writingMs: 1_000 },
  'with handlers that fail': { ...calm, failsPercent: 15, withinMs: 150_000 },
  'with handlers that always fail': {
    ...calm,
    streams: 10,
    failsPercent: 100,
    options: { attemptsMax: 3 },
    withinMs: 150_000,
  },
  'with some slow handlers': { ...calm, handler: slow, withinMs: 60_000 },
  'with a query for due events that lags': {
    ...calm,
    lagMs: 2_000,
    handler: { mostMs: 20, slowPercent: 1, slowMs: 1_500 },
    withinMs: 60_000,
  },
  'with a store that fails, and loses its answers': { ...calm, faultsPercent: 5, withinMs: 60_000 },
  'with a consumer that dies': { ...calm, accidents: [die], withinMs: 20_000 },
  'with consumers that are paused': { ...calm, accidents: pauses, withinMs: 25_000 },
  'with a consumer that is paused for a minute': {
    ...calm,
    accidents: [{ kind: 'pauses', atMs: 900, forMs: 60_000 }],
    withinMs: 25_000,
  },
  'with all of this': {
    ...calm,
    lagMs: 1_000,
    faultsPercent: 2,
    failsPercent: 5,
    handler: slow,
    accidents: [...pauses.slice(0, 2), die],
    // A slow handler that dies has a lease.
    withinMs: 300_000,
  },
} as const satisfies Readonly<Record<string, Plan>>
