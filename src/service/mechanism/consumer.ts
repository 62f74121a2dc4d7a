import {
  type DrainOptions,
  drainSettings,
  type EventHandler,
  type EventOutbox,
  requirePositive,
} from './delivery.js'
import { sleep } from './sleep.js'

export interface ConsumeOptions extends Omit<DrainOptions, 'signal'> {
  /** Wait before looking again when nothing was due, in milliseconds. Default 1,000. */
  readonly pollMs?: number
  /** Hears of what the store throws; the consumer tries again after `pollMs`. It must not throw itself. */
  readonly onError?: (error: unknown) => void
}

export interface EventConsumer {
  /** Begins no further delivery, and resolves when those that have begun are over. */
  stop(): Promise<void>
}

/**
 * Delivers the events of one or more servers as they come, until it is stopped. Any number of processes may
 * run one, and each event goes to one of them at a time: see `EventSource.drain`.
 *
 * @throws `TypeError` with code `ERR_INVALID_OPTION` and the name of the `option` that could not work.
 */
export function consumeEvents(
  sources: readonly EventOutbox[],
  handler: EventHandler,
  options: ConsumeOptions = {},
): EventConsumer {
  const { pollMs = 1_000, onError, ...drainOptions } = options
  drainSettings(drainOptions)
  requirePositive('pollMs', pollMs)
  const controller = new AbortController()
  const { signal } = controller

  async function consume(source: EventOutbox): Promise<void> {
    while (!signal.aborted) {
      let delivered = 0
      try {
        delivered = (await source.drain(handler, { ...drainOptions, signal })).delivered
      } catch (error) {
        onError?.(error)
      }
      if (delivered === 0) await sleep(pollMs, signal)
    }
  }

  const consuming = Promise.all(sources.map(consume))
  return {
    async stop() {
      controller.abort()
      await consuming
    },
  }
}
