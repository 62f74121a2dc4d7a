import { once } from 'node:events'
import { createServer, type IncomingMessage, type RequestListener, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { gzipSync } from 'node:zlib'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import {
  type Introspection,
  type RemoteGrantsOptions,
  remoteGrants,
  toFetch,
} from '../../src/index.js'
import { inspectSignatures, verifyCandidates } from '../../src/protocol/http-signature/inspect.js'
import { manualClock, startOfTests } from '../support/clock.js'
import {
  bankId,
  bankKey,
  introspection,
  privateJwkOf,
  rejectionOf,
} from '../support/introspection.js'
import { invalidInput } from '../support/invalid-input.js'
import { jwkOf, testKey } from '../support/keys.js'
import { seededRandom } from '../support/random.js'
import { messageOf, profileFreshness } from '../support/signed-message.js'
import { grantEndpoint as authEndpoint, createWorld, incomingAccess } from '../support/world.js'

const secret = 'S'.repeat(43)
const accessToken = `opa_namespac-grant.${secret}`
const shop = testKey('shop')

interface Received {
  readonly message: IncomingMessage
  readonly body: Buffer
}

let server: Server
let grantEndpoint: string
let answer: RequestListener
let received: Received[]

beforeEach(async () => {
  received = []
  answer = (_, response) => send(response, { active: false })
  server = createServer(async (message, response) => {
    received.push({ message, body: Buffer.concat(await message.toArray()) })
    answer(message, response)
  })
  server.listen(0, 'localhost')
  await once(server, 'listening')
  grantEndpoint = `http://localhost:${(server.address() as AddressInfo).port}/auth`
})

afterEach(() => {
  server.closeAllConnections()
  server.close()
})

type Response = Parameters<RequestListener>[1]

function send(response: Response, body: object, contentType = 'application/json') {
  response.setHeader('content-type', contentType).end(JSON.stringify(body))
}

function activeBody(more: object = {}) {
  return {
    active: true,
    iss: grantEndpoint,
    exp: startOfTests / 1000 + 600,
    access: [{ type: 'quote', actions: ['create'], itemId: '1' }],
    key: { proof: 'httpsig', jwk: jwkOf(shop) },
    grant: 'namespac-grant',
    client: { walletAddress: 'https://shop.example' },
    ...more,
  }
}

const active: Introspection = {
  active: true,
  grantId: 'namespac-grant',
  access: [{ type: 'quote', actions: ['create'], itemId: '1' }],
  key: { kid: shop.kid, x: shop.x, thumbprint: shop.thumbprint },
  walletAddress: 'https://shop.example',
  expiresAt: startOfTests + 600_000,
}

function remote(more: Partial<RemoteGrantsOptions> = {}) {
  return remoteGrants({
    grantEndpoint,
    ...introspection,
    allowLoopback: true,
    clock: manualClock(),
    random: seededRandom(),
    ...more,
  })
}

function ask(more?: Partial<RemoteGrantsOptions>): Promise<Introspection> {
  return remote(more).introspect({ accessToken })
}

/** Verifies that the request failed with this reason and that the error contains no secret. */
async function expectFailed(reason: string | RegExp, more?: Partial<RemoteGrantsOptions>) {
  const error = await rejectionOf(ask(more))
  expect(error.message).toMatch(reason)
  expect(error.message).not.toContain(secret)
}

describe('the introspection of a token', () => {
  test('returns everything that the authorization server reports, in the form of the port', async () => {
    answer = (_, response) => send(response, activeBody())
    expect(await ask()).toEqual(active)
    answer = (_, response) => send(response, activeBody({ client: undefined }))
    const { walletAddress: _, ...byKey } = active
    expect(await ask()).toEqual(byKey)
  })

  test('returns inactive if that is the response', async () => {
    expect(await ask()).toEqual({ active: false })
  })

  test('sends the token in the body only, in a signed request to the endpoint', async () => {
    await ask()
    const [{ message, body } = { message: undefined, body: Buffer.of() }] = received
    expect(message?.method).toBe('POST')
    expect(message?.url).toBe('/auth/introspect')
    expect(JSON.parse(body.toString())).toEqual({
      access_token: accessToken,
      proof: 'httpsig',
      resource_server: bankId,
    })
    expect(JSON.stringify(message?.rawHeaders)).not.toContain(secret)
    expect(message?.headers).not.toHaveProperty('authorization')

    const raw = message?.rawHeaders ?? []
    const headers = raw.flatMap((name, i) =>
      i % 2 === 0 ? [[name, raw[i + 1] ?? ''] as const] : [],
    )
    const { origin } = new URL(grantEndpoint)
    const inspection = await inspectSignatures(
      messageOf({ method: 'POST', url: message?.url ?? '', headers, body }, origin),
      startOfTests,
      profileFreshness,
    )
    if (!inspection.ok) throw new Error(inspection.problem)
    const proof = await verifyCandidates(inspection.value, bankKey)
    expect(proof).toMatchObject({
      createdAt: startOfTests,
      nonce: expect.stringMatching(/^.{22}$/),
    })
  })

  test('uses a different nonce each time, or none if nonces are disabled', async () => {
    const { introspect } = remote()
    for (let i = 0; i < 3; i++) await introspect({ accessToken })
    const inputs = received.map(({ message }) => String(message.headers['signature-input']))
    expect(new Set(inputs.map((input) => /nonce="([^"]+)"/.exec(input)?.[1])).size).toBe(3)
    await ask({ nonces: false })
    expect(received.at(-1)?.message.headers['signature-input']).not.toContain('nonce')
  })

  test('sends a request each time unless there is a cache', async () => {
    answer = (_, response) => send(response, activeBody())
    const { introspect } = remote()
    for (let i = 0; i < 3; i++) await introspect({ accessToken })
    expect(received).toHaveLength(3)
    const clock = manualClock()
    const caching = remote({ clock, cache: { ttlMs: 1_000 } }).introspect
    for (let i = 0; i < 3; i++) expect(await caching({ accessToken })).toEqual(active)
    expect(received).toHaveLength(4)
    clock.advance(1_000)
    await caching({ accessToken })
    expect(received).toHaveLength(5)
  })

  test('sends at most two requests for one token, however many ask at the same time', async () => {
    answer = (_, response) => send(response, activeBody())
    const { introspect } = remote()
    const answers = await Promise.all(Array.from({ length: 50 }, () => introspect({ accessToken })))
    expect(answers).toEqual(answers.map(() => active))
    expect(received.length).toBeLessThanOrEqual(2)
  })

  test('sends no request for a malformed token', async () => {
    const { introspect } = remote()
    const continuation = accessToken.replace('opa_', 'opc_')
    for (const text of ['', 'x', continuation, `${accessToken}A`, 'A'.repeat(8_000)]) {
      expect(await introspect({ accessToken: text })).toEqual({ active: false })
    }
    expect(received).toEqual([])
  })

  test('sends requests to the configured endpoint, with the grant endpoint as the issuer', async () => {
    const { origin } = new URL(grantEndpoint)
    answer = (_, response) => send(response, activeBody())
    const introspectionEndpoint = `${origin}/elsewhere/ask`
    expect(await ask({ introspectionEndpoint })).toEqual(active)
    expect(received.at(-1)?.message.url).toBe('/elsewhere/ask')
    answer = (_, response) => send(response, activeBody({ iss: `${grantEndpoint}/` }))
    await ask({ grantEndpoint: `${grantEndpoint}/` })
    expect(received.at(-1)?.message.url).toBe('/auth/introspect')
  })
})

describe('a response of the authorization server', () => {
  test.each([201, 204, 301, 302, 307, 308, 400, 401, 403, 404, 429, 500, 503])(
    'with status %i is an error, whatever the body contains',
    async (status) => {
      answer = (_, response) => {
        response.statusCode = status
        response.setHeader('location', `${grantEndpoint}/introspect`)
        if (status === 204) response.end()
        else send(response, activeBody())
      }
      await expectFailed(`the response has status ${status}`)
      expect(received).toHaveLength(1)
    },
  )

  test.each([
    ['malformed JSON', '{"active":tru'],
    ['nothing', ''],
    ['bytes that are not UTF-8', Buffer.of(0x22, 0xff, 0x22)],
    ['a list', '[{"active":true}]'],
    ['null', 'null'],
    ['missing members', '{"active":true}'],
    ['another type for active true', '{"active":"true"}'],
    ['another type for active false', '{"active":0}'],
    ['a prototype', '{"active":false,"__proto__":{}}'],
  ])('with %s is an error', async (_name, body) => {
    answer = (_, response) => response.setHeader('content-type', 'application/json').end(body)
    await expectFailed('malformed')
  })

  test('with wrong types or for another issuer is an error', async () => {
    for (const more of [
      { exp: 'soon' },
      { key: null },
      { access: {} },
      { iss: 'https://evil.example' },
    ]) {
      answer = (_, response) => send(response, activeBody(more))
      await expectFailed('malformed')
    }
  })

  test.each(['text/html', 'application/jwt', 'application/json2', ''])(
    'with content of type %j is an error',
    async (contentType) => {
      answer = (_, response) => send(response, activeBody(), contentType)
      await expectFailed('not JSON')
    },
  )

  test('above 64 KiB is an error, and no more than that is read', async () => {
    let written = 0
    const closed: Promise<unknown>[] = []
    answer = (_, response) => {
      closed.push(once(response, 'close'))
      response.setHeader('content-type', 'application/json')
      const chunk = Buffer.alloc(16 * 1024, ' ')
      const write = () => {
        while (!response.destroyed && written < 64 * 1024 * 1024) {
          written += chunk.length
          if (!response.write(chunk)) break
        }
      }
      response.on('drain', write)
      write()
    }
    await expectFailed('too large')
    await Promise.all(closed)
    expect(written).toBeLessThan(32 * 1024 * 1024)
  })

  test('that expands to more than 64 KiB is an error', async () => {
    answer = (_, response) => {
      response.setHeader('content-type', 'application/json').setHeader('content-encoding', 'gzip')
      response.end(gzipSync(Buffer.alloc(10_000_000, ' ')))
    }
    await expectFailed('too large')
  })

  test('of exactly 64 KiB is accepted', async () => {
    const text = JSON.stringify({ active: false }).padEnd(64 * 1024)
    answer = (_, response) => response.setHeader('content-type', 'application/json').end(text)
    expect(await ask()).toEqual({ active: false })
  })

  test('that does not arrive in time is an error', async () => {
    answer = () => {}
    await expectFailed('no response within 50 ms', { timeoutMs: 50 })
  })

  test('must arrive within 2 s unless the options set another timeout', async () => {
    const timeout = vi.spyOn(globalThis, 'setTimeout')
    await remote({ timeoutMs: undefined as never }).introspect({ accessToken })
    expect(timeout.mock.calls.map(([, ms]) => ms)).toContain(2_000)
    timeout.mockRestore()
  })

  test('that begins in time but does not end in time is an error', async () => {
    answer = (_, response) => {
      response.setHeader('content-type', 'application/json').write('{"active":')
    }
    await expectFailed('no response within 100 ms', { timeoutMs: 100 })
  })

  test('that is cut off before or during transmission is an error', async () => {
    answer = (_, response) => response.destroy()
    await expectFailed('the server cannot be reached')
    answer = (_, response) => {
      response.setHeader('content-length', '100').setHeader('content-type', 'application/json')
      response.write('{"active":false', () => response.destroy())
    }
    await expectFailed('the server cannot be reached')
  })

  test('is accepted after the server has been unreachable', async () => {
    const { port } = server.address() as AddressInfo
    const { introspect } = remote()
    expect(await introspect({ accessToken })).toEqual({ active: false })
    server.closeAllConnections()
    server.close()
    await once(server, 'close')
    const error = await rejectionOf(introspect({ accessToken }))
    expect(error.message).toMatch(/^the server cannot be reached/)
    server.listen(port, 'localhost')
    await once(server, 'listening')
    expect(await introspect({ accessToken })).toEqual({ active: false })
  })
})

describe('a fetch from the host', () => {
  test('is used with redirects disabled and a signal for the timeout', async () => {
    const fetch = vi.fn(async () => Response.json({ active: false }))
    expect(await ask({ fetch })).toEqual({ active: false })
    expect(fetch).toHaveBeenCalledWith(
      `${grantEndpoint}/introspect`,
      expect.objectContaining({ redirect: 'manual', signal: expect.any(AbortSignal) }),
    )
    expect(received).toEqual([])
  })

  test('that never settles and ignores the signal is abandoned', async () => {
    const fetch = () => new Promise<globalThis.Response>(() => {})
    await expectFailed('no response within 20 ms', { fetch, timeoutMs: 20 })
  })

  test('that fails with the request in its message is not quoted', async () => {
    const fetch = async (_: unknown, init?: RequestInit) => {
      throw new Error(`could not send ${Buffer.from(init?.body as Uint8Array)}`)
    }
    await expectFailed('the server cannot be reached', { fetch })
  })
})

describe('the options', () => {
  const privateKey = privateJwkOf(bankKey)

  test.each<[string, object]>([
    ['grantEndpoint', { grantEndpoint: undefined }],
    ['grantEndpoint', { grantEndpoint: '/auth' }],
    ['grantEndpoint', { grantEndpoint: 'http://wallet.example/auth' }],
    ['grantEndpoint', { grantEndpoint: 'http://10.0.0.1/auth' }],
    ['grantEndpoint', { grantEndpoint: 'ftp://localhost/auth' }],
    ['grantEndpoint', { grantEndpoint: 'https://user:pass@wallet.example/auth' }],
    ['grantEndpoint', { grantEndpoint: 'https://wallet.example/auth?x=1' }],
    ['grantEndpoint', { grantEndpoint: 'https://wallet.example/auth#x' }],
    ['grantEndpoint', { allowLoopback: false }],
    ['grantEndpoint', { allowLoopback: undefined }],
    ['introspectionEndpoint', { introspectionEndpoint: 'http://wallet.example/ask' }],
    ['allowLoopback', { allowLoopback: 'yes' }],
    ['resourceServerId', { resourceServerId: undefined }],
    ['resourceServerId', { resourceServerId: '' }],
    ['key', { key: undefined }],
    ['key.privateKey', { key: { kid: 'kid' } }],
    ['key', { key: { privateKey } }],
    ['key', { key: { kid: 'kid', privateKey: jwkOf(bankKey) } }],
    ['key', { key: { kid: 'kid', privateKey: { ...privateKey, x: shop.x } } }],
    ['timeoutMs', { timeoutMs: 0 }],
    ['timeoutMs', { timeoutMs: 60_001 }],
    ['timeoutMs', { timeoutMs: 1.5 }],
    ['timeoutMs', { timeoutMs: '2000' }],
    ['cache.ttlMs', { cache: {} }],
    ['cache.ttlMs', { cache: { ttlMs: 0 } }],
    ['cache.ttlMs', { cache: { ttlMs: 60_001 } }],
    ['cache.ttlMs', { cache: { ttlMs: Number.POSITIVE_INFINITY } }],
    ['cache.entriesMax', { cache: { ttlMs: 1, entriesMax: 0 } }],
    ['nonces', { nonces: 'no' }],
    ['fetch', { fetch: 'fetch' }],
    ['clock', { clock: {} }],
    ['random', { random: {} }],
  ])('are refused when invalid: %s (%j)', (option, change) => {
    expect(() => remote(change)).toThrow(invalidInput(option))
  })

  test('are accepted at their limits', () => {
    const { allowLoopback: _, ...https } = {
      allowLoopback: true,
      grantEndpoint: 'https://wallet.example/auth',
      resourceServerId: bankId,
      key: { kid: 'kid', privateKey },
    }
    expect(() => remoteGrants(https)).not.toThrow()
    expect(() =>
      remote({ cache: { ttlMs: 60_000, entriesMax: 1 }, timeoutMs: 60_000 }),
    ).not.toThrow()
  })
})

describe('behind a proxy that repeats a request', () => {
  /** A wallet in another process, and a link to it that carries requests so many times, and returns the last answer. */
  async function linked(
    times: (request: number) => number,
    more: Partial<RemoteGrantsOptions> = {},
  ) {
    const world = createWorld({
      auth: { resourceServers: [{ id: bankId, keys: [bankKey] }] },
    })
    const { body } = await world.client().request([incomingAccess])
    const carry = toFetch(world.auth.handle)
    let requests = 0
    const link: typeof fetch = async (url, init) => {
      requests += 1
      const sent = new Request(url, init)
      let response = await carry(sent.clone())
      for (let i = 1; i < times(requests); i++) response = await carry(sent.clone())
      return response
    }
    const grants = remote({
      grantEndpoint: authEndpoint,
      clock: world.clock,
      fetch: link,
      ...more,
    })
    const token: string = body.access_token.value
    return { grants, token, requests: () => requests }
  }

  test('the resource server signs anew once, because its first answer is lost', async () => {
    const { grants, token, requests } = await linked((request) => (request === 1 ? 2 : 1))
    expect(await grants.introspect({ accessToken: token })).toMatchObject({ active: true })
    expect(requests()).toBe(2)
    expect(await grants.introspect({ accessToken: token })).toMatchObject({ active: true })
    expect(requests()).toBe(3)
  })

  test('the introspection fails if the second request is repeated, too', async () => {
    const { grants, token, requests } = await linked(() => 2)
    const error = await rejectionOf(grants.introspect({ accessToken: token }))
    expect(error.message).toBe('the response has status 409')
    expect(requests()).toBe(2)
  })

  test('a signature without a nonce would be the same: it is not sent anew', async () => {
    answer = (_, response) => {
      response.statusCode = 409
      send(response, { error: { code: 'signature_used' } })
    }
    await expectFailed('the response has status 409', { nonces: false })
    expect(received).toHaveLength(1)
  })

  test.each([{ error: { code: 'conflict' } }, { error: 'signature_used' }, {}])(
    'another conflict is not asked anew: %j',
    async (body) => {
      answer = (_, response) => {
        response.statusCode = 409
        send(response, body)
      }
      await expectFailed('the response has status 409')
      expect(received).toHaveLength(1)
    },
  )
})
