import { createServer } from 'node:net'

/** @throws an error in words if a server cannot listen on the port. */
export async function requireFreePort(port: number): Promise<void> {
  const error = await problemOf(port)
  if (error !== undefined) throw portError(port, error)
}

/** Says in words why a server cannot listen on a port. */
export function portError(port: number, error: NodeJS.ErrnoException): Error {
  const why =
    error.code === 'EADDRINUSE'
      ? 'another program uses it'
      : error.code === 'EACCES'
        ? 'this user may not'
        : error.message
  return new Error(`cannot listen on port ${port}: ${why}; set PORT to another one`, {
    cause: error,
  })
}

function problemOf(port: number): Promise<NodeJS.ErrnoException | undefined> {
  const probe = createServer()
  return new Promise((resolve) => {
    probe.once('error', resolve)
    probe.listen(port, 'localhost', () => probe.close(() => resolve(undefined)))
  })
}
