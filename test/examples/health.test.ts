import { freePort } from 'open-payments-programs'
import { describe, expect, test } from 'vitest'
import { health } from '../../examples/wallet/health.js'
import { memoryStorage } from '../../examples/wallet/memory-storage.js'
import { startWallet } from '../../examples/wallet/start.js'
import { memoryStore, type Store } from '../../src/index.js'
import { deployments, startDeployment } from '../support/official-client.js'

const request = { method: 'GET', url: '/healthz', headers: [], body: new Uint8Array() }

/** A store with this `load`. */
const reading = (load: () => Promise<never>): Pick<Store, 'load'> => ({ load })

async function answerOf(store: Pick<Store, 'load'>, timeoutMs?: number) {
  const { status, body, headers } = await health(store, timeoutMs)(request)
  expect(headers['cache-control']).toBe('no-store')
  return [status, body]
}

describe('the health of a process', () => {
  test('is good while its store responds', async () => {
    expect(await answerOf(memoryStore())).toEqual([200, '{"status":"ok"}'])
  })

  test('is bad when its store fails, and the response gives no reason', async () => {
    const failing = reading(() => Promise.reject(new Error('no password for postgres://wallet')))
    expect(await answerOf(failing)).toEqual([503, '{"status":"unavailable"}'])
    const throwing = reading(() => {
      throw new Error('closed')
    })
    expect((await answerOf(throwing))[0]).toBe(503)
  })

  test('is bad when its store does not respond in time', async () => {
    const silent = reading(() => new Promise(() => undefined))
    expect((await answerOf(silent, 20))[0]).toBe(503)
  })

  test('is served at one path, for GET and HEAD', async () => {
    const handle = health(memoryStore())
    expect((await handle({ ...request, url: '/healthz/x' })).status).toBe(404)
    expect((await handle({ ...request, url: '/healthz?from=balancer' })).status).toBe(200)
    expect((await handle({ ...request, method: 'HEAD' })).status).toBe(200)
    const { status, headers } = await handle({ ...request, method: 'POST' })
    expect([status, headers['allow']]).toEqual([405, 'GET, HEAD'])
  })
})

describe.each(deployments)('the wallet on $name', (deployment) => {
  test('reports that it is healthy at every address', async () => {
    const { baseUrl, auth, stop } = await startDeployment(deployment)
    for (const origin of [baseUrl, new URL(auth).origin]) {
      const response = await fetch(`${origin}/healthz`)
      expect([response.status, await response.json()]).toEqual([200, { status: 'ok' }])
    }
    await stop()
  })
})

test('the wallet reports that it is unhealthy when its storage fails', async () => {
  const store = { ...memoryStore(), load: () => Promise.reject(new Error('away')) }
  const storage = { ...memoryStorage(), store }
  const port = await freePort()
  const { baseUrl, stop } = await startWallet({ adapter: 'express', port, storage })
  expect((await fetch(`${baseUrl}/healthz`)).status).toBe(503)
  await stop()
})
