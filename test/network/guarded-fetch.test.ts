import dns from 'node:dns'
import { once } from 'node:events'
import { createServer, type IncomingMessage, type RequestListener, type Server } from 'node:http'
import https from 'node:https'
import type { AddressInfo } from 'node:net'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import {
  type GuardedFetch,
  type GuardedFetchOptions,
  guardedFetch,
  HostUnreachableError,
  isFetchRefusal,
  NoResponseError,
} from '../../src/network/guarded-fetch.js'
import { invalidInput } from '../support/invalid-input.js'

const local = { allowLoopback: true }
const limit = 64 * 1024

let server: Server
let port: number
let answer: RequestListener
let received: IncomingMessage[]

beforeEach(async () => {
  received = []
  answer = (_, response) => response.end('{}')
  server = createServer((request, response) => {
    received.push(request)
    answer(request, response)
  })
  server.listen(0, 'localhost')
  await once(server, 'listening')
  port = (server.address() as AddressInfo).port
})

afterEach(() => {
  vi.restoreAllMocks()
  server.closeAllConnections()
  server.close()
})

function get(path = '/shop/jwks.json', options: GuardedFetchOptions = local) {
  return guardedFetch(options)(new URL(`http://localhost:${port}${path}`))
}

/** Returns the reason of a rejected promise; fails if the promise was not rejected. */
async function rejection(promise: Promise<unknown>): Promise<Error> {
  const outcome = await promise.then(
    () => undefined,
    (error: unknown) => error,
  )
  if (!(outcome instanceof Error)) throw new Error('it was not rejected with an error')
  return outcome
}

async function expectRefused(promise: Promise<unknown>): Promise<void> {
  const error = await rejection(promise)
  expect(isFetchRefusal(error), `${error}`).toBe(true)
}

async function expectFailedForNow(promise: Promise<unknown>): Promise<void> {
  const error = await rejection(promise)
  expect(isFetchRefusal(error), `${error}`).toBe(false)
}

async function expectNoResponse(promise: Promise<unknown>): Promise<void> {
  const error = await rejection(promise)
  expect(error).toBeInstanceOf(NoResponseError)
  expect(error).toMatchObject({
    code: 'ERR_NO_RESPONSE',
    message: expect.stringMatching(/^the host sent no complete response( in time| \([A-Z_]+\))?$/),
  })
}

/** A resolver for which all names have the given addresses. */
function namesLeadTo(...addresses: readonly string[]) {
  return vi.fn(async (_hostname: string, _signal: AbortSignal) => addresses)
}

/** Fails if a promise has not settled after all pending work. */
async function expectSettled(promise: Promise<unknown>): Promise<void> {
  let settled = false
  const settle = () => {
    settled = true
  }
  promise.then(settle, settle)
  for (let turn = 0; turn < 200 && !settled; turn++) {
    await new Promise((resolve) => setImmediate(resolve))
  }
  expect(settled, 'whether the promise has settled').toBe(true)
}

/** Lets the test end the timeout, and records its length. */
function heldTimeout() {
  const timeout = vi.spyOn(globalThis, 'setTimeout').mockReturnValue(undefined as never)
  return { timeout, expire: () => timeout.mock.calls[0]?.[0]() }
}

