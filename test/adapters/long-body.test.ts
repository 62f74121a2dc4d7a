import { once } from 'node:events'
import { createServer, type IncomingMessage, type Server } from 'node:http'
import { connect, type Socket } from 'node:net'
import { getRequestListener } from '@hono/node-server'
import { describe, expect, test } from 'vitest'
import type { Handler } from '../../src/index.js'
import { toFetch } from '../../src/index.js'
import { type Host, hosts, listening, stopped } from '../support/hosts.js'
import { requestBytes } from '../support/raw-http.js'

/** Each adapter, and `toFetch` behind a bridge from Node.js. */
const mounts: readonly Host[] = [
  ...hosts.filter(({ basePath }) => basePath === ''),
  {
    name: 'toFetch behind a bridge',
    basePath: '',
    create: (handle) => createServer(getRequestListener(toFetch(handle))),
  },
]

function head(length: number, path = '/auth'): Buffer {
  const headers = [
    ['Host', 'w.example'],
    ['Content-Type', 'application/json'],
    ['Content-Length', String(length)],
  ] as const
  return requestBytes('POST', path, headers)
}

interface Client {
  readonly socket: Socket
  /** What the server has sent until now. */
  received(): string
  /** The body bytes that have reached the server until now, and the head. */
  arrived(): number
}

/** Starts a host, opens a connection to it, and passes what happens to `scenario`. */
async function connected(
  { create }: Host,
  scenario: (client: Client, handled: readonly number[]) => Promise<void>,
): Promise<void> {
  const handled: number[] = []
  const handle: Handler = async ({ body }) => {
    handled.push(body.length)
    return { status: body.length > 65_536 ? 413 : 200, headers: {}, body: 'told' }
  }
  const server: Server = await create(handle)
  const port = await listening(server)
  let request: IncomingMessage | undefined
  server.prependListener('request', (each) => {
    request = each
  })
  const socket = connect(port, 'localhost')
  let text = ''
  socket.on('data', (chunk) => {
    text += chunk.toString()
  })
  socket.on('error', () => undefined)
  await once(socket, 'connect')
  try {
    await scenario(
      { socket, received: () => text, arrived: () => request?.socket.bytesRead ?? 0 },
      handled,
    )
  } finally {
    socket.destroy()
    await stopped(server)
  }
}

/** Resolves when a connection has ended, even by a reset. */
function closed(socket: Socket): Promise<void> {
  return new Promise((resolve) => socket.once('close', () => resolve()))
}

describe.each(mounts)('a body over the limit with $name', (host) => {
  test('is read to its end before the response, and the connection serves the next request', async () => {
    await connected(host, async ({ socket, received, arrived }, handled) => {
      const half = 350 * 1024
      socket.write(Buffer.concat([head(2 * half), Buffer.alloc(half, ' ')]))
      await expect.poll(arrived).toBeGreaterThanOrEqual(half)
      expect(handled).toEqual([])
      socket.write(Buffer.alloc(half, ' '))
      await expect.poll(received).toMatch(/^HTTP\/1\.1 413 [\s\S]*told/)
      expect(received()).not.toMatch(/connection: close/i)
      socket.write(Buffer.concat([head(2), Buffer.from('{}')]))
      await expect.poll(received).toMatch(/HTTP\/1\.1 200 [\s\S]*told/)
      expect(handled).toEqual([expect.any(Number), 2])
    })
  })

  test('that exceeds 1 MiB gets 413 at once, and the connection ends', async () => {
    await connected(host, async ({ socket, received }, handled) => {
      socket.write(Buffer.concat([head(2 ** 40), Buffer.alloc(2 ** 20 + 1, ' ')]))
      await closed(socket)
      expect(received()).toMatch(/^HTTP\/1\.1 413 [\s\S]*told/)
      expect(handled).toHaveLength(1)
    })
  })

  test('that stalls gets 413 after a second, and the connection ends', async () => {
    await connected(host, async ({ socket, received }) => {
      socket.write(Buffer.concat([head(2 ** 20), Buffer.alloc(100 * 1024, ' ')]))
      await closed(socket)
      expect(received()).toMatch(/^HTTP\/1\.1 413 [\s\S]*told/)
    })
  })
})
