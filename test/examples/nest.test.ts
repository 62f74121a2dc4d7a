import {
  type AuthenticatedClient,
  createAuthenticatedClient,
  isFinalizedGrantWithAccessToken,
  isPendingGrant,
} from '@interledger/open-payments'
import { freePort } from 'open-payments-programs'
import { testClient } from 'open-payments-server-testing'
import { Client } from 'pg'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { openShop, type Shop } from '../../examples/demo/shop.js'
import {
  type Access,
  clientSettings,
  tokenWithoutConsent,
  usd,
} from '../support/official-client.js'
import { exited, killPrograms, type Program, runNode, untilPrinted } from './program.js'

/** Where `.ci/frameworks` has installed and built the example, and a PostgreSQL server. */
const folder = process.env['TEST_FRAMEWORKS']
const server = process.env['TEST_DATABASE_URL']

/** Creates a database, which it drops in the end. */
async function freshDatabase(url: string) {
  const name = `nest_${crypto.randomUUID().replaceAll('-', '')}`
  const admin = new Client({ connectionString: url })
  await admin.connect()
  await admin.query(`CREATE DATABASE ${name}`)
  const own = new URL(url)
  own.pathname = `/${name}`
  const client = new Client({ connectionString: own.href })
  await client.connect()
  return {
    url: own.href,
    query: async (text: string, values: readonly unknown[] = []) =>
      (await client.query(text, [...values])).rows,
    async drop() {
      await client.end()
      await admin.query(`DROP DATABASE ${name} WITH (FORCE)`)
      await admin.end()
    },
  }
}

// biome-ignore lint/suspicious/noExplicitAny: bodies of several operations
const jsonOf = async (response: Response): Promise<any> => response.json()

type Database = Awaited<ReturnType<typeof freshDatabase>>

const builds = { 'ES modules': 'nest', CommonJS: 'nest-commonjs' }

