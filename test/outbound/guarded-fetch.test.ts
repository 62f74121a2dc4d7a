import dns from 'node:dns'
import { once } from 'node:events'
import { createServer, type IncomingMessage, type RequestListener, type Server } from 'node:http'
import https from 'node:https'
import type { AddressInfo } from 'node:net'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import {
  type GuardedFetchOptions,
  type GuardedRequest,
  guardedFetch,
  isFetchRefusal,
} from '../../src/outbound/guarded-fetch.js'

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

/** What a promise was rejected with; fails if it was not. */
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

/** Stands in for the resolver, so that a name leads wherever the test wants, and nothing leaves the machine. */
function namesLeadTo(...addresses: readonly string[]) {
  return vi.spyOn(dns, 'lookup').mockImplementation(((
    _name: string,
    _options: unknown,
    callback: (error: null, found: { address: string; family: number }[]) => void,
  ) => {
    const found = addresses.map((address) => ({ address, family: address.includes(':') ? 6 : 4 }))
    queueMicrotask(() => callback(null, found))
  }) as never)
}

/** Fails if a promise has not settled when everything else has had its turn. */
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

/** Lets the test decide when the time is up, and sees how long it would have been. */
function heldTimeout() {
  const controller = new AbortController()
  const timeout = vi.spyOn(AbortSignal, 'timeout').mockReturnValue(controller.signal)
  return { timeout, expire: () => controller.abort(new DOMException('', 'TimeoutError')) }
}

