import { once } from 'node:events'
import type { Server } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'

// #region close
export interface ClosingTimes {
  /** How long a load balancer may still send requests. */
  readonly drainMs?: number
  /** How long requests may then still take. */
  readonly endMs?: number
}

/**
 * Ends each connection after its next answer, because clients keep connections, and go
 * on with requests on them; after `drainMs`, accepts no more of them. Resolves when all
 * have ended, if need be by force.
 */
export async function closeServer(
  server: Server,
  { drainMs = 5_000, endMs = 35_000 }: ClosingTimes = {},
): Promise<void> {
  server.prependListener('request', (_request, response) => {
    response.shouldKeepAlive = false
  })
  await sleep(drainMs)
  const closed = once(server, 'close')
  server.close()
  const idle = setInterval(() => server.closeIdleConnections(), 50)
  const end = setTimeout(() => server.closeAllConnections(), endMs)
  await closed
  clearInterval(idle)
  clearTimeout(end)
}
// #endregion close
