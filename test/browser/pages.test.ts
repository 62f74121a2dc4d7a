import { createPublicKey, generateKeyPairSync, randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import {
  type AuthenticatedClient,
  createAuthenticatedClient,
  isFinalizedGrantWithAccessToken,
  isPendingGrant,
  type PendingGrant,
} from '@interledger/open-payments'
import { openAccount } from 'create-open-payments-server/wallet/ledger'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { demoPassword } from '../../examples/demo/browser.js'
import { openShop, type Shop } from '../../examples/demo/shop.js'
import { answerBrowser } from '../../packages/cli/src/finish-page.js'
import { type CreatedWallet, plainWallet, startCreatedWallet } from '../support/created-wallet.js'
import {
  accessible,
  type Browser,
  type BrowserContext,
  click,
  expectToFitAPhone,
  fill,
  focused,
  follow,
  forceColors,
  hasBrowser,
  keepSaved,
  largest,
  launched,
  newPage,
  type Page,
  press,
  saved,
  tabTo,
  textOf,
  violations,
} from './chromium.js'

/** Returns a new public key. */
function publicJwk(members: object = {}): string {
  const { publicKey } = generateKeyPairSync('ed25519')
  return JSON.stringify({ ...publicKey.export({ format: 'jwk' }), ...members })
}

const languages = [
  {
    tag: 'en',
    direction: 'ltr',
    amount: '25.50 USD',
    period: 'every month, 12 times',
    button: 'Approve',
    large: '60.00 USD',
    confirm: 'Confirm',
    confirmed: 'Payment confirmed',
    keys: 'Keys of your apps',
  },
  {
    tag: 'de',
    direction: 'ltr',
    amount: '25,50 USD',
    period: 'jeden Monat, 12-mal',
    button: 'Zustimmen',
    large: '60,00 USD',
    confirm: 'Bestätigen',
    confirmed: 'Zahlung bestätigt',
    keys: 'Schlüssel Ihrer Apps',
  },
  {
    tag: 'es',
    direction: 'ltr',
    amount: '25,50 USD',
    period: 'cada mes, 12 veces',
    button: 'Autorizar',
    large: '60,00 USD',
    confirm: 'Confirmar',
    confirmed: 'Pago confirmado',
    keys: 'Claves de sus aplicaciones',
  },
  {
    tag: 'ar-EG',
    direction: 'rtl',
    amount: '٢٥٫٥٠ USD',
    period: 'كل شهر، ١٢ مرة',
    button: 'موافقة',
    large: '٦٠٫٠٠ USD',
    confirm: 'تأكيد',
    confirmed: 'تم تأكيد الدفعة',
    keys: 'مفاتيح تطبيقاتك',
  },
]

describe('in Chromium, the pages for owners', () => {
  if (!hasBrowser) return test.skip('skipped: run .ci/browser', () => {})

  let browser: Browser
  let context: BrowserContext | undefined
  let running: CreatedWallet
  let shop: Shop
  let client: AuthenticatedClient

  beforeAll(async () => {
    browser = await launched()
    shop = await openShop()
    running = await startCreatedWallet({ create: plainWallet })
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
    return (await requested(limits)).interact.redirect
  }

  async function requested(limits: object): Promise<PendingGrant> {
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
    return grant
  }

  let token: string | undefined

  /** Resolves to the URL of the page that confirms a payment of 60.00 to Bob, which waits for Alice. */
  async function waiting(): Promise<string> {
    token ??= await tokenToPay()
    const { baseUrl, wallet } = running
    const invoice = { walletAddress: `${baseUrl}/bob`, idempotencyKey: randomUUID() }
    const made = await wallet.resources.incomingPayments.create(invoice)
    if (!made.ok) throw new Error(made.reason)
    const debitAmount = { value: '6000', assetCode: 'USD', assetScale: 2 }
    const payment = { walletAddress: `${baseUrl}/alice`, incomingPayment: made.url, debitAmount }
    const target = { url: baseUrl, accessToken: token }
    const refused = await client.outgoingPayment.create(target, payment).catch((error) => error)
    expect(refused).toMatchObject({ status: 403, code: 'confirmation_required' })
    return refused.details.url
  }

  /** Resolves to a token of a grant without a limit, to which Alice has consented. */
  async function tokenToPay(): Promise<string> {
    const grant = await requested({})
    const page = await opened(grant.interact.redirect)
    await approve(page)
    const reference = new URL(page.url()).searchParams.get('interact_ref') ?? ''
    const { uri: url, access_token: continuation } = grant.continue
    const continued = { url, accessToken: continuation.value }
    const issued = await client.grant.continue(continued, { interact_ref: reference })
    if (!isFinalizedGrantWithAccessToken(issued)) throw new Error('it has no token')
    return issued.access_token.value
  }

  const approve = (page: Page) => click(page, 'button[value=approve]')

  /** Opens a page in a browser of its own, and signs in if it needs an owner. */
  async function opened(url: string, language = 'en', owner = 'alice'): Promise<Page> {
    context = await browser.createBrowserContext()
    const page = await newPage(context)
    await page.setExtraHTTPHeaders({ 'accept-language': language })
    await page.goto(url)
    if (new URL(page.url()).pathname === '/login') {
      await fill(page, { owner, password: demoPassword })
      await click(page, 'form button')
    }
    return page
  }

  /** The keys that a wallet address publishes. */
  async function published(owner: string): Promise<{ kid: string; x: string }[]> {
    const response = await fetch(`${running.baseUrl}/${owner}/jwks.json`)
    const { keys } = (await response.json()) as { keys: { kid: string; x: string }[] }
    return keys
  }

  describe.each(languages)('in $tag', (language) => {
    const { tag, direction, amount, period, button, keys } = language
    test('ask for consent in this language, and break no rule of axe, light or dark', async () => {
      const page = await opened(await asked(), tag)
      expect(await page.evaluate('document.documentElement.lang')).toBe(tag)
      expect(await page.evaluate('document.documentElement.dir')).toBe(direction)
      const text = await textOf(page)
      expect(text).toContain(amount)
      expect(text).toContain(period)
      expect(text).toContain(shop.walletAddress)
      expect(await largest(page)).toContain(amount)
      expect(await accessible(page)).toContain(`button ${button}`)
      expect(await violations(page)).toEqual([])
      await page.emulateMediaFeatures([{ name: 'prefers-color-scheme', value: 'dark' }])
      expect(await violations(page)).toEqual([])
      await expectToFitAPhone(page)
    })

    test('ask to confirm a payment in this language, and break no rule of axe, light or dark', async () => {
      const { large, confirm, confirmed } = language
      const page = await opened(await waiting(), tag)
      expect(await page.evaluate('document.documentElement.lang')).toBe(tag)
      expect(await page.evaluate('document.documentElement.dir')).toBe(direction)
      expect(await textOf(page)).toContain(shop.walletAddress)
      expect(await largest(page)).toContain(large)
      expect(await accessible(page)).toContain(`button ${confirm}`)
      expect(await violations(page)).toEqual([])
      await page.emulateMediaFeatures([{ name: 'prefers-color-scheme', value: 'dark' }])
      expect(await violations(page)).toEqual([])
      await expectToFitAPhone(page)
      await click(page, 'button[value=confirm]')
      expect(await accessible(page)).toContain(`heading ${confirmed}`)
      expect(await violations(page)).toEqual([])
      await expectToFitAPhone(page)
    })

    test('list the connected apps in this language, and break no rule of axe', async () => {
      const page = await opened(await asked(), tag)
      await approve(page)
      await page.goto(`${running.baseUrl}/apps`)
      expect(await textOf(page)).toContain(amount)
      expect(await violations(page)).toEqual([])
      await expectToFitAPhone(page)
      await click(page, 'a[href^="?app="]')
      expect(await textOf(page)).toContain(period)
      expect(await violations(page)).toEqual([])
      await page.emulateMediaFeatures([{ name: 'prefers-color-scheme', value: 'dark' }])
      expect(await violations(page)).toEqual([])
      await expectToFitAPhone(page)
    })

    test('limit the payments of all apps in this language, and break no rule of axe, light or dark', async () => {
      const { baseUrl, wallet } = running
      const owner = `owner${tag.slice(0, 2)}`
      const asset = { assetCode: 'USD', assetScale: 2 }
      const account = { url: `${baseUrl}/${owner}`, owner, ...asset, balance: 0n }
      await openAccount(wallet.database, account)
      const page = await opened(`${baseUrl}/apps`, tag, owner)
      await click(page, 'a[href="?limits"]')
      expect(await page.evaluate('document.documentElement.lang')).toBe(tag)
      expect(await page.evaluate('document.documentElement.dir')).toBe(direction)
      const unfold = `document.querySelectorAll('details').forEach((each) => { each.open = true })`
      await page.evaluate(unfold)
      expect(await violations(page)).toEqual([])
      await fill(page, { 'account-0-new-payments': '0' })
      await click(page, 'button[value=limit]')
      expect(await accessible(page)).toContain('alert')
      expect(await violations(page)).toEqual([])
      await expectToFitAPhone(page)
      const month = 'R/2024-01-01T00:00:00Z/P1M'
      const [most = ''] = amount.split(' ')
      await fill(page, { 'account-0-new-most': most, 'account-0-new-payments': '3' })
      await fill(page, { 'account-0-new-interval': month })
      await click(page, 'button[value=limit]')
      expect(await textOf(page)).toContain(amount)
      expect(await violations(page)).toEqual([])
      await expectToFitAPhone(page)
      await click(page, 'button[value=save]')
      expect(await accessible(page)).toContain('status')
      expect(await textOf(page)).toContain(amount)
      await page.evaluate(unfold)
      expect(await violations(page)).toEqual([])
      await page.emulateMediaFeatures([{ name: 'prefers-color-scheme', value: 'dark' }])
      expect(await violations(page)).toEqual([])
      await expectToFitAPhone(page)
    })

    test('register the keys of apps in this language, and break no rule of axe', async () => {
      const page = await opened(`${running.baseUrl}/keys`, tag, 'carol')
      expect(await violations(page)).toEqual([])
      await fill(page, { name: 'Shop', key: 'no key' })
      await click(page, '#add')
      expect(await accessible(page)).toContain('alert')
      expect(await violations(page)).toEqual([])
      await fill(page, { name: 'Shop', key: publicJwk({ kid: `shop-${tag}` }) })
      await click(page, '#add')
      expect(await textOf(page)).toContain(`shop-${tag}`)
      expect(await accessible(page)).toContain(`heading ${keys}`)
      expect(await violations(page)).toEqual([])
      await expectToFitAPhone(page)
    })

    test('send money in this language, and break no rule of axe', async () => {
      const page = await opened(`${running.baseUrl}/send`, tag)
      expect(await violations(page)).toEqual([])
      await fill(page, { to: 'no address', amount: '2' })
      await click(page, '#check')
      expect(await accessible(page)).toContain('alert')
      expect(await violations(page)).toEqual([])
      await expectToFitAPhone(page)
      await fill(page, { to: `${running.baseUrl}/bob`, amount: '2' })
      await click(page, '#check')
      const url = page.url()
      expect(new URL(url).searchParams.has('quote')).toBe(true)
      expect(await violations(page)).toEqual([])
      await expectToFitAPhone(page)
      await click(page, 'main button.primary')
      expect(page.url()).toBe(url)
      expect(await page.evaluate('document.querySelector("main form")')).toBe(null)
      expect(await violations(page)).toEqual([])
    })
  })

  test('link to each other side by side, and mark the page that is open', async () => {
    const page = await opened(`${running.baseUrl}/apps?limits`)
    const links = `[...document.querySelectorAll('nav a')].map((link) => {
      const { left, right } = link.getBoundingClientRect()
      return { text: link.textContent, left, right, current: link.getAttribute('aria-current') }
    })`
    const [apps, limits, keys] = (await page.evaluate(links)) as readonly {
      readonly text: string
      readonly left: number
      readonly right: number
      readonly current: string | null
    }[]
    expect([apps?.text, limits?.text, keys?.text]).toEqual(['Apps', 'Limits', 'Keys'])
    expect([apps?.current, limits?.current, keys?.current]).toEqual([null, 'page', null])
    expect(limits?.left).toBeGreaterThan(apps?.right ?? 0)
    expect(keys?.left).toBeGreaterThan(limits?.right ?? 0)
  })

  test('let an owner approve with the keyboard alone, and lead back to the app', async () => {
    const page = await opened(await asked())
    expect(await tabTo(page, 'Approve')).toEqual([
      'Not you? Sign out',
      'Lower the limit',
      'Details',
      'Approve',
    ])
    await follow(page, 'Enter')
    const location = new URL(page.url())
    expect(page.url().startsWith(`${shop.finishUri}&`)).toBe(true)
    expect([...location.searchParams.keys()]).toEqual(['order', 'hash', 'interact_ref'])
  })

  test('let an owner deny with the keyboard alone, and lead back to the app', async () => {
    const page = await opened(await asked())
    expect((await tabTo(page, 'Deny')).slice(-2)).toEqual(['Approve', 'Deny'])
    await follow(page, 'Space')
    expect(new URL(page.url()).origin).toBe(new URL(shop.finishUri).origin)
    expect(new URL(page.url()).searchParams.has('interact_ref')).toBe(false)
  })

  test.each([
    { key: 'Enter', button: 'Confirm', said: 'The payment is being made.' },
    { key: 'Space', button: 'Decline', said: 'Nothing is paid.' },
  ])('let an owner decide about a payment with the keyboard alone: $button', async (decision) => {
    const { key, button, said } = decision
    const page = await opened(await waiting())
    const [signOut, ...buttons] = await tabTo(page, button)
    expect(signOut).toBe('Not you? Sign out')
    expect(buttons).toEqual(['Confirm', 'Decline'].slice(0, button === 'Confirm' ? 1 : 2))
    await follow(page, key)
    expect(await textOf(page)).toContain(said)
    expect(await violations(page)).toEqual([])
  })

  test('say all about a payment in the colours of the system, with one button that stands out', async () => {
    const page = await opened(await waiting())
    await forceColors(page)
    const text = await textOf(page)
    for (const part of ['60.00 USD', 'Bob', 'Alice', shop.walletAddress]) {
      expect(text).toContain(part)
    }
    const widths = `[...document.querySelectorAll('.buttons button')]
      .map((button) => Number.parseFloat(getComputedStyle(button).borderTopWidth))`
    const [confirm, decline] = (await page.evaluate(widths)) as [number, number]
    expect(decline).toBeGreaterThan(0)
    expect(confirm).toBeGreaterThan(decline)
    expect(await violations(page)).toEqual([])
    await click(page, 'button[value=decline]') // what waits comes first on the page of apps
  })

  test('show what is wrong with a form that confirms, and let it be sent again', async () => {
    const page = await opened(await waiting())
    const submit = `document.querySelector('form.card').submit()`
    await Promise.all([page.waitForNavigation(), page.evaluate(submit)])
    expect(await accessible(page)).toContain('alert')
    expect(await violations(page)).toEqual([])
    await press(page, 'Tab', 'Enter')
    await expect.poll(() => focused(page)).toBe('Confirm')
    await follow(page, 'Enter')
    expect(await textOf(page)).toContain('The payment is being made.')
  })

  test.each([
    ['deny', 'This request has been denied.'],
    ['approve', 'This request has been approved.'],
  ])('say what was decided, and lead back to the app: %s', async (decision, expected) => {
    const url = await asked()
    const page = await opened(url)
    await click(page, `button[value=${decision}]`)
    await page.goto(url)
    expect(await textOf(page)).toContain(expected)
    expect(await violations(page)).toEqual([])
    await click(page, 'button[value=return]')
    expect(page.url().startsWith(shop.finishUri)).toBe(true)
  })

  test('show an error that takes the focus and leads to the buttons', async () => {
    const page = await opened(await asked())
    await Promise.all([
      page.waitForNavigation(),
      page.evaluate(`document.querySelector('main form').submit()`),
    ])
    expect(await focused(page)).toContain('Please choose either Approve or Deny.')
    expect(await violations(page)).toEqual([])
    await press(page, 'Tab', 'Enter')
    await expect.poll(() => focused(page)).toBe('Approve')
    await follow(page, 'Enter')
    expect(page.url().startsWith(shop.finishUri)).toBe(true)
  })

  test('let an owner approve less, and show a wrong limit at its field, where it was typed', async () => {
    const page = await opened(await asked())
    await tabTo(page, 'Lower the limit')
    await press(page, 'Enter', 'Tab', '9', '9')
    await click(page, 'button[value=approve]')
    expect(await focused(page)).toContain('A limit can only become lower.')
    expect(await violations(page)).toEqual([])
    await expectToFitAPhone(page)
    await press(page, 'Tab', 'Enter')
    await expect.poll(() => page.evaluate('document.activeElement.value')).toBe('99')
    await fill(page, { 'limit-0': '10.25' })
    await approve(page)
    expect(page.url().startsWith(shop.finishUri)).toBe(true)
    await page.goto(`${running.baseUrl}/apps`)
    expect(await textOf(page)).toContain('Up to 10.25 USD')
  })

  test('name everything that a screen reader reads', async () => {
    const page = await opened(await asked())
    const app = new URL(shop.walletAddress).host
    const roles = await accessible(page)
    const heading = `heading ${app} asks to pay from your account`
    for (const expected of ['main', heading, 'button Approve', 'button Deny']) {
      expect(roles).toContain(expected)
    }
    await approve(page)
    await page.goto(`${running.baseUrl}/apps`)
    const listed = await accessible(page)
    expect(listed).toContain('heading Connected apps')
    expect(listed).toContain(`heading ${app}`)
    expect(listed).toContain(`button Pause payments: ${app}`)
    expect(listed).toContain(`link Details and payments: ${app}`)
    await click(page, 'a[href^="?app="]')
    const detail = await accessible(page)
    expect(detail.some((each) => each.endsWith(`Remove access: ${app}`))).toBe(true)
  })

  test('let an owner find, open and revoke a connected app with the keyboard alone', async () => {
    const page = await opened(await asked())
    await approve(page)
    await page.goto(`${running.baseUrl}/apps`)
    const apps = `document.querySelectorAll('article').length`
    const before = Number(await page.evaluate(apps))
    expect(before).toBeGreaterThan(0)
    const header = ['Not you? Sign out', 'Apps', 'Limits', 'Keys', 'Send']
    expect(await tabTo(page, 'Search')).toEqual([...header, '', 'Search'])
    await press(page, 'Tab')
    expect(await focused(page)).toBe('Details and payments')
    await follow(page, 'Enter')
    expect(await tabTo(page, 'Remove access')).toEqual([
      ...header,
      'All connected apps',
      'Lower the limit',
      'Add a limit',
      'Pause payments',
      'Remove access',
    ])
    await press(page, 'Enter', 'Tab')
    expect(await focused(page)).toContain('Remove the access of')
    await follow(page, 'Enter')
    expect(await accessible(page)).toContain('status')
    expect(await textOf(page)).toContain(`no longer has access to Alice.`)
    expect(await page.evaluate(apps)).toBe(before - 1)
    expect(await violations(page)).toEqual([])
  })

  test('show an error of a connected app at its field, with what was typed', async () => {
    const page = await opened(await asked())
    await approve(page)
    await page.goto(`${running.baseUrl}/apps`)
    await click(page, 'a[href^="?app="]')
    await fill(page, { 'limit-1': '9.9.5' })
    await click(page, 'button[value=lower]')
    expect(await focused(page)).toContain('as an amount, such as 12.50.')
    expect(await violations(page)).toEqual([])
    await press(page, 'Tab', 'Enter')
    await expect.poll(() => page.evaluate('document.activeElement.value')).toBe('9.9.5')
    await fill(page, { 'limit-1': '10.25' })
    await follow(page, 'Enter')
    expect(await accessible(page)).toContain('status')
    expect(await textOf(page)).toContain('to Alice has been saved.')
    expect(await textOf(page)).toContain('Up to 10.25 USD')
  })

  test.each(['returned', 'unknown'] as const)(
    'look like the last page of the command line client, which has: %s',
    async (name) => {
      const server = createServer((_, response) => answerBrowser(response, name))
      server.listen(0, '127.0.0.1')
      await once(server, 'listening')
      const page = await opened(`http://127.0.0.1:${(server.address() as AddressInfo).port}`)
      server.close()
      for (const value of ['dark', 'light']) {
        await page.emulateMediaFeatures([{ name: 'prefers-color-scheme', value }])
        expect(await violations(page)).toEqual([])
      }
      const look = (selector: string) =>
        page.evaluate(`(() => {
          const { color, backgroundColor, borderRadius } = getComputedStyle(document.querySelector('${selector}'))
          return [color, backgroundColor, borderRadius]
        })()`)
      const shown = await look('main')
      await expectToFitAPhone(page)
      await page.goto(await asked())
      expect(shown).toEqual(await look('.card'))
    },
  )

  describe('for the keys of apps', () => {
    const keysUrl = (query: Readonly<Record<string, string>> = {}) =>
      `${running.baseUrl}/keys?${new URLSearchParams(query)}`

    const openedAsBob = (query?: Readonly<Record<string, string>>) =>
      opened(keysUrl(query), 'en', 'bob')

    test('publish a pasted key until it is revoked', async () => {
      const page = await openedAsBob()
      const { x = '', ...jwk } = JSON.parse(publicJwk({ kid: 'pasted' }))
      await fill(page, { name: 'Shop', key: JSON.stringify({ ...jwk, x }) })
      await click(page, '#add')
      expect(await textOf(page)).toContain('The key has been added.')
      expect(await published('bob')).toMatchObject([{ kid: 'pasted', x }])
      await page.evaluate(`document.querySelector('article summary').click()`)
      expect(await textOf(page)).toContain('An app with this key is refused at once.')
      expect(await accessible(page)).toContain('button Revoke the key Shop')
      await click(page, 'button[name=revoke]')
      expect(await textOf(page)).toContain('The key has been revoked.')
      expect(await published('bob')).toEqual([])
    })

    test('make a key, and keep its private part in the browser', async () => {
      const page = await openedAsBob()
      await keepSaved(page)
      await page.evaluate(`document.getElementById('make').click()`)
      await expect.poll(() => textOf(page)).toContain('Your browser has saved the private key as')
      expect(await violations(page)).toEqual([])
      const pem = await saved(page)
      const form = String(
        await page.evaluate(
          `new URLSearchParams(new FormData(document.querySelector('main form')))+''`,
        ),
      )
      expect(new URLSearchParams(form).get('key')).not.toMatch(/"d"|PRIVATE/)
      await fill(page, { name: 'Made here' })
      await click(page, '#add')
      const { x } = createPublicKey(pem).export({ format: 'jwk' })
      const keys = await published('bob')
      expect(keys).toMatchObject([{ x, kid: expect.stringMatching(/^[\w-]{36}$/) }])
      await click(page, 'button[name=revoke]')
    })

    test('say no more that a key was refused, once the browser has made another', async () => {
      const page = await openedAsBob()
      await keepSaved(page)
      const { publicKey } = generateKeyPairSync('x25519')
      const refused = publicKey.export({ format: 'pem', type: 'spki' }).toString()
      await fill(page, { name: 'Shop', key: refused })
      await click(page, '#add')
      expect(await textOf(page)).toContain('The key was not added')
      await page.evaluate(`document.getElementById('make').click()`)
      await expect.poll(() => textOf(page)).toContain('Your browser has saved the private key as')
      for (const told of ['The key was not added', 'This is a key of another kind']) {
        expect(await textOf(page)).not.toContain(told)
      }
      expect(await page.evaluate(`document.querySelector('[aria-invalid]')`)).toBe(null)
      expect(await violations(page)).toEqual([])
      await click(page, '#add')
      expect(await textOf(page)).toContain('The key has been added.')
      await click(page, 'button[name=revoke]')
    })

    test('say that the browser cannot make a key', async () => {
      const page = await openedAsBob()
      await page.evaluate(`crypto.subtle.generateKey = () => Promise.reject(new Error('unknown'))`)
      await page.evaluate(`document.getElementById('make').click()`)
      await expect.poll(() => textOf(page)).toContain('This browser cannot make such keys.')
    })

    test('are filled by the link of an app, and say why another key is refused', async () => {
      const account = `${running.baseUrl}/bob`
      const key = publicJwk()
      const page = await openedAsBob({ account, name: 'The "Shop"', key })
      const value = (id: string) => page.evaluate(`document.getElementById('${id}').value`)
      expect([await value('account'), await value('name')]).toEqual([account, 'The "Shop"'])
      expect(await value('key')).toBe(key)
      expect(await published('bob')).toEqual([])
      const { publicKey } = generateKeyPairSync('x25519')
      await fill(page, { key: publicKey.export({ format: 'pem', type: 'spki' }).toString() })
      await click(page, '#add')
      expect(await focused(page)).toContain('This is a key of another kind.')
      await press(page, 'Tab', 'Enter')
      await expect.poll(() => page.evaluate('document.activeElement.id')).toBe('key')
      await page.goto(keysUrl({ account: `${running.baseUrl}/alice`, key }))
      expect(await textOf(page)).toContain('This request is for another account.')
    })
  })
})
