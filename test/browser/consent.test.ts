import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import {
  type AuthenticatedClient,
  createAuthenticatedClient,
  isPendingGrant,
} from '@interledger/open-payments'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { demoPassword } from '../../examples/demo/browser.js'
import { openShop, type Shop } from '../../examples/demo/shop.js'
import { type CreatedWallet, plainWallet, startCreatedWallet } from '../support/created-wallet.js'
import { engines, openWindow, type Window } from './engines.js'

if (engines.length === 0) test.skip('skipped: run .ci/browser', () => {})

describe.each(engines)('in %s, a consent', (engine) => {
  let window: Window
  let running: CreatedWallet
  let shop: Shop
  let client: AuthenticatedClient
  /** The servers of the app: an API that redirects on, its site at another origin, and one at an IPv6 address. */
  const servers: Server[] = []
  let [api, site, six] = ['', '', '']

  async function served(host: string, location?: string): Promise<string> {
    const server = createServer((_request, response) => {
      response.writeHead(location === undefined ? 200 : 302, {
        'content-type': 'text/plain',
        ...(location !== undefined && { location }),
      })
      response.end('the page of the app')
    })
    servers.push(server)
    await new Promise<void>((resolve) => server.listen(0, host.replace(/[[\]]/g, ''), resolve))
    return `http://${host}:${(server.address() as AddressInfo).port}`
  }

  beforeAll(async () => {
    shop = await openShop()
    running = await startCreatedWallet({ create: plainWallet })
    const { walletAddress: walletAddressUrl, keyId, privateKey } = shop
    const options = { walletAddressUrl, keyId, privateKey, useHttp: true } as const
    client = await createAuthenticatedClient({ ...options, logLevel: 'silent' })
    site = await served('127.0.0.1')
    api = await served('localhost', `${site}/thanks`)
    six = await served('[::1]')
  })
  afterAll(async () => {
    for (const server of servers) server.close()
    shop?.stop()
    await running?.stop()
  })
  beforeEach(async () => {
    window = await openWindow(engine)
  })
  afterEach(() => window?.close())

  /** Opens the consent page of a request that ends at this URI, as Alice. Resolves to its URL. */
  async function opened(uri: string, value = '2550'): Promise<string> {
    const access = {
      type: 'outgoing-payment' as const,
      actions: ['create' as const, 'read' as const],
      identifier: `${running.baseUrl}/alice`,
      limits: { debitAmount: { value, assetCode: 'USD', assetScale: 2 } },
    }
    const finish = { method: 'redirect' as const, uri, nonce: 'nonce-of-the-shop' }
    const grant = await client.grant.request(
      { url: `${running.baseUrl}/auth` },
      { access_token: { access: [access] }, interact: { start: ['redirect'], finish } },
    )
    if (!isPendingGrant(grant)) throw new Error('it is not pending')
    await window.open(grant.interact.redirect)
    await signIn()
    return grant.interact.redirect
  }

  async function signIn() {
    await expect.poll(() => text()).toContain('Password')
    await window.type('#owner', 'alice')
    await window.type('#password', demoPassword)
    await window.click('form button.primary')
    await expect.poll(() => text()).toContain('asks to pay from your account')
  }

  /** The text of the page, or nothing while another one loads. */
  const text = () => window.read('document.body.innerText').then(String, () => '')

  async function statusOf(redirect: string) {
    const id = redirect.split('/').at(-1) ?? ''
    return (await running.wallet.auth.interactions.get(id))?.status
  }

  test.each([
    ['approve', 'approved', 'interact_ref='],
    ['deny', 'denied', 'result=grant_rejected'],
  ])(
    'ends at the app, also where that redirects to another origin: %s',
    async (decision, status) => {
      const redirect = await opened(`${api}/callback`)
      await window.click(`button[value=${decision}]`)
      await expect.poll(() => window.url()).toBe(`${site}/thanks`)
      expect(await text()).toContain('the page of the app')
      expect(await statusOf(redirect)).toBe(status)
      await window.open(redirect)
      await expect.poll(() => text()).toContain(`has been ${status}`)
      await window.click('button[value=return]')
      await expect.poll(() => window.url()).toBe(`${site}/thanks`)
    },
  )

  test('ends at a page with a link, where the app is at an IPv6 address', async () => {
    const redirect = await opened(`${six}/callback`)
    await window.click('button[value=approve]')
    await expect.poll(() => text()).toContain('Approved')
    expect(await statusOf(redirect)).toBe('approved')
    await window.click('a.button')
    await expect
      .poll(() => window.url())
      .toMatch(/^http:\/\/\[::1\]:\d+\/callback\?hash=.*interact_ref=/)
  })

  test('ends at a page with a link, where the app has a scheme of its own', async () => {
    await opened('com.example.shop:/callback')
    await window.click('button[value=approve]')
    await expect.poll(() => text()).toContain('Approved')
    const href = `document.querySelector('a.button').href`
    expect(await window.read(href)).toMatch(/^com\.example\.shop:\/callback\?hash=.*interact_ref=/)
  })

  test('keeps an amount of 24 characters inside its card, where the page is 320 px wide', async () => {
    await opened(`${site}/thanks`, '999999999999999')
    expect(await text()).toContain('9,999,999,999,999.99\u00a0USD')
    // WebKit has no windows as narrow as a phone, and the size of an amount depends on its card.
    await window.read(
      `void Object.assign(document.body.style, { width: '320px', fontFamily: 'DejaVu Sans' })`,
    )
    const overflows = await window.read(`[...document.querySelectorAll('.number')].map((number) => {
      const box = number.closest('dd, li, .choice > span, .card')
      const { paddingRight, borderRightWidth } = getComputedStyle(box)
      const inside = parseFloat(paddingRight) + parseFloat(borderRightWidth)
      return number.getBoundingClientRect().right - (box.getBoundingClientRect().right - inside)
    })`)
    expect(overflows).not.toEqual([])
    for (const overflow of overflows as readonly number[]) expect(overflow).toBeLessThanOrEqual(0.5)
  })

  test('says that the session has ended, and goes on after a new login', async () => {
    const redirect = await opened(`${api}/callback`)
    await window.forgetCookies()
    await window.click('button[value=approve]')
    await expect.poll(() => text()).toContain('You were signed out')
    expect(await statusOf(redirect)).toBe('pending')
    await window.click('a.button')
    await signIn()
    await window.click('button[value=approve]')
    await expect.poll(() => window.url()).toBe(`${site}/thanks`)
  })

  test.each(['', '10'])(
    'is not approved by Enter in the field for a lower limit, with "%s" in it',
    async (typed) => {
      const redirect = await opened(`${api}/callback`)
      await window.click('details summary')
      await window.type('#limit-0', typed, 'Enter')
      await expect.poll(() => text()).toContain('Please choose either Approve or Deny.')
      expect(await statusOf(redirect)).toBe('pending')
      expect(await window.read(`document.getElementById('limit-0').value`)).toBe(typed)
      // Back asks for no form to be sent again, and shows the same page.
      await window.open(site)
      await window.back()
      await expect.poll(() => text()).toContain('Please choose either Approve or Deny.')
    },
  )
})
