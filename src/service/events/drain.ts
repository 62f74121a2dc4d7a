import type { ServiceContext } from '../context.js'
import type { DrainSettings } from './drain-options.js'
import { deliveredEvent, type EventHandler } from './handler.js'
import { handle } from './handling.js'
import {
  type Action,
  beginningAt,
  claimEnded,
  type Delivery,
  isOverdue,
  type Moment,
  type Observed,
} from './state.js'
import { step } from './step.js'
import { createStoreActions, type Shared } from './store-actions.js'

export interface Outcomes {
  readonly delivered: number
  readonly failed: number
}

/**
 * Delivers the events of a server until none is due: does what `step` decides, and tells it what happens. It serves one
 * slice after another: it claims the slice, loads the events that are due there, calls the handler, and removes the
 * events whose deliveries have ended together. After about a second, the deliveries that still run get leases of their
 * own, and the slice is free for others.
 */
export async function drain(
  context: ServiceContext,
  shared: Shared,
  handler: EventHandler,
  settings: DrainSettings,
): Promise<Outcomes> {
  const { clock, pacing, random } = context
  const { signal, leaseMs } = settings
  const namespace = await context.namespace()
  const act = createStoreActions(context, shared, settings)
  const [first = 0] = random.getRandomValues(new Uint8Array(1))
  let state = beginningAt(first, settings)
  /** What has happened since the last step. */
  const inbox: Observed[] = []
  /** How to end each delivery whose handler runs. */
  const handled = new Map<string, (reason: string) => void>()
  let wake: () => void = () => undefined

  const now = (): Moment => ({ elapsedMs: pacing.elapsedMs(), now: clock.now() })

  function observe(observed: Observed): void {
    inbox.push(observed)
    wake()
  }

  function begin({ record, attempt }: Delivery): void {
    const { id } = record
    const stop = handle(pacing, handler, {
      event: deliveredEvent(context, namespace, record),
      attempt,
      leaseMs,
      overdue: () => (isOverdue(state, id, now()) ? claimEnded : undefined),
      now: () => clock.now(),
      ended(result) {
        handled.delete(id)
        observe({ type: 'ended', id, handled: result })
      },
    })
    handled.set(id, stop)
  }

  function perform(action: Action): void {
    if (action.type === 'handle') begin(action.delivery)
    else if (action.type === 'stop') handled.get(action.id)?.(action.reason)
    else if (action.type === 'abandon') shared.claims.abandon(action.slice, action.claim.holder)
    else act(action).then(observe, (error) => observe({ type: 'store failed', error }))
  }

  /** Resolves when something is observed, or at a time of the stopwatch. */
  async function news(wakeAt: number): Promise<void> {
    if (inbox.length > 0) return
    const observed = new AbortController()
    const woken = new Promise<void>((resolve) => {
      wake = resolve
    })
    const isTimed = wakeAt < Number.POSITIVE_INFINITY
    const ms = Math.max(0, wakeAt - pacing.elapsedMs())
    await (isTimed ? Promise.race([woken, pacing.sleep(ms, observed.signal)]) : woken)
    // A reason, because without one `abort` makes a DOMException with a stack.
    observed.abort('observed')
  }

  const stop = () => observe({ type: 'stopped' })
  if (signal?.aborted) stop()
  signal?.addEventListener('abort', stop)
  try {
    while (!state.isOver) {
      const stepped = step(state, inbox.splice(0), now())
      state = stepped.state
      for (const action of stepped.actions) perform(action)
      if (!state.isOver) await news(stepped.wakeAt)
    }
  } finally {
    signal?.removeEventListener('abort', stop)
  }
  if (state.error !== undefined) throw state.error.error
  return { delivered: state.delivered, failed: state.failed }
}
