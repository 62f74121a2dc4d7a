import type { Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expressServer } from './adapters/express.js'
import { fastifyServer } from './adapters/fastify.js'
import { honoServer } from './adapters/hono.js'
import { createWallet, type Wallet, type WalletOptions } from './wallet.js'

export const adapters = { express: expressServer, fastify: fastifyServer, hono: honoServer }
export type AdapterName = keyof typeof adapters

export interface StartOptions extends Omit<WalletOptions, 'baseUrl'> {
  readonly adapter: AdapterName
  readonly port: number
  /** The origin that is published. Default: this server's own, on localhost. */
  readonly baseUrl?: string
}

export interface RunningWallet {
  readonly wallet: Wallet
  readonly baseUrl: string
  /** Finishes what it has begun, takes nothing new, and resolves when all is done. */
  stop(): Promise<void>
}

/** Starts the wallet and resolves when it takes requests. */
export async function startWallet(options: StartOptions): Promise<RunningWallet> {
  const { adapter, port, baseUrl = `http://localhost:${port}`, ...rest } = options
  const wallet = createWallet({ baseUrl, ...rest })
  const server = await adapters[adapter](wallet)
  await listen(server, port)
  return { wallet, baseUrl, stop: () => close(server) }
}

/** A port that nothing listens on now. */
export async function freePort(): Promise<number> {
  const { createServer } = await import('node:net')
  const probe = createServer()
  await new Promise<void>((resolve) => probe.listen(0, 'localhost', resolve))
  const { port } = probe.address() as AddressInfo
  await new Promise((resolve) => probe.close(resolve))
  return port
}

/** On loopback only: whoever reaches this wallet is signed in as the owner of its accounts. */
function listen(server: Server, port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject)
    server.listen(port, 'localhost', resolve)
  })
}

/** Connections that were busy when the server stopped listening are closed as soon as they fall idle. */
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
