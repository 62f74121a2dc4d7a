import { once } from 'node:events'
import { createServer, type RequestListener, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { createClient } from 'open-payments-client'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { shopAddress, shopJwk } from './support/other-wallet.js'

let server: Server
let origin: string
let answer: RequestListener
let arrived: string[]
beforeEach(async () => {
  arrived = []
  server = createServer((request, response) => {
    arrived.push(`${request.url}`)
    answer(request, response)
  })
  server.listen(0, 'localhost')
  await once(server, 'listening')
  origin = `http://localhost:${(server.address() as AddressInfo).port}`
})
afterEach(() => {
  server.closeAllConnections()
  server.close()
})

const clientOf = (more: object = {}) =>
  createClient({
    ...{ walletAddress: shopAddress, keyId: 'shop-1', privateKey: shopJwk },
    ...{ allowLoopback: true, limitMs: 60_000 },
    ...more,
  })

describe('over a network, a client', () => {
  test('follows no redirect', async () => {
    answer = (_, response) => response.writeHead(302, { location: `${origin}/private` }).end()
    expect(await clientOf().addressOf(`${origin}/bob`)).toMatchObject({ refusal: 'redirected' })
    expect(arrived).toEqual(['/bob'])
  })

  test('connects to no loopback address unless it is allowed', async () => {
    const client = clientOf({ allowLoopback: false })
    expect(await client.addressOf(`${origin}/bob`)).toMatchObject({ refusal: 'url_refused' })
    expect(arrived).toEqual([])
  })

  test('reads no endless body', async () => {
    answer = (_, response) => {
      const pour = () => {
        if (!response.destroyed) response.write(Buffer.alloc(64 * 1024), () => setImmediate(pour))
      }
      pour()
    }
    expect(await clientOf().addressOf(`${origin}/bob`)).toMatchObject({
      refusal: 'response_invalid',
    })
  })

  test('notices a body that is cut off', async () => {
    answer = (_, response) => {
      response.writeHead(200, { 'content-length': 100 })
      response.write('{"id":', () => response.destroy())
    }
    expect(await clientOf().addressOf(`${origin}/bob`)).toMatchObject({ refusal: 'no_response' })
  })

  test('ends a call whose body is slow, at the time limit for all of it', async () => {
    answer = (_, response) => {
      response.writeHead(200)
      const drip = () => {
        if (!response.destroyed) response.write(' ', () => setTimeout(drip, 10))
      }
      drip()
    }
    const found = await clientOf({ limitMs: 100 }).addressOf(`${origin}/bob`)
    expect(found).toMatchObject({ ok: false, isTemporary: true })
    expect(['timed_out', 'no_response', 'unreachable']).toContain(found.ok || found.refusal)
  })

  test('ends a call with the signal of its caller, and connects to nothing after it', async () => {
    const controller = new AbortController()
    answer = () => controller.abort()
    const { signal } = controller
    const found = await clientOf().addressOf(`${origin}/bob`, { signal })
    expect(found).toMatchObject({ refusal: 'aborted' })
    expect(await clientOf().addressOf(`${origin}/bob`, { signal })).toMatchObject({
      refusal: 'aborted',
    })
    expect(arrived).toHaveLength(1)
  })

  test('knows that nothing was sent to a port without a server', async () => {
    const closed = origin
    server.close()
    await once(server, 'close')
    expect(await clientOf().addressOf(`${closed}/bob`)).toMatchObject({ refusal: 'unreachable' })
  })
})

test.each([
  ['limitMs', { limitMs: 0 }],
  ['limitMs', { limitMs: 600_001 }],
  ['walletAddress', { walletAddress: 'bob' }],
  ['privateKey', { privateKey: undefined }],
  ['privateKey', { privateKey: { kty: 'OKP' } }],
  ['limitMS', { limitMS: 5 }],
])('the option %s is checked', (name, more) => {
  expect(() => clientOf(more)).toThrow(name)
})
