import { randomInt } from 'node:crypto'
import { createServer } from 'node:net'

/**
 * Returns a port that is not in use. It avoids the range for outgoing connections, one of which might
 * otherwise take the port before the server listens on it.
 */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = randomInt(15_000, 32_000)
    if (await isFree(port)) return port
  }
}

function isFree(port: number): Promise<boolean> {
  const probe = createServer()
  return new Promise((resolve, reject) => {
    probe.once('error', (error: NodeJS.ErrnoException) =>
      error.code === 'EADDRINUSE' ? resolve(false) : reject(error),
    )
    probe.listen(port, 'localhost', () => probe.close(() => resolve(true)))
  })
}
