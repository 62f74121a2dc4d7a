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

describe.each(hosts)('asking what is supported, mounted on $name', ({ basePath, create }: Host) => {
  let server: Server
  let base: string

  beforeAll(async () => {
    server = await create(serverAt(basePath))
    base = `http://localhost:${await listening(server)}${basePath}`
  })
  afterAll(() => stopped(server))

  test('is answered at the grant endpoint', async () => {
    await expectDiscovery(await fetch(base, { method: 'OPTIONS' }), basePath)
  })

  test('is answered where the client says that it sends JSON, as the published one always does', async () => {
    const headers = { 'content-type': 'application/json', accept: 'application/json' }
    await expectDiscovery(await fetch(base, { method: 'OPTIONS', headers }), basePath)
  })

  test('is not offered where there is nothing to request', async () => {
    const response = await fetch(`${base}/continue/x`, { method: 'OPTIONS' })
    expect(response.status).toBe(405)
    expect(response.headers.get('allow')).toBe('POST, DELETE')
  })

  test('is named among what is allowed at the grant endpoint', async () => {
    const response = await fetch(base, { method: 'DELETE' })
    expect(response.status).toBe(405)
    expect(response.headers.get('allow')).toBe('POST, OPTIONS')
  })

  test('is no preflight of CORS, which gets no leave and no content', async () => {
    const headers = { origin: 'https://evil.example', 'access-control-request-method': 'POST' }
    const response = await fetch(base, { method: 'OPTIONS', headers })
    expect(response.status).toBe(204)
    expect(response.headers.has('access-control-allow-origin')).toBe(false)
    expect(await response.text()).toBe('')
  })
})

test('asking what is supported is answered through the Fetch API', async () => {
  const handle = toFetch(serverAt('/auth'))
  const request = new Request(`${origin}/auth`, { method: 'OPTIONS' })
  await expectDiscovery(await handle(request), '/auth')
})
