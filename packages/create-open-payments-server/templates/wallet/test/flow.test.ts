import { networkInterfaces } from 'node:os'
import { isPendingGrant } from '@interledger/open-payments'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type App, dollars, openApp } from './support/app.js'
import { answer, browserOf, decide } from './support/browser.js'
import { runningWallet, type TestWallet } from './support/running-wallet.js'

let wallet: TestWallet
let app: App
let client: App['client']
let alice: string
beforeAll(async () => {
  wallet = await runningWallet({ confirmAbove: 50n })
  app = await openApp(wallet.baseUrl)
  client = app.client
  alice = `${wallet.baseUrl}/alice`
})
afterAll(async () => {
  app?.close()
  await wallet?.stop()
})

const using = (accessToken: string) => ({ url: wallet.baseUrl, accessToken })

test('An account is found by its own URL only', async () => {
  const status = async (path: string) => (await fetch(wallet.baseUrl + path)).status
  expect(await status('/alice')).toBe(200)
  for (const other of ['/ALICE', '/Alice', '/%C3%A1lice', '/alice%20']) {
    expect(await status(other), other).toBe(404)
  }
  // The tables must compare the same way, because hosts look up more than accounts.
  for (const other of ['ALICE', 'álice', 'alice ']) {
    expect(await wallet.balanceOf(other), other).toBeUndefined()
  }
})

test('Alice pays an invoice of Bob with a quote, and the money moves once', async () => {
  const receiver = await app.invoice('2500')
  const quoting = await app.access({ type: 'quote', actions: ['create'] })
  const quote = await client.quote.create(using(quoting), {
    walletAddress: alice,
    receiver,
    method: 'ilp',
  })
  const token = await app.paying({ debitAmount: dollars('3000') })
  const request = { walletAddress: alice, quoteId: quote.id }
  const payment = await client.outgoingPayment.create(using(token), request)
  expect((await client.outgoingPayment.create(using(token), request)).id).toBe(payment.id)

  await expect.poll(() => wallet.balanceOf('bob')).toBe(12_500n)
  expect(await wallet.balanceOf('alice')).toBe(7_500n)
  const paid = await client.outgoingPayment.get({ url: payment.id, accessToken: token })
  expect(paid.sentAmount).toEqual(dollars('2500'))

  await expect(app.pay(token, '501')).rejects.toMatchObject({
    status: 403,
    code: 'insufficient_grant',
  })
})

test('A payment of more than 50.00 is made once its owner has confirmed it', async () => {
  const quoting = await app.access({ type: 'quote', actions: ['create'] })
  const quoteOf = async (receiver: string) =>
    client.quote.create(using(quoting), { walletAddress: alice, receiver, method: 'ilp' })
  const token = await app.paying({})
  const pay = (quoteId: string) =>
    client.outgoingPayment.create(using(token), { walletAddress: alice, quoteId })
  const waiting = { status: 403, code: 'confirmation_required' }
  const browser = await browserOf(wallet.baseUrl, 'alice')

  const declined = await quoteOf(await app.invoice('7500'))
  await expect(pay(declined.id)).rejects.toMatchObject(waiting)
  const page = (id: string) => `${wallet.baseUrl}/confirm/${id.split('/').at(-1)}`
  expect(await answer(browser, page(declined.id), 'decline')).toBe(200)
  await expect(pay(declined.id)).rejects.toMatchObject({ code: 'confirmation_declined' })

  const confirmed = await quoteOf(await app.invoice('5001'))
  await expect(pay(confirmed.id)).rejects.toMatchObject(waiting)
  const { url } = await pay(confirmed.id).catch(({ details }) => details)
  expect(url).toBe(page(confirmed.id))
  expect(await answer(browser, url, 'confirm')).toBe(200)
  await expect.poll(() => wallet.balanceOf('alice')).toBe(2_499n)
  expect((await pay(confirmed.id)).sentAmount).toEqual(dollars('5001'))
})

test('A payment that the account cannot pay is refused, and leaves the money', async () => {
  const token = await app.paying({})
  await expect(app.pay(token, '2500')).rejects.toMatchObject({
    status: 403,
    code: 'insufficient_funds',
  })
  expect(await wallet.balanceOf('alice')).toBe(2_499n)
  await app.pay(token, '2499')
  await expect.poll(() => wallet.balanceOf('alice')).toBe(0n)
  expect(await wallet.balanceOf('bob')).toBe(20_000n)
})

test('The owner ends the access of an app on the page of connected apps', async () => {
  const token = await app.paying({ debitAmount: dollars('100') })
  const browser = await browserOf(wallet.baseUrl, 'alice')
  const { text, token: formToken } = await browser.open(`${wallet.baseUrl}/apps`)
  const grants = [...text.matchAll(/name="grant" value="([^"]+)"/g)].map(([, id = '']) => id)
  for (const grant of grants) {
    await browser.send(`${wallet.baseUrl}/apps`, { token: formToken, grant, do: 'revoke' })
  }
  await expect(app.pay(token, '1')).rejects.toMatchObject({ status: 401 })
})

test('An owner tells an app which wallet address is theirs, after consent', async () => {
  const subject = { sub_ids: [{ id: alice, format: 'uri' as const }] }
  const finish = { method: 'redirect' as const, uri: app.finishUri, nonce: 'a-nonce' }
  const grant = await client.grant.request(
    { url: `${wallet.baseUrl}/auth` },
    { subject, interact: { start: ['redirect'], finish } },
  )
  if (!isPendingGrant(grant)) throw new Error('a subject needs consent')
  const browser = await browserOf(wallet.baseUrl, 'alice')
  const returned = new URL(await decide(browser, grant.interact.redirect, 'approve'))
  const { uri: url, access_token: continuation } = grant.continue
  const continued = await client.grant.continue(
    { url, accessToken: continuation.value },
    { interact_ref: returned.searchParams.get('interact_ref') ?? '' },
  )
  expect(continued).toMatchObject({ subject })
})

test('Only this machine reaches the wallet, unless HOST says otherwise', async () => {
  const { port } = new URL(wallet.baseUrl)
  const others = Object.values(networkInterfaces())
    .flatMap((addresses = []) => addresses)
    .filter(({ internal, family }) => !internal && family === 'IPv4')
  for (const { address } of others) {
    await expect(fetch(`http://${address}:${port}/alice`), address).rejects.toThrow()
  }
})
