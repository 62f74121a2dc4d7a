import type { Server } from 'node:http'
import { Hono } from 'hono'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { toHono } from '../../adapters/hono.js'
import type { HttpRequest, HttpResponse } from '../../src/entry-adapter.js'
import { bodyBytesMax } from '../../src/entry-adapter.js'
import { type Handler, toFetch } from '../../src/index.js'
import { type Host, hosts, listening, stopped } from '../support/hosts.js'
import {
  chunkedBytes,
  exchange,
  headerValues,
  type RawResponse,
  requestBytes,
} from '../support/raw-http.js'
import { isLong } from '../support/runs.js'
import { headerOf, withHeader } from '../support/sign.js'
import {
  createWorld,
  incomingAccess,
  origin,
  outgoingAccess,
  withFinish,
} from '../support/world.js'

type Line = readonly [name: string, value: string]

/** One request as bytes. The target follows the path at which the handler is mounted. */
interface Row {
  readonly name: string
  readonly method?: string
  readonly target?: string
  readonly headers?: readonly Line[]
  readonly body?: Uint8Array
  /** Sends the body in chunks of this size instead of with its length. */
  readonly chunkSize?: number
  /** Why a Fetch API request cannot carry this. */
  readonly notInFetch?: string
  /** The status with which Fastify itself refuses such a request, before it calls the plugin. */
  readonly fastifyRefuses?: 400 | 404
}

const resolved = 'the URL of a Fetch API request has its dot segments resolved'
const noBody = 'a Fetch API request with this method has no body'

const text = (content: string) => new TextEncoder().encode(content)
const json: Line = ['Content-Type', 'application/json']
const filled = (length: number) => new Uint8Array(length).fill(0x20)
const everyByte = Uint8Array.from({ length: 256 }, (_, i) => i)

const at = (name: string, target: string, more: Partial<Row> = {}): Row => ({
  name,
  target,
  ...more,
})
const by = (method: string, name = method, more: Partial<Row> = {}): Row => {
  return { name, method, target: '/x', ...more }
}
const of = (name: string, body: Uint8Array, chunkSize?: number, ...headers: Line[]): Row => ({
  name,
  headers: headers.length > 0 ? headers : [json],
  body,
  ...(chunkSize !== undefined && { chunkSize }),
})
const type = (value: string): Line => ['Content-Type', value]
const lines = (name: string, ...headers: Line[]): Row => ({ name, headers })

