import type { EventRecord } from '../event-record.js'
import { decisiveIds } from './choice.js'
import { stopAfterMs } from './claims.js'
import { decide, wakeAt } from './decide.js'
import { claim, noteFound, noteLoaded, noteRefused } from './serving.js'
import {
  type Action,
  type Answer,
  type Chosen,
  claimEnded,
  type Delivery,
  type Handled,
  holdMs,
  inPhase,
  type Moment,
  mayBegin,
  type Observed,
  running,
  type State,
  unleased,
  type Work,
} from './state.js'
import { ask, close, type Draft, draftOf, drop, lose, type Turn } from './turn.js'

export interface Stepped {
  readonly state: State
  readonly actions: readonly Action[]
  /** When the next step is due by the stopwatch, if nothing is observed before. */
  readonly wakeAt: number
}

/** Decides what a consumer does after it has observed something. Pure. */
export function step(state: State, observed: readonly Observed[], at: Moment): Stepped {
  const turn: Turn = { state: draftOf(state), at, actions: [] }
  for (const each of observed) note(turn, each)
  loseOverdue(turn)
  do beginWaiting(turn)
  while (turn.state.work === undefined && !turn.state.isOver && decide(turn))
  return { state: turn.state, actions: turn.actions, wakeAt: wakeAt(turn.state, at) }
}

function note(turn: Turn, observed: Observed): void {
  const { state } = turn
  if (observed.type === 'time') return
  if (observed.type === 'stopped') state.isStopped = true
  else if (observed.type === 'ended') noteEnd(turn, observed.id, observed.handled)
  else {
    const { work } = state
    if (work === undefined) throw new Error(`nothing was asked of the store: ${observed.type}`)
    delete state.work
    noteAnswer(turn, work, observed)
  }
}

function noteAnswer(turn: Turn, work: Work, answer: Answer): void {
  const { state } = turn
  if (answer.type === 'store failed') noteError(turn, work, answer.error)
  else if (work.type === 'look up' && answer.type === 'found') noteFound(turn, work.limit, answer)
  else if (work.type === 'claim' && answer.type === 'refused')
    noteRefused(turn, work.slice, answer.claim)
  else if (work.type === 'claim' && answer.type === 'claimed') noteClaimed(turn, work, answer)
  else if (work.type === 'suspect') claim(turn, work.slice, work.runs)
  else if (work.type === 'load' && answer.type === 'loaded') noteLoaded(turn, work, answer.records)
  else if (work.type === 'postpone' && answer.type === 'postponed')
    notePostponed(state, answer.moved)
  else if (work.type === 'lease' && answer.type === 'leased')
    noteLeased(turn, work.slice, answer.records)
  else if (work.type === 'release') state.holds.delete(work.slice)
  else if (work.type === 'acknowledge') noteAcknowledged(state, work.ids)
}

/** Events that have to wait must not hide others: the slice is looked up again. */
function notePostponed(state: Draft, moved: number): void {
  const { serving } = state
  if (serving === undefined || moved === 0 || serving.candidates.length > 0) return
  state.serving = { ...serving, isFresh: false }
}

function noteEnd(turn: Turn, id: string, handled: Handled): void {
  const found = turn.state.deliveries.get(id)
  if (found === undefined) return
  const end = { handled, elapsedMs: turn.at.elapsedMs }
  turn.state.deliveries.set(id, { ...found, phase: 'ended', end })
  if (handled.type !== 'done') drop(turn, ({ stream }) => stream === found.stream)
}

/** While deliveries are in progress, the consumer tries again after a pause: the store may recover before they end. */
function noteError(turn: Turn, work: Work, error: unknown): void {
  const { state, at } = turn
  const isFirst = state.error === undefined
  const isLost = work.type === 'lease' || work.type === 'release' || work.type === 'suspect'
  if (isLost) lose(turn, work.slice, 'the store failed')
  if (state.serving !== undefined) close(turn, state.serving.slice)
  delete state.serving
  if (isFirst && running(state) > 0) {
    state.pausedUntil = at.elapsedMs + Math.min(state.settings.pollMs, holdMs)
    return
  }
  state.error ??= { error }
  if (isFirst) return
  // Others deliver again what this consumer could not acknowledge.
  for (const slice of [...state.holds.keys()]) lose(turn, slice, 'the store failed')
  state.deliveries.clear()
}

function noteClaimed(
  turn: Turn,
  { slice, runs, sent }: Chosen,
  { claim, abandoned }: Extract<Answer, { readonly type: 'claimed' }>,
): void {
  const { state } = turn
  state.others.delete(slice)
  const since = state.holds.get(slice)?.since ?? sent.elapsedMs
  state.holds.set(slice, { slice, since, claim, sent })
  // The deliveries of the holder before are counted first. Then the claim names the own ones.
  const type = abandoned === undefined ? 'load' : 'suspect'
  ask(turn, { type, slice, runs, sent }, { type, ids: abandoned ?? decisiveIds(runs) })
}

function noteLeased(turn: Turn, slice: number, records: ReadonlyMap<string, EventRecord>): void {
  const { deliveries } = turn.state
  for (const each of unleased(turn.state, slice)) {
    const { id } = each.record
    const record = records.get(id)
    deliveries.set(id, { ...each, isLeased: true, ...(record !== undefined && { record }) })
    if (record !== undefined || each.phase !== 'runs') continue
    turn.actions.push({ type: 'stop', id, reason: 'another consumer has taken the event' })
  }
}

function noteAcknowledged(state: Draft, ids: readonly string[]): void {
  for (const id of ids) {
    const found = state.deliveries.get(id)
    if (found === undefined) continue
    state.deliveries.delete(id)
    if (state.behind.delete(found.slice)) state.soon.add(found.slice)
    const type = found.end?.handled.type
    if (type === 'failed') state.failed += 1
    else if (type === 'postponed') state.postponed += 1
    else state.delivered += 1
  }
}

/** Ends the deliveries of a slice whose claim the consumer could not renew in time. */
function loseOverdue(turn: Turn): void {
  for (const { slice, sent } of [...turn.state.holds.values()]) {
    if (turn.at.elapsedMs - sent.elapsedMs < stopAfterMs) continue
    lose(turn, slice, claimEnded)
  }
}

/** Begins the next event of each record that waits, as far as the slice may have new deliveries. */
function beginWaiting(turn: Turn): void {
  const { state, at, actions } = turn
  const isBusy = ({ phase, end }: Delivery) =>
    phase === 'runs' || (end !== undefined && end.handled.type !== 'done')
  const busy = new Set([...state.deliveries.values()].filter(isBusy).map(({ stream }) => stream))
  for (const each of inPhase(state, 'waits')) {
    if (running(state) >= state.settings.concurrency) return
    if (busy.has(each.stream)) continue
    busy.add(each.stream)
    if (!mayBegin(state, each.slice, at)) {
      drop(turn, ({ stream }) => stream === each.stream)
      continue
    }
    const delivery = { ...each, phase: 'runs' } as const
    state.deliveries.set(each.record.id, delivery)
    state.begun += 1
    actions.push({ type: 'handle', delivery })
  }
}
