import type { ClaimRecord } from '../../src/service/events/claims.js'
import type { Action, Handled, Observed, StoreAction } from '../../src/service/events/state.js'
import { type Stepped, step } from '../../src/service/events/step.js'
import type { Mistake } from './consumers.js'
import type { SceneName } from './scenes.js'
import { type Effect, effectOf, type Known, type Stored } from './stored.js'

/** A consumer that breaks one rule, a scene in which this matters, and the law that it breaks. */
export interface Planted {
  readonly scene: SceneName
  readonly mistake: Mistake
  readonly law: RegExp
  /** How many moves the shortest path to it has. */
  readonly moves: number
}

/** Changes what a consumer does. */
function doing(change: (action: Action) => readonly Action[]): Mistake {
  return {
    step(state, observed, at) {
      const stepped = step(state, observed, at)
      return { ...stepped, actions: stepped.actions.flatMap(change) }
    },
  }
}

/** Changes what a consumer observes. */
function observing(change: (observed: Observed) => Observed): Mistake {
  return { step: (state, observed, at) => step(state, observed.map(change), at) }
}

/** Changes what is decided after a step. */
function deciding(change: (stepped: Stepped) => Stepped): Mistake {
  return { step: (state, observed, at) => change(step(state, observed, at)) }
}

/** Answers an action without doing it. */
function without(type: StoreAction['type']): Mistake {
  return {
    effectOf(action, stored, known, now) {
      const effect = effectOf(action, stored, known, now)
      return action.type === type ? { ...effect, stored } : effect
    },
  }
}

/** Changes an action before it takes effect. */
function storing(
  change: (action: StoreAction, stored: Stored) => readonly [StoreAction, Stored, Partial<Known>?],
): Mistake {
  return {
    effectOf(given, before, known, now): Effect {
      const [action, stored, other] = change(given, before)
      return effectOf(action, stored, { ...known, ...other }, now)
    },
  }
}

const soon = (handled: Handled): Handled =>
  handled.type === 'postponed' ? { ...handled, retryAt: 0 } : handled