const rows: readonly Row[] = [
  at('no path beyond the mount', ''),
  at('a slash at the mount', '/'),
  at('a path', '/continue/abc.def'),
  at('a path that ends with a slash', '/continue/abc/'),
  at('a query at the mount', '?a=1&a=2'),
  at('an empty query', '/x?'),
  at('a query with slashes, dots, escapes and a second mark', '/x?a=/../b//c?%2e%2F'),
  at('escapes in either case', '/a%20b%c3%A9%7e~'),
  at('an escaped slash', '/a%2Fb'),
  at('an escaped question mark', '/a%3Fb'),
  at('characters that need no escape', "/-._~!$&'()*+,;=:@"),
  at('characters that should be escaped', '/a|b^c"d`{e}', {
    notInFetch: 'the URL of a Fetch API request has such characters escaped',
  }),
  at('double slashes', '/a//b///'),
  at('a double slash at the mount', '//x'),
  at('an upper-case path', '/CONTINUE/ABC'),
  at('a long path', `/${'segment/'.repeat(500)}`),
  at('a long segment', `/${'s'.repeat(4_000)}`),
  at('a dot segment', '/a/./b', { notInFetch: resolved }),
  at('a double dot segment', '/a/../b', { notInFetch: resolved }),
  at('an escaped dot', '/%2e/b', { notInFetch: resolved }),
  at('an escaped double dot', '/a/%2E%2e/b', { notInFetch: resolved }),
  at('an escaped dot within a segment', '/a%2eb'),
  at('a path that looks like a route pattern', '/:id/*'),
  at('an invalid escape', '/a%zz', { fastifyRefuses: 400 }),
  at('an incomplete escape', '/a%', { fastifyRefuses: 400 }),
  at('an escape of half a character', '/a%E0%A4', { fastifyRefuses: 400 }),

  by('GET'),
  by('GET', 'GET with a JSON content type', { headers: [json] }),
  by('PUT', 'PUT', { headers: [json], body: text('{}') }),
  by('PATCH', 'PATCH', { headers: [json], body: text('{}') }),
  by('OPTIONS'),
  by('OPTIONS', 'OPTIONS with a JSON content type', { headers: [json] }),
  by('TRACE', 'TRACE', { notInFetch: 'the Fetch API does not send this method' }),
  by('PROPFIND', 'PROPFIND', { fastifyRefuses: 404 }),
  by('PURGE', 'PURGE', { fastifyRefuses: 404 }),
  by('DELETE'),
  by('DELETE', 'DELETE with a body', { headers: [json], body: text('{}') }),
  by('DELETE', 'DELETE of empty JSON', { headers: [json, ['Content-Length', '0']] }),
  by('DELETE', 'DELETE of JSON without a length', { headers: [json] }),
  { ...of('GET with a body', text('{"a":1}')), method: 'GET', notInFetch: noBody },
  { ...of('GET with a body in chunks', text('{"a":1}'), 3), method: 'GET', notInFetch: noBody },

  at('POST without a body', '/x'),
  lines('POST of empty JSON', json, ['Content-Length', '0']),
  lines('POST of JSON without a length', json),
  of('POST of JSON in zero chunks', filled(0), 1),
  of('a small body', text('{}')),
  of('a body with CRLF and white space', text(' {\r\n\t"a" : 1\r\n}\r\n')),
  of('a body beyond ASCII', text('{"a":"é\u2028👍🏽"}')),
  of('a body with a byte order mark', text('\ufeff{"a":1}')),
  of('a body of only a byte order mark', text('\ufeff')),
  of('a body that is not UTF-8', Uint8Array.of(0x7b, 0xff, 0xc0, 0x80)),
  of('a body of every byte', everyByte),
  of('a body that is not JSON', text('{"a":')),
  of('a body with a member named __proto__', text('{"__proto__":{}}')),
  of(
    'a body in another charset',
    Uint8Array.of(0x22, 0xe9, 0x22),
    undefined,
    type('application/json; charset=latin1'),
  ),
  of('a form', text('a=1&b=%20'), undefined, type('application/x-www-form-urlencoded')),
  of(
    'a multipart form',
    text('--x\r\n\r\n--x--\r\n'),
    undefined,
    type('multipart/form-data; boundary=x'),
  ),
  of('a body of type text', text('hello'), undefined, type('text/plain')),
  of('a body of bytes', everyByte, undefined, type('application/octet-stream')),
  { name: 'a body without a type', body: text('{}') },
  of('a body of an empty type', text('{}'), undefined, type('')),
  of('a body of a malformed type', text('{}'), undefined, type('json')),
  of('a body with a Content-Encoding', everyByte, undefined, json, ['Content-Encoding', 'gzip']),
  of('a body in one chunk', text('{"a":1}'), 100),
  of('a body in chunks of one byte', text('{"a":"é"}'), 1),
  of('a body of 64 KiB', filled(bodyBytesMax)),
  of('a body of 64 KiB in chunks', filled(bodyBytesMax), 1_000),
  of('a body of 64 KiB and a byte', filled(bodyBytesMax + 1)),
  of('a body of 64 KiB and a byte in chunks', filled(bodyBytesMax + 1), 1_000),
  of('a body of 1 MiB', filled(2 ** 20)),
  of('a body of 1 MiB and a byte', filled(2 ** 20 + 1)),
  of('a body of 1 MiB in chunks', filled(2 ** 20), 50_000),
  of('a body with Expect: 100-continue', text('{}'), undefined, json, ['Expect', '100-continue']),

  lines(
    'header names in mixed case, in their order',
    ['x-B', '1'],
    ['SIGNATURE', 'a=:AA==:'],
    ['sIgNaTuRe-InPuT', 'a=()'],
    ['X-a', '2'],
  ),
  lines(
    'repeated header lines',
    ['Signature', 'a=:AA==:'],
    ['Accept', 'x'],
    ['signature', 'b=:BB==:'],
    ['Cookie', 'a=1'],
    ['Cookie', 'b=2'],
  ),
  lines('a repeated Authorization', ['Authorization', 'GNAP one'], ['authorization', 'GNAP two']),
  of('a repeated Content-Type', text('{}'), undefined, json, ['content-type', 'text/plain']),
  lines('an empty header', ['X-Empty', '']),
  lines('a header with commas, quotes and tabs', ['X-Odd', 'a,\t"b, c",, d;e="f"']),
  lines('a header beyond ASCII', ['X-Latin', 'caf\u00e9 \u00ff']),
  lines(
    'headers that name another host',
    ['X-Forwarded-Host', 'evil.example'],
    ['Forwarded', 'host=evil.example'],
    ['X-Forwarded-Proto', 'http'],
    ['X-Forwarded-For', '1.2.3.4'],
  ),
  lines(
    'headers that name another path',
    ['X-Original-URL', '/admin'],
    ['X-Rewrite-URL', '/admin'],
    ['X-Forwarded-Prefix', '/x'],
  ),
  lines('headers that name another method', ['X-HTTP-Method-Override', 'DELETE']),
  lines('a header named like a property', ['__proto__', 'x'], ['constructor', 'y']),
  lines('a hundred headers', ...Array.from({ length: 100 }, (_, i): Line => [`X-${i}`, `${i}`])),
]