describe('a document that is fetched', () => {
  test('comes back with its status, content type and exact bytes', async () => {
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

  test('is put together from all of its chunks', async () => {
    answer = (_, response) => {
      response.write('{"keys"')
      setImmediate(() => response.end(':[]}'))
    }
    expect(Buffer.from((await get()).body).toString()).toBe('{"keys":[]}')
  })

  test('is asked for by GET, at its very path, without a body, cookies or credentials', async () => {
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
    'is handed over with status %i, for the caller to judge',
    async (status) => {
      answer = (_, response) => response.writeHead(status).end()
      expect(await get()).toEqual({ status, contentType: '', body: new Uint8Array() })
    },
  )

  test('leaves no connection open behind it', async () => {
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

  test.each([false, true])('may not be one byte more (chunked: %s)', async (chunked) => {
    answer = sized(limit + 1, chunked)
    await expectRefused(get())
  })

  test('is not waited for: a body without end is cut off', async () => {
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

describe('a server that does not answer', () => {
  test('is given 2 s, from before the name is looked up', async () => {
    const { timeout } = heldTimeout()
    const lookup = vi.spyOn(dns, 'lookup')
    await get()
    expect(timeout).toHaveBeenCalledExactlyOnceWith(2_000)
    expect(timeout.mock.invocationCallOrder[0]).toBeLessThan(
      lookup.mock.invocationCallOrder[0] ?? 0,
    )
  })

  test('at all, when the time is up, has failed for now', async () => {
    const { expire } = heldTimeout()
    answer = expire
    await expectFailedForNow(get())
  })

  test('to the end, when the time is up in the middle of the body, has failed for now', async () => {
    const { expire } = heldTimeout()
    answer = (_, response) => {
      response.writeHead(200, { 'content-type': 'application/json', 'content-length': 100 })
      response.write('{"keys":', () => setImmediate(expire))
    }
    await expectFailedForNow(get())
  })

  test('since its name is still being looked up, when the time is up, has failed for now', async () => {
    const { expire } = heldTimeout()
    vi.spyOn(dns, 'lookup').mockImplementation((() => setImmediate(expire)) as never)
    await expectFailedForNow(get())
    expect(received).toEqual([])
  })
})

describe('a connection that breaks', () => {
  test('before there is an answer has failed for now', async () => {
    answer = (request) => request.socket.destroy()
    await expectFailedForNow(get())
  })

  test('in the middle of the body has failed for now, not been cut short', async () => {
    answer = (request, response) => {
      response.writeHead(200, { 'content-length': 100 })
      response.write('{"keys":[]}', () => request.socket.destroy())
    }
    await expectFailedForNow(get())
  })

  test('because nothing listens there has failed for now', async () => {
    server.close()
    await once(server, 'close')
    await expectFailedForNow(get())
  })

  test('since the server talks something else than HTTP has failed for now', async () => {
    answer = (request) => request.socket.end('220 mail.example ESMTP\r\n')
    await expectFailedForNow(get())
  })

  test.each([101, 199])('since the server answers %i and no more has failed', async (status) => {
    const { expire } = heldTimeout()
    answer = (request) =>
      request.socket.end(`HTTP/1.1 ${status} Bye\r\nconnection: upgrade\r\nupgrade: x\r\n\r\n`)
    const failed = rejection(get())
    await once(server, 'request')
    await once(received[0]?.socket ?? server, 'close')
    expire()
    await expectSettled(failed)
    await failed
  })

  test('since the header has no end has failed for now', async () => {
    answer = (request) =>
      request.socket.write(`HTTP/1.1 200 OK\r\n${'x-padding: 1234567890\r\n'.repeat(2_000)}`)
    await expectFailedForNow(get())
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
  ])('is refused without asking anyone: %s', async (url) => {
    const lookup = namesLeadTo('8.8.8.8')
    await expectRefused(guardedFetch({})(new URL(url)))
    expect(lookup).not.toHaveBeenCalled()
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
  ])('to %s is refused even where loopback is allowed', async (url) => {
    const lookup = namesLeadTo('127.0.0.1')
    await expectRefused(guardedFetch(local)(new URL(url)))
    expect(lookup).not.toHaveBeenCalled()
  })
})

describe('a port', () => {
  test.each([
    'https://shop.example:80/',
    'https://shop.example:444/',
    'https://shop.example:8443/',
    'https://shop.example:22/',
    'https://shop.example:0/',
  ])('other than 443 is refused: %s', async (url) => {
    const lookup = namesLeadTo('8.8.8.8')
    await expectRefused(guardedFetch({})(new URL(url)))
    await expectRefused(guardedFetch(local)(new URL(url)))
    expect(lookup).not.toHaveBeenCalled()
  })

  test('that the host allows is connected to, and 443 is not if the host leaves it out', async () => {
    const lookup = namesLeadTo('10.0.0.1')
    const fetch = guardedFetch({ ports: [8443] })
    await expectRefused(fetch(new URL('https://shop.example/')))
    expect(lookup).not.toHaveBeenCalled()
    await expectRefused(fetch(new URL('https://shop.example:8443/')))
    expect(lookup).toHaveBeenCalledOnce()
  })
})

describe('an address in the URL', () => {
  test.each([
    ['loopback', '127.0.0.1'],
    ['loopback, far end', '127.255.255.254'],
    ['loopback, short', '127.1'],
    ['loopback, decimal', '2130706433'],
    ['loopback, octal', '0177.0.0.1'],
    ['loopback, octal in one', '017700000001'],
    ['loopback, hexadecimal', '0x7f000001'],
    ['loopback, hexadecimal octets', '0x7f.0x0.0x0.0x1'],
    ['loopback, with a trailing dot', '127.0.0.1.'],
    ['loopback, escaped', '%31%32%37.0.0.1'],
    ['loopback, in fullwidth digits', '１２７.０.０.１'],
    ['loopback, with ideographic dots', '127。0。0。1'],
    ['this host', '0.0.0.0'],
    ['this host, short', '0'],
    ['private', '10.0.0.1'],
    ['private', '172.16.0.1'],
    ['private', '172.31.255.255'],
    ['private', '192.168.1.1'],
    ['private, decimal', '3232235777'],
    ['CGNAT', '100.64.0.1'],
    ['link-local', '169.254.1.1'],
    ['metadata', '169.254.169.254'],
    ['metadata, decimal', '2852039166'],
    ['metadata, hexadecimal', '0xa9fea9fe'],
    ['another metadata service', '100.100.100.200'],
    ['multicast', '224.0.0.1'],
    ['broadcast', '255.255.255.255'],
    ['loopback', '[::1]'],
    ['loopback in full', '[0:0:0:0:0:0:0:1]'],
    ['unspecified', '[::]'],
    ['mapped loopback', '[::ffff:127.0.0.1]'],
    ['mapped loopback in hexadecimal', '[::ffff:7f00:1]'],
    ['mapped private', '[::ffff:10.0.0.1]'],
    ['mapped metadata', '[::ffff:a9fe:a9fe]'],
    ['compatible loopback', '[::127.0.0.1]'],
    ['NAT64 of private', '[64:ff9b::10.0.0.1]'],
    ['6to4 of private', '[2002:0a00:0001::]'],
    ['unique local', '[fd00::1]'],
    ['metadata over IPv6', '[fd00:ec2::254]'],
    ['link-local', '[fe80::1]'],
  ])('that is %s is refused: %s', async (_, host) => {
    const lookup = namesLeadTo('8.8.8.8')
    await expectRefused(guardedFetch({})(new URL(`https://${host}/jwks.json`)))
    expect(lookup).not.toHaveBeenCalled()
  })

  test('that is private is refused where loopback is allowed as well', async () => {
    await expectRefused(guardedFetch(local)(new URL('https://10.0.0.1/')))
    await expectRefused(guardedFetch(local)(new URL('https://[fd00::1]/')))
  })
})

describe('a name', () => {
  test('that leads to this machine is refused: localhost itself', async () => {
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
  ])('that leads to %j is refused', async (addresses) => {
    namesLeadTo(...addresses)
    await expectRefused(guardedFetch({})(new URL('https://shop.example/')))
  })

  test.each(['localhost', '127.0.0.1.nip.io', 'metadata.google.internal', 'localhost.'])(
    'is judged by where it leads, not by how it looks: %s',
    async (host) => {
      const lookup = namesLeadTo('127.0.0.1')
      await expectRefused(guardedFetch({})(new URL(`https://${host}/`)))
      expect(lookup).toHaveBeenCalledOnce()
    },
  )

  test('of this machine is refused when it leads elsewhere, though loopback is allowed', async () => {
    namesLeadTo('127.0.0.1', '10.0.0.1')
    await expectRefused(get())
    namesLeadTo('8.8.8.8')
    await expectRefused(get())
    expect(received).toEqual([])
  })

  test('that leads nowhere has failed for now', async () => {
    namesLeadTo()
    await expectFailedForNow(guardedFetch({})(new URL('https://shop.example/')))
  })

  test('that cannot be looked up has failed for now', async () => {
    vi.spyOn(dns, 'lookup').mockImplementation(((
      _name: string,
      _options: unknown,
      callback: (error: Error) => void,
    ) => queueMicrotask(() => callback(new Error('EAI_AGAIN')))) as never)
    await expectFailedForNow(guardedFetch({})(new URL('https://shop.example/')))
  })

  test('is looked up once, and what was checked is what is connected to', async () => {
    let connectedTo: string | undefined
    answer = (request, response) => {
      connectedTo = request.socket.localAddress
      response.end()
    }
    const { address } = await dns.promises.lookup('localhost')
    const lookup = namesLeadTo(address)
    namesAfterwardsLeadTo(lookup, '10.0.0.1')
    await get()
    expect(lookup).toHaveBeenCalledOnce()
    expect(connectedTo).toBe(address)
  })

  test('with public addresses only is connected to at those', async () => {
    const found = [
      { address: '8.8.8.8', family: 4 },
      { address: '2606:4700:4700::1111', family: 6 },
    ]
    namesLeadTo(...found.map(({ address }) => address))
    expect(await connectionTargets({ all: true })).toEqual([null, found])
    expect(await connectionTargets({})).toEqual([null, '8.8.8.8', 4])
  })
})

/** A name that changes its mind after the first look. */
function namesAfterwardsLeadTo(lookup: ReturnType<typeof namesLeadTo>, address: string): void {
  const first = lookup.getMockImplementation()
  let asked = 0
  lookup.mockImplementation(((...args: Parameters<typeof dns.lookup>) => {
    asked += 1
    if (asked === 1) return first?.(...args)
    const callback = args.at(-1) as unknown as (error: null, found: object[]) => void
    return callback(null, [{ address, family: 4 }])
  }) as never)
}

/** What the request to a public name would be connected to, without connecting to it. */
async function connectionTargets(options: object): Promise<unknown[]> {
  type Lookup = (host: string, options: object, callback: (...args: unknown[]) => void) => void
  let lookup: Lookup | undefined
  vi.spyOn(https, 'request').mockImplementation(((_url: URL, given: { lookup: Lookup }) => {
    lookup = given.lookup
    return { on: () => undefined, end: () => undefined }
  }) as never)
  void guardedFetch({})(new URL('https://shop.example/'))
  return new Promise((resolve, reject) => {
    if (lookup === undefined) reject(new Error('no look-up was given'))
    lookup?.('shop.example', options, (...args) => resolve(args))
  })
}

describe('a request of the host', () => {
  const send = (request: GuardedRequest, options: GuardedFetchOptions = local) =>
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

  test('keeps to the rules for addresses and for the size of the answer', async () => {
    answer = (_, response) => response.end(Buffer.alloc(limit + 1))
    await expectRefused(send({ method: 'POST' }))
    expect(received).toHaveLength(1)
    await expectRefused(send({ method: 'POST' }, {}))
    expect(received).toHaveLength(1)
  })

  test('ends when its own signal is aborted', async () => {
    const controller = new AbortController()
    answer = () => controller.abort()
    await expectFailedForNow(send({ signal: controller.signal }, { ...local, timeoutMs: 60_000 }))
    expect(received).toHaveLength(1)
  })

  test('ends after the timeout that the host has set', async () => {
    answer = () => undefined
    await expectFailedForNow(send({}, { ...local, timeoutMs: 50 }))
  })

  test.each([0, -1, 1.5, 60_001, Number.NaN, '5'])('has no timeout of %j', (timeoutMs) => {
    expect(() => guardedFetch({ timeoutMs: timeoutMs as number })).toThrow(
      expect.objectContaining({ code: 'ERR_INVALID_OPTION', option: 'timeoutMs' }),
    )
  })
})

describe('a runtime without Node', () => {
  test('cannot guard connections, and says so when the fetch is made', () => {
    vi.spyOn(process, 'getBuiltinModule').mockReturnValue(undefined as never)
    expect(() => guardedFetch({})).toThrow(
      expect.objectContaining({ code: 'ERR_INVALID_OPTION', option: 'fetch' }),
    )
  })
})
