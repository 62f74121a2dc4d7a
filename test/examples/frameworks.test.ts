import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { freePort } from 'open-payments-programs'
import { type ClientRequest, testClient } from 'open-payments-server-testing'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import type { Handler } from '../../src/index.js'

/** Where `.ci/frameworks` has installed and built the examples, and `.ci/recipes` the applications behind a wallet. */
const { TEST_FRAMEWORKS, TEST_RECIPES } = process.env
const bin = './node_modules/.bin'

/** How each framework starts. */
const starts: Readonly<Record<string, (port: number) => readonly string[]>> = {
  Koa: () => ['node', '--import', 'tsx', 'koa.ts'],
  'Nest on Fastify': () => ['node', '--import', 'tsx', 'nest-fastify.ts'],
  'Next.js': (port) => [`${bin}/next`, 'start', 'next', '-p', String(port)],
  Bun: () => [`${bin}/bun`, 'bun.ts'],
  Deno: () => [`${bin}/deno`, 'run', '--allow-net', '--allow-env', 'deno.ts'],
  'Cloudflare Workers': (port) => [
    `${bin}/workerd`,
    'serve',
    'worker.capnp',
    `--socket-addr=http=localhost:${port}`,
  ],
}

/** The frameworks in front of whose own handler the wallet stands. They need a newer Node.js than the tests. */
const inFront: typeof starts = Object.fromEntries(
  [
    ...['sveltekit', 'astro', 'nuxt', 'react-router', 'adonis', 'hapi'],
    ...['express', 'connect', 'koa', 'polka', 'restify', 'h3'],
  ].map((name) => [name, () => [`${bin}/node`, '--import', 'tsx', 'start.ts', name]]),
)

const rows = [
  ...Object.entries(starts).map((each) => [...each, TEST_FRAMEWORKS, '.ci/frameworks'] as const),
  ...Object.entries(inFront).map((each) => [...each, TEST_RECIPES, '.ci/recipes'] as const),
]

