import assert from 'node:assert/strict'
import { createHash, randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import {
  type AuthenticatedClient,
  createAuthenticatedClient,
  isFinalizedGrantWithAccessToken,
  isPendingGrant,
  OpenPaymentsClientError,
} from '@interledger/open-payments'
import { type AdapterName, freePort, startWallet } from '../wallet/start.js'
import { decide } from './browser.js'
import { openShop, type Shop } from './shop.js'
import { step, tell, title } from './story.js'

/**
 * The whole flow, driven by the published client with response validation on, against a wallet that imports
 * this library. Ends with an error at the first surprise.
 */
async function main(): Promise<void> {
  const adapter = (process.env['ADAPTER'] ?? 'express') as AdapterName
  const shop = await openShop()
  const { baseUrl, stop } = await startWallet({ adapter, port: await freePort() })
  const client = await createAuthenticatedClient({
    walletAddressUrl: shop.walletAddress,
    keyId: shop.keyId,
    privateKey: shop.privateKey,
    useHttp: true,
    validateResponses: true,
  })
  title(`A wallet on ${adapter}, at ${baseUrl}`)
  tell('the app', `${shop.walletAddress}, with the key ${shop.keyId}`)
  try {
    await consent(client, shop, `${baseUrl}/alice`)
    await getPaid(client, `${baseUrl}/bob`, baseUrl)
  } finally {
    await stop()
    shop.stop()
  }
  title('Everything went as it should.')
}

/** Alice lets the shop pay from her account; the shop continues its grant and rotates its token. */
async function consent(client: AuthenticatedClient, shop: Shop, alice: string): Promise<void> {
  step('The app asks who it is dealing with')
  const { publicName, assetCode, authServer } = await client.walletAddress.get({ url: alice })
  tell('wallet address', `${alice}: ${publicName}, in ${assetCode}`)

  step('It asks to pay up to USD 25.00 a month from that account')
  const nonce = randomUUID()
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
              debitAmount: { value: '2500', assetCode: 'USD', assetScale: 2 },
            },
          },
        ],
      },
      interact: { start: ['redirect'], finish: { method: 'redirect', uri: shop.finishUri, nonce } },
    },
  )
  assert(isPendingGrant(grant), 'such a grant needs consent')
  tell('consent page', grant.interact.redirect)

  step('Alice reads the page and approves')
  const { page, location } = await decide(grant.interact.redirect, 'approve')
  assert(page.includes('USD 25.00'), 'the page says how much')
  assert(location, 'the browser is sent back to the app')
  const interactRef = location.searchParams.get('interact_ref') ?? ''
  const base = [nonce, grant.interact.finish, interactRef, authServer].join('\n')
  const hash = createHash('sha256').update(base).digest('base64')
  assert.equal(location.searchParams.get('hash'), hash, 'the hash proves who redirected')
  assert.equal(location.searchParams.get('order'), '17', "the app's own parameter is kept")
  tell('back at the app', `${location.host}${location.pathname}, and the hash is right`)

  step('The app continues its grant')
  const continuation = {
    url: grant.continue.uri,
    accessToken: grant.continue.access_token.value,
  }
  const issued = await client.grant.continue(continuation, { interact_ref: interactRef })
  assert(isFinalizedGrantWithAccessToken(issued), 'it gets its token')
  tell('access token', masked(issued.access_token.value))

  step('It asks again, as if the answer had been lost')
  await sleep(1_100)
  const again = await client.grant.continue(continuation, { interact_ref: interactRef })
  assert(isFinalizedGrantWithAccessToken(again))
  assert.equal(again.access_token.value, issued.access_token.value)
  tell('access token', `${masked(again.access_token.value)}, the same`)

  step('It rotates the token')
  const { value, manage } = issued.access_token
  const { access_token: rotated } = await client.token.rotate({ url: manage, accessToken: value })
  assert.notEqual(rotated.value, value)
  assert.notEqual(rotated.manage, manage)
  assert.deepEqual(rotated.access, issued.access_token.access)
  tell('access token', `${masked(rotated.value)}, a new one with the same rights`)
}

/** Bob is paid: an incoming payment takes what arrives until it is complete or has expired. */
async function getPaid(client: AuthenticatedClient, bob: string, baseUrl: string): Promise<void> {
  step('The app asks for a payment to Bob to be prepared')
  const { authServer, resourceServer } = await client.walletAddress.get({ url: bob })
  const grant = await client.grant.request(
    { url: authServer },
    {
      access_token: {
        access: [{ type: 'incoming-payment', actions: ['create', 'read'], identifier: bob }],
      },
    },
  )
  assert(isFinalizedGrantWithAccessToken(grant), 'nobody needs to consent to being paid')
  const accessToken = grant.access_token.value
  const resource = { url: resourceServer, accessToken }
  const payment = await client.incomingPayment.create(resource, {
    walletAddress: bob,
    incomingAmount: { value: '2500', assetCode: 'USD', assetScale: 2 },
    metadata: { invoice: 'INV-2026-17' },
  })
  tell('incoming payment', payment.id)
  tell('pay to', payment.methods[0]?.ilpAddress ?? '')

  step('Funds arrive')
  const first = await arrive(baseUrl, payment.id, '1500')
  assert.equal(first.status, 200)
  tell('USD 15.00', 'taken')
  const second = await arrive(baseUrl, payment.id, '1000')
  assert.equal(second.status, 200)
  const complete = await client.incomingPayment.get({ url: payment.id, accessToken })
  assert.equal(complete.completed, true)
  assert.equal(complete.receivedAmount?.value, '2500')
  tell('USD 10.00', 'taken, and the payment is complete')
  const third = await arrive(baseUrl, payment.id, '100')
  assert.deepEqual(third, { status: 409, code: 'payment_completed' })
  tell('USD 1.00', 'refused: the payment is complete')

  step('Another payment is left until it has expired')
  const expiresAt = new Date(Date.now() + 1_000)
  const short = await client.incomingPayment.create(resource, {
    walletAddress: bob,
    expiresAt: expiresAt.toISOString(),
  })
  await sleep(expiresAt.getTime() - Date.now() + 50)
  const late = await arrive(baseUrl, short.id, '100')
  assert.deepEqual(late, { status: 409, code: 'payment_expired' })
  tell('USD 1.00', 'refused: the payment has expired')

  step('And what is not allowed stays so')
  const foreign = client.incomingPayment.create(resource, { walletAddress: `${baseUrl}/carol` })
  await assert.rejects(foreign, (error) => {
    return error instanceof OpenPaymentsClientError && error.status === 403
  })
  tell('for Carol', 'refused: the token is for Bob')
}

async function arrive(baseUrl: string, incomingPayment: string, value: string) {
  const amount = { value, assetCode: 'USD', assetScale: 2 }
  const response = await fetch(`${baseUrl}/ledger/transfers`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ transferId: randomUUID(), incomingPayment, amount }),
  })
  const body = (await response.json()) as { error?: { code: string } }
  return { status: response.status, ...(body.error && { code: body.error.code }) }
}

function masked(token: string): string {
  return `${token.slice(0, 8)}…${token.slice(-4)}`
}

await main()
