import type { ReadableStream as NodeReadableStream } from 'node:stream/web'
import fc from 'fast-check'
import { describe, expect, test, vi } from 'vitest'
import type { HttpRequest, HttpResponse } from '../../src/entry-adapter.js'
import { bodyBytesMax, RawBodyError, readFetchBody } from '../../src/entry-adapter.js'
import { toFetch } from '../../src/index.js'
import { createWorld, grantEndpoint, incomingAccess, origin } from '../support/world.js'

/** Returns the request that a handler receives for a Fetch API request. */
async function given(request: Request): Promise<HttpRequest> {
  let seen: HttpRequest | undefined
  await toFetch(async (one) => {
    seen = one
    return { status: 204, headers: {} }
  })(request)
  if (seen === undefined) throw new Error('the handler was not called')
  return seen
}

function respond(response: HttpResponse): Promise<Response> {
  return toFetch(async () => response)(new Request(`${origin}/`))
}

type Body = NonNullable<ConstructorParameters<typeof Response>[0]>

function post(body: Body, more: RequestInit = {}): Request {
  // Streams need this option, which the types lack.
  const init = { method: 'POST', body, duplex: 'half', ...more }
  return new Request(`${origin}/auth`, init as RequestInit)
}

/** A body in chunks that records how far it was read and whether it was cancelled. */
function chunked(chunks: readonly Uint8Array[], { endless = false } = {}) {
  const state = { pulled: 0, cancelled: false }
  const stream = new ReadableStream<Uint8Array>(
    {
      pull(controller) {
        const chunk = chunks[state.pulled % chunks.length]
        if (chunk === undefined || (!endless && state.pulled >= chunks.length)) controller.close()
        else if (state.pulled > 2_000) controller.error(new Error('it was read much too far'))
        else {
          state.pulled += 1
          controller.enqueue(chunk)
        }
      },
      cancel() {
        state.cancelled = true
      },
    },
    { highWaterMark: 0 },
  )
  return { stream, state }
}

describe('the request that a handler receives', () => {
  test.each([
    ['https://wallet.example/auth', '/auth'],
    ['https://wallet.example', '/'],
    ['https://wallet.example/auth/?', '/auth/?'],
    ['https://wallet.example/auth?x=/a//b&y=%2e', '/auth?x=/a//b&y=%2e'],
    ['https://wallet.example?x=https://b/c', '/?x=https://b/c'],
    ['https://wallet.example/%41%2f?a=%zz', '/%41%2f?a=%zz'],
    ['https://wallet.example/a//b', '/a//b'],
    ['https://wallet.example/auth?x#fragment', '/auth?x'],
    ['https://wallet.example/auth#/other', '/auth'],
    ['http://127.0.0.1:3000/auth', '/auth'],
    ['http://[::1]:3000/auth', '/auth'],
  ])('has the path and query of %s', async (url, expected) => {
    expect((await given(new Request(url))).url).toBe(expected)
  })

  test('has the method exactly as sent', async () => {
    for (const method of ['GET', 'HEAD', 'DELETE', 'PATCH', 'PURGE']) {
      expect((await given(new Request(origin, { method }))).method).toBe(method)
    }
  })

  test('has the header lines, marked as possibly merged', async () => {
    const headers = new Headers([
      ['X-Two', 'a'],
      ['x-two', 'b'],
      ['Authorization', 'GNAP x'],
    ])
    const seen = await given(new Request(origin, { headers }))
    expect(seen.headersMerged).toBe(true)
    expect(seen.headers.map(([name, value]) => `${name}: ${value}`).toSorted()).toEqual([
      'authorization: GNAP x',
      'x-two: a, b',
    ])
  })

  test.each([
    ['no content', ''],
    ['CRLF', '{"a":\r\n1}\r\n'],
    ['letters beyond ASCII', '{"a":"é👍"}'],
    ['a byte order mark', '\ufeff{}'],
  ])('has the bytes of a body with %s', async (_, text) => {
    const bytes = new TextEncoder().encode(text)
    expect(Buffer.from((await given(post(bytes))).body)).toEqual(Buffer.from(bytes))
  })

  test('has bytes that are not UTF-8 unchanged', async () => {
    const bytes = Uint8Array.from({ length: 256 }, (_, i) => i)
    expect(Buffer.from((await given(post(bytes))).body)).toEqual(Buffer.from(bytes))
  })

  test('has an empty body if there is none', async () => {
    expect((await given(new Request(origin))).body).toEqual(new Uint8Array())
    expect((await given(new Request(origin, { method: 'POST' }))).body).toEqual(new Uint8Array())
  })

  test('has the chunks of a body in order, whatever their sizes', async () => {
    const chunks = fc.array(fc.uint8Array({ maxLength: 50 }), { maxLength: 10 })
    await fc.assert(
      fc.asyncProperty(chunks, async (parts) => {
        const { stream } = chunked(parts)
        expect(Buffer.from(await readFetchBody(post(stream)))).toEqual(Buffer.concat(parts))
      }),
      { numRuns: 100 },
    )
  })
})

