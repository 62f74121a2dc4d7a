import { randomInt } from 'node:crypto'
import { createServer } from 'node:net'

/**
 * Returns a port that is not in use. It avoids the range for outgoing connections, one of which might
 * otherwise take the port before the server listens on it.
 */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = randomInt(15_000, 32_000)
    const error = await problemOf(port)
    if (error === undefined) return port
    if (error.code !== 'EADDRINUSE') throw error
  }
}

function problemOf(port: number): Promise<NodeJS.ErrnoException | undefined> {
  const probe = createServer()
  return new Promise((resolve) => {
    probe.once('error', resolve)
    probe.listen(port, 'localhost', () => probe.close(() => resolve(undefined)))
  })
}