function refusedByFastify({ fastifyRefuses }: Row): boolean {
  return fastifyRefuses !== undefined
}

/** Adds the slash that a query needs if the handler is mounted at the root. */
function targetAt(basePath: string, target: string): string {
  const url = basePath + target
  return url.startsWith('/') ? url : `/${url}`
}

/** Returns the bytes of a row on the wire, and the request that the handler must receive. */
function wireOf(row: Row, basePath: string): { bytes: Buffer; request: HttpRequest } {
  const { method = 'POST', target = '', headers = [], body, chunkSize } = row
  const url = targetAt(basePath, target)
  const coded = body !== undefined && chunkSize !== undefined ? chunkedBytes(body, chunkSize) : body
  const length: Line[] =
    chunkSize !== undefined
      ? [['Transfer-Encoding', 'chunked']]
      : body === undefined
        ? []
        : [['Content-Length', `${body.length}`]]
  const lines: Line[] = [
    ['Host', 'Wallet.Example:443'],
    ...headers,
    ...length,
    ['Connection', 'close'],
  ]
  return {
    bytes: requestBytes(method, url, lines, coded),
    request: { method, url, headers: lines, body: body ?? new Uint8Array() },
  }
}

/** Responds with everything that it receives. */
const echo: Handler = async ({ method, url, headers, body }) => ({
  status: 200,
  headers: { 'content-type': 'application/json', 'cache-control': 'no-store' },
  body: JSON.stringify({
    method,
    url,
    headers,
    // For a body over the limit, an adapter only has to show that it is too large.
    body: body.length > bodyBytesMax ? 'too large' : Buffer.from(body).toString('hex'),
  }),
})

/** Returns the parts of a raw response that depend neither on the connection nor on the time. */
function essence({ statusLine, headers, body }: RawResponse) {
  const passing = ['date', 'connection', 'keep-alive', 'transfer-encoding']
  const lines = headers.filter(([name]) => !passing.includes(name.toLowerCase()))
  return {
    statusLine,
    headers: lines.map(([name, value]) => `${name.toLowerCase()}: ${value}`).toSorted(),
    body: body.toString(),
  }
}

const reasons: Record<number, string> = {
  200: 'OK',
  204: 'No Content',
  303: 'See Other',
  400: 'Bad Request',
  401: 'Unauthorized',
  404: 'Not Found',
  405: 'Method Not Allowed',
  413: 'Payload Too Large',
  415: 'Unsupported Media Type',
  503: 'Service Unavailable',
}

