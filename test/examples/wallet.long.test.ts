import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import {
  type AuthenticatedClient,
  type Grant,
  isPendingGrant,
  type PendingGrant,
} from '@interledger/open-payments'
import { freePort } from 'open-payments-programs'
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from 'vitest'
import { openShop, type Shop } from '../../examples/demo/shop.js'
import { type RunningWallet, startWallet } from '../../examples/wallet/start.js'
import type { EventHandler } from '../../src/index.js'
import { clientOf, usd } from '../support/official-client.js'
import { isLong } from '../support/runs.js'
import { dataDirectories, exited, killPrograms, runWallet, startedWallet } from './program.js'

describe('the wallet, over HTTP', () => {
  let running: RunningWallet
  let shop: Shop
  let client: AuthenticatedClient
  let [alice, bob] = ['', '']

  beforeAll(async () => {
    shop = await openShop()
    running = await startWallet({
      adapter: 'express',
      port: await freePort(),
      outboundTimeoutMs: 60_000,
    })
    client = await clientOf(shop)
    ;[alice, bob] = [`${running.baseUrl}/alice`, `${running.baseUrl}/bob`]
  })
  afterAll(async () => {
    shop.stop()
    await running.stop()
  })

  const authUrl = () => `${running.baseUrl}/auth`
  const nonce = 'nonce-of-the-shop'

  const monthly = { interval: 'R12/2026-12-01T00:00:00Z/P1M', debitAmount: usd('2550') }
  async function asked({ payer = alice, finish = true, limits = monthly as object } = {}) {
    const method = { finish: { method: 'redirect' as const, uri: shop.finishUri, nonce } }
    const grant = await client.grant.request(
      { url: authUrl() },
      {
        access_token: {
          access: [
            {
              type: 'outgoing-payment',
              actions: ['create', 'read'],
              identifier: payer,
              limits,
            },
          ],
        },
        interact: { start: ['redirect'], ...(finish ? method : {}) },
      },
    )
    if (!isPendingGrant(grant)) throw new Error('it is not pending')
    return grant
  }

  /** The field of the form of each page that was opened. */
  const tokens = new Map<string, string>()
  const tokenIn = (page: string) => /name="token" value="(\w+)"/.exec(page)?.[1] ?? ''

  /** Submits the form like a browser; returns the response. */
  async function submit(url: string, decision: string, cookie: string) {
    const response = await fetch(url, {
      method: 'POST',
      redirect: 'manual',
      headers: { cookie, 'content-type': 'application/x-www-form-urlencoded' },
      body: new URLSearchParams({ decision, token: tokens.get(url) ?? '' }),
    })
    const location = response.headers.get('location')
    const text = await response.text()
    return { response, status: response.status, location, text }
  }

  async function cookieFrom(url: string): Promise<string> {
    const response = await fetch(url)
    const [line = ''] = response.headers.getSetCookie()
    tokens.set(url, tokenIn(await response.text()))
    return line.split(';', 1)[0] ?? ''
  }

  /** Opens the page as the account's owner. */
  async function opened(options?: Parameters<typeof asked>[0]) {
    const grant = await asked(options)
    const url = grant.interact.redirect
    return { grant, url, cookie: await cookieFrom(url) }
  }

  function continued(grant: PendingGrant, interact_ref?: string) {
    const { uri, access_token } = grant.continue
    const where = { url: uri, accessToken: access_token.value }
    return client.grant.continue(where, interact_ref === undefined ? undefined : { interact_ref })
  }

  function refOf(grant: PendingGrant, location: string | null): string {
    const { searchParams } = new URL(location ?? '')
    const ref = searchParams.get('interact_ref') ?? ''
    const base = [nonce, grant.interact.finish, ref, authUrl()].join('\n')
    expect(searchParams.get('hash')).toBe(createHash('sha256').update(base).digest('base64'))
    return ref
  }

  const forgeries = (cookie: string) => {
    const owner = cookie.replace(/\.[^.]*$/, '')
    return ['', 'other=1', owner, `${owner}.${'A'.repeat(43)}`, cookie.replace('=alice.', '=bob.')]
  }

  describe('the consent page', () => {
    test('names the app, the account, the limit and the place to return to, each time', async () => {
      const { url } = await opened()
      expect((await fetch(url, { method: 'HEAD' })).status).toBe(200)
      const response = await fetch(url)
      const page = await response.text()
      expect(response.status).toBe(200)
      expect(response.headers.get('content-type')).toBe('text/html; charset=utf-8')
      expect(page).toContain(shop.walletAddress)
      expect(page).toContain(alice)
      expect(page).toMatch(/pay money/)
      expect(page).toMatch(/at most <bdi[^>]*>25\.50\u00a0USD<\/bdi> .* every month, 12 times/)
      expect(page).toContain(new URL(shop.finishUri).host)
      expect(page).toMatch(/<form method="post" class="card">/)
      const values = [...page.matchAll(/name="decision" value="(\w+)"/g)].map(([, value]) => value)
      expect(values).toEqual(['approve', 'deny'])
      expect(page).not.toContain(nonce)
      expect(page).not.toMatch(/<script|outgoing-payment/)
    })

    test('forbids caches, frames, scripts and referrers', async () => {
      const { url } = await opened()
      const { headers } = await fetch(url)
      expect(headers.get('cache-control')).toBe('no-store')
      expect(headers.get('referrer-policy')).toBe('no-referrer')
      expect(headers.get('x-content-type-options')).toBe('nosniff')
      const policy = headers.get('content-security-policy') ?? ''
      for (const part of ["default-src 'none'", "frame-ancestors 'none'", "base-uri 'none'"]) {
        expect(policy).toContain(part)
      }
      expect(policy).toContain(`form-action 'self' ${new URL(shop.finishUri).origin};`)
      const [cookie = ''] = headers.getSetCookie()
      expect(cookie).toMatch(/; HttpOnly/)
      expect(cookie).toMatch(/; SameSite=(Lax|Strict)/)
    })

    test('redirects the browser with 303, without resubmitting the form', async () => {
      const { grant, url, cookie } = await opened()
      const first = await submit(url, 'approve', cookie)
      expect([first.status, first.text]).toEqual([303, ''])
      expect(first.location?.startsWith(`${shop.finishUri}&hash=`)).toBe(true)
      expect(first.response.headers.get('referrer-policy')).toBe('no-referrer')
      expect(first.response.headers.get('cache-control')).toBe('no-store')
      // The redirect of the last click counts.
      const second = await submit(url, 'approve', cookie)
      const refs = [first, second].map(({ location }) => refOf(grant, location))
      await expect(continued(grant, refs[0])).rejects.toMatchObject({ status: 404 })
      expect(await continued(grant, refs[1])).toHaveProperty('access_token')
      expect((await fetch(url)).status).toBe(410)
      for (const decision of ['approve', 'deny']) {
        const again = await submit(url, decision, cookie)
        expect([again.status, again.location]).toEqual([409, null])
      }
    })

    test('denies the request for the owner, also when it is clicked again', async () => {
      const { url, cookie } = await opened()
      for (let i = 0; i < 2; i++) {
        const { status, location } = await submit(url, 'deny', cookie)
        expect(status).toBe(303)
        expect([...new URL(location ?? '').searchParams]).toEqual([
          ['order', '17'],
          ['result', 'grant_rejected'],
        ])
      }
      const response = await fetch(url)
      expect(response.status).toBe(410)
      expect(await response.text()).not.toMatch(/value="(?:approve|deny)"/)
    })

    test.each([
      ['approve', 'deny'],
      ['deny', 'approve'],
    ])('keeps the first decision: %s, then %s', async (first, second) => {
      const { url, cookie } = await opened()
      expect((await submit(url, first, cookie)).status).toBe(303)
      const { status, location } = await submit(url, second, cookie)
      expect([status, location]).toEqual([409, null])
      expect((await submit(url, first, cookie)).status).toBe(303)
    })

    test('does not redirect if the app has no finish URI', async () => {
      const { grant, url, cookie } = await opened({ finish: false })
      expect(await (await fetch(url)).text()).toContain('return to the app')
      const { status, location, text } = await submit(url, 'approve', cookie)
      expect([status, location]).toEqual([200, null])
      expect(text).toContain('return to the app')
      expect(await continued(grant)).toHaveProperty('access_token')
    })

    test('refuses a decision without a session, of another owner, and other decisions and methods', async () => {
      const { grant, url, cookie } = await opened({ finish: false })
      const { cookie: cookieOfBob } = await opened({ payer: bob })
      expect(cookieOfBob).toContain('=bob.')
      for (const each of [...forgeries(cookie), cookieOfBob]) {
        for (const decision of ['approve', 'deny']) {
          const { status, location } = await submit(url, decision, each)
          expect([status, location], each).toEqual([403, null])
        }
      }
      for (const decision of ['', 'maybe', 'Approve', 'approve ']) {
        const { status, location } = await submit(url, decision, cookie)
        expect([status, location], decision).toEqual([400, null])
      }
      for (const method of ['PUT', 'PATCH', 'DELETE']) {
        const response = await fetch(url, { method, headers: { cookie } })
        expect([response.status, response.headers.get('allow')]).toEqual([405, 'GET, HEAD, POST'])
      }
      expect((await fetch(url)).status).toBe(200)
      await submit(url, 'approve', cookie)
      expect(await continued(grant)).toHaveProperty('access_token')
    })

    test.each([
      '',
      '/',
      '/unknown?redirect=https://evil.example',
      '/%00',
      `/${'A'.repeat(30)}.${'A'.repeat(22)}`,
      'the nonce of another interaction',
    ])('that does not exist does not redirect: %s', async (path) => {
      const [one, two] = [await asked(), await asked()].map(({ interact }) => interact.redirect)
      const [grantId] = one?.split('/').at(-1)?.split('.') ?? []
      const [, other] = two?.split('.') ?? []
      const mixed = path.startsWith('the nonce') ? `/${grantId}.${other}` : path
      const url = `${running.baseUrl}/consent${mixed}`
      const shown = await fetch(url, { redirect: 'manual' })
      expect([shown.status, shown.headers.get('location')]).toEqual([404, null])
      expect(shown.headers.getSetCookie()).toEqual([])
      const { status, location } = await submit(url, 'approve', await cookieFrom(one ?? ''))
      expect([status, location]).toEqual([404, null])
    })
  })

  describe('the page of connected apps', () => {
    const page = () => `${running.baseUrl}/grants`

    /** Creates a grant to pay from an account; the app has its token. */
    async function connected(payer = alice) {
      const { grant, url, cookie } = await opened({ payer })
      const { location } = await submit(url, 'approve', cookie)
      const issued = (await continued(grant, refOf(grant, location))) as Grant
      const accessToken = issued.access_token?.value ?? ''
      const [grantId = ''] = url.split('/').at(-1)?.split('.') ?? []
      const spent = () =>
        client.outgoingPayment.getGrantSpentAmounts({ url: `${running.baseUrl}`, accessToken })
      return { grantId, cookie, spent }
    }

    async function shown(cookie: string) {
      const response = await fetch(page(), { headers: { cookie } })
      const text = await response.text()
      const ids = [...text.matchAll(/name="grant" value="([\w-]+)"/g)].map(([, id]) => id)
      return { status: response.status, text, ids }
    }

    async function revoke(grantId: string, cookie: string) {
      const token = tokenIn((await shown(cookie)).text)
      const body = new URLSearchParams({ grant: grantId, token, do: 'revoke' })
      const headers = { cookie }
      const init = { method: 'POST', redirect: 'manual', headers, body } as const
      const response = await fetch(page(), init)
      return [response.status, response.headers.get('location')]
    }

    test('shows an owner each app with its access, until the owner revokes it', async () => {
      const { grantId, cookie, spent } = await connected()
      const before = await shown(cookie)
      expect(before.status).toBe(200)
      expect(before.text.replaceAll(/<\/?b>/g, '')).toContain(shop.walletAddress)
      const detail = await (await fetch(`${page()}?app=${grantId}`, { headers: { cookie } })).text()
      expect(detail).toMatch(/at most <bdi[^>]*>25\.50\u00a0USD<\/bdi> .* every month, 12 times/)
      expect(before.ids).toContain(grantId)
      expect(await spent()).toHaveProperty('spentDebitAmount')
      expect(await revoke(grantId, cookie)).toEqual([303, `?removed=${grantId}`])
      expect((await shown(cookie)).ids).not.toContain(grantId)
      await expect(spent()).rejects.toMatchObject({ status: 401, code: 'invalid_token' })
    })

    test('needs a session, and neither shows nor revokes the grants of another owner', async () => {
      const [ours, theirs] = [await connected(), await connected(bob)]
      for (const each of forgeries(ours.cookie)) {
        const answers = [(await shown(each)).status, ...(await revoke(ours.grantId, each))]
        expect(answers, each).toEqual([403, 403, null])
      }
      expect((await shown(theirs.cookie)).ids).not.toContain(ours.grantId)
      for (const id of [ours.grantId, '', 'unknown', '\0', '../grants', 'A'.repeat(500)]) {
        expect(await revoke(id, theirs.cookie), id).toEqual([404, null])
      }
      expect(await ours.spent()).toHaveProperty('spentDebitAmount')
      const init = { method: 'DELETE', headers: { cookie: ours.cookie } }
      expect((await fetch(page(), init)).status).toBe(405)
    })
  })

  async function payment(more: object = { incomingAmount: usd('2500') }) {
    const grant = (await client.grant.request(
      { url: authUrl() },
      {
        access_token: {
          access: [{ type: 'incoming-payment', actions: ['create', 'read'], identifier: bob }],
        },
      },
    )) as Grant
    const accessToken = grant.access_token?.value ?? ''
    const { id } = await client.incomingPayment.create(
      { url: `${running.baseUrl}`, accessToken },
      { walletAddress: bob, ...more },
    )
    return { id, read: () => client.incomingPayment.get({ url: id, accessToken }) }
  }

  describe('the sweep', () => {
    afterEach(() => vi.restoreAllMocks())

    /** Returns the events of a payment from Alice's account after some time and a sweep. */
    async function toldAfter(ms: number): Promise<string[]> {
      const { grant, url, cookie } = await opened({ limits: {} })
      const { location } = await submit(url, 'approve', cookie)
      const issued = (await continued(grant, refOf(grant, location))) as Grant
      const incoming = await payment()
      const { id } = await client.outgoingPayment.create(
        { url: `${running.baseUrl}`, accessToken: issued.access_token?.value ?? '' },
        { walletAddress: alice, incomingPayment: incoming.id, debitAmount: usd('100') },
      )
      const later = Date.now() + ms
      vi.spyOn(Date, 'now').mockImplementation(() => later)
      await running.wallet.sweep(new AbortController().signal)
      const told: string[] = []
      const hear: EventHandler = async (event) => {
        const own = 'outgoingPaymentId' in event && id.endsWith(event.outgoingPaymentId)
        if (own) told.push(event.type)
      }
      for (const events of running.wallet.events) {
        while ((await events.drain(hear)).delivered > 0);
      }
      return told
    }

    test('fails a payment that was not begun within a day', async () => {
      const created = 'outgoing-payment.created'
      expect(await toldAfter(86_000_000)).toEqual([created])
      vi.restoreAllMocks()
      expect(await toldAfter(86_400_000)).toEqual([created, 'outgoing-payment.failed'])
    })
  })
})

