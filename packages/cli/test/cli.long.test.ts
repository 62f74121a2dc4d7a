import { execFile } from 'node:child_process'
import { chmodSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import {
  createAuthenticatedClient,
  isFinalizedGrantWithAccessToken,
} from '@interledger/open-payments'
import { startIlpPair } from 'open-payments-test-support/ilp-pair'
import { afterAll, describe, expect, test, vi } from 'vitest'
import { testWallet, workplace } from './support/workplace.js'

const place = workplace()
afterAll(place.remove)

describe('two wallets', () => {
  test('a payment in dollars completes an incoming payment in euros at the other wallet', async () => {
    const { one: home, two: away, stop } = await startIlpPair()
    await place.register(home)
    const carol = `${away.baseUrl}/carol`
    const asked = await place.run(['request', carol, '--amount', '25.00', '--expires', '1h'])
    const paid = await place.json([
      'pay',
      asked.out.trim(),
      '--from',
      `${home.baseUrl}/alice`,
      '--yes',
    ])
    expect(paid.body.payment).toMatchObject({
      failed: false,
      receiveAmount: { value: '2500', assetCode: 'EUR' },
      debitAmount: { value: '2727', assetCode: 'USD' },
    })
    expect((await place.json(['read', asked.out.trim()])).body).toMatchObject({ completed: true })
    // The sender may still count packets that the receiver has.
    await vi.waitFor(async () => {
      const { body } = await place.json(['read', paid.body.payment.id])
      expect(body.sentAmount).toMatchObject({ value: '2727', assetCode: 'USD' })
    }, 60_000)
    const direct = ['pay', carol, '--from', `${home.baseUrl}/alice`, '--receive', '1.00', '--yes']
    expect((await place.json(direct)).body.payment.receiveAmount.value).toBe('100')
    await stop()
  })
})

test('the owner may decide without a redirect, while the program polls', async () => {
  const wallet = await testWallet()
  const other = workplace()
  await other.register(wallet)
  const from = `${wallet.baseUrl}/alice`
  const { code, body } = await other.json(['grant', from, '--debit', '5.00', '--poll'])
  expect([code, body.grant.walletAddress]).toEqual([0, from])
  other.remove()
  await wallet.stop()
})

test('the published client takes the content of a key file as its options', async () => {
  const wallet = await testWallet()
  const other = workplace()
  await other.register(wallet)
  const client = await createAuthenticatedClient({ ...other.key(), useHttp: true })
  const grant = await client.grant.request(
    { url: `${wallet.baseUrl}/auth` },
    { access_token: { access: [{ type: 'incoming-payment', actions: ['create'] }] } },
  )
  expect(isFinalizedGrantWithAccessToken(grant)).toBe(true)
  other.remove()
  await wallet.stop()
})

test('the program itself pays, with a browser that it starts', async () => {
  const wallet = await testWallet()
  const other = workplace()
  await other.register(wallet)
  const browser = join(other.folder, 'browser')
  const module = join(import.meta.dirname, '../../../test/support/owner-browser.ts')
  const script = `import { decideAsOwner } from ${JSON.stringify(module)}\nawait decideAsOwner(process.argv[2])\n`
  writeFileSync(`${browser}.mts`, script)
  const tsx = import.meta.resolve('tsx')
  writeFileSync(
    browser,
    `#!/bin/sh\nexec "${process.execPath}" --import "${tsx}" "${browser}.mts" "$1"\n`,
  )
  chmodSync(browser, 0o755)
  const main = join(import.meta.dirname, '..', 'src', 'main.ts')
  const { baseUrl } = wallet
  const args = ['pay', `${baseUrl}/bob`, '--from', `${baseUrl}/alice`, '--amount', '1.00', '--yes']
  const { stdout } = await promisify(execFile)(process.execPath, ['--import', tsx, main, ...args], {
    env: { ...process.env, XDG_CONFIG_HOME: other.folder, BROWSER: browser },
  })
  expect(stdout).toMatch(/^http:\/\/localhost:\d+\/outgoing-payments\/\S+\n$/)
  other.remove()
  await wallet.stop()
})