/** Returns the same parts of the response of a handler. */
function expected({ status, headers, body }: HttpResponse, method = 'POST') {
  const length = body === undefined ? [] : [`content-length: ${Buffer.byteLength(body)}`]
  const lines = Object.entries(headers).map((line) => line.join(': '))
  return {
    statusLine: `HTTP/1.1 ${status} ${reasons[status]}`,
    headers: [...lines, ...length].toSorted(),
    body: method === 'HEAD' ? '' : (body ?? ''),
  }
}

/** `npm test` uses the deepest mount of each framework, where it is most likely to lose parts of a request. */
const mounted = isLong
  ? hosts
  : hosts.filter(({ name }) => /^node|router|plugin|sub-app/.test(name))

describe.each(mounted)('$name', (host: Host) => {
  let server: Server
  let port: number
  let handle: Handler<string | Uint8Array> = echo

  beforeAll(async () => {
    server = await host.create((request) => handle(request))
    port = await listening(server)
  })
  afterAll(() => stopped(server))

  const refused = host.name.startsWith('fastify') ? rows.filter(refusedByFastify) : []

  test.each(rows.filter((row) => !refused.includes(row)))(
    'hands over bytes, path and header lines as they were sent: $name',
    async (row) => {
      handle = echo
      const { bytes, request } = wireOf(row, host.basePath)
      const response = await exchange(port, bytes)
      expect(essence(response)).toEqual(expected(await echo(request)))
    },
  )

  test.skipIf(refused.length === 0)(
    'hands over no request that Fastify itself refuses',
    async () => {
      let called = 0
      handle = async (request) => {
        called += 1
        return echo(request)
      }
      for (const row of refused) {
        const { bytes } = wireOf(row, host.basePath)
        expect((await exchange(port, bytes)).status, row.name).toBe(row.fastifyRefuses)
      }
      expect(called).toBe(0)
    },
  )

  test('hands over a target in absolute form as it was sent', async () => {
    handle = echo
    const url = `http://other.example${host.basePath}/x?y`
    const headers: Line[] = [
      ['Host', 'wallet.example'],
      ['Connection', 'close'],
    ]
    const response = await exchange(port, requestBytes('POST', url, headers))
    const request = { method: 'POST', url, headers, body: new Uint8Array() }
    expect(essence(response)).toEqual(expected(await echo(request)))
  })

  test('hands over no header value that is folded onto a second line', async () => {
    let called = 0
    handle = async (request) => {
      called += 1
      return echo(request)
    }
    const lines = 'Host: wallet.example\r\nX-Note: one\r\n two\r\nConnection: close\r\n'
    const bytes = Buffer.from(`GET ${host.basePath}/x HTTP/1.1\r\n${lines}\r\n`)
    expect((await exchange(port, bytes)).status).toBe(400)
    expect(called).toBe(0)
  })

  test('hands over a repeated Host, so that the handler refuses it', async () => {
    handle = echo
    const headers: Line[] = [
      ['Host', 'wallet.example'],
      ['Host', 'evil.example'],
      ['Connection', 'close'],
    ]
    const url = `${host.basePath}/x`
    const response = await exchange(port, requestBytes('POST', url, headers))
    const request = { method: 'POST', url, headers, body: new Uint8Array() }
    expect(essence(response)).toEqual(expected(await echo(request)))
  })

  test('answers HEAD with the headers of GET and no body', async () => {
    handle = echo
    const row = { name: '', target: '/x' }
    const head = wireOf({ ...row, method: 'HEAD' }, host.basePath)
    const response = await exchange(port, head.bytes)
    // RFC 9110 section 8.6 does not require the Content-Length that GET would have.
    const withoutLength = ({ headers, ...rest }: ReturnType<typeof essence>) => ({
      ...rest,
      headers: headers.filter((line) => !line.startsWith('content-length')),
    })
    expect(withoutLength(essence(response))).toEqual(
      withoutLength(expected(await echo(head.request), 'HEAD')),
    )
  })

  const own = { 'content-type': 'application/json' }
  test.each<HttpResponse>([
    { status: 200, headers: own, body: '{"a":"é👍"}' },
    { status: 200, headers: own, body: 'not JSON' },
    { status: 200, headers: { 'content-type': 'text/html; charset=utf-8' }, body: '<p>é' },
    { status: 200, headers: { 'content-type': 'text/plain' }, body: 'é' },
    { status: 200, headers: { ...own, 'set-cookie': 'a=1; Path=/' }, body: 'x'.repeat(100_000) },
    { status: 204, headers: { 'cache-control': 'no-store' } },
    { status: 401, headers: { ...own, 'www-authenticate': 'GNAP as_uri=https://w' }, body: '{}' },
    { status: 404, headers: own, body: '{}' },
    { status: 405, headers: { ...own, allow: 'POST, DELETE' }, body: '{}' },
    { status: 413, headers: own, body: '{}' },
    { status: 503, headers: { ...own, 'retry-after': '1' }, body: '{}' },
  ])('sends a response as the handler returned it: $status $headers', async (answer) => {
    handle = async () => answer
    const { bytes } = wireOf({ name: '', headers: [json], body: text('{}') }, host.basePath)
    expect(essence(await exchange(port, bytes))).toEqual(expected(answer))
  })

  test('sends a response of bytes as the handler returned it', async () => {
    const type = { 'content-type': 'application/octet-stream' }
    handle = async () => ({ status: 200, headers: type, body: everyByte })
    const { bytes } = wireOf({ name: '', headers: [json], body: text('{}') }, host.basePath)
    const response = await exchange(port, bytes)
    expect(response.statusLine).toBe('HTTP/1.1 200 OK')
    expect(headerValues(response, 'content-type')).toEqual(['application/octet-stream'])
    expect([...response.body]).toEqual([...everyByte])
  })

  test('sends a redirect without a body', async () => {
    const location = 'https://shop.example/?hash=a%2Bb&x=%C3%A9'
    handle = async () => ({ status: 303, headers: { location } })
    const { bytes } = wireOf({ name: '', headers: [json], body: text('{}') }, host.basePath)
    const response = await exchange(port, bytes)
    expect(response.statusLine).toBe('HTTP/1.1 303 See Other')
    expect(headerValues(response, 'location')).toEqual([location])
    expect(response.body).toHaveLength(0)
  })

  test('lets a client send its next request on the same connection', async () => {
    handle = echo
    const one = requestBytes(
      'POST',
      `${host.basePath}/one`,
      [['Host', 'w.example'], json, ['Content-Length', '2']],
      text('{}'),
    )
    const { bytes } = wireOf({ name: '', target: '/two', method: 'DELETE' }, host.basePath)
    const response = await exchange(port, Buffer.concat([one, one, bytes]))
    const all = response.body.toString()
    expect(all.match(/"url":"[^"]*\/(one|two)"/g)).toEqual([
      `"url":"${host.basePath}/one"`,
      `"url":"${host.basePath}/one"`,
      `"url":"${host.basePath}/two"`,
    ])
  })

  test('serves nothing outside its mount', async () => {
    if (host.basePath === '') return
    let called = 0
    handle = async (request) => {
      called += 1
      return echo(request)
    }
    const headers: Line[] = [
      ['Host', 'w.example'],
      ['Connection', 'close'],
    ]
    for (const url of ['/', `${host.basePath}x`, `/x${host.basePath}`]) {
      expect((await exchange(port, requestBytes('POST', url, headers))).status).toBe(404)
    }
    expect(called).toBe(0)
  })

  describe('in front of an authorization server', () => {
    const grantEndpoint = origin + host.basePath

    /** Creates equal worlds, so that their responses are equal. */
    function setUp() {
      const world = createWorld({ auth: { grantEndpoint } })
      return { world, shop: world.client() }
    }
    type Setting = ReturnType<typeof setUp>

    const grantBody = (shop: Setting['shop'], access: object = incomingAccess) => ({
      client: shop.client,
      access_token: { access: [access] },
      interact: withFinish,
    })

    function signedGrant(shop: Setting['shop'], body: string | Uint8Array, path = '') {
      return shop.sign({ method: 'POST', url: grantEndpoint + path, body })
    }

    type Make = (setting: Setting) => HttpRequest
    const granting =
      (change: (text: string) => string | Uint8Array = (text) => text, access?: object): Make =>
      ({ shop }) =>
        signedGrant(shop, change(JSON.stringify(grantBody(shop, access))))
    const altered =
      (alter: (request: HttpRequest) => HttpRequest): Make =>
      (setting) =>
        alter(granting()(setting))
    const continuing =
      (method: string, path: string): Make =>
      ({ shop }) =>
        shop.sign({ method, url: grantEndpoint + path, token: 'x' })
    const formatted = (json: string) =>
      `${JSON.stringify({ ...JSON.parse(json), note: 'é\u2028👍' }, null, '\t').replaceAll('\n', '\r\n')}\r\n`

    /** Each function makes equal requests in equal worlds. */
    const requests: readonly (readonly [string, number, Make])[] = [
      ['a grant request', 200, granting()],
      ['a grant request for consent', 200, granting(undefined, outgoingAccess)],
      [
        'a grant request with formatted JSON, CRLF and letters beyond ASCII',
        200,
        granting(formatted),
      ],
      ['a grant request of exactly 64 KiB', 200, granting((text) => text.padEnd(bodyBytesMax))],
      [
        'a grant request of 64 KiB and a byte',
        413,
        granting((text) => text.padEnd(bodyBytesMax + 1)),
      ],
      [
        'a grant request with a signed query',
        200,
        ({ shop }) => {
          const path = targetAt(host.basePath, '?a=%2F..//&b').slice(host.basePath.length)
          return signedGrant(shop, JSON.stringify(grantBody(shop)), path)
        },
      ],
      ['a grant request with a byte order mark', 400, granting((text) => `\ufeff${text}`)],
      ['a grant request that is not UTF-8', 400, granting(() => Uint8Array.of(0x22, 0xff, 0x22))],
      [
        'a grant request with one byte changed in transit',
        401,
        altered((request) => {
          const body = `${Buffer.from(request.body).toString().slice(0, -1)} `
          return { ...request, body: Buffer.from(body) }
        }),
      ],
      [
        'a grant request with its query changed in transit',
        401,
        altered((request) => ({ ...request, url: `${request.url}?x` })),
      ],
      [
        'a grant request signed for another host, which X-Forwarded-Host names',
        401,
        ({ shop }) => {
          const url = `https://evil.example${host.basePath}`
          const request = shop.sign({ method: 'POST', url, body: JSON.stringify(grantBody(shop)) })
          return withHeader(request, 'X-Forwarded-Host', 'evil.example')
        },
      ],
      [
        'a grant request with two digests',
        400,
        altered((request) => {
          const digest = headerOf(request, 'content-digest') ?? ''
          return withHeader(request, 'Content-Digest', digest, digest)
        }),
      ],
      [
        'a grant request of another type',
        415,
        altered((request) => withHeader(request, 'Content-Type', 'text/plain')),
      ],
      [
        'an unsigned grant request',
        401,
        altered((request) => withHeader(withHeader(request, 'Signature'), 'Signature-Input')),
      ],
      ['a continuation at an escaped path', 404, continuing('POST', '/continue%2fx')],
      ['an unknown continuation', 401, continuing('POST', '/continue/x')],
      ['an unsupported method', 405, continuing('PATCH', '/continue/x')],
      ['an unsupported GET', 405, continuing('GET', '/continue/x')],
    ]

    /** Adds the header lines that a request needs on the wire. */
    function framed(request: HttpRequest): HttpRequest {
      const { headers, body } = request
      const given = headers.filter(([name]) => name !== 'Content-Length')
      const length: Line[] = body.length > 0 ? [['Content-Length', `${body.length}`]] : []
      const lines: Line[] = [['Host', 'localhost:80'], ...given, ...length, ['Connection', 'close']]
      return { ...request, url: request.url || '/', headers: lines }
    }

    test.each(requests)(
      '%s gets the same response as without a framework, with %i',
      async (_, status, make) => {
        const [direct, mounted] = [setUp(), setUp()]
        const answer = await direct.world.auth.handle(framed(make(direct)))
        expect(answer.status).toBe(status)

        handle = mounted.world.auth.handle
        const { method, url, headers, body } = framed(make(mounted))
        const response = await exchange(port, requestBytes(method, url, headers, body))
        expect(essence(response)).toEqual(expected(answer))
        expect(mounted.world.refusals).toEqual(direct.world.refusals)
      },
    )

    test.each(['/../x', '/%2e%2e/x', '/a/../../x', '/..%2fx', '/..', '/.'])(
      'a path that climbs out of the mount is not found: %s',
      async (target) => {
        const { world, shop } = setUp()
        handle = world.auth.handle
        const { method, headers, body } = framed(signedGrant(shop, '{}'))
        const url = host.basePath + target
        expect((await exchange(port, requestBytes(method, url, headers, body))).status).toBe(404)
      },
    )

    test.each(['/x/..', '/x/%2e%2e', '/.', '/%2E', '/'])(
      'a path that climbs into the mount is not found: %s before the mount',
      async (before) => {
        const { world, shop } = setUp()
        handle = world.auth.handle
        const { method, headers, body } = framed(signedGrant(shop, '{}'))
        const url = `${before}${host.basePath || '/'}`
        expect((await exchange(port, requestBytes(method, url, headers, body))).status).toBe(404)
      },
    )

    test('a token is revoked by a DELETE with a JSON content type and no body', async () => {
      const { world, shop } = setUp()
      handle = world.auth.handle
      const send = async (request: HttpRequest) => {
        const { method, url, headers, body } = framed(request)
        return exchange(port, requestBytes(method, url, headers, body))
      }
      const granted = await send(signedGrant(shop, JSON.stringify(grantBody(shop))))
      const { access_token: token } = JSON.parse(granted.body.toString())
      const revoke = shop.sign({
        method: 'DELETE',
        url: token.manage,
        token: token.value,
        headers: [['Content-Type', 'application/json']],
      })
      const response = await send(revoke)
      expect(response.status).toBe(204)
      expect(response.body).toHaveLength(0)
      expect(await world.auth.introspect({ accessToken: token.value })).toEqual({ active: false })
    })
  })
})

