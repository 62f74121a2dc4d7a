import assert from 'node:assert/strict'
import { setTimeout as sleep } from 'node:timers/promises'
import type { AuthenticatedClient } from '@interledger/open-payments'
import { accessTo, dollars, refused, type Scene, type Token } from './app.js'
import { lowerLimit } from './browser.js'
import { money } from './money.js'
import type { ShopKey } from './shop.js'
import { step, tell } from './story.js'

interface ChangingScene extends Scene {
  /** Creates a client that signs with this key. */
  connect(key: ShopKey): Promise<AuthenticatedClient>
  /** The cookie of Alice's session. */
  readonly session: string
}

/**
 * During the subscription the app replaces its key, and Alice lowers her limit. Resolves to the client with the new
 * key.
 */
export async function change(scene: ChangingScene, token: Token): Promise<AuthenticatedClient> {
  const { client, shop, baseUrl, session } = scene
  step('The app replaces its key: its wallet address publishes only the new one')
  const key = shop.replaceKey('shop-2027')
  const renewed = await scene.connect(key)
  // The wallet asks once in 5 s for a key that is missing from a key set.
  await sleep(5_100)
  const { url, accessToken: receiving } = await accessTo({ ...scene, client: renewed }, [
    { type: 'incoming-payment', actions: ['create'] },
  ])
  tell('the app', `${shop.walletAddress}, with the key ${key.keyId}`)

  step('With the new key, it rotates the token of its grant')
  const { value: accessToken, manage } = token
  const { access_token: next } = await renewed.token.rotate({ url: manage, accessToken })
  const paying = { url, accessToken: next.value }
  const { spentDebitAmount } = await renewed.outgoingPayment.getGrantSpentAmounts(paying)
  assert.deepEqual(spentDebitAmount, dollars('2500'))
  tell('the grant', `the same: ${money(dollars('2500'))} is spent this month`)

  step('Somebody signs with the old key')
  await refused(client.outgoingPayment.getGrantSpentAmounts(paying), 401, 'invalid_signature')
  tell('the old key', 'refused: it is no longer published')

  step('Alice lowers her limit to USD 15.00 a month')
  assert.equal(await lowerLimit(baseUrl, session, '15.00'), 303)
  const bob = { walletAddress: `${baseUrl}/bob` }
  const { id } = await renewed.incomingPayment.create({ url, accessToken: receiving }, bob)
  const payment = { walletAddress: `${baseUrl}/alice`, incomingPayment: id }
  const call = renewed.outgoingPayment.create(paying, { ...payment, debitAmount: dollars('2') })
  await refused(call, 403, 'insufficient_grant')
  tell('USD 0.02', 'refused until next month, in which the app may pay USD 15.00')
  return renewed
}
