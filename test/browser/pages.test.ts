import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { resolve } from 'node:path'
import {
  type AuthenticatedClient,
  createAuthenticatedClient,
  isPendingGrant,
} from '@interledger/open-payments'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { openShop, type Shop } from '../../examples/demo/shop.js'
import { freePort } from '../../examples/wallet/free-port.js'
import { type RunningWallet, startWallet } from '../../examples/wallet/start.js'

/** Where `.ci/browser` has installed the tools. */
const folder = process.env['TEST_BROWSER']
const tools = createRequire(resolve(folder ?? '.', 'package.json'))

/** What the tests use of puppeteer-core, which is installed only there. */
interface Browser {
  createBrowserContext(): Promise<BrowserContext>
  close(): Promise<void>
}
interface BrowserContext {
  newPage(): Promise<Page>
  close(): Promise<void>
}
interface Page {
  readonly keyboard: { press(key: string): Promise<void> }
  readonly accessibility: { snapshot(options: object): Promise<AccessibleNode> }
  goto(url: string): Promise<unknown>
  url(): string
  setViewport(size: { width: number; height: number }): Promise<void>
  setExtraHTTPHeaders(headers: Record<string, string>): Promise<void>
  emulateMediaFeatures(features: { name: string; value: string }[]): Promise<void>
  waitForNavigation(): Promise<unknown>
  /** Runs an expression in the page. */
  evaluate(expression: string): Promise<unknown>
}
interface AccessibleNode {
  readonly role: string
  readonly name?: string
  readonly children?: readonly AccessibleNode[]
}

const languages = [
  {
    tag: 'en',
    direction: 'ltr',
    amount: 'USD 25.50',
    period: 'every month, 12 times',
    approve: 'Approve',
  },
  {
    tag: 'de',
    direction: 'ltr',
    amount: '25,50 USD',
    period: 'jeden Monat, 12-mal',
    approve: 'Zustimmen',
  },
  {
    tag: 'es',
    direction: 'ltr',
    amount: '25,50 USD',
    period: 'cada mes, 12 veces',
    approve: 'Autorizar',
  },
  {
    tag: 'ar-EG',
    direction: 'rtl',
    amount: '٢٥٫٥٠ USD',
    period: 'كل شهر، 12 مرة',
    approve: 'موافقة',
  },
]

