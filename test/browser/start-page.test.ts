import { createWithStartPage } from 'create-open-payments-server/wallet/start-page/index'
import { type Sandbox, startSandbox } from 'open-payments-sandbox'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { demoPassword } from '../../examples/demo/browser.js'
import { type CreatedWallet, noFee, startCreatedWallet } from '../support/created-wallet.js'
import {
  accessible,
  type Browser,
  click,
  expectToFitAPhone,
  fill,
  forceColors,
  hasBrowser,
  launched,
  newPage,
  type Page,
  textOf,
  violations,
} from './chromium.js'

describe('in Chromium, the start page', () => {
  if (!hasBrowser) return test.skip('skipped: run .ci/browser', () => {})

  let browser: Browser
  let wallet: CreatedWallet
  let sandbox: Sandbox
  let mustConfirm = false
  beforeAll(async () => {
    browser = await launched()
    sandbox = await startSandbox({ port: 0, outboundTimeoutMs: 60_000 })
    wallet = await startCreatedWallet({
      create: async (settings, database, ports) => ({
        wallet: await createWithStartPage(settings, database, {
          ...ports,
          exchanges: noFee,
          mustConfirm: () => mustConfirm,
        }),
      }),
    })
  })
  afterAll(async () => {
    await browser?.close()
    await wallet?.stop()
    await sandbox?.stop()
  })

  async function opened(url: string): Promise<Page> {
    const page = await newPage(await browser.createBrowserContext())
    await page.goto(url)
    return page
  }

  async function expectToBeUsable(page: Page): Promise<void> {
    for (const value of ['light', 'dark']) {
      await page.emulateMediaFeatures([{ name: 'prefers-color-scheme', value }])
      expect(await violations(page)).toEqual([])
    }
    await expectToFitAPhone(page)
    await page.setViewport({ width: 1024, height: 768 })
  }

  test('of a created wallet pays, on a phone, in the dark, and by its names for a screen reader', async () => {
    const page = await opened(`${wallet.baseUrl}/`)
    await expectToBeUsable(page)
    expect(await accessible(page)).toContain('button Pay Bob 5.00\u00a0USD')
    await click(page, 'button.primary')
    await fill(page, { owner: 'alice', password: demoPassword })
    await click(page, 'form button')
    expect(await textOf(page)).toContain('Bob')
    await click(page, 'button[value=approve]')
    const text = await textOf(page)
    expect(text).toContain('Alice has paid Bob 5.00 USD.')
    expect(text).toContain('105.00 USD')
    await expectToBeUsable(page)
  })

  test('leads to the page on which the owner confirms a payment, and continues it afterwards', async () => {
    mustConfirm = true
    const page = await opened(`${wallet.baseUrl}/`)
    await click(page, 'button.primary')
    expect(await textOf(page)).toContain('alice or bob, with the password')
    await expectToBeUsable(page)
    await fill(page, { owner: 'alice', password: demoPassword })
    await click(page, 'form button')
    await click(page, 'button[value=approve]')
    expect(await textOf(page)).toContain('The payment waits for Alice: confirm or decline it')
    await expectToBeUsable(page)
    await click(page, '[role=status] a')
    await click(page, 'button[value=confirm]')
    mustConfirm = false
    await expectToBeUsable(page)
    await click(page, 'footer a')
    expect(await textOf(page)).toContain('Alice has paid Bob 5.00 USD.')
  })

  test('continues a payment when it comes back into view', async () => {
    mustConfirm = true
    const page = await opened(`${wallet.baseUrl}/`)
    await click(page, 'button.primary')
    await fill(page, { owner: 'alice', password: demoPassword })
    await click(page, 'form button')
    await click(page, 'button[value=approve]')
    mustConfirm = false
    const url = String(await page.evaluate(`document.querySelector('[role=status] a').href`))
    const payments = wallet.wallet.resources.outgoingPayments
    const id = new URL(url).pathname.split('/').at(-1) ?? ''
    await payments.decline(id, { resourceOwner: 'alice' })
    await page.evaluate(`void document.dispatchEvent(new Event('visibilitychange'))`)
    await expect.poll(() => textOf(page)).toContain('Alice has declined the payment.')
  })

  test('breaks no option of a command at its hyphens', async () => {
    const page = await opened(`${wallet.baseUrl}/`)
    await page.setViewport({ width: 320, height: 640 })
    const broken = `[...document.querySelectorAll('pre .option')].filter((option) =>
      option.offsetHeight > 1.5 * Number.parseFloat(getComputedStyle(option).lineHeight)).length`
    expect(await page.evaluate(`document.querySelectorAll('pre .option').length`)).toBe(5)
    expect(await page.evaluate(broken)).toBe(0)
  })

  test('of the sandbox pays from one wallet to the other', async () => {
    const page = await opened(sandbox.url)
    await expectToBeUsable(page)
    await click(page, 'button.primary')
    await click(page, 'button[value=approve]')
    expect(await textOf(page)).toContain('Alice has paid Dana 5.00 USD.')
    await expectToBeUsable(page)
  })

  test('lists requests as they are answered, each with the reason of its refusal', async () => {
    const page = await opened(`${wallet.baseUrl}/`)
    await fetch(`${wallet.baseUrl}/incoming-payments`, { method: 'POST' })
    await expect.poll(() => textOf(page)).toContain('Signature-Input is missing')
    await page.evaluate(`document.getElementById('refused').click()`)
    const visible = `[...document.querySelectorAll('#rows tr')].filter((row) => row.offsetHeight > 0)`
    expect(await page.evaluate(`${visible}.every((row) => row.className === 'refused')`)).toBe(true)
    await forceColors(page)
    expect(await textOf(page)).toContain('Signature-Input is missing')
  })

  test('shows the newest ten requests, and the older ones on demand', async () => {
    const page = await opened(`${wallet.baseUrl}/`)
    for (let count = 0; count < 14; count += 1) await fetch(`${wallet.baseUrl}/alice`)
    await expect
      .poll(() => page.evaluate(`document.querySelectorAll('#rows tr').length`))
      .toBeGreaterThan(13)
    const visible = `[...document.querySelectorAll('#rows tr')].filter((row) => row.offsetHeight > 0).length`
    expect(await page.evaluate(visible)).toBe(10)
    await page.evaluate(`document.getElementById('older').click()`)
    expect(await page.evaluate(visible)).toBeGreaterThan(13)
  })

  test('has a button that copies each command', async () => {
    const page = await opened(`${wallet.baseUrl}/`)
    await page.evaluate(
      `void (navigator.clipboard.writeText = async (text) => { window.copied = text })`,
    )
    await page.evaluate(`document.querySelector('.copy').click()`)
    await expect.poll(() => page.evaluate('window.copied')).toBe(`curl ${wallet.baseUrl}/alice`)
    expect(await page.evaluate(`document.querySelector('.copy').textContent`)).toBe('Copied')
  })
})
