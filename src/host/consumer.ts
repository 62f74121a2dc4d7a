import * as v from 'valibot'
import {
  type DrainOptions,
  drainOptions,
  type FailedDelivery,
} from '../service/events/drain-options.js'
import type { EventHandler } from '../service/events/handler.js'
import type { ServerEvents } from '../service/events/server-events.js'
import { sleep } from '../service/time.js'
import { callHook, printError } from '../util/errors.js'
import {
  callback,
  having,
  listOf,
  type Members,
  optionsOf,
  positiveInteger,
  readInput,
} from '../util/input.js'

/** How a consumer delivers events, how often it looks for them, and who gets its errors. */
export interface ConsumeOptions extends Omit<DrainOptions, 'signal'> {
  /** How long to wait before the next poll if no event was due, in milliseconds. Default 1,000. */
  readonly pollMs?: number
  /** The maximum number of events that one call of `drain` delivers. Default: as many as become due meanwhile. */
  readonly limit?: number
  /**
   * Receives errors of the store, after which the consumer retries in `pollMs`, and without `onFailure` also the errors
   * of the handler. Its own errors are ignored. Default: `console.error`.
   */
  readonly onError?: (error: unknown) => void
}

const eventSources = listOf(having({ drain: callback() }))

const { signal: _signal, ...delivery } = drainOptions

const consumeOptions = optionsOf({
  ...delivery,
  limit: v.optional(positiveInteger, Number.MAX_SAFE_INTEGER),
  onError: v.optional(callback<NonNullable<ConsumeOptions['onError']>>(), () => printError),
} satisfies Members<ConsumeOptions>)

const stopOptions = optionsOf({ timeoutMs: v.optional(positiveInteger, 10_000) })

/** A consumer that delivers events until it is stopped. */
export interface EventConsumer {
  /**
   * Starts no further delivery, and waits for the started ones.
   *
   * @param options `timeoutMs` is the longest wait for the deliveries in progress, in milliseconds. Default 10,000.
   * @returns whether all of them have ended. If a delivery has not, the outbox delivers its event again when the lease
   *   expires.
   * @throws {InvalidInputError} for an invalid option.
   */
  stop(options?: { readonly timeoutMs?: number }): Promise<boolean>
  /** Stops the consumer, as `stop` without options does: for `await using`. */
  [Symbol.asyncDispose](): Promise<void>
}

/**
 * Delivers the events of one or more servers continuously until it is stopped. Any number of processes may run a
 * consumer, but only one at a time delivers a given event; see `ServerEvents.drain`.
 *
 * @throws {InvalidInputError} for an invalid option, and for invalid sources or an invalid handler.
 *
 * @example
 * ```ts
 * import { consumeEvents } from 'open-payments-server'
 *
 * const consumer = consumeEvents([wallet.auth.events, wallet.resources.events], async (event) => {
 *   if (event.type === 'outgoing-payment.created') console.log('pay', event.outgoingPaymentId)
 * })
 * process.once('SIGTERM', () => consumer.stop())
 * ```
 */
export function consumeEvents(
  sources: readonly ServerEvents[],
  handler: EventHandler,
  options: ConsumeOptions = {},
): EventConsumer {
  readInput('sources', eventSources, sources)
  readInput('handler', callback(), handler)
  const { onError, ...draining } = readInput('', consumeOptions, options)
  const controller = new AbortController()
  const { signal } = controller

  const report = (error: unknown) => void callHook(() => onError(error))
  const { onFailure: told = ({ error }: FailedDelivery) => report(error) } = draining
  const onFailure = (failure: FailedDelivery) => void callHook(() => told(failure), report)
  const settings = { ...draining, onFailure, signal }

  async function consume(source: ServerEvents): Promise<void> {
    while (!signal.aborted) {
      let delivered = 0
      try {
        delivered = (await source.drain(handler, settings)).delivered
      } catch (error) {
        report(error)
      }
      if (delivered === 0) await sleep(draining.pollMs, signal)
    }
  }

  const consuming = Promise.all(sources.map(consume))
  async function stop(options = {}): Promise<boolean> {
    const { timeoutMs } = readInput('', stopOptions, options)
    controller.abort()
    return endsWithin(timeoutMs, consuming)
  }
  return {
    stop,
    async [Symbol.asyncDispose]() {
      await stop()
    },
  }
}

async function endsWithin(timeoutMs: number, work: Promise<unknown>): Promise<boolean> {
  const ended = new AbortController()
  const finished = work.then(() => true).finally(() => ended.abort())
  return Promise.race([finished, sleep(timeoutMs, ended.signal).then(() => ended.signal.aborted)])
}
