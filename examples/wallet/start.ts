import type { Server } from 'node:http'
import { consumeEvents, type EventHandler, type FailedDelivery } from 'open-payments-server'
import { expressServer } from './adapters/express.js'
import { fastifyServer } from './adapters/fastify.js'
import { honoServer } from './adapters/hono.js'
import { repeatedly } from './background.js'
import { portError } from './free-port.js'
import { memoryStorage } from './storage.js'
import { createWallet, type Wallet, type WalletOptions } from './wallet.js'

export const adapters = { express: expressServer, fastify: fastifyServer, hono: honoServer }
export type AdapterName = keyof typeof adapters

export interface StartOptions extends Partial<WalletOptions> {
  readonly adapter: AdapterName
  readonly port: number
  /** The published origin. Default: this server's own, on localhost. */
  readonly baseUrl?: string
  /** Default: in memory. */
  readonly storage?: WalletOptions['storage']
  /**
   * `auto` sends outgoing payments when they are created; `manual` waits for reports to the ledger at
   * `/ledger/outgoing-payments/{id}/settle`. Default: `manual`.
   */
  readonly settle?: 'auto' | 'manual'
  /** Receives all events. Default: without `settle: 'auto'`, events stay in the store. */
  readonly onEvent?: EventHandler
  readonly onUndelivered?: (failure: FailedDelivery) => void
}

export interface RunningWallet {
  readonly wallet: Wallet
  readonly baseUrl: string
  /** Finishes current work, accepts nothing new, and resolves when all is done; the storage stays open. */
  stop(): Promise<void>
}

const sweepPauseMs = 5_000
/** Short enough to send a payment within a second of its creation. */
const pollMs = 250

/** Starts the wallet and resolves when it accepts requests. */
export async function startWallet(options: StartOptions): Promise<RunningWallet> {
  const { adapter, port, baseUrl = `http://localhost:${port}`, onEvent, onUndelivered } = options
  const { storage = memoryStorage(), settle = 'manual', ...rest } = options
  const wallet = await createWallet({ ...rest, baseUrl, storage })
  const server = await adapters[adapter](wallet)
  await listen(server, port)

  const onError = console.error
  const background = [repeatedly(sweepPauseMs, wallet.sweep, onError)]
  const stopping = new AbortController()
  const send = settle === 'auto' ? wallet.sender?.(stopping.signal) : undefined
  const handlers = [send, onEvent].filter((handler) => handler !== undefined)
  if (handlers.length > 0) {
    const hearing = { pollMs, onError, ...(onUndelivered && { onFailure: onUndelivered }) }
    background.push(consumeEvents(wallet.events, together(handlers), hearing))
  }
  const stop = async () => {
    stopping.abort()
    await Promise.all([close(server), ...background.map((work) => work.stop())])
  }
  return { wallet, baseUrl, stop }
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

/** Listens on loopback only: the wallet signs every visitor in as the owner of its accounts. */
function listen(server: Server, port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', (error) => reject(portError(port, error)))
    server.listen(port, 'localhost', resolve)
  })
}

/** Closes connections that were busy when the server stopped listening as soon as they become idle. */
function close(server: Server): Promise<void> {
  return new Promise((resolve, reject) => {
    const sweep = setInterval(() => server.closeIdleConnections(), 50)
    server.close((error) => {
      clearInterval(sweep)
      if (error === undefined) resolve()
      else reject(error)
    })
    server.closeIdleConnections()
  })
}