describe('fetching a document', () => {
  test('returns its status, content type and exact bytes', async () => {
    const bytes = Buffer.from('{"keys":[]}\r\n\ufeffé\0', 'utf8')
    answer = (_, response) => {
      response.writeHead(200, { 'content-type': 'application/jwk-set+json; charset=utf-8' })
      response.end(bytes)
    }
    const document = await get()
    expect(document.status).toBe(200)
    expect(document.contentType).toBe('application/jwk-set+json; charset=utf-8')
    expect(Buffer.from(document.body)).toEqual(bytes)
  })

  test('joins all chunks of the body', async () => {
    answer = (_, response) => {
      response.write('{"keys"')
      setImmediate(() => response.end(':[]}'))
    }
    expect(Buffer.from((await get()).body).toString()).toBe('{"keys":[]}')
  })

  test('sends a GET request with the exact path and without a body, cookies or credentials', async () => {
    await get('/~shop/%7Ea/jwks.json')
    expect(received).toHaveLength(1)
    const [request] = received
    expect(request?.method).toBe('GET')
    expect(request?.url).toBe('/~shop/%7Ea/jwks.json')
    expect(request?.headers.accept).toBe('application/json')
    expect(request?.headers.host).toBe(`localhost:${port}`)
    for (const absent of ['cookie', 'authorization', 'content-length', 'transfer-encoding']) {
      expect(request?.headers).not.toHaveProperty(absent)
    }
  })

  test.each([200, 204, 400, 401, 403, 404, 410, 429, 500, 503])(
    'returns a response with status %i to the caller',
    async (status) => {
      answer = (_, response) => response.writeHead(status).end()
      expect(await get()).toMatchObject({ status, contentType: '', body: new Uint8Array() })
    },
  )

  test('returns the header fields, and the lines of one field together', async () => {
    answer = (_, response) => {
      response.writeHead(429, { 'Retry-After': '7', 'Set-Cookie': ['a=1', 'b=2'] }).end()
    }
    const { headers } = await get()
    expect(headers).toMatchObject({ 'retry-after': '7', 'set-cookie': 'a=1, b=2' })
  })

  test('leaves no connection open', async () => {
    await get()
    expect(received[0]?.headers.connection).toBe('close')
  })
})

describe('a redirect', () => {
  test.each([301, 302, 303, 307, 308])('with status %i is not followed', async (status) => {
    answer = (_, response) => {
      response.writeHead(status, { location: `http://localhost:${port}/elsewhere` }).end()
    }
    expect((await get()).status).toBe(status)
    expect(received.map(({ url }) => url)).toEqual(['/shop/jwks.json'])
  })
})

describe('the size of a document', () => {
  const sized = (length: number, chunked: boolean): RequestListener => {
    return (_, response) => {
      if (!chunked) response.setHeader('content-length', length)
      response.end(Buffer.alloc(length, ' '))
    }
  }

  test.each([false, true])('may be 64 KiB (chunked: %s)', async (chunked) => {
    answer = sized(limit, chunked)
    expect((await get()).body).toHaveLength(limit)
  })

  test.each([false, true])('must not exceed 64 KiB by one byte (chunked: %s)', async (chunked) => {
    answer = sized(limit + 1, chunked)
    await expectRefused(get())
  })

  test('must not exceed the limit of the host', async () => {
    answer = sized(limit + 1, false)
    const responseBytesMax = limit + 1
    expect((await get('/', { ...local, responseBytesMax })).body).toHaveLength(limit + 1)
    await expectRefused(get('/', { ...local, responseBytesMax: limit }))
  })

  test('is told apart from a URL that was never requested', async () => {
    answer = sized(limit + 1, false)
    expect(await rejection(get())).toMatchObject({ isSent: true })
    expect(await rejection(get('/', {}))).toMatchObject({ isSent: false })
  })

  test('is limited for an endless body, which is aborted', async () => {
    let closed: Promise<unknown> | undefined
    answer = (request, response) => {
      closed = once(request.socket, 'close')
      const pour = () => {
        if (!response.destroyed) response.write(Buffer.alloc(16 * 1024), () => setImmediate(pour))
      }
      pour()
    }
    await expectRefused(get())
    await closed
  })
})

describe('a process that is busy while it connects', () => {
  test('does not give up an address that accepts the connection meanwhile', async () => {
    server.close()
    await once(server, 'close')
    server.listen(port, '127.0.0.1') // and not on ::1, the next address
    await once(server, 'listening')
    const fetched = get('/', { ...local, timeoutMs: 59_999 }) // odd: half of it is no integer
    setImmediate(() => {
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 400)
    })
    expect(await fetched).toMatchObject({ status: 200 })
  })
})

