import type { ServiceContext } from '../context.js'
import { type EventRecord, isPending, sliceNamespace } from '../event-record.js'
import { loadEvents, postponeEvents } from './changes.js'
import type { Claims } from './claims.js'
import type { DrainSettings } from './drain-options.js'
import type { DueRanges } from './due-range.js'
import { acknowledge, leaseEvents, suspectEvents } from './outcomes.js'
import type { Observed, StoreAction } from './state.js'

/** How long a lagging query may find an event that was removed, in milliseconds. */
const lagMs = 10_000

export interface Shared {
  readonly claims: Claims
  readonly ranges: DueRanges
}

/** Returns the function that does what a consumer asks of the store, and resolves to what it observes. */
export function createStoreActions(
  context: ServiceContext,
  { claims, ranges }: Shared,
  settings: DrainSettings,
) {
  const { store, clock, pacing } = context
  /** The events that were removed lately, and when. */
  const removed = new Map<string, number>()

  function forgetRemoved(): void {
    for (const [id, at] of removed) {
      if (pacing.elapsedMs() - at < lagMs) return
      removed.delete(id)
    }
  }

  async function lookUp(slice: number, limit: number): Promise<Observed> {
    const now = clock.now()
    const namespace = sliceNamespace(await context.namespace(), slice)
    const from = ranges.from(slice)
    const found = (await store.due('event', namespace, now, limit, from)) as readonly EventRecord[]
    ranges.note(slice, from, found, now)
    forgetRemoved()
    const due = found.filter(({ id }) => !removed.has(id))
    return { type: 'found', due, isCut: found.length === limit }
  }

  return async (action: StoreAction): Promise<Observed> => {
    switch (action.type) {
      case 'look up':
        return lookUp(action.slice, action.limit)
      case 'claim': {
        const { isHeld, ...claimed } = await claims.take(action.slice, action.started, action.held)
        return { type: isHeld ? 'claimed' : 'refused', ...claimed }
      }
      case 'load':
        return { type: 'loaded', records: await loadEvents(context, action.ids) }
      case 'suspect': {
        const found = await loadEvents(context, action.ids)
        await suspectEvents(context, settings, [...found.values()].filter(isPending))
        return { type: 'suspected' }
      }
      case 'postpone':
        return { type: 'postponed', moved: await postponeEvents(context, action.behind) }
      case 'acknowledge':
        await acknowledge(context, settings, action.deliveries)
        for (const { record, end } of action.deliveries) {
          // One that failed or was postponed is still there, and may be due again soon.
          if (end?.handled.type === 'done') removed.set(record.id, pacing.elapsedMs())
        }
        return { type: 'acknowledged' }
      case 'lease':
        return { type: 'leased', records: await leaseEvents(context, settings, action.deliveries) }
      case 'release':
        await claims.release(action.slice, action.claim)
        return { type: 'released' }
    }
  }
}
