import { setTimeout as sleep } from 'node:timers/promises'
import { consumeEvents, type EventHandler, type FailedDelivery } from 'open-payments-server'
import type { Wallet } from './wallet.js'

/** Work that runs in addition to requests. */
export interface Background {
  /** Starts nothing new, and resolves when current work has finished. */
  stop(): Promise<unknown>
}

/** Repeats work with a pause between runs, in milliseconds. An error ends only the current run. */
export function repeatedly(
  pauseMs: number,
  task: (signal: AbortSignal) => Promise<void>,
  onError: (error: unknown) => void,
): Background {
  const controller = new AbortController()
  const { signal } = controller

  async function run(): Promise<void> {
    while (!signal.aborted) {
      await task(signal).catch(onError)
      await sleep(pauseMs, undefined, { signal }).catch(() => undefined)
    }
  }

  const running = run()
  return {
    async stop() {
      controller.abort()
      await running
    },
  }
}

export interface BackgroundOptions {
  /**
   * `auto` sends outgoing payments when they are created; `manual` waits for reports to the ledger at
   * `/ledger/outgoing-payments/{id}/settle`. Default: `manual`.
   */
  readonly settle?: 'auto' | 'manual'
  /** Receives all events. Default: without `settle: 'auto'`, events stay in the store. */
  readonly onEvent?: EventHandler
  readonly onUndelivered?: (failure: FailedDelivery) => void
  /** Receives the errors of sweeps and of the store. Default: `console.error`. */
  readonly onError?: (error: unknown) => void
  /** How often events are looked for, in milliseconds. Default 250: a payment is sent within a second. */
  readonly pollMs?: number
}

const sweepPauseMs = 5_000

/** The work of a wallet in addition to its requests: sweeps, and the delivery of its events. */
export function walletBackground(wallet: Wallet, options: BackgroundOptions): Background {
  const {
    settle = 'manual',
    onEvent,
    onUndelivered,
    pollMs = 250,
    onError = console.error,
  } = options
  const background = [repeatedly(sweepPauseMs, wallet.sweep, onError)]
  const stopping = new AbortController()
  const send = settle === 'auto' ? wallet.sender?.(stopping.signal) : undefined
  const handlers = [send, onEvent].filter((handler) => handler !== undefined)
  if (handlers.length > 0) {
    const hearing = { pollMs, onError, ...(onUndelivered && { onFailure: onUndelivered }) }
    background.push(consumeEvents(wallet.events, together(handlers), hearing))
  }
  return {
    async stop() {
      stopping.abort()
      await Promise.all(background.map((work) => work.stop()))
    },
  }
}

/** Runs the handlers concurrently, so that payments and other consumers of events do not delay each other. */
function together(handlers: readonly EventHandler[]): EventHandler {
  return async (event, delivery) => {
    const outcomes = await Promise.allSettled(
      handlers.map(async (handler) => handler(event, delivery)),
    )
    const failed = outcomes.find(({ status }) => status === 'rejected')
    if (failed?.status === 'rejected') throw failed.reason
  }
}
