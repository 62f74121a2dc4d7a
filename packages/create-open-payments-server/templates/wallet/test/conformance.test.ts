import { serverConformance } from 'open-payments-doctor'
import { afterAll, expect, test } from 'vitest'
import { type Browser, browserOf, decide } from './support/browser.js'
import { runningWallet } from './support/running-wallet.js'
import { openShop } from './support/shop.js'

const wallet = await runningWallet()
const shop = await openShop()
const alice = await browserOf(wallet.baseUrl, 'alice')
afterAll(async () => {
  shop.close()
  await wallet.stop()
})

const interactUrls: string[] = []
/** The responses to forms of other sites, which do not know the field that the page adds. */
const forged: number[] = []
const cases = serverConformance({
  walletAddress: `${wallet.baseUrl}/alice`,
  receiver: `${wallet.baseUrl}/bob`,
  client: shop.client,
  async consent(interactUrl, decision) {
    interactUrls.push(interactUrl)
    forged.push((await alice.send(interactUrl, { decision: 'approve' })).status)
    return decide(alice, interactUrl, decision)
  },
})
for (const { name, run, timeoutMs } of cases) test(name, { timeout: timeoutMs }, run)

test('the consent page needs a login, and ignores forms of other sites', async () => {
  expect(interactUrls).not.toEqual([])
  const [interactUrl = ''] = interactUrls
  const nobody: Browser = await browserOf(wallet.baseUrl, 'NOBODY')
  expect((await nobody.open(interactUrl)).status).toBe(303)
  // A form of somebody who was signed out meanwhile gets a page that says so, and no redirect.
  expect((await nobody.send(interactUrl, { decision: 'approve' })).status).toBe(403)
  expect(forged).toEqual(interactUrls.map(() => 400))
})