export const planted: Readonly<Record<string, Planted>> = {
  // What the library did before: look-ups that read no more than the oldest events.
  'look no further than the oldest events': {
    scene: 'a record beside one with many events',
    mistake: doing((action) => [
      action.type === 'look up' ? { ...action, limit: Math.min(action.limit, 4) } : action,
    ]),
    law: /^wait: b1/,
    moves: 5,
  },
  'take a slice that another one holds': {
    scene: 'two consumers, and a record with two events',
    mistake: storing((action, stored) => {
      if (action.type !== 'claim' || action.held !== undefined) return [action, stored]
      const free = [...stored.claims].map(([slice, { holder: _holder, ...claim }]) => {
        return [slice, claim as ClaimRecord] as const
      })
      return [action, { ...stored, claims: new Map(free) }]
    }),
    law: /^one handler/,
    moves: 4,
  },
  'take a failure for a success': {
    scene: 'a handler that fails',
    mistake: observing((observed) => {
      if (observed.type !== 'ended') return observed
      return { ...observed, handled: { type: 'done' } }
    }),
    law: /^(order|at least once)/,
    moves: 5,
  },
  'do not wait for the event before': {
    scene: 'a handler that fails',
    mistake: {
      effectOf(action, stored, known, now) {
        const effect = effectOf(action, stored, known, now)
        const { answer } = effect
        if (answer.type !== 'loaded') return effect
        const started = new Set([...stored.claims.values()].flatMap((claim) => claim.started))
        const records = new Map([...answer.records].filter(([id]) => started.has(id)))
        return { ...effect, answer: { ...answer, records } }
      },
    },
    law: /^order/,
    moves: 5,
  },
  'acknowledge when they begin': {
    scene: 'two consumers, and a record with two events',
    mistake: {
      effectOf(action, stored, known, now) {
        const effect = effectOf(action, stored, known, now)
        if (action.type !== 'claim' || effect.answer.type !== 'claimed') return effect
        const events = [...stored.events].filter(([id]) => !action.started.includes(id))
        return { ...effect, stored: { ...effect.stored, events: new Map(events) } }
      },
    },
    law: /^at least once/,
    moves: 1,
  },
  'give a slice back without leases for what still runs': {
    scene: 'two consumers, and a record with two events',
    mistake: without('lease'),
    law: /^one handler/,
    moves: 8,
  },
  'lease without an end': {
    scene: 'two consumers, one of which dies',
    mistake: {
      effectOf(action, stored, known, now) {
        return effectOf(action, stored, known, now + (action.type === 'lease' ? 1_000_000 : 0))
      },
    },
    law: /^(at least once|end)/,
    moves: 8,
  },
  'keep their slices': {
    scene: 'two consumers, and a record with two events',
    mistake: without('release'),
    law: /^(claims|at least once)/,
    moves: 1,
  },
  'never take over the slice of a dead one': {
    scene: 'two consumers, one of which dies',
    mistake: storing((action, stored) => [action, stored, { seen: new Map() }]),
    law: /^(at least once|end)/,
    moves: 4,
  },
  'measure the age of a claim from its answer': {
    scene: 'a late answer',
    mistake: {
      step(state, observed, at) {
        const { work } = state
        const isAnswer = observed.some(({ type }) => type === 'claimed')
        if (!isAnswer || work?.type !== 'claim') return step(state, observed, at)
        return step({ ...state, work: { ...work, sent: at } }, observed, at)
      },
    },
    law: /^claim: .* late/,
    moves: 3,
  },
  'do not stop the deliveries of a slice that they have lost': {
    scene: 'a late answer',
    mistake: doing((action) => (action.type === 'stop' ? [] : [action])),
    law: /^one handler/,
    moves: 5,
  },
  'sleep for ever after a turn without events': {
    scene: 'two consumers, and a record with two events',
    mistake: deciding((stepped) =>
      stepped.state.restsUntil === undefined
        ? stepped
        : { ...stepped, wakeAt: Number.POSITIVE_INFINITY },
    ),
    law: /^end/,
    moves: 3,
  },
  'remember what they have delivered': {
    scene: 'two consumers, and a record with two events',
    mistake: {
      step(state, observed, at) {
        const stepped = step(state, observed, at)
        if (!observed.some(({ type }) => type === 'acknowledged')) return stepped
        return { ...stepped, state: { ...stepped.state, deliveries: state.deliveries } }
      },
    },
    law: /^(memory|end|claims|at least once)/,
    moves: 1,
  },
  'forget when a handler wants an event': {
    scene: 'a handler that wants an event later',
    mistake: storing((action, stored) => {
      if (action.type !== 'acknowledge') return [action, stored]
      const deliveries = action.deliveries.map((each) => ({
        ...each,
        ...(each.end && { end: { ...each.end, handled: soon(each.end.handled) } }),
      }))
      return [{ ...action, deliveries }, stored]
    }),
    law: /^later: .* early/,
    moves: 5,
  },
  'count an attempt when a handler wants an event later': {
    scene: 'a handler that wants an event later',
    mistake: storing((action, stored) => {
      if (action.type !== 'acknowledge') return [action, stored]
      const deliveries = action.deliveries.map((each) => ({ ...each, attempt: each.attempt + 1 }))
      return [{ ...action, deliveries }, stored]
    }),
    law: /^later: .* attempt/,
    moves: 5,
  },
  'forget an event whose delivery has failed': {
    scene: 'a handler that fails',
    mistake: storing((action, stored) => {
      if (action.type !== 'acknowledge') return [action, stored]
      const deliveries = action.deliveries.map((each) => ({
        ...each,
        ...(each.end && { end: { ...each.end, handled: { type: 'done' } as const } }),
      }))
      return [{ ...action, deliveries }, stored]
    }),
    law: /^at least once/,
    moves: 5,
  },
}
