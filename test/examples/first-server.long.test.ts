import { freePort } from 'open-payments-programs'
import { afterEach, describe, expect, test } from 'vitest'
import { exited, killPrograms, run, untilPrinted } from './program.js'

afterEach(killPrograms)

describe('the first server', () => {
  test('serves discovery and refuses a grant request without a signature', async () => {
    const port = await freePort()
    const endpoint = `http://localhost:${port}/auth`
    const program = run('examples/first-server/server.ts', { PORT: String(port) })
    await untilPrinted(program, `Serving http://localhost:${port}/alice`)

    const discovery = await fetch(endpoint, { method: 'OPTIONS' })
    expect(discovery.status).toBe(200)
    expect(await discovery.json()).toMatchObject({ grant_request_endpoint: endpoint })

    const unsigned = await fetch(endpoint, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({
        client: 'https://shop.example/client',
        access_token: { access: [{ type: 'incoming-payment', actions: ['create'] }] },
      }),
    })
    expect(unsigned.status).toBe(401)
    expect(await unsigned.json()).toMatchObject({ error: { code: 'invalid_client' } })
  })

  test('issues an access token to the first client', async () => {
    const port = await freePort()
    const endpoint = `http://localhost:${port}/auth`
    const server = run('examples/first-server/server.ts', { PORT: String(port) })
    await untilPrinted(server, `Serving http://localhost:${port}/alice`)

    const client = run('examples/first-server/client.ts', { GRANT_ENDPOINT: endpoint })
    expect(await client.ended).toEqual(exited)
    expect(client.printed.out).toMatch(/^200 /)
    expect(client.printed.out).toContain(`manage: '${endpoint}/token/`)
  })
})
