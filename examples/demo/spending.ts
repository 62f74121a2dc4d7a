import assert from 'node:assert/strict'
import { handle } from 'create-open-payments-server/wallet/background'
import type { Wallet } from 'create-open-payments-server/wallet/wallet'
import { accessTo, dollars, masked, refused, type Scene, type Token } from './app.js'
import { money } from './money.js'
import { step, tell } from './story.js'

/** The app pays from Alice's account, exactly up to the limit that she approved. Resolves to its last token. */
export async function pay(scene: Scene, wallet: Wallet, token: Token): Promise<Token> {
  const app = await spender(scene, wallet, token)
  const invoice = await app.receiverAt('bob', '2000')
  await payByQuote(app, invoice)
  await failAndSpendAgain(app, await reachTheLimit(app))
  await rotate(app)
  await payInEuros(app)
  await lookBack(app)
  return app.token()
}

type Spender = Awaited<ReturnType<typeof spender>>

async function spender(scene: Scene, wallet: Wallet, first: Token) {
  const { client, baseUrl } = scene
  const alice = `${baseUrl}/alice`
  const receiving = await accessTo(scene, [
    { type: 'incoming-payment', actions: ['create', 'read', 'complete'] },
  ])
  const { url } = receiving
  let token = first
  const paying = (accessToken = token.value) => ({ url, accessToken })
  return {
    scene,
    client,
    alice,
    token: () => token,
    paying,
    /** Returns what has been spent of this month's limit. */
    async spent(): Promise<string> {
      const { spentDebitAmount } = await client.outgoingPayment.getGrantSpentAmounts(paying())
      assert(spentDebitAmount)
      return money(spentDebitAmount)
    },
    /** Gets another token for the same grant. */
    async rotate(): Promise<void> {
      const { value: accessToken, manage } = token
      token = (await client.token.rotate({ url: manage, accessToken })).access_token
    },
    /** Creates an incoming payment for an account, with or without an amount. */
    async receiverAt(name: string, value?: string): Promise<string> {
      const walletAddress = `${baseUrl}/${name}`
      const asked = value === undefined ? {} : { incomingAmount: dollars(value) }
      return (await client.incomingPayment.create(receiving, { walletAddress, ...asked })).id
    },
    received: (id: string) =>
      client.incomingPayment.get({ url: id, accessToken: receiving.accessToken }),
    /** Pays directly to an incoming payment. */
    pay: (incomingPayment: string, value: string, accessToken = token.value) =>
      client.outgoingPayment.create(paying(accessToken), {
        walletAddress: alice,
        incomingPayment,
        debitAmount: dollars(value),
      }),
    /** Completes an incoming payment before it has received its amount. */
    complete: (id: string) =>
      client.incomingPayment.complete({ url: id, accessToken: receiving.accessToken }),
    /** Lets the wallet do what its events ask for, which it otherwise does between requests. */
    async settle(): Promise<void> {
      const { delivered } = await wallet.resources.events.drain((event) => handle(wallet, event))
      assert(delivered > 0)
    },
    async balanceOf(name: string): Promise<string> {
      const {
        balance = 0n,
        assetCode = '',
        assetScale = 0,
      } = (await wallet.ledger.find(`${baseUrl}/${name}`)) ?? {}
      return money({ value: `${balance}`, assetCode, assetScale })
    },
    read: (id: string) => client.outgoingPayment.get({ url: id, accessToken: token.value }),
  }
}

async function payByQuote(app: Spender, receiver: string): Promise<void> {
  const { scene, client, alice, paying } = app
  step('The app asks what it costs to pay Bob’s bill of USD 20.00')
  const quoting = await accessTo(scene, [{ type: 'quote', actions: ['create', 'read'] }])
  const quote = await client.quote.create(quoting, {
    walletAddress: alice,
    receiver,
    method: 'ilp',
  })
  assert.deepEqual(quote.receiveAmount, dollars('2000'))
  assert.deepEqual(quote.debitAmount, dollars('2020'))
  tell('quote', `${money(quote.receiveAmount)} arrives, ${money(quote.debitAmount)} is debited`)

  step('It pays with that quote, and repeats the request as if the response had been lost')
  const asked = { walletAddress: alice, quoteId: quote.id, metadata: { invoice: 'INV-2026-18' } }
  const payment = await client.outgoingPayment.create(paying(), asked)
  assert.deepEqual(payment.grantSpentDebitAmount, dollars('2020'))
  tell('outgoing payment', payment.id)
  const again = await client.outgoingPayment.create(paying(), asked)
  assert.deepEqual(again, payment)
  assert.equal(await app.spent(), 'USD 20.20')
  tell('repeated', 'the same payment; USD 20.20 of USD 25.00 is spent only once')

  step('The wallet sends it')
  await app.settle()
  const sent = await app.read(payment.id)
  assert.deepEqual([sent.failed, sent.sentAmount], [false, dollars('2020')])
  assert.equal(await app.balanceOf('alice'), 'USD 79.80')
  tell('Alice', `${money(sent.sentAmount)} was debited from her account`)
  const bill = await app.received(receiver)
  assert.deepEqual([bill.completed, bill.receivedAmount], [true, dollars('2000')])
  tell('Bob', 'USD 20.00 has arrived, and his bill is paid')
}

