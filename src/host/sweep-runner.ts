import * as v from 'valibot'
import type { Random } from '../ports/host.js'
import { randomOption } from '../protocol/host-options.js'
import { type SweepOptions, type SweepResult, sweepLimit } from '../service/sweep.js'
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

/** How often servers are swept, how much at a time, and who gets the errors. */
export interface RunSweepsOptions {
  /** The mean time between the end of a run and the next one, in milliseconds. Default 60,000. */
  readonly everyMs?: number
  /** The maximum number of records of each kind that one call of `sweep` processes. Default 1,000. */
  readonly limit?: number
  /**
   * Receives errors of the store; the server is swept again in the next run. Its own errors are ignored. Default:
   * `console.error`.
   */
  readonly onError?: (error: unknown) => void
  /** The source of the jitter. Default: the global `crypto`. */
  readonly random?: Random
}

/** A runner that sweeps servers until it is stopped. */
export interface SweepRunner {
  /** Starts no further sweep, and resolves when the current one has ended. */
  stop(): Promise<void>
  /** Stops the runner, as `stop` does: for `await using`. */
  [Symbol.asyncDispose](): Promise<void>
}

const sweptServers = listOf(having({ sweep: callback() }))

const runOptions = optionsOf({
  everyMs: v.optional(positiveInteger, 60_000),
  limit: sweepLimit,
  onError: v.optional(callback<NonNullable<RunSweepsOptions['onError']>>(), () => printError),
  random: randomOption,
} satisfies Members<RunSweepsOptions>)

/**
 * Sweeps one or more servers until it is stopped: at once, and then every half to one and a half times `everyMs`, at
 * random, so that processes that start together do not sweep together. Each run repeats the sweep of a server until no
 * more records are due. Any number of processes may run it, see `AuthorizationServer.sweep` and `ResourceServer.sweep`.
 *
 * @param servers may include work of the host that runs at the same times: `{ sweep: async () => ({ more: false }) }`.
 *   A `sweep` that resolves to `more: true` is called again at once.
 * @throws {InvalidInputError} for an invalid option, and for invalid servers.
 *
 * @example
 * ```ts
 * import { runSweeps } from 'open-payments-server'
 *
 * const sweeps = runSweeps([wallet.auth, wallet.resources], { onError: console.error })
 * process.once('SIGTERM', () => sweeps.stop())
 * ```
 */
export function runSweeps(
  servers: readonly {
    sweep(options?: SweepOptions): Promise<Pick<SweepResult, 'more'>>
  }[],
  options: RunSweepsOptions = {},
): SweepRunner {
  readInput('servers', sweptServers, servers)
  const { everyMs, limit, onError, random } = readInput('', runOptions, options)
  const controller = new AbortController()
  const { signal } = controller

  const report = (error: unknown) => void callHook(() => onError(error))

  async function run(): Promise<void> {
    while (!signal.aborted) {
      for (const server of servers) await sweepAll(server).catch(report)
      await sleep(pauseMs(random, everyMs), signal)
    }
  }

  async function sweepAll(server: (typeof servers)[number]): Promise<void> {
    let more = true
    while (more && !signal.aborted) more = (await server.sweep({ limit, signal })).more
  }

  const running = run()
  async function stop(): Promise<void> {
    controller.abort()
    await running
  }
  return { stop, [Symbol.asyncDispose]: stop }
}

/** Returns a random time from half to one and a half times the mean. */
function pauseMs(random: Random, meanMs: number): number {
  const [byte = 0] = random.getRandomValues(new Uint8Array(1))
  return meanMs * (0.5 + byte / 255)
}