describe('a server that does not respond', () => {
  test('has 2 s, starting before the DNS lookup', async () => {
    const { timeout } = heldTimeout()
    const resolve = namesLeadTo('10.0.0.1')
    await expectRefused(guardedFetch({ resolve })(new URL('https://shop.example/')))
    expect(timeout).toHaveBeenCalledExactlyOnceWith(expect.any(Function), 2_000)
    expect(timeout.mock.invocationCallOrder[0]).toBeLessThan(
      resolve.mock.invocationCallOrder[0] ?? 0,
    )
  })

  test('fails temporarily when it never responds before the timeout', async () => {
    const { expire } = heldTimeout()
    answer = expire
    await expectNoResponse(get())
  })

  test('fails temporarily when the timeout ends during the body', async () => {
    const { expire } = heldTimeout()
    answer = (_, response) => {
      response.writeHead(200, { 'content-type': 'application/json', 'content-length': 100 })
      response.write('{"keys":', () => setImmediate(expire))
    }
    await expectNoResponse(get())
  })

  test('fails temporarily when the timeout ends during the DNS lookup', async () => {
    const { expire } = heldTimeout()
    const resolve = (_: string, signal: AbortSignal) => {
      setImmediate(expire)
      return new Promise<never>((_, reject) => {
        signal.addEventListener('abort', () => reject(new Error('cancelled')))
      })
    }
    const failed = rejection(guardedFetch({ resolve })(new URL('https://shop.example/')))
    expect(await failed).toMatchObject({
      code: 'ERR_HOST_UNREACHABLE',
      message: 'the host cannot be reached in time',
    })
  })
})

describe('a broken connection', () => {
  test('fails temporarily before the response, for this URL and not for its whole host', async () => {
    answer = (request) => request.socket.destroy()
    await expectNoResponse(get())
  })

  test('fails temporarily during the body instead of truncating it', async () => {
    answer = (request, response) => {
      response.writeHead(200, { 'content-length': 100 })
      response.write('{"keys":[]}', () => request.socket.destroy())
    }
    await expectNoResponse(get())
  })

  test('fails temporarily when the server is not listening', async () => {
    server.close()
    await once(server, 'close')
    const error = await rejection(get())
    expect(error).toBeInstanceOf(HostUnreachableError)
    expect(error).toMatchObject({
      code: 'ERR_HOST_UNREACHABLE',
      message: 'the host cannot be reached (ECONNREFUSED)',
    })
  })

  test('fails temporarily when the server does not use HTTP', async () => {
    answer = (request) => request.socket.end('220 mail.example ESMTP\r\n')
    await expectNoResponse(get())
  })

  test.each([101, 199])('fails when the server sends only a %i response', async (status) => {
    const { expire } = heldTimeout()
    answer = (request) =>
      request.socket.end(`HTTP/1.1 ${status} Bye\r\nconnection: upgrade\r\nupgrade: x\r\n\r\n`)
    const failed = get()
    const settled = rejection(failed)
    await once(server, 'request')
    await once(received[0]?.socket ?? server, 'close')
    expire()
    await expectSettled(settled)
    await expectNoResponse(failed)
  })

  test('fails temporarily when the header is endless', async () => {
    answer = (request) =>
      request.socket.write(`HTTP/1.1 200 OK\r\n${'x-padding: 1234567890\r\n'.repeat(2_000)}`)
    await expectNoResponse(get())
  })
})

describe('plain http', () => {
  test.each([
    'http://shop.example/jwks.json',
    'http://localhost/jwks.json',
    'http://127.0.0.1/jwks.json',
    'ftp://shop.example/jwks.json',
    'file:///etc/passwd',
    'data:application/json,{}',
  ])('is refused before any DNS lookup: %s', async (url) => {
    const resolve = namesLeadTo('8.8.8.8')
    await expectRefused(guardedFetch({ resolve })(new URL(url)))
    expect(resolve).not.toHaveBeenCalled()
  })

  test('to a server on this machine is refused unless loopback is allowed', async () => {
    await expectRefused(get('/shop/jwks.json', {}))
    await expectRefused(get('/shop/jwks.json', { allowLoopback: false, ports: [port] }))
    expect(received).toEqual([])
    await get('/shop/jwks.json', { allowLoopback: true })
    expect(received).toHaveLength(1)
  })

  test.each([
    'http://shop.example/',
    'http://127.0.0.2/',
    'http://localhost.example/',
    'http://0.0.0.0/',
    'http://[::ffff:127.0.0.1]/',
  ])('to %s is refused even if loopback is allowed', async (url) => {
    const resolve = namesLeadTo('127.0.0.1')
    await expectRefused(guardedFetch({ ...local, resolve })(new URL(url)))
    expect(resolve).not.toHaveBeenCalled()
  })
})

