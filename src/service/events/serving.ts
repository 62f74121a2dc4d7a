import { type EventRecord, isInDelivery, isPending, placeOf } from '../event-record.js'
import { behindOwn, chooseRuns, decideReady, type Run } from './choice.js'
import type { ClaimRecord } from './claims.js'
import { ask, close, type Draft, lose } from './draft.js'
import {
  type Answer,
  type Chosen,
  holdMs,
  type Serving,
  type State,
  taken,
  unleased,
  waitingStreams,
} from './state.js'

/** How many times as many events a look-up reads after one that has found none but those behind its own deliveries. */
const wider = 4

/** Goes on with a slice: takes more of its events, waits, or ends. Returns whether to decide again. */
export function serve(draft: Draft, serving: Serving): boolean {
  const { state, at } = draft
  const { slice } = serving
  const held = state.holds.get(slice)
  const isLate = held !== undefined && at.elapsedMs >= held.since + holdMs
  if (!state.isStopped && !isLate) {
    const isFull = taken(state) >= state.settings.limit
    const hasRoom = waitingStreams(state) < state.settings.concurrency && !isFull
    if (serving.isFinding && hasRoom) return find(draft, serving)
    if (waitingStreams(state) > 0) return false
  }
  close(draft, slice)
  delete state.serving
  if (!serving.isExtra) {
    state.round = { ...state.round, idle: serving.begun > 0 ? 0 : state.round.idle + 1 }
  }
  return true
}

/** Claims the slice for the next events that were found, or looks up others. Returns whether to decide again. */
function find(draft: Draft, serving: Serving): boolean {
  const { state } = draft
  const { slice, candidates, isFresh, isCut } = serving
  const own = unleased(state, slice)
  // An event whose delivery may have ended a process is delivered alone.
  const hasSuspect = own.some(({ record }) => isInDelivery(record))
  const runs = hasSuspect ? [] : chosenOf(state, candidates, own.length > 0)
  const count = runs.flat().length
  if (count > 0 && (isFresh || !isCut || count >= state.batch)) return claim(draft, slice, runs)
  if (!hasSuspect && !isFresh) return lookUp(draft, serving)
  state.others.delete(slice)
  state.serving = { ...serving, isFinding: false }
  return true
}

function chosenOf(state: State, candidates: Run, isBusy: boolean): readonly Run[] {
  const streams = streamsOf(state)
  const { runMax } = state.bounds
  const room = Math.min(state.batch, state.settings.limit - taken(state))
  return chooseRuns(candidates, { streams, isBusy, room, runMax })
}

const streamsOf = ({ deliveries }: State) =>
  new Set(Array.from(deliveries.values(), ({ stream }) => stream))

function lookUp(draft: Draft, { slice }: Serving): false {
  const { bounds, widths } = draft.state
  const width = widths.get(slice) ?? 1
  const own = unleased(draft.state, slice).length
  const limit = Math.min(bounds.dueLimit, width * (2 * bounds.batchMax + own))
  return ask(draft, { type: 'look up', limit }, { type: 'look up', slice, limit })
}

/** Claims a slice, or renews the claim, to deliver events in addition to those in delivery. */
export function claim(draft: Draft, slice: number, runs: readonly Run[]): false {
  const { state, at } = draft
  const held = state.holds.get(slice)?.claim
  const own = unleased(state, slice).map(({ record }) => record)
  const started = [...own, ...runs.flat()].map(({ id }) => id)
  const work = { type: 'claim', slice, runs, sent: at } as const
  return ask(draft, work, {
    type: 'claim',
    slice,
    started,
    ...(held !== undefined && { held }),
  })
}

