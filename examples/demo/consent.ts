import assert from 'node:assert/strict'
import { createHash, randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import {
  isFinalizedGrantWithAccessToken,
  isPendingGrant,
  type PendingGrant,
} from '@interledger/open-payments'
import { dollars, masked, type Scene, type Token } from './app.js'
import { decide } from './browser.js'
import { step, tell } from './story.js'

/**
 * Alice allows the app to pay from her account up to a monthly limit; the app gets its token, and she has a session.
 */
export async function consent(scene: Scene): Promise<{ token: Token; session: string }> {
  const nonce = randomUUID()
  const { grant, authServer } = await requestGrant(scene, nonce)
  step('Alice reads the page and approves')
  const { location, cookie: session } = await approve(grant.interact.redirect)
  const interactRef = location.searchParams.get('interact_ref') ?? ''
  const base = [nonce, grant.interact.finish, interactRef, authServer].join('\n')
  const hash = createHash('sha256').update(base).digest('base64')
  assert.equal(
    location.searchParams.get('hash'),
    hash,
    'the hash proves that the wallet redirected',
  )
  assert.equal(location.searchParams.get('order'), '17', "the app's own parameter is preserved")
  tell('back at the app', `${location.host}${location.pathname}, and the hash is valid`)
  return { token: await continueGrant(scene, grant, interactRef), session }
}

/** Returns a token to pay from an account, after its owner has approved the limits. */
export async function approved(
  { client, shop, baseUrl }: Scene,
  identifier: string,
  limits: { readonly debitAmount: ReturnType<typeof dollars> },
): Promise<string> {
  const nonce = randomUUID()
  const grant = await client.grant.request(
    { url: `${baseUrl}/auth` },
    {
      access_token: {
        access: [{ type: 'outgoing-payment', actions: ['create', 'read'], identifier, limits }],
      },
      interact: { start: ['redirect'], finish: { method: 'redirect', uri: shop.finishUri, nonce } },
    },
  )
  assert(isPendingGrant(grant))
  const { location } = await decide(grant.interact.redirect, 'approve')
  const { uri, access_token } = grant.continue
  const issued = await client.grant.continue(
    { url: uri, accessToken: access_token.value },
    { interact_ref: location?.searchParams.get('interact_ref') ?? '' },
  )
  assert(isFinalizedGrantWithAccessToken(issued))
  return issued.access_token.value
}

async function requestGrant({ client, shop, baseUrl }: Scene, nonce: string) {
  const alice = `${baseUrl}/alice`
  step('The app reads Alice’s wallet address')
  const { publicName, assetCode, authServer } = await client.walletAddress.get({ url: alice })
  tell('wallet address', `${alice}: ${publicName}, in ${assetCode}`)

  step('The app requests permission to pay up to USD 25.00 a month from her account, for a year')
  const now = `${new Date().toISOString().slice(0, 19)}Z`
  const grant = await client.grant.request(
    { url: authServer },
    {
      access_token: {
        access: [
          {
            type: 'outgoing-payment',
            actions: ['create', 'read', 'list'],
            identifier: alice,
            limits: { interval: `R12/${now}/P1M`, debitAmount: dollars('2500') },
          },
        ],
      },
      interact: { start: ['redirect'], finish: { method: 'redirect', uri: shop.finishUri, nonce } },
    },
  )
  assert(isPendingGrant(grant), 'this grant needs consent')
  tell('consent page', grant.interact.redirect)
  return { grant, authServer }
}

/** Resolves to the URL to which the wallet redirects the browser, and to the cookie of Alice's session. */
async function approve(consentPage: string) {
  const { page, location, cookie } = await decide(consentPage, 'approve')
  const text = page.replace(/<[^>]*>/g, '').replaceAll('\u00a0', ' ')
  const [limit = ''] = /Up to .*/.exec(text) ?? []
  assert.equal(limit, 'Up to 25.00 USD every month, 12 times')
  tell('she reads', limit)
  assert(location, 'the wallet redirects the browser to the app')
  return { location, cookie }
}

async function continueGrant(
  { client }: Scene,
  { continue: { uri, access_token } }: PendingGrant,
  interactRef: string,
): Promise<Token> {
  step('The app continues its grant')
  const continuation = { url: uri, accessToken: access_token.value }
  const issued = await client.grant.continue(continuation, { interact_ref: interactRef })
  assert(isFinalizedGrantWithAccessToken(issued), 'the app gets its token')
  tell('access token', masked(issued.access_token.value))

  step('The app repeats the request, as if the response had been lost')
  await sleep(1_100)
  const again = await client.grant.continue(continuation, { interact_ref: interactRef })
  assert(isFinalizedGrantWithAccessToken(again))
  assert.equal(again.access_token.value, issued.access_token.value)
  tell('access token', `${masked(again.access_token.value)}, the same token`)
  return issued.access_token
}