/** Returns the payment that reached the limit, and its receiver. */
async function reachTheLimit(app: Spender) {
  step('The app pays Bob the rest of the limit, without a quote')
  const receiver = await app.receiverAt('bob')
  const payment = await app.pay(receiver, '480')
  assert.deepEqual(payment.grantSpentDebitAmount, dollars('2500'))
  tell(
    'outgoing payment',
    `${money(payment.debitAmount)}: the whole USD 25.00 is spent or reserved`,
  )

  step('It tries to pay two cents more')
  await refused(app.pay(receiver, '2'), 403, 'insufficient_grant')
  assert.equal(await app.spent(), 'USD 25.00')
  tell('USD 0.02', 'refused: Alice approved USD 25.00 a month')
  return { id: payment.id, receiver }
}

async function failAndSpendAgain(
  app: Spender,
  { id, receiver }: { readonly id: string; readonly receiver: string },
): Promise<void> {
  step('Bob accepts no more, so the last payment fails before anything is sent')
  await app.complete(receiver)
  await app.settle()
  const failed = await app.read(id)
  assert.deepEqual([failed.failed, failed.sentAmount], [true, dollars('0')])
  assert.equal(await app.spent(), 'USD 20.20')
  tell('USD 4.80', 'failed with nothing sent, and available again')
}

async function rotate(app: Spender): Promise<void> {
  step('The app rotates its token, which does not change the limit')
  const { value: old } = app.token()
  await app.rotate()
  const { value } = app.token()
  assert.notEqual(value, old)
  tell('access token', `${masked(value)}, a new token with the same rights`)
  const receiver = await app.receiverAt('bob')
  await refused(app.pay(receiver, '480', old), 401, 'invalid_token')
  tell('the old one', 'refused')
  assert.equal(await app.spent(), 'USD 20.20')
  await refused(app.pay(receiver, '481'), 403, 'insufficient_grant')
  tell('USD 4.81', 'refused: only USD 4.80 is left')
}

async function payInEuros(app: Spender): Promise<void> {
  step('It pays the rest to Carol, whose account is in euros')
  const receiver = await app.receiverAt('carol')
  const payment = await app.pay(receiver, '480')
  const euros = { value: '439', assetCode: 'EUR', assetScale: 2 }
  assert.deepEqual(payment.receiveAmount, euros)
  assert.deepEqual(payment.grantSpentDebitAmount, dollars('2500'))
  await app.settle()
  assert.deepEqual((await app.received(receiver)).receivedAmount, euros)
  tell('Carol', `${money(euros)} has arrived for ${money(payment.debitAmount)}`)
}

async function lookBack({ client, alice, paying }: Spender): Promise<void> {
  step('The app lists its payments, two at a time')
  const asking = { ...paying(), walletAddress: alice }
  const two = { first: 2, 'wallet-address': alice }
  const first = await client.outgoingPayment.list(asking, two)
  const { endCursor = '', hasNextPage } = first.pagination
  assert.equal(hasNextPage, true)
  const second = await client.outgoingPayment.list(asking, { ...two, cursor: endCursor })
  assert.equal(second.pagination.hasNextPage, false)
  const sums = [...first.result, ...second.result].map(({ failed, debitAmount, sentAmount }) =>
    failed ? `${money(debitAmount)} failed` : `${money(sentAmount)} sent`,
  )
  assert.deepEqual(sums, ['USD 20.20 sent', 'USD 4.80 failed', 'USD 4.80 sent'])
  for (const [index, sum] of sums.entries()) tell(`payment ${index + 1}`, sum)
}
