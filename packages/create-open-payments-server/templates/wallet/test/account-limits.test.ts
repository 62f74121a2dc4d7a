import { afterAll, beforeAll, expect, test } from 'vitest'
import { type App, openApp } from './support/app.js'
import { type Browser, browserOf } from './support/browser.js'
import { runningWallet, type TestWallet } from './support/running-wallet.js'

let wallet: TestWallet
let apps: readonly [App, App]
let alice: Browser
beforeAll(async () => {
  wallet = await runningWallet()
  apps = [await openApp(wallet.baseUrl), await openApp(wallet.baseUrl)]
  alice = await browserOf(wallet.baseUrl, 'alice')
})
afterAll(async () => {
  for (const app of apps ?? []) app.close()
  await wallet?.stop()
})

const page = () => `${wallet.baseUrl}/apps?limits`
const every = (period: 'D' | 'W' | 'M') => `R/2024-01-01T00:00:00Z/P1${period}`

/** Sends a form of the page as a browser does, and saves what the next page shows. */
async function sent(form: Readonly<Record<string, string>>) {
  const { token } = await alice.open(page())
  const account = `${wallet.baseUrl}/alice`
  const checked = await alice.send(page(), { token, account, do: 'limit', interval: '', ...form })
  const { shown } = checked
  if (shown === undefined) return checked
  return alice.send(page(), { token: checked.token ?? '', shown, do: 'save' })
}

/** What the page says of each limit. */
async function shown(): Promise<readonly string[]> {
  const { text } = await alice.open(page())
  const main = text.slice(text.indexOf('<main>'))
  return [...main.matchAll(/<ul>(.*?)<\/ul>/gs)].map(([, terms = '']) =>
    terms.replaceAll(/<[^>]*>/g, ''),
  )
}

test('A limit that Alice sets applies to the payments of all apps, and a lower one at once', async () => {
  const [shop, other] = apps
  const [token, otherToken] = [await shop.paying({}), await other.paying({})]
  expect(await shown()).toEqual([])
  await shop.pay(token, '100')

  expect((await sent({ most: '30' })).status).toBe(303)
  const refused = { status: 403, code: 'not_permitted_now' }
  await shop.pay(token, '2000')
  await expect(other.pay(otherToken, '1001')).rejects.toMatchObject(refused)
  await other.pay(otherToken, '500')

  expect((await sent({ most: '25' })).status).toBe(303)
  await expect(shop.pay(token, '1')).rejects.toMatchObject(refused)
  await expect(other.pay(otherToken, '1')).rejects.toMatchObject(refused)
  expect(await shown()).toEqual([expect.stringContaining('25.00')])
  await expect.poll(() => wallet.balanceOf('alice')).toBe(7_400n)
})

test('Limits that are saved at the same time all apply, and there are three at most', async () => {
  const saved = await Promise.all([
    sent({ interval: every('D'), payments: '9' }),
    sent({ interval: every('W'), payments: '20' }),
    sent({ most: '24' }),
  ])
  expect(saved.map(({ status }) => status)).toEqual([303, 303, 303])
  const all = (await shown()).join('\n')
  for (const expected of ['24.00', '9 times', '20 times']) expect(all).toContain(expected)
  expect((await sent({ interval: every('M'), payments: '1' })).status).toBe(400)
  expect(await shown()).toHaveLength(3)
})
