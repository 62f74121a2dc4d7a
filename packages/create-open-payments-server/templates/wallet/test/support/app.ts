import {
  type AuthenticatedClient,
  createAuthenticatedClient,
  isFinalizedGrantWithAccessToken,
  isPendingGrant,
} from '@interledger/open-payments'
import { expect } from 'vitest'
import { browserOf, decide } from './browser.js'
import { openShop } from './shop.js'

type Access = NonNullable<
  Parameters<AuthenticatedClient['grant']['request']>[1]['access_token']
>['access']

export type App = Awaited<ReturnType<typeof openApp>>

export const dollars = (value: string) => ({ value, assetCode: 'USD', assetScale: 2 })

/** Opens an app with a key of its own, which pays Bob from Alice's account with the published client. */
export async function openApp(baseUrl: string) {
  const shop = await openShop()
  const { walletAddress: walletAddressUrl, keyId, privateKey } = shop.client
  const client = await createAuthenticatedClient({
    walletAddressUrl,
    keyId,
    privateKey,
    logLevel: 'silent',
  })
  const url = `${baseUrl}/auth`
  const [alice, bob] = [`${baseUrl}/alice`, `${baseUrl}/bob`]

  /** Requests access that needs no consent, and returns the token. */
  async function access(...access: Access): Promise<string> {
    const grant = await client.grant.request({ url }, { access_token: { access } })
    if (!isFinalizedGrantWithAccessToken(grant)) throw new Error('this access needs consent')
    return grant.access_token.value
  }

  /** Requests access to pay from Alice's account, approves it as Alice, and returns the token. */
  async function paying(limits: { debitAmount?: ReturnType<typeof dollars> }): Promise<string> {
    const access: Access = [
      { type: 'outgoing-payment', actions: ['create', 'read'], identifier: alice, limits },
    ]
    const finish = { method: 'redirect' as const, uri: shop.finishUri, nonce: 'a-nonce' }
    const grant = await client.grant.request(
      { url },
      { access_token: { access }, interact: { start: ['redirect'], finish } },
    )
    if (!isPendingGrant(grant)) throw new Error('this access needs no consent')
    const browser = await browserOf(baseUrl, 'alice')
    const { text } = await browser.open(grant.interact.redirect)
    expect(text).toContain(shop.client.walletAddress)
    const returned = new URL(await decide(browser, grant.interact.redirect, 'approve'))
    expect(returned.searchParams.get('order')).toBe('17')
    const { uri, access_token: continuation } = grant.continue
    const continued = await client.grant.continue(
      { url: uri, accessToken: continuation.value },
      { interact_ref: returned.searchParams.get('interact_ref') ?? '' },
    )
    if (!isFinalizedGrantWithAccessToken(continued)) throw new Error('the grant has no token')
    return continued.access_token.value
  }

  /** Creates a request for a payment to Bob, and returns its URL. */
  async function invoice(value?: string): Promise<string> {
    const accessToken = await access({ type: 'incoming-payment', actions: ['create'] })
    const amount = value === undefined ? {} : { incomingAmount: dollars(value) }
    const target = { url: baseUrl, accessToken }
    return (await client.incomingPayment.create(target, { walletAddress: bob, ...amount })).id
  }

  /** Pays an amount to Bob. */
  async function pay(accessToken: string, value: string) {
    const payment = { walletAddress: alice, incomingPayment: await invoice() }
    const target = { url: baseUrl, accessToken }
    return client.outgoingPayment.create(target, { ...payment, debitAmount: dollars(value) })
  }

  const { finishUri, close } = shop
  return { client, finishUri, close, access, paying, invoice, pay }
}
