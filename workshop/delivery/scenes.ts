import { isLong } from '../../test/support/runs.js'
import type { Budget, Scene } from './consumers.js'
import { beginsAt } from './consumers.js'
import { eventsOf } from './stored.js'

const none: Budget = {
  failures: 0,
  postponements: 0,
  lateAnswers: 0,
  storeFaults: 0,
  deaths: 0,
  pauses: 0,
  leaps: 0,
}
const bounds = { slices: 1, batchMax: 2, runMax: 2, dueLimit: 100 }
const dueAt = beginsAt - 120_000
const events = (count: number, name = 'a', slice = 0) => eventsOf(name, count, slice, dueAt)

const common = { consumers: 2, concurrency: 2, bounds, may: none, depth: isLong ? 12 : 8 }

/** Small worlds whose paths are searched in all orders. */
export const scenes = {
  'two consumers, and a record with two events': { ...common, events: events(2) },
  'two consumers, two records and two slices': {
    ...common,
    bounds: { ...bounds, slices: 2 },
    events: [...events(1), ...events(1, 'b', 1)],
  },
  'two consumers, one of which dies': {
    ...common,
    events: events(1),
    may: { ...none, deaths: 1 },
    depth: isLong ? 15 : 8,
  },
  'two consumers, one of which stands still': {
    ...common,
    events: events(1),
    may: { ...none, pauses: 1 },
    depth: isLong ? 15 : 8,
  },
  'a late answer': {
    ...common,
    events: events(1),
    may: { ...none, lateAnswers: 1, leaps: 1 },
    handlerMs: { a: 30_000 },
    depth: isLong ? 12 : 5,
  },
  'a handler that fails': { ...common, events: events(2), may: { ...none, failures: 1 } },
  'a handler that wants an event later': {
    ...common,
    events: events(2),
    may: { ...none, postponements: 2 },
    isPrompt: true,
  },
  'a store that fails': { ...common, events: events(1), may: { ...none, storeFaults: 1 } },
  'a record beside one with many events': {
    ...common,
    consumers: 1,
    events: [...events(12), ...events(1, 'b')],
    handlerMs: { a: 500 },
    waitMaxMs: 1_000,
    isPrompt: true,
    depth: isLong ? 14 : 10,
  },
  'a record beside a slow handler of one with many events': {
    ...common,
    consumers: 1,
    events: [...events(6), ...events(1, 'b')],
    handlerMs: { a: 15_000 },
    waitMaxMs: 1_000,
    isPrompt: true,
    depth: isLong ? 14 : 10,
  },
} as const satisfies Readonly<Record<string, Omit<Scene, 'name'>>>

export type SceneName = keyof typeof scenes

export const sceneOf = (name: SceneName): Scene => ({ ...scenes[name], name })
