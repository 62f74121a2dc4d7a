import assert from 'node:assert/strict'
import { OpenPaymentsClientError } from '@interledger/open-payments'
import { handle } from 'create-open-payments-server/wallet/background'
import type { Wallet } from 'create-open-payments-server/wallet/wallet'
import { accessTo, dollars, refused, type Scene } from './app.js'
import { answer } from './browser.js'
import { approved } from './consent.js'
import { money } from './money.js'
import { step, tell } from './story.js'

/** Alice confirms one payment that is above the amount from which her wallet asks her. */
export async function confirm(scene: Scene, wallet: Wallet): Promise<void> {
  const { client, baseUrl } = scene
  const walletAddress = `${baseUrl}/alice`
  const limits = { debitAmount: dollars('10000') }
  const accessToken = await approved(scene, walletAddress, limits)
  const requesting = await accessTo(scene, [
    { type: 'incoming-payment', actions: ['create', 'read'] },
    { type: 'quote', actions: ['create'] },
  ])
  const { url } = requesting
  const pay = (quoteId: string) =>
    client.outgoingPayment.create({ url, accessToken }, { walletAddress, quoteId })

  step('The app pays Bob USD 60.00, and the wallet asks Alice about payments above USD 50.00')
  const bill = { walletAddress: `${baseUrl}/bob`, incomingAmount: dollars('6000') }
  const { id: receiver } = await client.incomingPayment.create(requesting, bill)
  const asked = { walletAddress, receiver, method: 'ilp' as const }
  const { id: quoteId } = await client.quote.create(requesting, asked)
  const page = await pageToConfirm(pay(quoteId))
  tell('the app', 'gets 403 confirmation_required, and shows Alice the URL')
  tell('the page', page)
  await refused(pay(quoteId), 403, 'confirmation_required')
  tell('repeated', 'the same answer, while the payment waits')

  step('Alice reads the page and confirms')
  const { shown, status } = await answer(page, 'confirm')
  assert.match(shown, /asks you to confirm a payment/)
  assert.match(shown, /60\.60 USD/)
  assert.match(shown, /To\s*Bob/)
  assert.equal(status, 200)
  tell('she reads', '60.60 USD, to Bob')

  step('The app repeats its request')
  const payment = await pay(quoteId)
  tell('outgoing payment', payment.id)
  const { delivered } = await wallet.resources.events.drain((event) => handle(wallet, event))
  assert(delivered > 0)
  const { completed, receivedAmount } = await client.incomingPayment.get({
    url: receiver,
    accessToken: requesting.accessToken,
  })
  assert.deepEqual([completed, receivedAmount], [true, dollars('6000')])
  tell('Bob', `${money(dollars('6000'))} has arrived`)
}

/** Resolves to the URL in the refusal of a payment that its owner must confirm. */
async function pageToConfirm(call: Promise<unknown>): Promise<string> {
  const error = await call.catch((error: unknown) => error)
  assert(error instanceof OpenPaymentsClientError)
  assert.deepEqual([error.status, error.code], [403, 'confirmation_required'])
  return `${error.details?.['url']}`
}
