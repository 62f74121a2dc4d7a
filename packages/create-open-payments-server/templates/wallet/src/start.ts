import type { Server } from 'node:http'
import { startBackground } from './background.js'
import { closeServer } from './close.js'
import { listen } from './listen.js'
import { withReadiness } from './readiness.js'
import { serverOf } from './server.js'
import type { Settings } from './settings.js'
import { checkTables } from './tables.js'
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
  { port, host, drainMs = 0 }: Pick<Settings, 'port' | 'host'> & Partial<Pick<Settings, 'drainMs'>>,
  { mount = serverOf, work = startBackground }: StartOptions = {},
): Promise<() => Promise<void>> {
  let isStopping = false
  const handle = withReadiness(wallet.handle, async () =>
    isStopping ? 'it stops' : checkTables(wallet.database),
  )
  const server = await mount({ ...wallet, handle })
  await listen(server, port, host)
  const background = work(wallet)
  return async () => {
    isStopping = true
    await Promise.all([closeServer(server, { drainMs }), background.stop()])
  }
}