describe('a large body', () => {
  const kibibyte = new Uint8Array(1024).fill(1)

  test('is read completely up to the limit', async () => {
    const { stream, state } = chunked(Array<Uint8Array>(64).fill(kibibyte))
    expect(await readFetchBody(post(stream))).toHaveLength(bodyBytesMax)
    expect(state.cancelled).toBe(false)
  })

  test('over the limit is read to its end, and only its beginning is kept', async () => {
    const { stream, state } = chunked(Array<Uint8Array>(700).fill(kibibyte))
    const body = await readFetchBody(post(stream))
    expect(body.length).toBe(bodyBytesMax + kibibyte.length)
    expect(state).toEqual({ pulled: 700, cancelled: false })
  })

  test('without an end is left after 1 MiB, and not cancelled', async () => {
    const { stream, state } = chunked([kibibyte], { endless: true })
    const body = await readFetchBody(post(stream))
    expect(body.length).toBe(bodyBytesMax + kibibyte.length)
    expect(state).toEqual({ pulled: 1025, cancelled: false })
  })

  test('that stalls over the limit is left after a second, and not cancelled', async () => {
    const { stream, state } = stalling(bodyBytesMax + 1)
    const body = await readFetchBody(post(stream))
    expect(body.length).toBe(bodyBytesMax + 1)
    expect(state).toEqual({ cancelled: false })
  })

  test('ends without the timer of a stall', async () => {
    vi.useFakeTimers()
    try {
      await readFetchBody(post(chunked(Array<Uint8Array>(70).fill(kibibyte)).stream))
      expect(vi.getTimerCount()).toBe(0)
    } finally {
      vi.useRealTimers()
    }
  })

  test.each([
    ['ends within the bound', () => closable(700)],
    ['never ends', () => closable(Number.POSITIVE_INFINITY)],
    ['stalls', () => stalling(bodyBytesMax + 1)],
  ])('that %s is refused with 413, though its source cannot be cancelled', async (_, create) => {
    const problems: unknown[] = []
    const note = (problem: unknown) => void problems.push(problem)
    process.on('uncaughtException', note).on('unhandledRejection', note)
    try {
      const response = await toFetch(createWorld().handle)(post(create().stream))
      expect(response.status).toBe(413)
      await new Promise((resolve) => setImmediate(resolve))
      expect(problems).toEqual([])
    } finally {
      process.off('uncaughtException', note).off('unhandledRejection', note)
    }
  })
})

/**
 * A body as bridges from Node.js make it: a source that knows nothing of a cancellation pushes chunks, and closes the
 * stream. Both throw after the stream was cancelled.
 */
function closable(kibibytes: number) {
  let sent = 0
  const stream = new ReadableStream<Uint8Array>({
    start(controller) {
      const push = () => {
        if (sent === kibibytes) return controller.close()
        sent += 1
        controller.enqueue(new Uint8Array(1024))
        // The test is over long before that.
        if (sent < 5_000) setImmediate(push)
      }
      push()
    },
  })
  return { stream }
}

/** A body that sends some bytes, and then neither more nor its end. */
function stalling(length: number) {
  const state = { cancelled: false }
  const stream = new ReadableStream<Uint8Array>({
    start: (controller) => controller.enqueue(new Uint8Array(length)),
    cancel() {
      state.cancelled = true
    },
  })
  return { stream, state }
}

describe('a body that fails midway', () => {
  test('rejects, and the handler does not run', async () => {
    let called = false
    const stream = new ReadableStream({
      start: (controller) => controller.enqueue(new Uint8Array(10)),
      pull: (controller) => controller.error(new Error('connection reset')),
    })
    const serve = toFetch(async () => {
      called = true
      return { status: 200, headers: {} }
    })
    await expect(serve(post(stream))).rejects.toThrow('connection reset')
    expect(called).toBe(false)
  })
})

describe('a body that was read before', () => {
  const unavailable = expect.objectContaining({
    name: 'TypeError',
    code: 'ERR_RAW_BODY_UNAVAILABLE',
    message: expect.stringMatching(/before anything reads/),
  })

  test.each<[string, (request: Request) => Promise<unknown>]>([
    ['json', (request) => request.json()],
    ['text', (request) => request.text()],
    ['bytes', (request) => request.arrayBuffer()],
    ['a blob and a clone', (request) => request.clone() && request.blob()],
    ['its first chunk', (request) => readFirst(request)],
    ['nothing with a cancelled reader', async (request) => request.body?.cancel()],
  ])('causes an error after a read of %s', async (_, read) => {
    const request = post('{"a":1}')
    await read(request)
    await expect(given(request)).rejects.toEqual(unavailable)
    await expect(readFetchBody(request)).rejects.toEqual(unavailable)
  })

  test('causes an error if another reader holds it', async () => {
    const request = post('{"a":1}')
    request.body?.getReader()
    await expect(given(request)).rejects.toEqual(unavailable)
  })

  test('through a clone is still available', async () => {
    const request = post('{"a":1}')
    await request.clone().json()
    expect(Buffer.from((await given(request)).body).toString()).toBe('{"a":1}')
  })

  test('is empty if the request has none', async () => {
    const request = new Request(origin)
    await request.text()
    expect((await given(request)).body).toEqual(new Uint8Array())
  })

  test('causes an error that contains the given remedy', () => {
    const error = new RawBodyError('do this instead')
    expect(error).toBeInstanceOf(TypeError)
    expect(error.code).toBe('ERR_RAW_BODY_UNAVAILABLE')
    expect(error.message).toContain('do this instead')
  })
})

