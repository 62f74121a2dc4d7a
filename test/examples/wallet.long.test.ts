import { createHash, randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import {
  type AuthenticatedClient,
  createAuthenticatedClient,
  type Grant,
  isPendingGrant,
  type PendingGrant,
} from '@interledger/open-payments'
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from 'vitest'
import { openShop, type Shop } from '../../examples/demo/shop.js'
import { demoAccounts } from '../../examples/wallet/accounts.js'
import { consentPage } from '../../examples/wallet/consent-page.js'
import { freePort } from '../../examples/wallet/free-port.js'
import { memorySecrets } from '../../examples/wallet/secrets.js'
import { cookieSession } from '../../examples/wallet/session.js'
import { type RunningWallet, startWallet } from '../../examples/wallet/start.js'
import type { EventHandler, HttpRequest, Interactions, InteractionView } from '../../src/index.js'
import { isLong } from '../support/runs.js'
import { dataDirectories, exited, killPrograms, runWallet, startedWallet } from './program.js'

const usd = (value: string) => ({ value, assetCode: 'USD', assetScale: 2 })

describe('the wallet, over HTTP', () => {
  let running: RunningWallet
  let shop: Shop
  let client: AuthenticatedClient
  let [alice, bob] = ['', '']

  beforeAll(async () => {
    shop = await openShop()
    running = await startWallet({ adapter: 'express', port: await freePort() })
    const { walletAddress: walletAddressUrl, keyId, privateKey } = shop
    client = await createAuthenticatedClient({
      walletAddressUrl,
      keyId,
      privateKey,
      useHttp: true,
      validateResponses: true,
      logLevel: 'silent',
    })
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

  /** Submits the form like a browser; returns the response. */
  async function submit(url: string, decision: string, cookie: string) {
    const response = await fetch(url, {
      method: 'POST',
      redirect: 'manual',
      headers: { cookie, 'content-type': 'application/x-www-form-urlencoded' },
      body: new URLSearchParams({ decision }),
    })
    const location = response.headers.get('location')
    const text = await response.text()
    return { response, status: response.status, location, text }
  }

  async function cookieFrom(url: string): Promise<string> {
    const [line = ''] = (await fetch(url)).headers.getSetCookie()
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

  describe('the consent page', () => {
    test('names the app, the account, the limit and the place to return to', async () => {
      const { url } = await opened()
      const response = await fetch(url)
      const page = await response.text()
      expect(response.status).toBe(200)
      expect(response.headers.get('content-type')).toBe('text/html; charset=utf-8')
      expect(page).toContain(shop.walletAddress)
      expect(page).toContain(alice)
      expect(page).toMatch(/pay money/)
      expect(page).toMatch(/at most USD\u00a025\.50 .* every month, 12 times/)
      expect(page).toContain(new URL(shop.finishUri).host)
      expect(page).toMatch(/<form method="post">/)
      expect(
        [...page.matchAll(/name="decision" value="(\w+)"/g)].map(([, value]) => value),
      ).toEqual(['approve', 'deny'])
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
      expect(policy).toContain("default-src 'none'")
      expect(policy).toContain("frame-ancestors 'none'")
      expect(policy).toContain("base-uri 'none'")
      expect(policy).toContain(`form-action 'self' ${new URL(shop.finishUri).origin};`)
      const [cookie = ''] = headers.getSetCookie()
      expect(cookie).toMatch(/; HttpOnly/)
      expect(cookie).toMatch(/; SameSite=(Lax|Strict)/)
    })

    test('can be opened any number of times', async () => {
      const { grant, url, cookie } = await opened()
      for (let i = 0; i < 3; i++) expect((await fetch(url)).status).toBe(200)
      expect((await fetch(url, { method: 'HEAD' })).status).toBe(200)
      const { location } = await submit(url, 'approve', cookie)
      expect(await continued(grant, refOf(grant, location))).toHaveProperty('access_token')
    })

    test('redirects the browser with 303, without resubmitting the form', async () => {
      const { grant, url, cookie } = await opened()
      const { response, status, location, text } = await submit(url, 'approve', cookie)
      expect(status).toBe(303)
      expect(location?.startsWith(`${shop.finishUri}&hash=`)).toBe(true)
      refOf(grant, location)
      expect(text).toBe('')
      expect(response.headers.get('referrer-policy')).toBe('no-referrer')
      expect(response.headers.get('cache-control')).toBe('no-store')
    })

    test('accepts a double click, after which the last redirect counts', async () => {
      const { grant, url, cookie } = await opened()
      const clicks = [
        await submit(url, 'approve', cookie),
        await submit(url, 'approve', cookie),
        await submit(url, 'approve', cookie),
      ]
      expect(clicks.map(({ status }) => status)).toEqual([303, 303, 303])
      const refs = clicks.map(({ location }) => refOf(grant, location))
      expect(new Set(refs).size).toBe(3)
      await expect(continued(grant, refs[0])).rejects.toMatchObject({ status: 404 })
      await expect(continued(grant, refs[1])).rejects.toMatchObject({ status: 404 })
      expect(await continued(grant, refs[2])).toHaveProperty('access_token')
    })

    test('accepts two concurrent clicks', async () => {
      const { grant, url, cookie } = await opened()
      const clicks = await Promise.all(
        Array.from({ length: 5 }, () => submit(url, 'approve', cookie)),
      )
      expect(clicks.map(({ status }) => status)).toEqual([303, 303, 303, 303, 303])
      const answers = await Promise.allSettled(
        clicks.map(({ location }) => continued(grant, refOf(grant, location))),
      )
      expect(answers.filter(({ status }) => status === 'fulfilled')).toHaveLength(1)
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
      expect(await response.text()).not.toContain('<form')
    })

    test.each([
      ['approve', 'deny'],
      ['deny', 'approve'],
    ])('keeps the first decision: %s, then %s', async (first, second) => {
      const { url, cookie } = await opened()
      expect((await submit(url, first, cookie)).status).toBe(303)
      const { status, location } = await submit(url, second, cookie)
      expect(status).toBe(409)
      expect(location).toBeNull()
      expect((await submit(url, first, cookie)).status).toBe(303)
    })

    test('is closed once the app has its token', async () => {
      const { grant, url, cookie } = await opened()
      const { location } = await submit(url, 'approve', cookie)
      await continued(grant, refOf(grant, location))
      expect((await fetch(url)).status).toBe(410)
      for (const decision of ['approve', 'deny']) {
        const again = await submit(url, decision, cookie)
        expect([again.status, again.location]).toEqual([409, null])
      }
    })

    test('does not redirect if the app has no finish URI', async () => {
      const { grant, url, cookie } = await opened({ finish: false })
      expect(await (await fetch(url)).text()).toContain('return to the app')
      for (let i = 0; i < 2; i++) {
        const { status, location, text } = await submit(url, 'approve', cookie)
        expect([status, location]).toEqual([200, null])
        expect(text).toContain('return to the app')
      }
      expect(await continued(grant)).toHaveProperty('access_token')
    })

    test('refuses a decision without a session', async () => {
      const { grant, url, cookie } = await opened({ finish: false })
      const forged = cookie.replace(/\.[^.]*$/, `.${'A'.repeat(43)}`)
      const owner = cookie.replace(/\.[^.]*$/, '')
      const another = cookie.replace('=alice.', '=bob.')
      for (const each of ['', 'other=1', forged, owner, `${owner}.`, another]) {
        for (const decision of ['approve', 'deny']) {
          const { status, location } = await submit(url, decision, each)
          expect([status, location], each).toEqual([403, null])
        }
      }
      expect((await fetch(url)).status).toBe(200)
      await submit(url, 'approve', cookie)
      expect(await continued(grant)).toHaveProperty('access_token')
    })

    test.each(['approve', 'deny'])('does not let another owner %s', async (decision) => {
      const { url, cookie } = await opened()
      const { cookie: cookieOfBob } = await opened({ payer: bob })
      expect(cookieOfBob).toContain('=bob.')
      const { status, location } = await submit(url, decision, cookieOfBob)
      expect([status, location]).toEqual([403, null])
      expect((await submit(url, 'approve', cookie)).status).toBe(303)
    })

    test.each(['', 'maybe', 'Approve', 'approve '])('rejects the decision %j', async (decision) => {
      const { url, cookie } = await opened()
      const { status, location } = await submit(url, decision, cookie)
      expect([status, location]).toEqual([400, null])
      expect((await fetch(url)).status).toBe(200)
    })

    test.each(['PUT', 'PATCH', 'DELETE'])(
      'refuses %s and lists the allowed methods',
      async (method) => {
        const { url, cookie } = await opened()
        const response = await fetch(url, { method, headers: { cookie } })
        expect(response.status).toBe(405)
        expect(response.headers.get('allow')?.split(', ')).toEqual(
          expect.arrayContaining(['GET', 'POST']),
        )
      },
    )

    test.each([
      '',
      '/',
      '/unknown',
      '/unknown?redirect=https://evil.example',
      '/a.b',
      '/%00',
      `/${'A'.repeat(30)}.${'A'.repeat(22)}`,
    ])('that does not exist does not redirect: %s', async (path) => {
      const cookie = await cookieFrom((await asked()).interact.redirect)
      const url = `${running.baseUrl}/consent${path}`
      const shown = await fetch(url, { redirect: 'manual' })
      expect([shown.status, shown.headers.get('location')]).toEqual([404, null])
      expect(shown.headers.getSetCookie()).toEqual([])
      const { status, location } = await submit(url, 'approve', cookie)
      expect([status, location]).toEqual([404, null])
    })

    test('of one interaction is not found with the finish nonce of another', async () => {
      const [one, two] = [await asked(), await asked()]
      const [grantId] = one.interact.redirect.split('/').at(-1)?.split('.') ?? []
      const [, path] = two.interact.redirect.split('/').at(-1)?.split('.') ?? []
      const response = await fetch(`${running.baseUrl}/consent/${grantId}.${path}`)
      expect(response.status).toBe(404)
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
        client.outgoingPayment.getGrantSpentAmounts({ url: `${running.baseUrl}/op`, accessToken })
      return { grantId, cookie, spent }
    }

    async function shown(cookie: string) {
      const response = await fetch(page(), { headers: { cookie } })
      const text = await response.text()
      const ids = [...text.matchAll(/name="grant" value="([\w-]+)"/g)].map(([, id]) => id)
      return { status: response.status, text, ids }
    }

    async function revoke(grantId: string, cookie: string) {
      const body = new URLSearchParams({ grant: grantId })
      const headers = { cookie }
      const init = { method: 'POST', redirect: 'manual', headers, body } as const
      const response = await fetch(page(), init)
      return [response.status, response.headers.get('location')]
    }

    test('shows an owner each app with its access, until the owner revokes it', async () => {
      const { grantId, cookie, spent } = await connected()
      const before = await shown(cookie)
      expect(before.status).toBe(200)
      expect(before.text).toContain(shop.walletAddress)
      expect(before.text).toMatch(/at most USD\u00a025\.50 .* every month, 12 times/)
      expect(before.ids).toContain(grantId)
      expect(await spent()).toHaveProperty('spentDebitAmount')
      expect(await revoke(grantId, cookie)).toEqual([303, '/grants?revoked'])
      expect((await shown(cookie)).ids).not.toContain(grantId)
      await expect(spent()).rejects.toMatchObject({ status: 401, code: 'invalid_token' })
    })

    test('neither shows nor revokes the grants of another owner', async () => {
      const [ours, theirs] = [await connected(), await connected(bob)]
      expect((await shown(theirs.cookie)).ids).not.toContain(ours.grantId)
      expect(await revoke(ours.grantId, theirs.cookie)).toEqual([404, null])
      expect(await ours.spent()).toHaveProperty('spentDebitAmount')
    })

    test('needs a session', async () => {
      const { grantId, cookie, spent } = await connected()
      const forged = cookie.replace(/\.[^.]*$/, `.${'A'.repeat(43)}`)
      for (const each of ['', forged, cookie.replace('=alice.', '=bob.')]) {
        expect([(await shown(each)).status, await revoke(grantId, each)]).toEqual([
          403,
          [403, null],
        ])
      }
      expect(await spent()).toHaveProperty('spentDebitAmount')
    })

    test('refuses to revoke a grant that does not exist', async () => {
      const { cookie } = await connected()
      for (const id of ['', 'unknown', '\0', '../grants', 'A'.repeat(500)]) {
        expect(await revoke(id, cookie), id).toEqual([404, null])
      }
      const init = { method: 'DELETE', headers: { cookie } }
      expect((await fetch(page(), init)).status).toBe(405)
      expect((await fetch(`${page()}/x`, { headers: { cookie } })).status).toBe(404)
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
      { url: `${running.baseUrl}/op`, accessToken },
      { walletAddress: bob, ...more },
    )
    return { id, read: () => client.incomingPayment.get({ url: id, accessToken }) }
  }

  describe('the ledger', () => {
    async function report(body: unknown) {
      const response = await fetch(`${running.baseUrl}/ledger/transfers`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: typeof body === 'string' ? body : JSON.stringify(body),
      })
      return { status: response.status, body: (await response.json()) as Record<string, unknown> }
    }

    const arrive = (incomingPayment: string, value: string, transferId: string = randomUUID()) =>
      report({ transferId, incomingPayment, amount: usd(value) })

    const failed = (status: number, code: string) => ({ status, body: { error: { code } } })

    test('counts received funds, below, up to and above the incoming amount', async () => {
      const { id, read } = await payment()
      const first = await arrive(id, '1500')
      expect(first.status).toBe(200)
      expect(first.body).toMatchObject({ id, receivedAmount: usd('1500'), completed: false })
      expect(first.body).not.toHaveProperty('methods')
      const second = await arrive(id, '1001')
      expect(second.body).toMatchObject({ receivedAmount: usd('2501'), completed: true })
      expect(await read()).toMatchObject({ receivedAmount: usd('2501'), completed: true })
    })

    test('counts a repeated transfer once', async () => {
      const { id, read } = await payment()
      const transferId = randomUUID()
      const reports = await Promise.all(
        Array.from({ length: 20 }, () => arrive(id, '100', transferId)),
      )
      expect(reports.map(({ status }) => status)).toEqual(Array<number>(20).fill(200))
      expect((await read()).receivedAmount).toEqual(usd('100'))
      await arrive(id, '2400')
      const late = await arrive(id, '100', transferId)
      expect([late.status, late.body['completed']]).toEqual([200, true])
      expect((await read()).receivedAmount).toEqual(usd('2500'))
    })

    test('refuses a transfer id that was used for something else', async () => {
      const [{ id, read }, other] = [await payment(), await payment()]
      const transferId = randomUUID()
      await arrive(id, '100', transferId)
      const mismatch = failed(409, 'transfer_mismatch')
      expect(await arrive(id, '101', transferId)).toEqual(mismatch)
      expect(await arrive(other.id, '100', transferId)).toEqual(mismatch)
      expect((await read()).receivedAmount).toEqual(usd('100'))
      expect((await other.read()).receivedAmount).toEqual(usd('0'))
    })

    test('refuses funds after completion or expiry', async () => {
      const { id, read } = await payment({ incomingAmount: usd('100') })
      await arrive(id, '100')
      expect(await arrive(id, '1')).toEqual(failed(409, 'payment_completed'))
      expect((await read()).receivedAmount).toEqual(usd('100'))
    })

    test.each(['0', '-1', '01', '1.5', '1e3', '', ' 1', '18446744073709551616', 'NaN'])(
      'rejects %j as an amount',
      async (value) => {
        const { id, read } = await payment()
        expect(await arrive(id, value)).toEqual(failed(409, 'amount_invalid'))
        expect((await read()).receivedAmount).toEqual(usd('0'))
      },
    )

    test.each([
      { value: '100', assetCode: 'EUR', assetScale: 2 },
      { value: '100', assetCode: 'USD', assetScale: 3 },
      { value: '100', assetCode: 'usd', assetScale: 2 },
      { value: '100', assetCode: 'USD', assetScale: 2.5 },
    ])('refuses an asset that differs from the payment: %j', async (amount) => {
      const { id } = await payment()
      expect(await report({ transferId: randomUUID(), incomingPayment: id, amount })).toEqual(
        failed(409, 'amount_invalid'),
      )
    })

    test('refuses an unknown payment', async () => {
      const { id } = await payment()
      const unknown = failed(404, 'payment_unknown')
      const other = [
        `${running.baseUrl}/op/incoming-payments/unknown`,
        `${id}x`,
        `${id}/x`,
        id.replace('/op/', '/other/'),
        id.replace('localhost', 'localhost.example'),
        'https://evil.example/op/incoming-payments/1',
        'incoming-payments/1',
        '',
      ]
      for (const url of other) expect(await arrive(url, '100'), url).toEqual(unknown)
    })

    test.each([
      '',
      '{',
      'null',
      '[]',
      '1',
      '"text"',
      '{}',
      '{"transferId":"1"}',
      '{"transferId":"","incomingPayment":"x","amount":{"value":"1","assetCode":"USD","assetScale":2}}',
      '{"transferId":1,"incomingPayment":"x","amount":{"value":"1","assetCode":"USD","assetScale":2}}',
      '{"transferId":"1","incomingPayment":1,"amount":{"value":"1","assetCode":"USD","assetScale":2}}',
      '{"transferId":"1","incomingPayment":"x","amount":{"value":1,"assetCode":"USD","assetScale":2}}',
      '{"transferId":"1","incomingPayment":"x","amount":{"value":"1","assetCode":"USD"}}',
      '{"transferId":"1","incomingPayment":"x","amount":null}',
      'x'.repeat(70_000),
    ])('rejects %s', async (body) => {
      expect(await report(body)).toEqual(failed(400, 'invalid_request'))
    })

    test('serves one path and one method', async () => {
      const url = `${running.baseUrl}/ledger`
      const get = await fetch(`${url}/transfers`)
      expect([get.status, get.headers.get('allow')]).toEqual([405, 'POST'])
      for (const path of ['', '/', '/transfer', '/transfers/1']) {
        expect((await fetch(url + path, { method: 'POST', body: '{}' })).status).toBe(404)
      }
    })
  })

  describe('the sweep', () => {
    afterEach(() => vi.restoreAllMocks())

    /** Returns the events of a payment from Alice's account after some time and a sweep. */
    async function toldAfter(ms: number): Promise<string[]> {
      const { grant, url, cookie } = await opened({ limits: {} })
      const { location } = await submit(url, 'approve', cookie)
      const issued = (await continued(grant, refOf(grant, location))) as Grant
      const incoming = await payment()
      const { id } = await client.outgoingPayment.create(
        { url: `${running.baseUrl}/op`, accessToken: issued.access_token?.value ?? '' },
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

describe('the consent page for untrusted text', async () => {
  const accounts = await demoAccounts('https://wallet.example', memorySecrets())
  const markup = `<img src=x onerror=alert(1)>"'&`

  function pageOf(view: Partial<InteractionView>, decided: object = { ok: true }) {
    const complete: InteractionView = {
      id: 'id',
      grantId: 'grant',
      state: 'pending',
      client: 'https://shop.example',
      access: [],
      tokens: [{ access: view.access ?? [] }],
      totals: [],
      expiresAt: 0,
      ...view,
    }
    const interactions = {
      get: async () => complete,
      approve: async () => decided,
      deny: async () => decided,
    } as Interactions
    const handle = consentPage(interactions, accounts, cookieSession(new Uint8Array(32)))
    const request: HttpRequest = {
      method: 'GET',
      url: '/consent/id',
      headers: [],
      body: new Uint8Array(),
    }
    return { handle, request, show: () => handle(request) }
  }

  function expectEscaped(body: string | undefined): void {
    expect(body).toContain('img src=x')
    expect(body).not.toContain('<img')
    expect(body).not.toMatch(/onerror=alert\(1\)>/)
    expect(body).not.toContain(`"'&`)
  }

  test('escapes the client', async () => {
    expectEscaped((await pageOf({ client: markup }).show()).body)
  })

  test('escapes the account and the receiver', async () => {
    const item = { type: 'outgoing-payment', actions: ['create'] } as const
    expectEscaped((await pageOf({ access: [{ ...item, identifier: markup }] }).show()).body)
    const limits = { receiver: markup }
    expectEscaped((await pageOf({ access: [{ ...item, limits }] }).show()).body)
    const debitAmount = { value: '1', assetCode: markup, assetScale: 2 }
    expectEscaped((await pageOf({ access: [{ ...item, limits: { debitAmount } }] }).show()).body)
    const interval = markup
    expectEscaped((await pageOf({ access: [{ ...item, limits: { interval } }] }).show()).body)
  })

  test('escapes the label of a token', async () => {
    const tokens = [{ label: markup, access: [] }]
    expectEscaped((await pageOf({ tokens }).show()).body)
  })

  test('escapes the wallet address and the asset of a total', async () => {
    const debitAmount = { value: '1', assetCode: markup, assetScale: 2 }
    const totals = [{ identifier: markup, debitAmount, items: 2 }]
    expectEscaped((await pageOf({ totals }).show()).body)
  })

  test('shows each of several tokens by its label, and the total of their limits', async () => {
    const pay = { type: 'outgoing-payment', actions: ['create'], identifier: 'x' } as const
    const debitAmount = { value: '5000', assetCode: 'USD', assetScale: 2 }
    const { body } = await pageOf({
      tokens: [
        { label: 'rent', access: [pay] },
        { label: 'food', access: [pay] },
      ],
      totals: [
        { identifier: 'https://wallet.example/alice', debitAmount, items: 2 },
        { identifier: 'https://wallet.example/bob', debitAmount, items: 1 },
      ],
    }).show()
    expect(body).toMatch(/“rent”.*<li>pay money.*“food”.*<li>pay money/s)
    expect(body).toContain(
      '2 of these permissions add up for https://wallet.example/alice: ' +
        'together at most USD\u00a050.00 is debited from your account in all.',
    )
    expect(body).not.toContain('https://wallet.example/bob')
  })

  test('escapes the reason of an error', async () => {
    const refused = { ok: false, refusal: 'access_widened', reason: markup }
    const { handle, request, show } = pageOf({}, refused)
    const cookie = (await show()).headers['set-cookie']?.split(';')[0] ?? ''
    const body = Buffer.from('decision=approve')
    const answer = await handle({ ...request, method: 'POST', headers: [['Cookie', cookie]], body })
    expect(answer.status).toBe(409)
    expectEscaped(answer.body)
  })

  test.each([
    ['https://shop.example/back?a=1', 'https://shop.example'],
    ['http://localhost:1234/back', 'http://localhost:1234'],
    ['com.example.app:/back', 'com.example.app:'],
    ["https://shop.example/';script-src *", 'https://shop.example'],
  ])('allows the form to redirect to %s only', async (finishUri, target) => {
    const { headers } = await pageOf({ finishUri }).show()
    expect(headers['content-security-policy']).toContain(`form-action 'self' ${target};`)
    expect(headers['content-security-policy']).not.toContain('script-src')
  })

  test.each([
    'https://a;sandbox',
    'https://a;script-src',
    "https://'unsafe-inline'",
    'https://*',
    'https://a,b',
  ])('adds nothing of a host that is no name to the policy: %s', async (finishUri) => {
    const { headers } = await pageOf({ finishUri }).show()
    const { headers: without } = await pageOf({}).show()
    expect(headers['content-security-policy']).toBe(without['content-security-policy'])
  })

  test.each([
    ['expired', 'expired'],
    ['denied', 'answered'],
    ['closed', 'answered'],
  ] as const)('cannot be answered when it is %s', async (state, word) => {
    const { status, body, headers } = await pageOf({ state }).show()
    expect(status).toBe(410)
    expect(body).toContain(word)
    expect(body).not.toContain('<form')
    expect(headers).not.toHaveProperty('set-cookie')
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
    for (const path of ['/auth', '/op', '/alice', '/bob', '/carol', ...ledger]) {
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
        resourceServer: 'https://wallet.example/op',
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
