import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { createAuthenticatedClient, OpenPaymentsClientError } from '@interledger/open-payments'
import { afterEach, describe, expect, test } from 'vitest'
import { listening, stopped } from '../support/hosts.js'
import { testKey } from '../support/keys.js'

/** What docs/clients.md says of the published TypeScript client, run without our servers. */

interface Seen {
  readonly line: string
  readonly headers: IncomingMessage['headers']
}

const close: (() => Promise<void>)[] = []
afterEach(async () => {
  await Promise.all(close.splice(0).map((each) => each()))
})

/** Starts a server that answers the n-th request with the n-th status, and the last one from then on. */
async function serverOf(...statuses: readonly (number | 'never' | 'lost')[]) {
  const seen: Seen[] = []
  const server = createServer((request: IncomingMessage, response: ServerResponse) => {
    const status = statuses[Math.min(seen.length, statuses.length - 1)] ?? 200
    seen.push({ line: `${request.method} ${request.url}`, headers: request.headers })
    request.resume()
    if (status === 'never') return
    if (status === 'lost') {
      request.socket.destroy()
      return
    }
    response.writeHead(status, { 'content-type': 'application/json', 'retry-after': '0' })
    const error = { code: 'a_code', description: 'In words', details: { problem: 'is wrong' } }
    response.end(status === 204 ? undefined : JSON.stringify(status < 400 ? {} : { error }))
  })
  close.push(() => stopped(server))
  return { seen, host: `localhost:${await listening(server)}` }
}

const key = testKey('shop')

function clientWith(options: { readonly useHttp?: boolean } = {}) {
  return createAuthenticatedClient({
    walletAddressUrl: 'https://shop.example',
    keyId: key.kid,
    privateKey: key.privateKey,
    logLevel: 'silent',
    validateResponses: false,
    ...options,
  })
}

type Client = Awaited<ReturnType<typeof clientWith>>

const accessToken = 'a-token'
const calls = {
  GET: (client: Client, url: string) => client.incomingPayment.get({ url, accessToken }),
  POST: (client: Client, url: string) => client.token.rotate({ url, accessToken }),
  DELETE: (client: Client, url: string) => client.token.revoke({ url, accessToken }),
} as const

const failed = async (call: Promise<unknown>): Promise<OpenPaymentsClientError> => {
  const error = await call.then(
    () => undefined,
    (thrown: unknown) => thrown,
  )
  if (!(error instanceof OpenPaymentsClientError)) throw new Error('the call did not fail')
  return error
}

describe('useHttp', () => {
  test('is not needed for a URL with http, which is called as it is', async () => {
    const { seen, host } = await serverOf(200)
    await calls.GET(await clientWith(), `http://${host}/a`)
    expect(seen.map(({ line }) => line)).toEqual(['GET /a'])
  })

  test('replaces https by http in every URL, so that tokens arrive in plain text', async () => {
    const { seen, host } = await serverOf(200)
    await calls.GET(await clientWith({ useHttp: true }), `https://${host}/a`)
    expect(seen[0]?.headers.authorization).toBe(`GNAP ${accessToken}`)
  })
})

describe('a second attempt', () => {
  const repeated = [408, 413, 429, 500, 502, 503, 504, 'lost'] as const

  test.each(repeated)('follows %s to GET and DELETE, with the text undefined', async (status) => {
    for (const method of ['GET', 'DELETE'] as const) {
      const { seen, host } = await serverOf(status, 401)
      const error = await failed(calls[method](await clientWith(), `http://${host}/a`))
      expect([method, seen.length, error.status]).toEqual([method, 2, 401])
      expect(seen[0]?.headers['signature']).toMatch(/^sig1=:/)
      const { signature, 'signature-input': input } = seen[1]?.headers ?? {}
      expect([signature, input]).toEqual(['undefined', 'undefined'])
    }
  })

  test.each([400, 401, 403, 404])('does not follow %i', async (status) => {
    for (const method of ['GET', 'DELETE', 'POST'] as const) {
      const { seen, host } = await serverOf(status)
      const error = await failed(calls[method](await clientWith(), `http://${host}/a`))
      expect([method, seen.length, error.status]).toEqual([method, 1, status])
    }
  })

  test.each([429, 503])('does not follow %i to POST, which is thrown', async (status) => {
    const { seen, host } = await serverOf(status)
    const error = await failed(calls.POST(await clientWith(), `http://${host}/a`))
    expect([seen.length, error.status]).toEqual([1, status])
  })
})

describe('an error', () => {
  test('has status, code, description and details, and a message that says nothing of them', async () => {
    const { host } = await serverOf(403)
    for (const method of ['GET', 'POST'] as const) {
      const error = await failed(calls[method](await clientWith(), `http://${host}/a`))
      expect(error).toMatchObject({
        message: `Error making Open Payments ${method} request`,
        status: 403,
        code: 'a_code',
        description: 'In words',
        details: { problem: 'is wrong' },
      })
    }
  })

  test('follows five seconds without an answer', async () => {
    const { seen, host } = await serverOf('never')
    const started = performance.now()
    await failed(calls.POST(await clientWith(), `http://${host}/a`))
    expect(performance.now() - started).toBeGreaterThan(4_990)
    expect(seen).toHaveLength(1)
  })
})

test('Content-Type is sent without content', async () => {
  const { seen, host } = await serverOf(204)
  await calls.DELETE(await clientWith(), `http://${host}/a`)
  expect(seen[0]?.headers['content-type']).toBe('application/json')
  expect(seen[0]?.headers['content-length']).toBeUndefined()
})