describe('in Chromium, the pages for owners', () => {
  if (folder === undefined) return test.skip('skipped: run .ci/browser', () => {})

  let browser: Browser
  let context: BrowserContext | undefined
  let running: RunningWallet
  let shop: Shop
  let client: AuthenticatedClient

  beforeAll(async () => {
    const { default: puppeteer } = await import(tools.resolve('puppeteer-core'))
    const executablePath = '/usr/bin/chromium'
    // Chromium has no sandbox for root, as in a container. It opens only the pages of these tests.
    browser = await puppeteer.launch({ executablePath, args: ['--no-sandbox'] })
    shop = await openShop()
    running = await startWallet({ adapter: 'express', port: await freePort() })
    const { walletAddress: walletAddressUrl, keyId, privateKey } = shop
    client = await createAuthenticatedClient({
      walletAddressUrl,
      keyId,
      privateKey,
      useHttp: true,
      logLevel: 'silent',
    })
  })
  afterEach(() => context?.close())
  afterAll(async () => {
    await browser?.close()
    shop?.stop()
    await running?.stop()
  })

  /** Resolves to the URL of a consent page. */
  async function asked(): Promise<string> {
    const limits = {
      interval: 'R12/2026-12-01T00:00:00Z/P1M',
      debitAmount: { value: '2550', assetCode: 'USD', assetScale: 2 },
    }
    const access = {
      type: 'outgoing-payment' as const,
      actions: ['create' as const, 'read' as const],
      identifier: `${running.baseUrl}/alice`,
      limits,
    }
    const finish = { method: 'redirect' as const, uri: shop.finishUri, nonce: 'nonce-of-the-shop' }
    const grant = await client.grant.request(
      { url: `${running.baseUrl}/auth` },
      { access_token: { access: [access] }, interact: { start: ['redirect'], finish } },
    )
    if (!isPendingGrant(grant)) throw new Error('it is not pending')
    return grant.interact.redirect
  }

  /** Opens a page in a browser of its own. */
  async function opened(url: string, language = 'en'): Promise<Page> {
    context = await browser.createBrowserContext()
    const page = await context.newPage()
    await page.setExtraHTTPHeaders({ 'accept-language': language })
    await page.goto(url)
    return page
  }

  async function press(page: Page, ...keys: readonly string[]): Promise<void> {
    for (const key of keys) await page.keyboard.press(key)
  }

  /** Presses a key that leads to another page. */
  async function follow(page: Page, key: string): Promise<void> {
    await Promise.all([page.waitForNavigation(), page.keyboard.press(key)])
  }

  const focused = (page: Page) => page.evaluate('document.activeElement.textContent.trim()')

  /** The text of the page, with plain spaces and without marks of direction. */
  async function textOf(page: Page): Promise<string> {
    const text = String(await page.evaluate('document.body.innerText'))
    return text.replaceAll(/[\u00a0\u202f]/g, ' ').replaceAll(/[\u200e\u200f\u2066-\u2069]/g, '')
  }

  /** Every element of the accessibility tree that has a role, with its name. */
  async function accessible(page: Page): Promise<string[]> {
    const flat = (node: AccessibleNode): string[] => [
      `${node.role} ${(node.name ?? '').replaceAll(/[\u2066-\u2069]/g, '')}`.trim(),
      ...(node.children ?? []).flatMap(flat),
    ]
    return flat(await page.accessibility.snapshot({ interestingOnly: false }))
  }

  /** The rules of axe that the page breaks, with the elements. */
  async function violations(page: Page): Promise<unknown> {
    await page.evaluate(readFileSync(tools.resolve('axe-core/axe.min.js'), 'utf8'))
    return page.evaluate(`axe.run().then(({ violations }) =>
      violations.map(({ id, nodes }) => [id, ...nodes.map(({ html }) => html)]))`)
  }

  /** Whether the page is wider than the window. */
  function isCut(page: Page): Promise<unknown> {
    return page.evaluate('document.documentElement.scrollWidth > innerWidth')
  }

  async function expectToFitAPhone(page: Page): Promise<void> {
    await page.setViewport({ width: 320, height: 640 })
    expect(await isCut(page)).toBe(false)
    await page.evaluate(`void (document.documentElement.style.fontSize = '200%')`)
    expect(await isCut(page)).toBe(false)
    await page.evaluate(`void (document.documentElement.style.fontSize = '')`)
  }

  describe.each(languages)('in $tag', ({ tag, direction, amount, period, approve }) => {
    test('ask for consent in this language, and break no rule of axe, light or dark', async () => {
      const page = await opened(await asked(), tag)
      expect(await page.evaluate('document.documentElement.lang')).toBe(tag)
      expect(await page.evaluate('document.documentElement.dir')).toBe(direction)
      const text = await textOf(page)
      expect(text).toContain(amount)
      expect(text).toContain(period)
      expect(text).toContain(shop.walletAddress)
      expect(await accessible(page)).toContain(`button ${approve}`)
      expect(await violations(page)).toEqual([])
      await page.emulateMediaFeatures([{ name: 'prefers-color-scheme', value: 'dark' }])
      expect(await violations(page)).toEqual([])
      await expectToFitAPhone(page)
    })

    test('list the connected apps in this language, and break no rule of axe', async () => {
      const page = await opened(await asked(), tag)
      await press(page, 'Tab')
      await follow(page, 'Enter')
      await page.goto(`${running.baseUrl}/grants`)
      expect(await textOf(page)).toContain(amount)
      expect(await violations(page)).toEqual([])
      await expectToFitAPhone(page)
    })
  })

  test('let an owner approve with the keyboard alone, and lead back to the app', async () => {
    const page = await opened(await asked())
    await press(page, 'Tab')
    expect(await focused(page)).toBe('Approve')
    await follow(page, 'Enter')
    const location = new URL(page.url())
    expect(page.url().startsWith(`${shop.finishUri}&`)).toBe(true)
    expect([...location.searchParams.keys()]).toEqual(['order', 'hash', 'interact_ref'])
  })

  test('let an owner deny with the keyboard alone, and lead back to the app', async () => {
    const page = await opened(await asked())
    await press(page, 'Tab', 'Tab')
    expect(await focused(page)).toBe('Deny')
    await follow(page, 'Space')
    expect(new URL(page.url()).origin).toBe(new URL(shop.finishUri).origin)
    expect(new URL(page.url()).searchParams.has('interact_ref')).toBe(false)
  })

  test('say that a request has been answered', async () => {
    const url = await asked()
    const page = await opened(url)
    await press(page, 'Tab', 'Tab')
    await follow(page, 'Enter')
    await page.goto(url)
    expect(await textOf(page)).toContain('You have already answered this request.')
    expect(await violations(page)).toEqual([])
  })

  test('show an error that takes the focus and leads to the buttons', async () => {
    const page = await opened(await asked())
    await Promise.all([
      page.waitForNavigation(),
      page.evaluate(`document.querySelector('form').submit()`),
    ])
    expect(await focused(page)).toContain('Please choose either Approve or Deny.')
    expect(await violations(page)).toEqual([])
    await press(page, 'Tab', 'Enter')
    await expect.poll(() => focused(page)).toBe('Approve')
    await follow(page, 'Enter')
    expect(page.url().startsWith(shop.finishUri)).toBe(true)
  })

  test('name everything that a screen reader reads', async () => {
    const page = await opened(await asked())
    const roles = await accessible(page)
    for (const expected of ['main', 'heading Do you approve?', 'button Approve', 'button Deny']) {
      expect(roles).toContain(expected)
    }
    await press(page, 'Tab')
    await follow(page, 'Enter')
    await page.goto(`${running.baseUrl}/grants`)
    const listed = await accessible(page)
    expect(listed).toContain('heading Connected apps')
    expect(listed).toContain(`heading ${shop.walletAddress}`)
    expect(listed).toContain(`button Revoke the access of ${shop.walletAddress}`)
  })

  test('let an owner revoke a connected app with the keyboard alone', async () => {
    const page = await opened(await asked())
    await press(page, 'Tab')
    await follow(page, 'Enter')
    await page.goto(`${running.baseUrl}/grants`)
    const buttons = `document.querySelectorAll('button[name=grant]').length`
    const before = Number(await page.evaluate(buttons))
    expect(before).toBeGreaterThan(0)
    await press(page, 'Tab')
    expect(await focused(page)).toBe('Revoke')
    await follow(page, 'Enter')
    expect(await accessible(page)).toContain('status')
    expect(await textOf(page)).toContain('The app no longer has access.')
    expect(await page.evaluate(buttons)).toBe(before - 1)
    expect(await violations(page)).toEqual([])
  })
})