/** Returns header lines as the Fetch API shows them: names in lower case and in order, values of one name joined. */
function joined(headers: readonly Line[]): Line[] {
  const names = [...new Set(headers.map(([name]) => name.toLowerCase()))].toSorted()
  return names.map((name) => {
    const values = headers.filter(([each]) => each.toLowerCase() === name).map(([, value]) => value)
    return [name, values.join(name === 'cookie' ? '; ' : ', ')]
  })
}

describe.each([
  ['toFetch', (handle: Handler) => toFetch(handle)],
  [
    'hono without Node',
    (handle: Handler) => {
      const app = new Hono().all('/*', toHono(handle))
      return async (request: Request) => app.fetch(request)
    },
  ],
] as const)('%s', (_, create) => {
  const fetching = create(echo)

  function requestOf({ method, url, headers, body }: HttpRequest): Request {
    const content = body.length > 0 ? { body } : {}
    return new Request(`http://localhost${url}`, {
      method,
      headers: headers.map(([n, v]) => [n, v]),
      ...content,
    })
  }

  const possible = rows.filter(({ notInFetch }) => notInFetch === undefined)

  test.each(possible)(
    'hands over the bytes, path and headers that the Fetch API shows: $name',
    async (row) => {
      const { request } = wireOf(row, '')
      const response = await fetching(requestOf(request))
      expect(response.status).toBe(200)
      const { headers, ...rest } = JSON.parse((await echo(request)).body ?? '')
      expect(await response.json()).toEqual({ ...rest, headers: joined(headers) })
    },
  )

  test.skip.each(rows.filter(({ notInFetch }) => notInFetch !== undefined))(
    'hands over $name: $notInFetch',
    () => undefined,
  )

  test('serves a signed request', async () => {
    const { auth, client } = createWorld({ auth: { grantEndpoint: origin } })
    const shop = client()
    const body = JSON.stringify({ client: shop.client, access_token: { access: [incomingAccess] } })
    const signed = shop.sign({ method: 'POST', url: origin, body })
    const response = await create(auth.handle)(requestOf(signed))
    expect(response.status).toBe(200)
    expect(response.headers.get('cache-control')).toBe('no-store')
  })
})
