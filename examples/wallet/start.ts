import type { Server } from 'node:http'
import { expressServer } from './adapters/express.js'
import { fastifyServer } from './adapters/fastify.js'
import { honoServer } from './adapters/hono.js'
import { type BackgroundOptions, walletBackground } from './background.js'
import { memoryStorage } from './memory-storage.js'
import { portError } from './port-error.js'
import { createWallet, type Wallet, type WalletOptions } from './wallet.js'

export const adapters = { express: expressServer, fastify: fastifyServer, hono: honoServer }
export type AdapterName = keyof typeof adapters

export interface StartOptions extends Partial<WalletOptions>, BackgroundOptions {
  readonly adapter: AdapterName
  readonly port: number
  /** The published origin. Default: this server's own, on localhost. */
  readonly baseUrl?: string
  /** Default: in memory. */
  readonly storage?: WalletOptions['storage']
}

export interface RunningWallet {
  readonly wallet: Wallet
  readonly baseUrl: string
  /** Finishes current work, accepts nothing new, and resolves when all is done; the storage stays open. */
  stop(): Promise<void>
}

/** Starts the wallet and resolves when it accepts requests. */
export async function startWallet(options: StartOptions): Promise<RunningWallet> {
  const { adapter, port, baseUrl = `http://localhost:${port}` } = options
  const { storage = memoryStorage(), ...rest } = options
  const wallet = await createWallet({ ...rest, baseUrl, storage })
  const server = await adapters[adapter](wallet)
  await listen(server, port)
  const background = walletBackground(wallet, options)
  const stop = async () => {
    await Promise.all([close(server), background.stop()])
  }
  return { wallet, baseUrl, stop }
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
