import { describe, expect, test } from 'vitest'
import type { HttpRequest } from '../../../src/entry-adapter.js'
import { memoryStore, type Store, walletAddressSubjects } from '../../../src/index.js'
import { answerOf, createWorld, grantEndpoint } from '../../support/world.js'

/** A store whose calls all fail. */
const brokenStore = new Proxy(memoryStore(), {
  get: () => () => Promise.reject(new Error('the store is down')),
}) as Store

function asking(more: Partial<HttpRequest> = {}): HttpRequest {
  return { method: 'OPTIONS', url: '/auth', headers: [], body: new Uint8Array(), ...more }
}

const supported = {
  grant_request_endpoint: grantEndpoint,
  interaction_start_modes_supported: ['redirect'],
  interaction_finish_methods_supported: ['redirect'],
  key_proofs_supported: ['httpsig'],
}

describe('a discovery request', () => {
  test.each(['/auth', '/auth/', '/auth?x=1', grantEndpoint])(
    'succeeds at %s without a signature',
    async (url) => {
      const { status, headers, body } = answerOf(await createWorld().auth.handle(asking({ url })))
      expect([status, body]).toEqual([200, supported])
      expect(headers).toEqual({
        'content-type': 'application/json',
        'cache-control': 'no-store',
        vary: 'Authorization',
        allow: 'POST, OPTIONS',
      })
    },
  )

  test('needs neither the store nor client keys', async () => {
    const world = createWorld({ store: brokenStore })
    world.clientKeys.unavailable = true
    expect((await world.auth.handle(asking())).status).toBe(200)
    expect(world.clientKeys.asked).toEqual([])
    expect(world.errors).toEqual([])
  })

  test('lists the subject identifier formats only if the server supports them', async () => {
    const world = createWorld({ auth: { subjects: walletAddressSubjects } })
    const { body } = answerOf(await world.auth.handle(asking()))
    expect(body).toEqual({ ...supported, sub_id_formats_supported: ['uri'] })
  })

  test('returns the published grant endpoint, whatever the request says', async () => {
    const at = 'https://auth.example/'
    const world = createWorld({ auth: { grantEndpoint: at } })
    const headers = [
      ['Host', 'evil.example'],
      ['X-Forwarded-Host', 'evil.example'],
    ] as const
    const answer = answerOf(await world.auth.handle(asking({ url: '/', headers })))
    expect(answer.body.grant_request_endpoint).toBe(at)
  })

  test('is distinct from a CORS preflight, which receives no content and no access', async () => {
    const headers = [
      ['Origin', 'https://evil.example'],
      ['Access-Control-Request-Method', 'POST'],
    ] as const
    const {
      status,
      headers: answered,
      body,
    } = answerOf(await createWorld().auth.handle(asking({ headers })))
    expect([status, body]).toEqual([204, undefined])
    expect(answered).toEqual({
      'cache-control': 'no-store',
      allow: 'POST, OPTIONS',
      vary: 'Authorization',
    })
  })

  test('is not served below the grant endpoint', async () => {
    const { auth } = createWorld()
    expect((await auth.handle(asking({ url: '/auth/continue/x' }))).status).toBe(405)
    expect((await auth.handle(asking({ url: '/auth/else' }))).status).toBe(404)
    expect((await auth.handlers.discover(asking())).status).toBe(200)
    expect((await auth.handlers.requestGrant(asking())).headers['allow']).toBe('POST')
  })
})
