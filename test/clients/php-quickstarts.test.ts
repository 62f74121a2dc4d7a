import { readFileSync } from 'node:fs'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { decide } from '../../examples/demo/browser.js'
import { php } from '../support/clients/all.js'
import { allWork, outcomesOf, type Snippets, variables } from '../support/clients/quickstarts.js'
import { type Answered, type SentRequest, sent, sentUnsigned } from '../support/clients/send.js'
import {
  deployments,
  type RunningDeployment,
  startDeployment,
  usd,
} from '../support/official-client.js'

/** Its grant names the limit of the quickstart before it, which is spent. */
const second = 'outgoing-payment-create with amount, with the same token'
const refused = { [second]: '403 insufficient_grant' }

describe.each(deployments)('the created wallet on %s', (deployment) => {
  let running: RunningDeployment
  beforeAll(async () => {
    running = await startDeployment(deployment)
  })
  afterAll(() => running.stop())

  test('serves the requests of the PHP quickstarts', async () => {
    const snippets = quickstarts(running)
    const expected = allWork(snippets, refused)
    expect(await outcomesOf(snippets)).toEqual(expected)
    const count = Object.keys(snippets).length
    const works = count - Object.keys(refused).length
    expect(readFileSync('docs/clients.md', 'utf8')).toContain(
      `| PHP, its requests | ${count} | ${works}; `,
    )
  })
})

/**
 * The requests of each quickstart with its parameters, as the PHP SDK writes them. One wallet address is the client,
 * the payer and the payee.
 */