/** Sends a request on a connection that stays open. */
async function kept(port: number, request: string): Promise<Socket> {
  const socket = connect(port, 'localhost')
  await once(socket, 'connect')
  socket.write(request)
  return socket
}

/** Resolves when the port no longer accepts connections. */
async function untilRefused(port: number): Promise<void> {
  for (;;) {
    const socket = connect(port, 'localhost')
    const refused = await new Promise((resolve) => {
      socket.once('connect', () => resolve(false))
      socket.once('error', () => resolve(true))
    })
    socket.destroy()
    if (refused) return
  }
}

describe.concurrent('the wallet, as a program', () => {
  let directories: Awaited<ReturnType<typeof dataDirectories>>
  beforeAll(async () => {
    directories = await dataDirectories()
  })
  afterAll(() => {
    killPrograms()
    return directories?.remove()
  })

  const started = async (environment: Record<string, string> = {}) =>
    startedWallet({ DATA_DIR: await directories.create(), ...environment })

  test('prints its URLs when it is ready, serves them, and ends on SIGTERM with a connection open', async ({
    expect,
  }) => {
    const { printed, child, ended, baseUrl, port } = await started({
      ADAPTER: 'fastify',
      SETTLE: 'manual',
    })
    expect(printed.out).toContain('fastify')
    const ledger = ['/ledger/transfers', '/ledger/outgoing-payments/{id}/settle']
    for (const path of ['/auth', '/alice', '/bob', '/carol', ...ledger]) {
      expect(printed.out).toContain(`${baseUrl}${path}`)
    }
    const response = await fetch(`${baseUrl}/alice`)
    expect(await response.json()).toMatchObject({
      id: `${baseUrl}/alice`,
      authServer: `${baseUrl}/auth`,
    })
    const socket = await kept(port, 'GET /alice HTTP/1.1\r\nHost: localhost\r\n\r\n')
    const [answer] = await once(socket, 'data')
    expect(`${answer}`).toMatch(/^HTTP\/1\.1 200 OK/)
    child.kill('SIGTERM')
    expect(await ended).toEqual(exited)
    expect(printed.err).toBe('')
    socket.destroy()
  })

  test('says what it does before it is ready, and in words why it cannot start', async ({
    expect,
  }) => {
    const occupied = createServer().listen(0, 'localhost')
    await once(occupied, 'listening')
    const { port } = occupied.address() as AddressInfo
    const start = (environment: Record<string, string>) => {
      const { printed, ended } = runWallet({ PORT: `${port}`, ...environment })
      return ended.then(({ code }) => ({ code, ...printed }))
    }
    expect(await start({})).toEqual({
      code: 1,
      out: 'The example wallet starts: it opens a new database of PGlite.\n',
      err: `cannot listen on port ${port}: another program uses it; set PORT to another one\n`,
    })
    occupied.close()
    await once(occupied, 'close')
    expect(await start({ DATABASE_URL: `postgres://localhost:${port}/wallet` })).toEqual({
      code: 1,
      out: 'The example wallet starts: it opens PostgreSQL.\n',
      err: expect.stringMatching(
        `^cannot open PostgreSQL at localhost:${port}/wallet: .*ECONNREFUSED.*\n$`,
      ),
    })
    expect(await start({ DATABASE_URL: 'mysql://localhost/wallet' })).toMatchObject({
      code: 1,
      err: expect.stringContaining('DATABASE_URL must begin with postgres:// or postgresql://'),
    })
  })

  test.runIf(isLong)(
    'publishes BASE_URL, sends payments automatically, and finishes open requests before it ends',
    async ({ expect }) => {
      const { printed, child, ended, baseUrl, port } = await started({
        ADAPTER: 'hono',
        BASE_URL: 'https://wallet.example/',
        PEERS: 'http://localhost:4001',
        ILP_TOKEN: 'a-secret-of-the-peers',
      })
      expect(printed.out).toMatch(/payments are sent +automatically\n/)
      expect(printed.out).toMatch(/ILP peer +test\.localhost-4001, at http:/)
      expect(printed.out).not.toContain('a-secret-of-the-peers')
      expect(printed.out).toContain('https://wallet.example/auth')
      expect(printed.out).not.toContain(baseUrl)
      const response = await fetch(`${baseUrl}/alice`)
      expect(await response.json()).toMatchObject({
        id: 'https://wallet.example/alice',
        authServer: 'https://wallet.example/auth',
        resourceServer: 'https://wallet.example',
      })

      const head =
        'POST /ledger/transfers HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 4\r\n\r\n'
      const socket = await kept(port, `${head}nu`)
      // A response on another connection shows that the server has accepted the one before it.
      await fetch(`http://localhost:${port}/alice`)
      child.kill('SIGINT')
      await untilRefused(port)
      socket.write('ll')
      const [answer] = await once(socket, 'data')
      expect(`${answer}`).toMatch(/^HTTP\/1\.1 400 Bad Request/)
      expect(await ended).toEqual(exited)
      expect(printed.err).toBe('')
      socket.destroy()
    },
  )

  test.runIf(isLong)(
    'fails immediately for an unknown adapter, and lists the known ones',
    async ({ expect }) => {
      const { printed, ended } = runWallet({ PORT: `${await freePort()}`, ADAPTER: 'koa' })
      expect(await ended).toEqual({ code: 1, signal: null })
      expect(printed.err).toBe('ADAPTER must be one of express, fastify, hono\n')
      expect(printed.out).toBe('')
    },
  )
})
