import { createServer, type RequestListener, type Server } from 'node:http'
import { serializeIlpFulfill, serializeIlpPrepare } from 'ilp-packet'
import { freePort } from 'open-payments-programs'
import { toExpress } from 'open-payments-server/express'
import { listening, stopped } from 'open-payments-test-support/hosts'
import { outcomeOf } from 'open-payments-test-support/ilp'
import { afterEach, describe, expect, test } from 'vitest'
import { ilpOverHttp, sendOverHttp } from '../src/over-http.js'
import { packetBytesMax } from '../src/packet.js'

const servers: Server[] = []
afterEach(() => Promise.all(servers.splice(0).map(stopped)))

async function serve(listener: RequestListener): Promise<string> {
  const server = createServer(listener)
  servers.push(server)
  return `http://localhost:${await listening(server)}/ilp`
}

const fulfilled = serializeIlpFulfill({
  fulfillment: Buffer.alloc(32, 200),
  data: Buffer.alloc(999, 255),
})

function packet(leftMs = 30_000): Buffer {
  return serializeIlpPrepare({
    amount: '1',
    executionCondition: Buffer.alloc(32, 128),
    expiresAt: new Date(Date.now() + leftMs),
    destination: 'test.bob',
    data: Buffer.alloc(32_000, 254),
  })
}

describe('the server', () => {
  async function setUp(token: string | readonly string[] = 'secret') {
    const handled: Uint8Array[] = []
    const handle = async (bytes: Uint8Array) => {
      handled.push(bytes)
      return fulfilled
    }
    const url = await serve(toExpress(ilpOverHttp({ token, handle })))
    const post = async (headers: Record<string, string> = {}, init: RequestInit = {}) => {
      const all = { authorization: 'Bearer secret', 'content-type': 'application/octet-stream' }
      return fetch(url, {
        method: 'POST',
        headers: { ...all, ...headers },
        body: packet(),
        ...init,
      })
    }
    return { url, post, handled }
  }

  test('responds to a packet with the bytes of the reply', async () => {
    const { post, handled } = await setUp()
    const body = packet()
    const response = await post({}, { body })
    expect(response.status).toBe(200)
    expect(response.headers.get('content-type')).toBe('application/octet-stream')
    expect(Buffer.from(await response.arrayBuffer())).toEqual(fulfilled)
    expect(handled.map((bytes) => Buffer.from(bytes))).toEqual([body])
  })

  test('accepts any of several tokens', async () => {
    const { post } = await setUp(['old', 'new'])
    const statusOf = async (token: string) =>
      (await post({ authorization: `bearer ${token}` })).status
    expect(await statusOf('old')).toBe(200)
    expect(await statusOf('new')).toBe(200)
    expect(await statusOf('secret')).toBe(401)
  })

  test.each<[string, number, Record<string, string>, RequestInit?]>([
    ['another token', 401, { authorization: 'Bearer other' }],
    ['a token that begins like the right one', 401, { authorization: 'Bearer secre' }],
    ['no token', 401, { authorization: 'Bearer ' }],
    ['another scheme', 401, { authorization: 'Basic secret' }],
    ['another media type', 415, { 'content-type': 'application/json' }],
    ['a body that is too large', 413, {}, { body: new Uint8Array(packetBytesMax + 1) }],
    ['another method', 405, {}, { method: 'PUT' }],
  ])('refuses %s', async (_, status, headers, init) => {
    const { post, handled } = await setUp()
    expect((await post(headers, init)).status).toBe(status)
    expect(handled).toEqual([])
  })
})

describe('the client', () => {
  test('sends the bytes of a packet and returns those of the reply', async () => {
    const handled: Buffer[] = []
    const handle = async (bytes: Uint8Array) => {
      handled.push(Buffer.from(bytes))
      return fulfilled
    }
    const url = await serve(toExpress(ilpOverHttp({ token: 'secret', handle })))
    const body = packet()
    expect(Buffer.from(await sendOverHttp({ url, token: 'secret' })(body))).toEqual(fulfilled)
    expect(handled).toEqual([body])
  })

  test.each([400, 401, 404, 405, 408, 413, 415, 429, 500, 502, 503, 504])(
    'leaves the outcome open if a response with status %i has no ILP packet',
    async (status) => {
      const url = await serve((_, response) => response.writeHead(status).end('no'))
      expect(outcomeOf(await sendOverHttp({ url, token: 'x' })(packet()))).toBe('R00')
    },
  )

  test('leaves the outcome open if a proxy answers after it has forwarded the packet', async () => {
    const arrived: Uint8Array[] = []
    const handle = async (bytes: Uint8Array) => {
      arrived.push(bytes)
      return fulfilled
    }
    const url = await serve(toExpress(ilpOverHttp({ token: 'secret', handle })))
    const proxy = await serve(async (request, response) => {
      const body = Buffer.concat(await request.toArray())
      const headers = {
        authorization: request.headers.authorization ?? '',
        'content-type': request.headers['content-type'] ?? '',
      }
      await fetch(url, { method: 'POST', headers, body })
      response.writeHead(503, { 'retry-after': '1' }).end()
    })
    const send = sendOverHttp({ url: proxy, token: 'secret' })
    expect(outcomeOf(await send(packet()))).toBe('R00')
    expect(arrived).toHaveLength(1)
  })

  test('rejects a packet as unsent if the peer is not listening', async () => {
    const url = `http://localhost:${await freePort()}/ilp`
    expect(outcomeOf(await sendOverHttp({ url, token: 'x' })(packet()))).toBe('T01')
  })

  test.each<[string, RequestListener]>([
    ['the connection ends', (request) => request.socket.destroy()],
    [
      'the peer redirects',
      (request, response) =>
        request.resume().once('end', () => {
          if (request.url === '/other') response.end(fulfilled)
          else response.writeHead(302, { location: '/other' }).end()
        }),
    ],
    ['the reply is too large', (_, response) => response.end(Buffer.alloc(packetBytesMax + 1))],
  ])('rejects a packet whose outcome is unknown: %s', async (_, listener) => {
    const url = await serve(listener)
    expect(outcomeOf(await sendOverHttp({ url, token: 'x' })(packet()))).toBe('R00')
  })

  test('waits for a reply until the packet expires', async () => {
    const url = await serve(() => {})
    expect(outcomeOf(await sendOverHttp({ url, token: 'x' })(packet(50)))).toBe('R00')
  })

  test('waits at most its timeout', async () => {
    const url = await serve(() => {})
    const send = sendOverHttp({ url, token: 'x', timeoutMs: 50 })
    expect(outcomeOf(await send(packet(600_000)))).toBe('R00')
  })

  test('sends neither expired packets nor bytes that are not a packet', async () => {
    let requests = 0
    const url = await serve((_, response) => {
      requests += 1
      response.end(fulfilled)
    })
    const send = sendOverHttp({ url, token: 'x' })
    expect(outcomeOf(await send(packet(0)))).toBe('R02')
    expect(outcomeOf(await send(Buffer.from('hello')))).toBe('F01')
    expect(requests).toBe(0)
  })
})