describe.each(Object.entries(builds))('a wallet in Nest, compiled to %s', (_, build) => {
  if (folder === undefined || server === undefined) {
    return test.skip('skipped: run .ci/frameworks', () => {})
  }

  let database: Database
  let origin: string
  let otherOrigin: string
  let wallet: Program
  let shop: Shop
  let client: AuthenticatedClient

  const run = (...args: readonly string[]): Program =>
    runNode(
      args,
      {
        BASE_URLS: `${origin},${otherOrigin}`,
        DATABASE_URL: database.url,
        WALLET_SECRET: 'a secret of the tests, long enough',
      },
      `${folder}/${build}`,
    )
  const outputOf = ({ printed }: Program) => printed.out + printed.err

  /** Runs code with the module of the wallet, `baseUrl` and the classes of Nest. */
  const runCode = (code: string, baseUrl: string) =>
    run(
      '--input-type=module',
      '-e',
      `import { NestFactory } from '@nestjs/core'
      import { appAt } from './dist/app.module.js'
      import { start } from './dist/start.js'
      const baseUrl = ${JSON.stringify(baseUrl)}
      ${code}`,
    )

  /** Waits until an application has started for each base URL. Nest says so before it listens. */
  async function listens(program: Program, ...baseUrls: readonly string[]) {
    const started = (out: string) => out.match(/successfully started/g)?.length
    await untilPrinted(program, (out) => started(out) === baseUrls.length)
    for (const baseUrl of baseUrls) {
      await vi.waitFor(() => fetch(`${baseUrl}/nobody`), { timeout: 120_000, interval: 100 })
    }
  }

  beforeAll(async () => {
    database = await freshDatabase(server)
    const ports = [await freePort(), await freePort()]
    ;[origin = '', otherOrigin = ''] = ports.map((port) => `http://localhost:${port}`)
    wallet = run('dist/main.js')
    await listens(wallet, origin, otherOrigin)
    for (const [url, owner] of [
      [`${origin}/alice`, 'alice'],
      [`${origin}/bob`, 'bob'],
      [`${otherOrigin}/carol`, 'carol'],
    ]) {
      const insert = `INSERT INTO accounts (wallet_address, owner, public_name, balance)
        VALUES ($1, $2, $2, 10000)`
      await database.query(insert, [url, owner])
    }
    shop = await openShop()
    const { walletAddress: walletAddressUrl, keyId, privateKey } = shop
    client = await createAuthenticatedClient({
      walletAddressUrl,
      keyId,
      privateKey,
      ...clientSettings,
    })
  }, 180_000)

  afterAll(async () => {
    killPrograms()
    shop?.stop()
    await database?.drop()
  })

  const access = (...access: Access) => tokenWithoutConsent(client, `${origin}/auth`, access)
  const at = (accessToken: string) => ({ url: origin, accessToken })
  const balanceOf = async (owner: string) =>
    (await database.query('SELECT balance FROM accounts WHERE owner = $1', [owner]))[0]?.balance

  async function post(path: string, body: object, cookie = '') {
    const headers = { 'content-type': 'application/json', cookie }
    return fetch(origin + path, { method: 'POST', headers, body: JSON.stringify(body) })
  }

  async function signedIn(owner: string): Promise<string> {
    const response = await post('/api/session', { owner })
    expect(response.status).toBe(204)
    return response.headers.getSetCookie()[0]?.split(';')[0] ?? ''
  }

  /** Requests money by the host's own API, and returns the URL of the incoming payment. */
  async function invoice(number: string, amount: string, owner = 'bob'): Promise<string> {
    const body = { account: `${origin}/${owner}`, amount, number }
    const response = await post('/api/invoices', body, await signedIn(owner))
    expect(response.status).toBe(201)
    return (await jsonOf(response)).url
  }

  /** Opens a page as an owner, and sends its form with the token that it contains. */
  async function submit(url: string, cookie: string, fields: Record<string, string>) {
    const page = await (await fetch(url, { headers: { cookie } })).text()
    const [, token = ''] = /name="token" value="([^"]+)"/.exec(page) ?? []
    const body = new URLSearchParams({ token, ...fields })
    const sent = await fetch(url, { method: 'POST', redirect: 'manual', headers: { cookie }, body })
    return { page, status: sent.status, location: sent.headers.get('location') ?? '' }
  }

  /** Requests access to pay from Alice's account, and returns the token after she has approved it. */
  async function paying(debitAmount: ReturnType<typeof usd>): Promise<string> {
    const identifier = `${origin}/alice`
    const grant = await client.grant.request(
      { url: `${origin}/auth` },
      {
        access_token: {
          access: [
            { type: 'outgoing-payment', actions: ['create'], identifier, limits: { debitAmount } },
          ],
        },
        interact: {
          start: ['redirect'],
          finish: { method: 'redirect', uri: shop.finishUri, nonce: crypto.randomUUID() },
        },
      },
    )
    if (!isPendingGrant(grant)) throw new Error('this access needs no consent')
    const { redirect } = grant.interact
    const stranger = await fetch(redirect, { redirect: 'manual' })
    expect([stranger.status, stranger.headers.get('location')]).toEqual([
      303,
      `/login?next=${encodeURIComponent(redirect.slice(origin.length))}`,
    ])
    const decided = await submit(redirect, await signedIn('alice'), { decision: 'approve' })
    expect(decided.page).toContain(new URL(shop.walletAddress).host)
    const interact_ref = new URL(decided.location).searchParams.get('interact_ref') ?? ''
    const { uri: url, access_token } = grant.continue
    const issued = await client.grant.continue(
      { url, accessToken: access_token.value },
      { interact_ref },
    )
    if (!isFinalizedGrantWithAccessToken(issued)) throw new Error('the grant has no token')
    return issued.access_token.value
  }

  test('lets the published client pay an invoice, after consent, within the limit and the balance', async () => {
    const receiver = await invoice('17', '2500')
    const walletAddress = `${origin}/alice`
    const quoting = await access({ type: 'quote', actions: ['create'] })
    const price = { walletAddress, receiver, method: 'ilp' } as const
    const quote = await client.quote.create(at(quoting), price)
    const token = await paying(usd('20000'))
    const request = { walletAddress, quoteId: quote.id }
    const payment = await client.outgoingPayment.create(at(token), request)
    expect((await client.outgoingPayment.create(at(token), request)).id).toBe(payment.id)
    await expect.poll(() => balanceOf('bob'), { timeout: 20_000 }).toBe('12500')
    expect(await balanceOf('alice')).toBe('7500')
    expect(await database.query('SELECT * FROM holds WHERE NOT released')).toEqual([])
    await expect
      .poll(() => database.query('SELECT wallet_address FROM notices'), { timeout: 20_000 })
      .toEqual([{ wallet_address: `${origin}/bob` }])

    const tooMuch = {
      walletAddress,
      incomingPayment: await invoice('18', '7501'),
      debitAmount: usd('7501'),
    }
    await expect(client.outgoingPayment.create(at(token), tooMuch)).rejects.toMatchObject({
      status: 403,
      code: 'insufficient_funds',
    })
    expect(await balanceOf('alice')).toBe('7500')
  })

  test('ends a payment of an account to itself, which changes no balance and leaves no hold', async () => {
    const before = await balanceOf('alice')
    const incomingPayment = await invoice('19', '100', 'alice')
    const token = await paying(usd('100'))
    const request = { walletAddress: `${origin}/alice`, incomingPayment, debitAmount: usd('100') }
    await client.outgoingPayment.create(at(token), request)
    const reading = await access({ type: 'incoming-payment', actions: ['read-all'] })
    const received = () =>
      client.incomingPayment.get({ url: incomingPayment, accessToken: reading })
    await expect.poll(received, { timeout: 20_000 }).toMatchObject({ completed: true })
    const held = () => database.query('SELECT * FROM holds WHERE NOT released')
    await expect.poll(held, { timeout: 20_000 }).toEqual([])
    expect(await balanceOf('alice')).toBe(before)
  })

  test('lets the owner see and remove the app', async () => {
    await paying(usd('100'))
    const cookie = await signedIn('alice')
    const apps = `${origin}/apps`
    const page = await (await fetch(apps, { headers: { cookie } })).text()
    const [, grant = ''] = /name="grant" value="([^"]+)"/.exec(page) ?? []
    const count = (text: string) => new Set(text.match(/name="grant" value="[^"]+"/g)).size
    expect(page).toContain(new URL(shop.walletAddress).host)
    expect((await submit(apps, cookie, { grant, do: 'revoke' })).status).toBe(303)
    const after = await (await fetch(apps, { headers: { cookie } })).text()
    expect(count(after)).toBe(count(page) - 1)
  })

  test('validates the bodies of its own controllers, and leaves those of Open Payments as they are', async () => {
    const cookie = await signedIn('bob')
    const invoice = { account: `${origin}/bob`, amount: '1', number: '99' }
    const refused = await post('/api/invoices', { ...invoice, more: 1 }, cookie)
    expect([refused.status, (await jsonOf(refused)).message]).toEqual([
      400,
      ['property more should not exist'],
    ])
    expect((await post('/api/invoices', invoice, await signedIn('alice'))).status).toBe(403)

    const shop = testClient({ seed: 'another shop', kid: 'shop-1' })
    const send = async (request: Parameters<typeof shop.sign>[0], changed?: Uint8Array) => {
      const { method, headers, body } = shop.sign({ nonce: crypto.randomUUID(), ...request })
      const lines = headers.filter(([name]) => name.toLowerCase() !== 'host')
      const sent = { method, headers: lines as [string, string][], body: changed ?? body }
      return fetch(request.url, sent as RequestInit)
    }
    const grant = await send({
      method: 'POST',
      url: `${origin}/auth`,
      body: {
        client: shop.client,
        access_token: { access: [{ type: 'incoming-payment', actions: ['create'] }] },
      },
    })
    const { access_token } = await jsonOf(grant)
    const body = `{ "walletAddress" : "${origin}/alice",\n "metadata": {"note":"Grüße 1.0"} }`
    const create = {
      method: 'POST',
      url: `${origin}/incoming-payments`,
      token: access_token.value,
      body,
    }
    const created = await send(create)
    expect([created.status, (await jsonOf(created)).metadata]).toEqual([201, { note: 'Grüße 1.0' }])
    const changed = new TextEncoder().encode(body.replace('1.0', '2.0'))
    expect((await send(create, changed)).status).toBe(401)
  })

  test('signs nobody in by a form, which another site can send', async () => {
    const form = (type: string, body: string) =>
      fetch(`${origin}/api/session`, { method: 'POST', headers: { 'content-type': type }, body })
    for (const [type, body] of [
      ['application/x-www-form-urlencoded', 'owner=alice'],
      ['text/plain', '{"owner":"alice"}'],
    ] as const) {
      const { status, headers } = await form(type, body)
      expect([400, 415]).toContain(status)
      expect(headers.get('set-cookie')).toBeNull()
    }
    const json = await form('application/json', '{"owner":"alice"}')
    expect([json.status, json.headers.get('set-cookie')]).toEqual([204, expect.any(String)])
  })

  test('is ready for a load balancer, without the prefix of its routes', async () => {
    const response = await fetch(`${origin}/ready`)
    expect([response.status, await response.text()]).toEqual([200, 'ready'])
    expect(response.headers.get('cache-control')).toBe('no-store')
  })

  test('is not ready once it stops, or without its database, and keeps the reason to itself', async () => {
    const baseUrl = `http://localhost:${await freePort()}`
    const program = runCode(
      `const { ReadyController } = await import('./dist/ready.controller.js')
      const { Pool } = (await import('pg')).default
      const app = await start(baseUrl)
      const ready = async () => {
        const response = await fetch(baseUrl + '/ready')
        console.log(response.status, await response.text())
      }
      await ready()
      const pool = app.get(Pool, { strict: false })
      const { connect } = pool
      pool.connect = async () => { throw new Error('a frozen primary') }
      await ready()
      pool.connect = connect
      app.get(ReadyController, { strict: false }).onModuleDestroy()
      await ready()
      await app.close()`,
      baseUrl,
    )
    await program.ended
    const lines = outputOf(program)
    expect(lines).toMatch(/200 ready[\s\S]*503 .*not ready[\s\S]*503 .*not ready/)
    expect(lines).toContain('the application stops')
    expect(
      lines
        .split('\n')
        .filter((line) => /^503/.test(line))
        .join(),
    ).not.toContain('frozen')
  })

  test('has its own routes below the prefix, and its own 404 for unknown paths', async () => {
    const nothing = await fetch(`${origin}/api/nothing`)
    expect([nothing.status, await nothing.json()]).toEqual([
      404,
      { message: 'Cannot GET /api/nothing', error: 'Not Found', statusCode: 404 },
    ])
    for (const path of ['/nobody', '/invoices', '/auth/nothing', '/']) {
      const response = await fetch(origin + path)
      expect([path, response.status, await response.text()]).toEqual([
        path,
        404,
        expect.stringContaining(`Cannot GET ${path}`),
      ])
    }
    const unknown = await fetch(`${origin}/incoming-payments/unknown`)
    expect([unknown.status, await unknown.json()]).toMatchObject([404, { error: {} }])
  })

  test('answers preflights for its own routes, and leaves discovery to the wallet', async () => {
    const headers = {
      origin: 'https://app.wallet.example',
      'access-control-request-method': 'POST',
    }
    const preflight = await fetch(`${origin}/api/invoices`, { method: 'OPTIONS', headers })
    expect(preflight.headers.get('access-control-allow-origin')).toBe(headers.origin)
    const discovery = await fetch(`${origin}/auth`, { method: 'OPTIONS' })
    expect(await discovery.json()).toHaveProperty('grant_request_endpoint')
  })

  test('serves two brands, each at its own port', async () => {
    for (const [base, own, other] of [
      [origin, 'alice', 'carol'],
      [otherOrigin, 'carol', 'alice'],
    ]) {
      const found = await fetch(`${base}/${own}`)
      expect(await found.json()).toMatchObject({ authServer: `${base}/auth` })
      expect((await fetch(`${base}/${other}`)).status).toBe(404)
      const discovery = await fetch(`${base}/auth`, { method: 'OPTIONS' })
      expect(await discovery.json()).toMatchObject({ grant_request_endpoint: `${base}/auth` })
    }
  })

  test('reports a body that was parsed without its bytes, and how to keep them', async () => {
    const baseUrl = `http://localhost:${await freePort()}`
    const program = runCode(
      `const app = await NestFactory.create(appAt(baseUrl)) // without rawBody
      await app.listen(new URL(baseUrl).port)`,
      baseUrl,
    )
    await listens(program, baseUrl)
    const headers = { 'content-type': 'application/json' }
    const response = await fetch(`${baseUrl}/auth`, { method: 'POST', headers, body: '{}' })
    expect(response.status).toBe(500)
    await expect
      .poll(() => outputOf(program))
      .toContain('NestFactory.create(AppModule, { rawBody: true })')
    program.child.kill()
    await program.ended
  })

  test('leaves nothing that keeps the process alive when the application has closed', async () => {
    const baseUrl = `http://localhost:${await freePort()}`
    const program = runCode(
      `const app = await start(baseUrl)
      await (await fetch(baseUrl + '/nobody')).text()
      await app.close()
      console.log('closed')`,
      baseUrl,
    )
    expect(await program.ended, outputOf(program)).toEqual(exited)
    expect(outputOf(program)).toContain('closed')
    expect(outputOf(program)).not.toMatch(/ERROR|WARN/)
  })

  test('ends in order with SIGTERM', async () => {
    wallet.child.kill('SIGTERM')
    expect(await wallet.ended, outputOf(wallet)).toEqual({ code: null, signal: 'SIGTERM' })
    expect(outputOf(wallet)).not.toMatch(/ERROR|WARN/)
    expect(
      await database.query(`SELECT 1 FROM pg_stat_activity WHERE datname = current_database()
      AND pid <> pg_backend_pid()`),
    ).toEqual([])
  })
})