describe('a private host', () => {
  const privateHosts = ['shop.internal']
  const resolve = () => namesLeadTo('172.18.0.4')

  test.each(['https://shop.internal/', 'https://shop.internal:8443/', 'https://SHOP.internal/'])(
    'that the host lists is connected to: %s',
    async (url) => {
      const signal = AbortSignal.timeout(1)
      const reached = guardedFetch({ privateHosts, resolve: resolve() })(new URL(url), { signal })
      await expect(reached).rejects.not.toMatchObject({ code: 'ERR_FETCH_REFUSED' })
    },
  )

  test.each([
    'http://shop.internal/',
    'https://other.internal/',
    'https://a.shop.internal/',
    'https://shop.internal.example/',
    'https://172.18.0.4/',
    'https://localhost/',
  ])('is refused over http, and every other one is too: %s', async (url) => {
    await expectRefused(guardedFetch({ privateHosts, resolve: resolve() })(new URL(url)))
  })

  test.each([['shop:443'], ['https://shop'], ['Shop'], ['shop/'], [''], [7], 'shop', null])(
    'must be listed by its hostname, not %j',
    (hosts) => {
      const privateHosts = (Array.isArray(hosts) ? hosts : [hosts]) as string[]
      const options = hosts === 'shop' ? { privateHosts: hosts as never } : { privateHosts }
      expect(() => guardedFetch(options)).toThrow(invalidInput('privateHosts'))
    },
  )
})

describe('a port', () => {
  test.each([
    'https://shop.example:80/',
    'https://shop.example:444/',
    'https://shop.example:8443/',
    'https://shop.example:22/',
    'https://shop.example:0/',
  ])('other than 443 is refused: %s', async (url) => {
    const resolve = namesLeadTo('8.8.8.8')
    await expectRefused(guardedFetch({ resolve })(new URL(url)))
    await expectRefused(guardedFetch({ ...local, resolve })(new URL(url)))
    expect(resolve).not.toHaveBeenCalled()
  })

  test('that the host allows is used, and 443 is refused if the host omits it', async () => {
    const resolve = namesLeadTo('10.0.0.1')
    const fetch = guardedFetch({ ports: [8443], resolve })
    await expectRefused(fetch(new URL('https://shop.example/')))
    expect(resolve).not.toHaveBeenCalled()
    await expectRefused(fetch(new URL('https://shop.example:8443/')))
    expect(resolve).toHaveBeenCalledOnce()
  })
})

/** Ways to write addresses that are not public. */
const attacks: readonly (readonly [what: string, host: string])[] = [
  ['loopback', '127.0.0.1'],
  ['loopback, short', '127.1'],
  ['loopback, decimal', '2130706433'],
  ['loopback, octal', '0177.0.0.1'],
  ['loopback with one octal part', '017700000001'],
  ['loopback, hexadecimal', '0x7f000001'],
  ['loopback, hexadecimal octets', '0x7f.0x0.0x0.0x1'],
  ['loopback with a trailing dot', '127.0.0.1.'],
  ['loopback, escaped', '%31%32%37.0.0.1'],
  ['loopback in full-width digits', '１２７.０.０.１'],
  ['loopback with ideographic full stops', '127。0。0。1'],
  ['this host', '0.0.0.0'],
  ['private', '10.0.0.1'],
  ['private', '172.16.0.1'],
  ['private', '172.31.255.255'],
  ['private, decimal', '3232235777'],
  ['CGNAT', '100.64.0.1'],
  ['link-local', '169.254.1.1'],
  ['metadata', '169.254.169.254'],
  ['metadata, decimal', '2852039166'],
  ['metadata, hexadecimal', '0xa9fea9fe'],
  ['another metadata service', '100.100.100.200'],
  ['multicast', '224.0.0.1'],
  ['loopback', '[::1]'],
  ['loopback in full', '[0:0:0:0:0:0:0:1]'],
  ['mapped loopback', '[::ffff:127.0.0.1]'],
  ['mapped private', '[::ffff:10.0.0.1]'],
  ['mapped metadata', '[::ffff:a9fe:a9fe]'],
  ['NAT64 of private', '[64:ff9b::10.0.0.1]'],
  ['6to4 of private', '[2002:0a00:0001::]'],
  ['unique local', '[fd00::1]'],
  ['metadata over IPv6', '[fd00:ec2::254]'],
  ['local NAT64', '[64:ff9b:1::8.8.8.8]'],
]

