import type { Server } from 'node:http'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Handler, toFetch } from '../../src/index.js'
import { type Host, hosts, listening, stopped } from '../support/hosts.js'
import { createWorld, origin } from '../support/world.js'

function serverAt(basePath: string): Handler {
  return createWorld({ auth: { grantEndpoint: origin + basePath } }).auth.handle
}

async function expectDiscovery(response: Response, basePath: string): Promise<void> {
  expect(response.status).toBe(200)
  expect(response.headers.get('content-type')).toBe('application/json')
  expect(response.headers.get('cache-control')).toBe('no-store')
  expect(response.headers.get('allow')).toBe('POST, OPTIONS')
  expect(await response.json()).toMatchObject({
    grant_request_endpoint: origin + basePath,
    key_proofs_supported: ['httpsig'],
  })
}

describe.each(hosts)('discovery, mounted on $name', ({ basePath, create }: Host) => {
  let server: Server
  let base: string

  beforeAll(async () => {
    server = await create(serverAt(basePath))
    base = `http://localhost:${await listening(server)}${basePath}`
  })
  afterAll(() => stopped(server))

  test('is served at the grant endpoint', async () => {
    await expectDiscovery(await fetch(base, { method: 'OPTIONS' }), basePath)
  })

  test('is served if the client announces JSON, as the published client always does', async () => {
    const headers = { 'content-type': 'application/json', accept: 'application/json' }
    await expectDiscovery(await fetch(base, { method: 'OPTIONS', headers }), basePath)
  })

  test('is not served at a path where nothing can be requested', async () => {
    const response = await fetch(`${base}/continue/x`, { method: 'OPTIONS' })
    expect(response.status).toBe(405)
    expect(response.headers.get('allow')).toBe('POST, DELETE')
  })

  test('is an allowed method of the grant endpoint', async () => {
    const response = await fetch(base, { method: 'DELETE' })
    expect(response.status).toBe(405)
    expect(response.headers.get('allow')).toBe('POST, OPTIONS')
  })

  test('is not a CORS preflight: the response has neither CORS headers nor content', async () => {
    const headers = { origin: 'https://evil.example', 'access-control-request-method': 'POST' }
    const response = await fetch(base, { method: 'OPTIONS', headers })
    expect(response.status).toBe(204)
    expect(response.headers.has('access-control-allow-origin')).toBe(false)
    expect(await response.text()).toBe('')
  })
})

test('discovery is served through the Fetch API', async () => {
  const handle = toFetch(serverAt('/auth'))
  const request = new Request(`${origin}/auth`, { method: 'OPTIONS' })
  await expectDiscovery(await handle(request), '/auth')
})
