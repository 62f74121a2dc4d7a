import { once } from 'node:events'
import type { IncomingMessage, Server } from 'node:http'
import { connect } from 'node:net'
import { Writable } from 'node:stream'
import fastify from 'fastify'
import { Hono } from 'hono'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { toFastify } from '../../adapters/fastify.js'
import { toHono } from '../../adapters/hono.js'
import type { Handler } from '../../src/index.js'
import { type Host, hosts, listening, stopped } from '../support/hosts.js'
import { exchange, requestBytes } from '../support/raw-http.js'

const json = ['Content-Type', 'application/json'] as const
const host = ['Host', 'localhost'] as const

/** What a client sends before it closes the connection. */
const parts: Readonly<Record<string, Buffer>> = {
  'half of a body': requestBytes(
    'POST',
    '/auth',
    [host, json, ['Content-Length', '100']],
    Buffer.from('{"client":'),
  ),
  'no byte of a body': requestBytes('POST', '/auth', [host, json, ['Content-Length', '100']]),
  'a chunk of a body': requestBytes(
    'POST',
    '/auth',
    [host, json, ['Transfer-Encoding', 'chunked']],
    Buffer.from('3\r\n{"a\r\n'),
  ),
  'half of a body to GET': requestBytes(
    'GET',
    '/auth',
    [host, ['Content-Length', '9']],
    Buffer.from('{'),
  ),
}

const problems: unknown[] = []
const note = (problem: unknown) => void problems.push(problem)

beforeEach(() => {
  problems.length = 0
  process.on('unhandledRejection', note)
  // Express prints no errors in tests.
  vi.stubEnv('NODE_ENV', 'production')
  for (const method of ['error', 'warn', 'log'] as const) {
    vi.spyOn(console, method).mockImplementation(note)
  }
})
afterEach(() => {
  process.off('unhandledRejection', note)
  vi.restoreAllMocks()
  vi.unstubAllEnvs()
})

/** Sends a part of a request, closes the connection, and waits until the server has noticed. */
async function abort(server: Server, port: number, bytes: Uint8Array): Promise<void> {
  const arrived = once(server, 'request')
  const socket = connect(port, 'localhost', () => socket.write(bytes))
  const [request] = (await arrived) as [IncomingMessage]
  const gone = new Promise((resolve) => request.socket.once('close', resolve))
  socket.destroy()
  await gone
  for (let turn = 0; turn < 5; turn++) await new Promise((resolve) => setImmediate(resolve))
}

const handled: string[] = []
const handle: Handler = async ({ method, body }) => {
  handled.push(method)
  return { status: 200, headers: {}, body: String(body.length) }
}

async function expectQuiet(create: Host['create'], bytes: Uint8Array): Promise<void> {
  handled.length = 0
  const server = await create(handle)
  const port = await listening(server)
  try {
    await abort(server, port, bytes)
    expect(handled).toEqual([])
    expect(problems).toEqual([])
    const headers = [host, json, ['Content-Length', '2'], ['Connection', 'close']] as const
    const answer = await exchange(port, requestBytes('POST', '/auth', headers, Buffer.from('{}')))
    expect(answer.status).toBe(200)
  } finally {
    await stopped(server)
  }
}

const mounts = hosts.filter(({ basePath }) => basePath === '' || basePath === '/auth')

describe.each(mounts)('$name', ({ create }) => {
  test.each(Object.entries(parts))(
    'prints nothing when the client closes the connection after %s',
    async (_, bytes) => {
      await expectQuiet(create, bytes)
    },
  )
})

describe('fastify with a logger', () => {
  test.each(Object.entries(parts))(
    'logs no error when the client closes the connection after %s',
    async (_, bytes) => {
      const lines: { readonly level: number }[] = []
      const stream = new Writable({
        write(chunk, _encoding, done) {
          lines.push(JSON.parse(String(chunk)))
          done()
        },
      })
      await expectQuiet(async (handle) => {
        const app = fastify({ logger: { level: 'info', stream } })
        app.register(toFastify(handle))
        await app.ready()
        return app.server
      }, bytes)
      expect(lines.length).toBeGreaterThan(0)
      expect(lines.filter(({ level }) => level > 30)).toEqual([])
    },
  )
})

describe('hono on a runtime with the Fetch API only', () => {
  function send(signal: AbortSignal): Promise<Response> {
    const body = new ReadableStream({
      pull: (controller) => controller.error(new Error('the stream ended early')),
    })
    const init = { method: 'POST', body, duplex: 'half', signal } as const
    const app = new Hono().onError((error) => {
      throw error
    })
    app.all('/*', toHono(handle))
    return Promise.resolve(app.fetch(new Request('https://wallet.example/auth', init)))
  }

  test('throws nothing when the client closes the connection', async () => {
    handled.length = 0
    expect((await send(AbortSignal.abort())).status).toBe(400)
    expect(handled).toEqual([])
  })

  test('throws another error of the body', async () => {
    await expect(send(new AbortController().signal)).rejects.toThrow('the stream ended early')
  })
})
