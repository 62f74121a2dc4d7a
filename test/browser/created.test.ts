import { createPrivateKey, type KeyObject } from 'node:crypto'
import { createAuthenticatedClient, isPendingGrant } from '@interledger/open-payments'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import {
  type Browser,
  click,
  expectToFitAPhone,
  fill,
  hasBrowser,
  keepSaved,
  launched,
  newPage,
  type Page,
  saved,
  textOf,
  violations,
} from './chromium.js'

/** The origin of a wallet that `.ci/create` has created and started, and the password of its owners. */
const origin = process.env['TEST_CREATED_WALLET']
const password = process.env['TEST_CREATED_PASSWORD'] ?? ''

describe('in Chromium, the pages of a created wallet', () => {
  if (!hasBrowser || origin === undefined) return test.skip('skipped: run .ci/create', () => {})

  const alice = `${origin}/alice`
  let browser: Browser
  let page: Page
  beforeAll(async () => {
    browser = await launched()
    page = await newPage(await browser.createBrowserContext())
    await page.goto(`${origin}/keys`)
    await fill(page, { owner: 'alice', password })
    await click(page, 'form button')
  })
  afterAll(() => browser?.close())

  async function expectToBeUsable(): Promise<void> {
    for (const value of ['light', 'dark']) {
      await page.emulateMediaFeatures([{ name: 'prefers-color-scheme', value }])
      expect(await violations(page)).toEqual([])
    }
    await expectToFitAPhone(page)
    await page.setViewport({ width: 1024, height: 768 })
  }

  const published = async () => (await fetch(`${alice}/jwks.json`)).text()

  /** Registers a key that the browser makes, and returns it. */
  async function registered(): Promise<{ keyId: string; privateKey: KeyObject }> {
    await page.goto(`${origin}/keys`)
    await keepSaved(page)
    await page.evaluate(`document.getElementById('make').click()`)
    await expect.poll(() => textOf(page)).toContain('Your browser has saved the private key as')
    const privateKey = createPrivateKey(await saved(page))
    const jwk = String(await page.evaluate(`document.getElementById('key').value`))
    await fill(page, { name: 'The "Shop"' })
    await click(page, '#add')
    return { keyId: JSON.parse(jwk).kid, privateKey }
  }

  /** Requests access to pay from the account of Alice, and resolves to the URL of the consent page. */
  async function asked(key: Awaited<ReturnType<typeof registered>>): Promise<string> {
    const client = await createAuthenticatedClient({
      walletAddressUrl: alice,
      ...key,
      useHttp: true,
      logLevel: 'silent',
    })
    const { authServer } = await client.walletAddress.get({ url: alice })
    const grant = await client.grant.request(
      { url: authServer },
      {
        access_token: {
          access: [
            {
              type: 'outgoing-payment',
              actions: ['create', 'read'],
              identifier: alice,
              limits: {
                interval: 'R12/2026-12-01T00:00:00Z/P1M',
                debitAmount: { value: '2550', assetCode: 'USD', assetScale: 2 },
              },
            },
          ],
        },
        interact: {
          start: ['redirect'],
          finish: { method: 'redirect', uri: `${origin}/bob`, nonce: 'nonce-of-the-shop' },
        },
      },
    )
    if (!isPendingGrant(grant)) throw new Error('it is not pending')
    return grant.interact.redirect
  }

  test('register a key that the browser made, which signs until its owner revokes it', async () => {
    const key = await registered()
    expect(await textOf(page)).toContain('The "Shop"')
    expect(await published()).toContain(key.keyId)
    await expectToBeUsable()
    expect(await asked(key)).toContain(`${origin}/consent/`)
    await click(page, `button[name=revoke][value="${key.keyId}"]`)
    expect(await published()).not.toContain(key.keyId)
    await expect(asked(key)).rejects.toMatchObject({ code: 'invalid_client' })
  })

  test('ask for consent, and let the owner lower, pause and revoke what was granted', async () => {
    await page.goto(await asked(await registered()))
    expect(await textOf(page)).toContain('25.50')
    await expectToBeUsable()
    await click(page, 'button[value=approve]')
    expect(new URL(page.url()).searchParams.has('interact_ref')).toBe(true)

    await page.goto(`${origin}/apps`)
    expect(await textOf(page)).toContain('25.50')
    await expectToBeUsable()
    await click(page, 'a[href^="?app="]')
    await expectToBeUsable()
    await page.evaluate(`document.querySelector('[name=most]').value = '10.25'`)
    await click(page, 'button[value=lower]')
    expect(await textOf(page)).toContain('10.25')
    await click(page, 'button[value=pause]')
    expect(await textOf(page)).toContain('Resume payments')
    await click(page, 'button[value=resume]')
    expect(await textOf(page)).toContain('Pause payments')
    await click(page, 'button[value=revoke]')
    expect(await textOf(page)).toContain('No app has access to your account.')
  })

  test('pay from the start page, which shows the payment', async () => {
    await page.goto(`${origin}/`)
    await expectToBeUsable()
    await click(page, 'button.primary')
    await click(page, 'button[value=approve]')
    expect(await textOf(page)).toContain('Alice has paid Bob 5.00 USD.')
    await expectToBeUsable()
  })
})
