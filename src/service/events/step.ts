import type { EventRecord } from '../event-record.js'
import { decisiveIds } from './choice.js'
import { stopAfterMs } from './claims.js'
import { decide, wakeAt } from './decide.js'
import { ask, close, type Draft, type DraftState, draftOf, drop, lose } from './draft.js'
import { claim, noteFound, noteLoaded, noteRefused } from './serving.js'
import {
  type Action,
  type Answer,
  type Chosen,
  claimEnded,
  type Delivery,
  type Handled,
  handlingCount,
  holdMs,
  inPhase,
  type Moment,
  mayBegin,
  type Observed,
  type State,
  unleased,
  type Work,
} from './state.js'

export interface Stepped {
  readonly state: State
  readonly actions: readonly Action[]
  /** When the next step is due by the stopwatch, if nothing is observed before. */
  readonly wakeAt: number
}

/** Decides what a consumer does after it has observed something. Pure. */
export function step(state: State, observed: readonly Observed[], at: Moment): Stepped {
  const draft = draftOf(state, at)
  for (const each of observed) note(draft, each)
  loseOverdue(draft)
  do beginWaiting(draft)
  while (draft.state.work === undefined && !draft.state.isOver && decide(draft))
  return { state: draft.state, actions: draft.actions, wakeAt: wakeAt(draft.state, at) }
}

function note(draft: Draft, observed: Observed): void {
  const { state } = draft
  if (observed.type === 'time') return
  if (observed.type === 'stopped') state.isStopped = true
  else if (observed.type === 'ended') noteEnd(draft, observed.id, observed.handled)
  else {
    const { work } = state
    if (work === undefined) throw new Error(`nothing was asked of the store: ${observed.type}`)
    delete state.work
    noteAnswer(draft, work, observed)
  }
}

function noteAnswer(draft: Draft, work: Work, answer: Answer): void {
  const { state } = draft
  if (answer.type === 'store failed') noteError(draft, work, answer.error)
  else if (work.type === 'look up' && answer.type === 'found') noteFound(draft, work.limit, answer)
  else if (work.type === 'claim' && answer.type === 'refused')
    noteRefused(draft, work.slice, answer.claim)
  else if (work.type === 'claim' && answer.type === 'claimed') noteClaimed(draft, work, answer)
  else if (work.type === 'suspect') claim(draft, work.slice, work.runs)
  else if (work.type === 'load' && answer.type === 'loaded') noteLoaded(draft, work, answer.records)
  else if (work.type === 'postpone' && answer.type === 'postponed')
    notePostponed(state, answer.moved)
  else if (work.type === 'lease' && answer.type === 'leased')
    noteLeased(draft, work.slice, answer.records)
  else if (work.type === 'release') state.holds.delete(work.slice)
  else if (work.type === 'acknowledge') noteAcknowledged(state, work.ids)
}

/** Events that have to wait must not hide others: the slice is looked up again. */
function notePostponed(state: DraftState, moved: number): void {
  const { serving } = state
  if (serving === undefined || moved === 0 || serving.candidates.length > 0) return
  state.serving = { ...serving, isFresh: false }
}

function noteEnd(draft: Draft, id: string, handled: Handled): void {
  const found = draft.state.deliveries.get(id)
  if (found === undefined) return
  const end = { handled, elapsedMs: draft.at.elapsedMs }
  draft.state.deliveries.set(id, { ...found, phase: 'ended', end })
  if (handled.type !== 'done') drop(draft, ({ stream }) => stream === found.stream)
}

/** While deliveries are in progress, the consumer tries again after a pause: the store may recover before they end. */
function noteError(draft: Draft, work: Work, error: unknown): void {
  const { state, at } = draft
  const hadError = state.error !== undefined
  const isLost = work.type === 'lease' || work.type === 'release' || work.type === 'suspect'
  if (isLost) lose(draft, work.slice, 'the store failed')
  if (state.serving !== undefined) close(draft, state.serving.slice)
  delete state.serving
  if (!hadError && handlingCount(state) > 0) {
    state.pausedUntil = at.elapsedMs + Math.min(state.settings.pollMs, holdMs)
    return
  }
  state.error ??= { error }
  if (!hadError) return
  // Others deliver again what this consumer could not acknowledge.
  for (const slice of [...state.holds.keys()]) lose(draft, slice, 'the store failed')
  state.deliveries.clear()
}

function noteClaimed(
  draft: Draft,
  { slice, runs, sent }: Chosen,
  { claim, abandoned }: Extract<Answer, { readonly type: 'claimed' }>,
): void {
  const { state } = draft
  state.others.delete(slice)
  const since = state.holds.get(slice)?.since ?? sent.elapsedMs
  state.holds.set(slice, { slice, since, claim, sent })
  // The deliveries of the holder before are counted first. Then the claim names the own ones.
  const type = abandoned === undefined ? 'load' : 'suspect'
  ask(draft, { type, slice, runs, sent }, { type, ids: abandoned ?? decisiveIds(runs) })
}

function noteLeased(draft: Draft, slice: number, records: ReadonlyMap<string, EventRecord>): void {
  const { deliveries } = draft.state
  for (const each of unleased(draft.state, slice)) {
    const { id } = each.record
    const record = records.get(id)
    deliveries.set(id, { ...each, isLeased: true, ...(record !== undefined && { record }) })
    if (record !== undefined || each.phase !== 'handling') continue
    draft.actions.push({ type: 'stop', id, reason: 'another consumer has taken the event' })
  }
}

function noteAcknowledged(state: DraftState, ids: readonly string[]): void {
  for (const id of ids) {
    const found = state.deliveries.get(id)
    if (found === undefined) continue
    state.deliveries.delete(id)
    if (state.blockedSlices.delete(found.slice)) state.soon.add(found.slice)
    const type = found.end?.handled.type
    if (type === 'failed') state.failed += 1
    else if (type === 'postponed') state.postponed += 1
    else state.delivered += 1
  }
}

/** Ends the deliveries of a slice whose claim the consumer could not renew in time. */
function loseOverdue(draft: Draft): void {
  for (const { slice, sent } of [...draft.state.holds.values()]) {
    if (draft.at.elapsedMs - sent.elapsedMs < stopAfterMs) continue
    lose(draft, slice, claimEnded)
  }
}

/** Begins the next event of each record that waits, as far as the slice may have new deliveries. */
function beginWaiting(draft: Draft): void {
  const { state, at, actions } = draft
  const isBusy = ({ phase, end }: Delivery) =>
    phase === 'handling' || (end !== undefined && end.handled.type !== 'done')
  const busy = new Set([...state.deliveries.values()].filter(isBusy).map(({ stream }) => stream))
  for (const each of inPhase(state, 'waits')) {
    if (handlingCount(state) >= state.settings.concurrency) return
    if (busy.has(each.stream)) continue
    busy.add(each.stream)
    if (!mayBegin(state, each.slice, at)) {
      drop(draft, ({ stream }) => stream === each.stream)
      continue
    }
    const delivery = { ...each, phase: 'handling' } as const
    state.deliveries.set(each.record.id, delivery)
    state.begun += 1
    actions.push({ type: 'handle', delivery })
  }
}
