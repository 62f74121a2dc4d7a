import { once } from 'node:events'
import type { Server } from 'node:http'

/** Resolves when the server accepts requests. Rejects with what to change if it cannot. */
export async function listen(server: Server, port: number, host: string): Promise<void> {
  server.listen(port, host)
  try {
    await once(server, 'listening')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EADDRINUSE') throw error
    throw new Error(`another program uses port ${port}: set PORT to another one`, { cause: error })
  }
}
