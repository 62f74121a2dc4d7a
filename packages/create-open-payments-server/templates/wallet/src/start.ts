import { once } from 'node:events'
import type { Server } from 'node:http'
import { startBackground } from './background.js'
import { listen } from './listen.js'
import { serverOf } from './server.js'
import type { Settings } from './settings.js'
import type { Wallet } from './wallet.js'

export interface StartOptions {
  /** Mounts the wallet on a server. Default: that of server.ts. */
  readonly mount?: (wallet: Wallet) => Promise<Server>
  /** Starts the work between requests. Default: that of background.ts. */
  readonly work?: typeof startBackground
}

/**
 * Starts the wallet, and resolves when it accepts requests: to a function that finishes the current work and accepts no
 * more. The database stays open.
 */
export async function startWallet(
  wallet: Wallet,
  { port, host }: Pick<Settings, 'port' | 'host'>,
  { mount = serverOf, work = startBackground }: StartOptions = {},
): Promise<() => Promise<void>> {
  const server = await mount(wallet)
  await listen(server, port, host)
  const background = work(wallet)
  return async () => {
    await Promise.all([close(server), background.stop()])
  }
}

/** Closes connections as soon as they are idle. */
async function close(server: Server): Promise<void> {
  const closed = once(server, 'close')
  const closing = setInterval(() => server.closeIdleConnections(), 50)
  server.close()
  await closed
  clearInterval(closing)
}