describe.each(rows)('on %s, the example', (name, commandFor, folder, script) => {
  if (folder === undefined) return test.skip(`skipped: run ${script}`, () => {})

  const client = testClient({ seed: 'shop', kid: 'shop-1' })
  let origin: string
  let server: ChildProcess
  let output = ''

  const overHttp: Handler = async ({ method, url, headers, body }) => {
    const own = headers.filter(([name]) => name.toLowerCase() !== 'host')
    const init = { method, headers: own as [string, string][] }
    const hasBody = body !== undefined && body.length > 0
    const response = await fetch(origin + url, hasBody ? { ...init, body } : init)
    const text = await response.text()
    const answer = { status: response.status, headers: Object.fromEntries(response.headers) }
    return text === '' ? answer : { ...answer, body: text }
  }
  // biome-ignore lint/suspicious/noExplicitAny: bodies of several operations
  async function send(request: ClientRequest): Promise<{ status: number; body: any }> {
    return client.send(overHttp, { nonce: crypto.randomUUID(), ...request })
  }
  const requestGrant = () =>
    send({
      method: 'POST',
      url: `${origin}/auth`,
      body: {
        client: client.client,
        access_token: {
          access: [{ type: 'incoming-payment', actions: ['create', 'list', 'read', 'complete'] }],
        },
      },
    })

  beforeAll(async () => {
    const port = await freePort()
    origin = `http://localhost:${port}`
    const [command, ...args] = commandFor(port) as [string, ...string[]]
    const env = { ...process.env, PORT: String(port), HOST: 'localhost', ORIGIN: origin }
    server = spawn(command, args, { cwd: folder, env, stdio: ['ignore', 'pipe', 'pipe'] })
    for (const stream of [server.stdout, server.stderr]) {
      stream?.on('data', (chunk: Buffer) => {
        output += chunk.toString()
      })
    }
    const answers = async () => {
      if (server.exitCode !== null) throw new Error(`ended with ${server.exitCode}`)
      const answer = await fetch(`${origin}/alice`).catch(() => undefined)
      return answer?.status === 200
    }
    await vi.waitUntil(answers, { timeout: 120_000, interval: 100 }).catch((cause) => {
      throw new Error(`The server does not answer:\n${output}`, { cause })
    })
  })

  afterAll(async () => {
    if (server.exitCode !== null) return
    server.kill('SIGKILL')
    await once(server, 'exit')
  })

  test('serves the wallet address, discovery, and a signed flow from grant to public view', async () => {
    const discovery = await fetch(`${origin}/auth`, { method: 'OPTIONS' })
    expect(await discovery.json()).toMatchObject({ grant_request_endpoint: `${origin}/auth` })

    const granted = await requestGrant()
    expect(granted.status).toBe(200)
    const rotated = await send({
      method: 'POST',
      url: granted.body.access_token.manage,
      token: granted.body.access_token.value,
    })
    expect(rotated.status).toBe(200)
    const { value: token, manage } = rotated.body.access_token

    // The bytes of the body are what the client signed, so no framework may parse and write it again.
    const body = `{ "walletAddress" : "${origin}/alice",\n "metadata": {"note":"Grüße 1.0"} }`
    const created = await send({
      method: 'POST',
      url: `${origin}/incoming-payments`,
      token,
      body,
    })
    expect(created.status).toBe(201)
    const query = `wallet-address=${encodeURIComponent(`${origin}/alice`)}&first=1`
    const list = { method: 'GET', url: `${origin}/incoming-payments?${query}`, token }
    expect((await send(list)).body.result).toEqual([
      expect.objectContaining({ id: created.body.id }),
    ])
    const completed = await send({ method: 'POST', url: `${created.body.id}/complete`, token })
    expect(completed.body).toMatchObject({ completed: true })
    expect(await (await fetch(created.body.id)).json()).toEqual({
      authServer: `${origin}/auth`,
      receivedAmount: { value: '0', assetCode: 'USD', assetScale: 2 },
    })
    expect((await send({ method: 'DELETE', url: manage, token })).status).toBe(204)
    expect((await send(list)).status).toBe(401)
  })

  test.runIf(name === 'Nest on Fastify')(
    'answers preflights for its own routes, and unknown paths',
    async () => {
      const page = 'https://app.wallet.example'
      const headers = { origin: page, 'access-control-request-method': 'GET' }
      const preflight = await fetch(`${origin}/api/health`, { method: 'OPTIONS', headers })
      const allowed = preflight.headers.get('access-control-allow-origin')
      expect([preflight.status, allowed]).toEqual([204, page])
      expect(await (await fetch(`${origin}/api/health`)).text()).toBe('ok')
      expect(await (await fetch(`${origin}/nobody`)).json()).toMatchObject({
        message: 'Cannot GET /nobody',
      })
    },
  )

  test.runIf(name in inFront)('leaves its own requests to the framework, unread', async () => {
    const body = JSON.stringify({ a: 'é'.repeat(50_000) })
    const headers = { 'content-type': 'application/json' }
    const own = await fetch(`${origin}/own`, { method: 'POST', headers, body })
    expect([own.status, await own.text()]).toEqual([200, body])
    expect(await (await fetch(`${origin}/`)).text()).toContain('own page')
  })

  test('serves requests at the same time', async () => {
    const granted = await Promise.all(Array.from({ length: 40 }, requestGrant))
    expect(granted.map(({ status }) => status)).toEqual(granted.map(() => 200))
  })

  test('answers a body over the bound with 413, and goes on', async () => {
    const headers = { 'content-type': 'application/json' }
    const body = JSON.stringify({ a: 'a'.repeat(70_000) })
    const refused = await fetch(`${origin}/auth`, { method: 'POST', headers, body })
    expect([refused.status, await refused.json()]).toEqual([413, { error: expect.anything() }])
    expect((await requestGrant()).status).toBe(200)
  })

  test('refuses a body that is not the one that was signed', async () => {
    const granted = await requestGrant()
    const signed = client.sign({
      method: 'POST',
      url: `${origin}/incoming-payments`,
      token: granted.body.access_token.value,
      body: { walletAddress: `${origin}/alice` },
    })
    const body = new TextEncoder().encode(
      new TextDecoder().decode(signed.body as Uint8Array).replace('alice', 'Alice'),
    )
    expect((await overHttp({ ...signed, body })).status).toBe(401)
  })
})