/** Those that are IPv4 addresses, as NAT64 translates them (RFC 6052). */
const translated = attacks
  .map(([what, host]) => [what, new URL(`https://${host}/`).hostname] as const)
  .filter(([, host]) => !host.startsWith('['))
  .map(([what, host]) => [`NAT64 of ${what}`, `64:ff9b::${host}`] as const)

describe('an address in the URL', () => {
  test.each([...attacks, ...translated.map(([what, address]) => [what, `[${address}]`] as const)])(
    'that is %s is refused: %s',
    async (_, host) => {
      const resolve = namesLeadTo('8.8.8.8')
      await expectRefused(guardedFetch({ resolve })(new URL(`https://${host}/jwks.json`)))
      expect(resolve).not.toHaveBeenCalled()
    },
  )

  test('that is private is refused even if loopback is allowed', async () => {
    await expectRefused(guardedFetch(local)(new URL('https://10.0.0.1/')))
    await expectRefused(guardedFetch(local)(new URL('https://[fd00::1]/')))
  })
})

describe('a hostname', () => {
  test('that resolves to this machine is refused: localhost', async () => {
    await expectRefused(guardedFetch({})(new URL('https://localhost/')))
    await expectRefused(guardedFetch({ ports: [port] })(new URL(`https://localhost:${port}/`)))
    expect(received).toEqual([])
  })

  test.each([
    [['127.0.0.1']],
    [['::1']],
    [['10.1.2.3']],
    [['169.254.169.254']],
    [['::ffff:127.0.0.1']],
    [['fe80::1%eth0']],
    [['8.8.8.8', '10.0.0.1']],
    [['10.0.0.1', '8.8.8.8']],
    [['2606:4700:4700::1111', '1.1.1.1', '::1']],
    ...translated.map(([, address]): [string[]] => [[address]]),
    [['8.8.8.8', '64:ff9b::10.0.0.1']],
  ])('that resolves to %j is refused', async (addresses) => {
    const resolve = namesLeadTo(...addresses)
    await expectRefused(guardedFetch({ resolve })(new URL('https://shop.example/')))
  })

  test.each(['127.0.0.1.nip.io', 'metadata.google.internal', 'localhost.', 'localhost.example'])(
    'is checked by the addresses it resolves to: %s',
    async (host) => {
      const resolve = namesLeadTo('127.0.0.1')
      await expectRefused(guardedFetch({ resolve })(new URL(`https://${host}/`)))
      expect(resolve).toHaveBeenCalledOnce()
    },
  )

  test.each(['localhost', 'shop.localhost'])(
    'of this machine is not looked up: %s',
    async (host) => {
      const resolve = namesLeadTo('8.8.8.8')
      await expectRefused(guardedFetch({ resolve })(new URL(`https://${host}/`)))
      await get('/', { ...local, resolve })
      expect(resolve).not.toHaveBeenCalled()
    },
  )

  test('is not looked up by the threads of the process', async () => {
    const lookup = vi.spyOn(dns, 'lookup')
    await get()
    await expectFailedForNow(guardedFetch()(new URL('https://shop.invalid/')))
    expect(lookup).not.toHaveBeenCalled()
  })

  test('that does not resolve fails temporarily', async () => {
    const failed = rejection(
      guardedFetch({ resolve: namesLeadTo() })(new URL('https://shop.example/')),
    )
    expect(await failed).toMatchObject({ code: 'ERR_HOST_UNREACHABLE' })
  })

  test('that cannot be looked up fails temporarily', async () => {
    const resolve = async () => {
      throw Object.assign(new Error('queryA ESERVFAIL'), { code: 'ESERVFAIL' })
    }
    const failed = rejection(guardedFetch({ resolve })(new URL('https://shop.example/')))
    expect(await failed).toMatchObject({
      code: 'ERR_HOST_UNREACHABLE',
      message: 'the host cannot be reached (ESERVFAIL)',
    })
  })

  test.each([[['93.184.215.14', '64:ff9b::5db8:d70e']], [['64:ff9b::5db8:d70e']]])(
    'that DNS64 translates for a network with IPv6 alone is reached: %j',
    async (addresses) => {
      const found = addresses.map((address) => ({ address, family: address.includes(':') ? 6 : 4 }))
      expect(await connectionTargets(namesLeadTo(...addresses), { all: true })).toEqual([
        null,
        found,
      ])
    },
  )

  test('is resolved once, and only the checked addresses are used', async () => {
    const found = [
      { address: '8.8.8.8', family: 4 },
      { address: '2606:4700:4700::1111', family: 6 },
    ]
    const resolve = namesLeadTo(...found.map(({ address }) => address))
    expect(await connectionTargets(resolve, { all: true })).toEqual([null, found])
    expect(await connectionTargets(resolve, {})).toEqual([null, '8.8.8.8', 4])
    expect(resolve).toHaveBeenCalledTimes(2)
  })
})

