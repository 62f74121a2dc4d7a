import { stopAfterMs } from './claims.js'
import { ask, type Draft, type DraftState } from './draft.js'
import { serve } from './serving.js'
import {
  handlingCount,
  holdMs,
  inPhase,
  type Moment,
  type State,
  settled,
  taken,
  unleased,
  watchesOthers,
} from './state.js'

/** How long it waits for more deliveries to end before it records the outcomes of those that have, in milliseconds. */
const gatherMs = 20

/** Asks the next thing of the store. Returns whether to decide again. */
export function decide(draft: Draft): boolean {
  const { state, at } = draft
  if (state.pausedUntil !== undefined) {
    if (at.elapsedMs < state.pausedUntil && !state.isStopped) return false
    delete state.pausedUntil
  }
  const ended = inPhase(state, 'ended')
  const closed = [...state.holds.values()].find(
    ({ slice, closesAt }) =>
      closesAt !== undefined &&
      (at.elapsedMs >= closesAt || unleased(state, slice).every(({ phase }) => phase === 'ended')),
  )
  if (ended.length > 0 && (closed !== undefined || at.elapsedMs >= acknowledgesAt(state))) {
    const ids = ended.map(({ record }) => record.id)
    return ask(draft, { type: 'acknowledge', ids }, { type: 'acknowledge', deliveries: ended })
  }
  if (closed !== undefined) {
    const { slice, claim } = closed
    const deliveries = unleased(state, slice)
    return deliveries.length > 0
      ? ask(draft, { type: 'lease', slice }, { type: 'lease', deliveries })
      : ask(draft, { type: 'release', slice }, { type: 'release', slice, claim })
  }
  if (state.error !== undefined) {
    state.isOver = state.holds.size === 0
    return false
  }
  return state.serving === undefined ? chooseSlice(draft) : serve(draft, state.serving)
}

/** When to record the outcomes of the deliveries that have ended: those of several in one call. */
function acknowledgesAt(state: State): number {
  const ended = inPhase(state, 'ended')
  const isGathering = [...state.deliveries.values()].some(
    ({ phase, isLeased }) => phase !== 'ended' && !isLeased,
  )
  if (!isGathering || ended.length >= state.bounds.batchMax) return Number.NEGATIVE_INFINITY
  return Math.min(...ended.map(({ end }) => end?.elapsedMs ?? 0)) + gatherMs
}

/** Serves the next slice, or rests after all of them had nothing to deliver. Returns whether to decide again. */
function chooseSlice(draft: Draft): boolean {
  const { state, at } = draft
  const { concurrency, limit, pollMs } = state.settings
  const isDone = state.deliveries.size === 0 && state.holds.size === 0
  const isLast = state.isStopped || taken(state) >= limit
  if (isLast && isDone) state.isOver = true
  if (isLast || handlingCount(state) >= concurrency) return false
  if (state.round.idle < state.bounds.slices) return openNext(state, at)
  state.restsUntil ??= at.elapsedMs + (watchesOthers(state) ? Math.min(pollMs, holdMs) : pollMs)
  const isRested = at.elapsedMs >= state.restsUntil
  const [next] = state.soon
  if (!isRested && next !== undefined) {
    state.soon.delete(next)
    if (!state.holds.has(next)) open(state, next, true)
    return true
  }
  const isIdle = isDone && !watchesOthers(state)
  if (!isRested && !isIdle) return false
  state.isOver = !isRested && settled(state) === state.round.before
  state.round = { ...state.round, idle: 0 }
  delete state.restsUntil
  return true
}

function openNext(state: DraftState, at: Moment): boolean {
  const { next, idle } = state.round
  const before = idle === 0 ? settled(state) : state.round.before
  const isOthers = (state.others.get(next)?.until ?? 0) > at.elapsedMs
  const isSkipped = isOthers || state.holds.has(next)
  if (!isSkipped) open(state, next, false)
  state.round = {
    next: (next + 1) % state.bounds.slices,
    idle: isSkipped ? idle + 1 : idle,
    before,
  }
  return true
}

function open(state: DraftState, slice: number, isExtra: boolean): void {
  const nothing = { begun: 0, candidates: [], isCut: false, isFresh: false }
  state.serving = { slice, isExtra, isFinding: true, ...nothing }
}

export function wakeAt(state: State, { elapsedMs }: Moment): number {
  const { work, serving, restsUntil, pausedUntil, settings } = state
  const holds = [...state.holds.values()]
  const ends = holds.map(({ sent }) => sent.elapsedMs + stopAfterMs)
  if (work !== undefined) return Math.min(...ends)
  if (pausedUntil !== undefined) return Math.min(pausedUntil, ...ends)
  if (inPhase(state, 'ended').length > 0) ends.push(acknowledgesAt(state))
  ends.push(...holds.flatMap(({ closesAt }) => closesAt ?? []))
  const served = serving && state.holds.get(serving.slice)
  if (served !== undefined) ends.push(served.since + holdMs)
  if (serving === undefined) ends.push(restsUntil ?? elapsedMs + settings.pollMs)
  return Math.min(...ends)
}