function quickstarts({ alice, aliceKey: privateKey }: RunningDeployment): Snippets {
  const env = variables()
  const identity = { keyId: 'alice-1', privateKey }

  async function answered(status: number, asked: Promise<Answered>) {
    const { status: actual, body } = await asked
    if (actual === status) return body
    throw Object.assign(new Error(`${actual}`), { status: actual, code: body?.error?.code })
  }
  const send = (status: number, request: SentRequest) =>
    answered(status, sent(php, request, identity))
  const fetched = (url: string) => answered(200, sentUnsigned(php, { method: 'GET', url }))
  const address = () => fetched(alice)

  async function grant(access: object, interact?: object) {
    const { authServer } = await address()
    const value = { access_token: { access: [access] }, client: alice, interact }
    return send(200, { method: 'POST', url: `${authServer}/`, value })
  }

  async function grantWithoutConsent(access: object, name: string) {
    const { access_token } = await grant(access)
    env(`${name}_GRANT_ACCESS_TOKEN`, access_token.value)
  }

  /** Requests a grant, and opens the printed URL as Alice, who approves. */
  async function grantWithConsent(limits: object) {
    const { id: identifier } = await address()
    const actions = ['list', 'list-all', 'read', 'read-all', 'create']
    const pending = await grant(
      { type: 'outgoing-payment', actions, identifier, limits },
      {
        start: ['redirect'],
        finish: {
          method: 'redirect',
          uri: 'https://localhost/?paymentId=123423',
          nonce: '1234567890',
        },
      },
    )
    env('CONTINUE_ACCESS_TOKEN', pending.continue.access_token.value)
    env('CONTINUE_URI', pending.continue.uri)
    const { location } = await decide(pending.interact.redirect, 'approve')
    env('URL_WITH_INTERACT_REF', String(location))
  }

  async function continueGrant() {
    const { searchParams } = new URL(env('URL_WITH_INTERACT_REF'))
    const { access_token } = await send(200, {
      method: 'POST',
      url: `${env('CONTINUE_URI')}/`,
      token: env('CONTINUE_ACCESS_TOKEN'),
      value: { interact_ref: searchParams.get('interact_ref') },
    })
    env('OUTGOING_PAYMENT_GRANT_ACCESS_TOKEN', access_token.value)
    env('TOKEN_MANAGE_URL', access_token.manage)
  }

  async function create(collection: string, token: string, value: object) {
    const { resourceServer } = await address()
    const url = `${resourceServer}/${collection}`
    return send(201, { method: 'POST', url, token, value })
  }

  async function list(collection: string, token: string, first: number) {
    const { resourceServer } = await address()
    const query = `wallet-address=${php.query(alice)}&first=${first}`
    const url = `${resourceServer}/${collection}?${query}&start=96d964f0-3421-4df0-bb04-cb8d653bc571`
    return (await send(200, { method: 'GET', url, token })).result
  }

  async function quoted(amounts: object) {
    const { id: walletAddress } = await address()
    const quote = await create('quotes', env('QUOTE_GRANT_ACCESS_TOKEN'), {
      method: 'ilp',
      walletAddress,
      receiver: env('INCOMING_PAYMENT_URL'),
      ...amounts,
    })
    env('QUOTE_URL', quote.id)
    return quote
  }

  async function amountOf(value: string) {
    const { assetCode, assetScale } = await address()
    return { assetCode, assetScale, value }
  }

  async function pay(what: object) {
    const payment = await create('outgoing-payments', env('OUTGOING_PAYMENT_GRANT_ACCESS_TOKEN'), {
      walletAddress: alice,
      ...what,
      metadata: { description: 'Books', invoiceId: '17', more: { aisle: 'b', shelf: '4' } },
    })
    env('OUTGOING_PAYMENT_URL', payment.id)
    return payment
  }
  const payAmount = () =>
    pay({ incomingPayment: env('INCOMING_PAYMENT_URL'), debitAmount: usd('9') })

  const receiving = () => env('INCOMING_PAYMENT_GRANT_ACCESS_TOKEN')
  const paying = () => env('OUTGOING_PAYMENT_GRANT_ACCESS_TOKEN')
  const read = (url: string, token: string) => send(200, { method: 'GET', url, token })

  return {
    'wallet-address-get': async () => expect(await address()).toMatchObject({ id: alice }),
    'wallet-address-get-keys': async () =>
      expect(await fetched(`${alice}/jwks.json`)).toMatchObject({ keys: [{ kid: 'alice-1' }] }),
    'grant-incoming-payment': () =>
      grantWithoutConsent(
        { type: 'incoming-payment', actions: ['read', 'complete', 'create', 'list'] },
        'INCOMING_PAYMENT',
      ),
    'incoming-payment-create': async () => {
      const expiresAt = php.instant(BigInt(Date.now() + 59 * 60_000) * 1_000_000n)
      const payment = await create('incoming-payments', receiving(), {
        walletAddress: alice,
        incomingAmount: usd('130'),
        metadata: {
          description: 'An invoice of $1,30',
          externalRef: 'INVOICE-6745f3a1c2b4d',
        },
        expiresAt,
      })
      expect(payment).toMatchObject({ expiresAt, metadata: { description: 'An invoice of $1,30' } })
      env('INCOMING_PAYMENT_URL', payment.id)
    },
    'incoming-payment-get': async () => {
      const { methods } = await read(env('INCOMING_PAYMENT_URL'), receiving())
      expect(methods).toMatchObject([{ type: 'ilp' }])
    },
    'incoming-payment-get-public': async () =>
      expect(await fetched(env('INCOMING_PAYMENT_URL'))).not.toHaveProperty('methods'),
    'incoming-payment-list': async () =>
      expect(await list('incoming-payments', receiving(), 10)).toMatchObject([
        { id: env('INCOMING_PAYMENT_URL') },
      ]),
    'grant-quote': () =>
      grantWithoutConsent({ type: 'quote', actions: ['create', 'read', 'read-all'] }, 'QUOTE'),
    'quote-create': async () => expect(await quoted({})).toMatchObject({ debitAmount: usd('130') }),
    'quote-create-debit-amount': async () => {
      const debitAmount = await amountOf('130')
      expect(await quoted({ debitAmount })).toMatchObject({ debitAmount })
    },
    'quote-create-receive-amount': async () => {
      const receiveAmount = await amountOf('130')
      expect(await quoted({ receiveAmount })).toMatchObject({ receiveAmount })
    },
    'quote-get': async () => {
      const quote = await read(env('QUOTE_URL'), env('QUOTE_GRANT_ACCESS_TOKEN'))
      expect(quote.id).toBe(env('QUOTE_URL'))
    },
    'grant-outgoing-payment': () =>
      grantWithConsent({ receiver: env('INCOMING_PAYMENT_URL'), debitAmount: usd('130') }),
    'grant-continuation': continueGrant,
    'outgoing-payment-create': async () => {
      const payment = await pay({ quoteId: env('QUOTE_URL') })
      expect(payment).toMatchObject({ debitAmount: usd('130'), grantSpentDebitAmount: usd('130') })
    },
    'outgoing-payment-get': async () =>
      expect((await read(env('OUTGOING_PAYMENT_URL'), paying())).id).toBe(
        env('OUTGOING_PAYMENT_URL'),
      ),
    'outgoing-payment-list': async () =>
      expect(await list('outgoing-payments', paying(), 3)).toMatchObject([
        { id: env('OUTGOING_PAYMENT_URL') },
      ]),
    [second]: payAmount,
    'grant-outgoing-payment-interval': async () => {
      await grantWithConsent({ debitAmount: usd('132'), interval: 'R/2025-04-22T08:00:00Z/P1D' })
      await continueGrant()
    },
    'outgoing-payment-create with amount': async () =>
      expect(await payAmount()).toMatchObject({ debitAmount: usd('9') }),
    'incoming-payment-complete': async () => {
      const url = `${env('INCOMING_PAYMENT_URL')}/complete`
      const payment = await send(200, { method: 'POST', url, token: receiving() })
      expect(payment).toMatchObject({ completed: true })
    },
    'token-rotate': async () => {
      const url = env('TOKEN_MANAGE_URL')
      const { access_token } = await send(200, { method: 'POST', url, token: paying() })
      env('OUTGOING_PAYMENT_GRANT_ACCESS_TOKEN', access_token.value)
      env('TOKEN_MANAGE_URL', access_token.manage)
    },
    'token-revoke': () =>
      send(204, { method: 'DELETE', url: env('TOKEN_MANAGE_URL'), token: paying() }),
    'grant-revoke': () =>
      send(204, {
        method: 'DELETE',
        url: env('CONTINUE_URI'),
        token: env('CONTINUE_ACCESS_TOKEN'),
      }),
  }
}
