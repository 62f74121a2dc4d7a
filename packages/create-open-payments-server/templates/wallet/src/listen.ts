import { once } from 'node:events'
import type { Server } from 'node:http'

/** Resolves when the server accepts requests. Rejects with what to change if it cannot. */
export async function listen(server: Server, port: number, host: string): Promise<void> {
  // Proxies keep connections for 60 s: a request on one that ends at the same moment would be lost.
  server.keepAliveTimeout = 65_000
  server.listen(port, host)
  try {
    await once(server, 'listening')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EADDRINUSE') throw error
    throw new Error(`another program uses port ${port}: set PORT to another one`, { cause: error })
  }
}
