import {
  type ConnectedApp,
  connectedAppScreen,
  connectedAppsScreen,
  consentScreen,
  endedAppsScreen,
  html,
  localeFor,
  page as pageOf,
  type Screen,
} from 'open-payments-pages'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { AccessItem, Amount, InteractionView, ItemBudget } from '../../src/index.js'
import { alice } from '../support/world.js'
import {
  type Browser,
  expectToFitAPhone,
  forceColors,
  hasBrowser,
  launched,
  newPage,
  type Page,
  violations,
} from './chromium.js'

const now = Date.UTC(2026, 10, 25)
const token = html``
const most: Amount = { value: `${2n ** 64n - 1n}`, assetCode: 'USD', assetScale: 2 }

function paying(limits: AccessItem['limits']): AccessItem {
  return {
    type: 'outgoing-payment',
    actions: ['create', 'read', 'list-all'],
    identifier: alice,
    ...(limits && { limits }),
  }
}

const monthly = paying({ debitAmount: most, interval: 'R12/2026-11-01T00:00:00Z/P1M' })
const options = (tag: string) => ({
  locale: localeFor({ headers: [] }, { language: tag }),
  now,
  token,
})

function consent(item: AccessItem, tag: string): Screen {
  const { debitAmount, interval } = item.limits ?? {}
  const view: InteractionView = {
    id: 'id',
    grantId: 'grant',
    status: 'pending',
    client: 'https://shop.example/app',
    clientKey: { kid: 'shop-1', thumbprint: 'thumbprint' },
    display: { uri: 'https://shop.example', name: 'Green Energy' },
    access: [item],
    tokens: [{ access: [item] }],
    needAccount: [],
    totals: [
      {
        identifier: alice,
        items: 1,
        ...(debitAmount && { debitAmount }),
        ...(interval !== undefined && { interval }),
      },
    ],
    expiresAt: now + 600_000,
  }
  const balance = 2n ** 64n - 1n
  const accounts = [{ url: alice, publicName: 'Alice', balance, assetCode: 'USD', assetScale: 2 }]
  return consentScreen(view, { ...options(tag), accounts })
}

function apps(tag: string): Readonly<Record<'list' | 'detail' | 'ended', Screen>> {
  const item = { ...monthly, itemId: '1' }
  const budget: ItemBudget = {
    item,
    isOpen: true,
    window: { start: now, end: Date.UTC(2026, 11, 1) },
    spent: { debitAmount: most, receiveAmount: null },
    left: { debitAmount: most },
  }
  const app: ConnectedApp = {
    grant: {
      grantId: 'grant',
      client: 'https://shop.example/app',
      clientKey: { kid: 'shop-1', thumbprint: 'thumbprint' },
      status: 'approved',
      access: [item],
      createdAt: 0,
      approvedAt: now,
      conditions: { limits: [{ debitAmount: most, payments: 9 }] },
    },
    budgets: [budget],
    ownerLimits: [{ source: 'owner', isOpen: true, left: { debitAmount: most, payments: 9 } }],
    lastPayment: null,
  }
  const accounts = [{ url: alice, publicName: 'Alice', assetCode: 'USD', assetScale: 2 }]
  return {
    list: connectedAppsScreen([app], { ...options(tag), accounts }),
    detail: connectedAppScreen(app, { ...options(tag), accounts }),
    ended: endedAppsScreen([{ ...app.grant, endedAt: now }], { ...options(tag), accounts }),
  }
}

/** The words and numbers of the page that stand on two lines. URLs may: they can be longer than any line. */
async function broken(page: Page): Promise<string[]> {
  return (await page.evaluate(`(() => {
    for (const each of document.querySelectorAll('details')) each.open = true
    const walker = document.createTreeWalker(document.querySelector('main'), NodeFilter.SHOW_TEXT)
    const range = document.createRange()
    const found = []
    while (walker.nextNode()) {
      const node = walker.currentNode
      if (node.parentElement.closest('bdi')?.textContent.includes('://')) continue
      for (const { 0: word, index } of node.data.matchAll(/[\\p{L}\\p{N}][\\p{L}\\p{M}\\p{N}.,\\u066b\\u066c\\u00a0]*/gu)) {
        range.setStart(node, index)
        range.setEnd(node, index + word.length)
        const lines = new Set([...range.getClientRects()].map(({ top }) => Math.round(top)))
        if (lines.size > 1) found.push(word)
      }
    }
    return found
  })()`)) as string[]
}

describe('in Chromium, the pages for owners', () => {
  if (!hasBrowser) return test.skip('skipped: run .ci/browser', () => {})

  let browser: Browser
  let page: Page
  beforeAll(async () => {
    browser = await launched()
    page = await newPage(await browser.createBrowserContext())
  })
  afterAll(() => browser?.close())

  async function show(screen: Screen, tag: string): Promise<void> {
    const { locale } = options(tag)
    const owner = { name: 'Alice', signOut: { token: 'x' } }
    await page.setContent(pageOf(screen, { locale, owner }).body ?? '')
  }

  describe.each(['en', 'de', 'es', 'ar-EG'])('in %s', (tag) => {
    test.each([
      ['consent', () => consent(monthly, tag)],
      ['connected apps', () => apps(tag).list],
      ['one connected app', () => apps(tag).detail],
      ['ended apps', () => apps(tag).ended],
    ])('break no word on a phone, and no amount in large letters: %s', async (_, screen) => {
      await show(screen(), tag)
      for (const width of [320, 390]) {
        await page.setViewport({ width, height: 640 })
        expect(await broken(page), `${width}`).toEqual([])
      }
      for (const width of [320, 390, 1024]) {
        await page.setViewport({ width, height: 640 })
        await page.evaluate(`void (document.documentElement.style.fontSize = '200%')`)
        const numbers = (await broken(page)).filter((each) => /\p{N}/u.test(each))
        expect(numbers, `${width}`).toEqual([])
        await page.evaluate(`void (document.documentElement.style.fontSize = '')`)
      }
      expect(await violations(page)).toEqual([])
      await expectToFitAPhone(page)
    })
  })

  test('keep the frame of a warning in forced colours', async () => {
    await show(consent(paying(undefined), 'en'), 'en')
    await forceColors(page)
    expect(await page.evaluate(`matchMedia('(forced-colors: active)').matches`)).toBe(true)
    const [style, width, color] = (await page.evaluate(`(() => {
      const style = getComputedStyle(document.querySelector('.warning'))
      return [style.borderTopStyle, Number.parseFloat(style.borderTopWidth), style.borderTopColor]
    })()`)) as [string, number, string]
    expect([style, width > 0]).toEqual(['solid', true])
    expect(color).toMatch(/^rgb\(/)
  })
})
