import type { Action, Delivery, Held, Moment, Other, State, StoreAction, Work } from './state.js'
import { unleased, waitingStreams } from './state.js'

/** How long a consumer waits for the deliveries of a closed slice before it gives them leases, in milliseconds. */
const graceMs = 200

/** The next state, as far as it is decided. */
export type DraftState = {
  -readonly [Member in keyof State]: State[Member]
} & {
  readonly deliveries: Map<string, Delivery>
  readonly holds: Map<number, Held>
  readonly others: Map<number, Other>
  readonly blockedSlices: Set<number>
  readonly soon: Set<number>
  readonly widths: Map<number, number>
}

/** A step that is being decided. */
export interface Draft {
  readonly state: DraftState
  readonly at: Moment
  readonly actions: Action[]
}

export function draftOf(state: State, at: Moment): Draft {
  const next: DraftState = {
    ...state,
    deliveries: new Map(state.deliveries),
    holds: new Map(state.holds),
    others: new Map(state.others),
    blockedSlices: new Set(state.blockedSlices),
    soon: new Set(state.soon),
    widths: new Map(state.widths),
  }
  return { state: next, at, actions: [] }
}

/** Asks something of the store. Returns false: the consumer decides again when it has the answer. */
export function ask({ state, actions }: Draft, work: Work, action: StoreAction): false {
  state.work = work
  actions.push(action)
  return false
}

/** Takes events back that have not begun. */
export function drop({ state }: Draft, which: (delivery: Delivery) => boolean): void {
  for (const [id, each] of state.deliveries) {
    if (each.phase === 'waits' && which(each)) state.deliveries.delete(id)
  }
}

/** Begins no more deliveries in a slice. Those in progress have some time to end. */
export function close(draft: Draft, slice: number): void {
  const { state, at } = draft
  const held = state.holds.get(slice)
  if (held === undefined) return
  const least = Math.min(state.settings.concurrency, state.bounds.batchMax)
  if (waitingStreams(state) > 0) state.batch = Math.max(least, state.batch >> 1)
  state.holds.set(slice, { ...held, closesAt: at.elapsedMs + graceMs })
  drop(draft, (each) => each.slice === slice)
}

/** Ends the deliveries that only a claim protects, because it no longer does. */
export function lose(draft: Draft, slice: number, reason: string): void {
  const { state, actions } = draft
  const held = state.holds.get(slice)
  if (held === undefined) return
  state.holds.delete(slice)
  drop(draft, (each) => each.slice === slice)
  for (const { record, phase } of unleased(state, slice)) {
    if (phase === 'handling') actions.push({ type: 'stop', id: record.id, reason })
  }
  actions.push({ type: 'abandon', slice, claim: held.claim })
}