async function readFirst(request: Request): Promise<void> {
  const reader = request.body?.getReader()
  await reader?.read()
  reader?.releaseLock()
}

describe('the response', () => {
  test('has the status, the headers and the body of the handler, in UTF-8', async () => {
    const response = await respond({
      status: 201,
      headers: { 'content-type': 'application/json', 'x-other': 'y' },
      body: '{"a":"é👍"}',
    })
    expect(response.status).toBe(201)
    expect([...response.headers].toSorted()).toEqual([
      ['content-type', 'application/json'],
      ['x-other', 'y'],
    ])
    const bytes = Buffer.from(await response.arrayBuffer())
    expect(bytes).toEqual(Buffer.from('{"a":"é👍"}', 'utf8'))
  })

  test.each([204, 205, 304])('with status %i has no body', async (status) => {
    const response = await respond({ status, headers: { 'cache-control': 'no-store' } })
    expect(response.status).toBe(status)
    expect(response.body).toBeNull()
  })

  test('can be a redirect, which is not followed', async () => {
    const headers = { location: 'https://shop.example/back?hash=a%2Bb' }
    const response = await respond({ status: 303, headers })
    expect(response.status).toBe(303)
    expect(response.headers.get('location')).toBe(headers.location)
  })
})

describe('a request that is only a part of a Fetch API request', () => {
  /** As a platform with its own class declares it, such as Azure Functions: with the stream of Node.js. */
  interface PlatformRequest {
    readonly method: string
    readonly url: string
    readonly headers: Headers
    readonly body: NodeReadableStream | null
    readonly params: Record<string, string>
  }

  test('is served', async () => {
    const { method, url, headers, body } = post('{"a":1}')
    const stream = body as unknown as NodeReadableStream
    const request: PlatformRequest = { method, url, headers, body: stream, params: {} }
    const serve = toFetch(async ({ body: bytes }) => ({
      status: 200,
      headers: {},
      body: new TextDecoder().decode(bytes),
    }))
    expect(await (await serve(request)).text()).toBe('{"a":1}')
    expect(await (await serve({ ...request, body: null })).text()).toBe('')
  })
})

describe('a server behind toFetch', () => {
  test('serves a signed request', async () => {
    const { handle, client } = createWorld()
    const shop = client()
    const body = JSON.stringify({
      client: shop.client,
      access_token: { access: [incomingAccess] },
    })
    const { headers } = shop.sign({ method: 'POST', url: grantEndpoint, body })
    const request = () =>
      new Request(grantEndpoint, { method: 'POST', headers: headers.map(([n, v]) => [n, v]), body })
    const response = await toFetch(handle)(request())
    expect(response.status).toBe(200)
    expect(await response.json()).toHaveProperty('access_token')
  })

  test('ignores the host of the request', async () => {
    const { handle, client } = createWorld()
    const shop = client()
    const body = JSON.stringify({
      client: shop.client,
      access_token: { access: [incomingAccess] },
    })
    const sign = (url: string) =>
      shop.sign({ method: 'POST', url, body }).headers.map(([n, v]): [string, string] => [n, v])
    const send = async (url: string, headers: [string, string][]) =>
      (await toFetch(handle)(new Request(url, { method: 'POST', headers, body }))).status
    const internal = 'http://10.0.0.7:8080/auth'
    expect(await send(internal, sign(grantEndpoint))).toBe(200)
    expect(await send(internal, sign(internal))).toBe(401)
    const forwarded: [string, string] = ['x-forwarded-host', 'evil.example']
    expect(await send(internal, [...sign('https://evil.example/auth'), forwarded])).toBe(401)
  })

  test.each(['authorization', 'content-type', 'content-digest'])(
    'refuses a repeated %s header, by its comma or by its signature',
    async (name) => {
      const { handle, client } = createWorld()
      const shop = client()
      const body = JSON.stringify({
        client: shop.client,
        access_token: { access: [incomingAccess] },
      })
      const token = { token: 'opa_x.y' }
      const signed = shop.sign({ method: 'POST', url: grantEndpoint, body, ...token })
      const headers = new Headers(signed.headers.map(([n, v]): [string, string] => [n, v]))
      headers.append(name, 'another')
      const request = new Request(grantEndpoint, { method: 'POST', headers, body })
      expect((await toFetch(handle)(request)).status).toBe(name === 'content-digest' ? 401 : 400)
    },
  )
})