/** However many events wait behind deliveries of this consumer, they must not hide those of other records. */
export function noteFound(
  draft: Draft,
  limit: number,
  { due, isCut }: Extract<Answer, { readonly type: 'found' }>,
): void {
  const { state, at } = draft
  const { serving, bounds, widths } = state
  if (serving === undefined) return
  const { slice } = serving
  const streams = streamsOf(state)
  const isBusy = ({ id }: EventRecord) => streams.has(placeOf(id).stream)
  if (due.some((record) => isBusy(record) && !state.deliveries.has(record.id))) {
    state.blockedSlices.add(slice)
  }
  const candidates = due.filter((record) => !isBusy(record))
  const width = widths.get(slice) ?? 1
  const isHidden = isCut && limit < bounds.dueLimit && candidates.length === 0
  if (isHidden) widths.set(slice, width * wider)
  else if (due.length < limit / (2 * wider)) widths.set(slice, Math.max(1, width / wider))
  state.serving = { ...serving, candidates, isCut, isFresh: !isHidden }
  const behind = isCut ? behindOwn(due, state.deliveries, at.now) : []
  if (behind.length > 0) ask(draft, { type: 'postpone' }, { type: 'postpone', behind })
}

export function noteRefused(draft: Draft, slice: number, { commandId }: ClaimRecord): void {
  const { state, at } = draft
  lose(draft, slice, 'another consumer has taken the events')
  const known = state.others.get(slice)
  // Another claim than before shows that the holder lives.
  const lives = known !== undefined && known.claim !== commandId
  const until = at.elapsedMs + holdMs
  state.others.set(slice, lives ? { until } : { claim: commandId, until })
  if (state.serving !== undefined) state.serving = { ...state.serving, isFinding: false }
}

/** Takes the events that may be delivered now, by what was loaded after the slice was claimed. */
export function noteLoaded(
  draft: Draft,
  { slice, runs }: Chosen,
  records: ReadonlyMap<string, EventRecord>,
): void {
  const { state, at } = draft
  const { serving } = state
  if (serving === undefined) return
  const { candidates, isCut } = serving
  const ready = runs.map((run) => decideReady(run, candidates, records, at.now))
  const isAlone = runs.length === 1 && unleased(state, slice).length === 0
  const count = ready.reduce((sum, { run }) => sum + take(draft, slice, run, isAlone), 0)
  if (count >= state.batch) state.batch = Math.min(state.bounds.batchMax, 2 * state.batch)
  const behind = ready.flatMap((each) => each.behind)
  const gone = new Set([...runs.flat(), ...behind.map(({ record }) => record)].map(({ id }) => id))
  const left = candidates.filter(({ id }) => !gone.has(id))
  state.serving = {
    ...serving,
    begun: serving.begun + count,
    candidates: left,
    isFresh: false,
    isFinding: count > 0 || left.length > 0 || (isCut && behind.length > 0),
  }
  const waiting = behind.filter(
    ({ record, until }) => isPending(record) && (record.dueAt ?? 0) < until,
  )
  if (waiting.length > 0) ask(draft, { type: 'postpone' }, { type: 'postpone', behind: waiting })
}

/** Takes the events of one record, to deliver them. Returns their number. */
function take(draft: Draft, slice: number, run: Run, isAlone: boolean): number {
  const { state, at } = draft
  const [first] = run
  if (first === undefined || !state.holds.has(slice) || (isInDelivery(first) && !isAlone)) return 0
  const { stream } = placeOf(first.id)
  const exhausted = run.findIndex(({ attempts }) => attempts >= state.settings.attemptsMax)
  if (exhausted === 0) {
    const error = new Error('the last delivery started but did not finish')
    const end = { handled: { type: 'failed', error }, elapsedMs: at.elapsedMs } as const
    const ended = { record: first, slice, stream, end, phase: 'ended', isLeased: false } as const
    state.deliveries.set(first.id, { ...ended, attempt: first.attempts })
    state.begun += 1
    return 1
  }
  const some = run.slice(0, isInDelivery(first) ? 1 : exhausted === -1 ? run.length : exhausted)
  for (const record of some) {
    const attempt = record.attempts + 1
    const delivery = { record, slice, stream, attempt, phase: 'waits', isLeased: false } as const
    state.deliveries.set(record.id, delivery)
  }
  return some.length
}