/** Returns the addresses for a request to a public name, without connecting. */
async function connectionTargets(
  resolve: ReturnType<typeof namesLeadTo>,
  options: object,
): Promise<unknown[]> {
  type Lookup = (host: string, options: object, callback: (...args: unknown[]) => void) => void
  return new Promise((settle, reject) => {
    vi.spyOn(https, 'request').mockImplementation(((_url: URL, { lookup }: { lookup: Lookup }) => {
      lookup('shop.example', options, (...args) => settle(args))
      return { on: () => undefined, end: () => undefined }
    }) as never)
    guardedFetch({ resolve })(new URL('https://shop.example/')).catch(reject)
  })
}

describe('a request from the host', () => {
  const send = (request: Parameters<GuardedFetch>[1], options: GuardedFetchOptions = local) =>
    guardedFetch(options)(new URL(`http://localhost:${port}/auth`), request)

  test('carries its method, headers and body', async () => {
    const bodies: string[] = []
    answer = async (request, response) => {
      bodies.push(Buffer.concat(await request.toArray()).toString())
      response.writeHead(201).end('{}')
    }
    const headers = { accept: 'application/json', authorization: 'GNAP token' }
    const body = new TextEncoder().encode('{"é":1}')
    expect((await send({ method: 'POST', headers, body })).status).toBe(201)
    expect(bodies).toEqual(['{"é":1}'])
    expect(received[0]).toMatchObject({ method: 'POST', headers })
    expect(received[0]?.headers['content-length']).toBe(`${body.length}`)
  })

  test('follows the rules for addresses and for the size of the response', async () => {
    answer = (_, response) => response.end(Buffer.alloc(limit + 1))
    await expectRefused(send({ method: 'POST' }))
    expect(received).toHaveLength(1)
    await expectRefused(send({ method: 'POST' }, {}))
    expect(received).toHaveLength(1)
  })

  test('is aborted by its own signal', async () => {
    const controller = new AbortController()
    answer = () => controller.abort()
    await expectFailedForNow(send({ signal: controller.signal }, { ...local, timeoutMs: 60_000 }))
    expect(received).toHaveLength(1)
  })

  test('rejects with the reason of its own signal, in any phase', async () => {
    const reason = new Error('the host no longer needs it')
    const signal = AbortSignal.abort(reason)
    await expect(send({ signal })).rejects.toBe(reason)
    const url = new URL('https://shop.example/')
    await expect(guardedFetch()(url, { signal })).rejects.toBe(reason)
  })

  test('ends after the timeout that the host configured', async () => {
    answer = () => undefined
    await expectFailedForNow(send({}, { ...local, timeoutMs: 50 }))
  })

  test.each([0, -1, 1.5, 60_001, Number.NaN, '5'])('rejects a timeout of %j', (timeoutMs) => {
    expect(() => guardedFetch({ timeoutMs: timeoutMs as number })).toThrow(
      invalidInput('timeoutMs'),
    )
  })
})

describe('a resolver of the host', () => {
  test('must be a function', () => {
    expect(() => guardedFetch({ resolve: 'dns' as never })).toThrow(invalidInput('resolve'))
  })

  test('is refused on Cloudflare Workers, which have the modules of Node, but no DNS', () => {
    vi.stubGlobal('navigator', { userAgent: 'Cloudflare-Workers' })
    expect(() => guardedFetch()).toThrow(invalidInput('fetch'))
    vi.unstubAllGlobals()
  })
})

describe('a runtime without Node', () => {
  test('throws when the guarded fetch is created, because it cannot guard connections', () => {
    vi.spyOn(process, 'getBuiltinModule').mockReturnValue(undefined as never)
    expect(() => guardedFetch({})).toThrow(invalidInput('fetch'))
  })
})
