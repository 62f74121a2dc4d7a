import type { AuthenticatedClient, OpenPaymentsClientError } from '@interledger/open-payments'
import { failure, tokenWithoutConsent, usd } from 'open-payments-test-support/official-client'
import { some } from 'open-payments-test-support/runs'
import { describe, expect, test } from 'vitest'
import type { Fault, Sandbox } from '../src/index.js'
import { answer, invoiceOf, payerOf } from './support/payer.js'
import { shareSandbox } from './support/shared.js'

let sandbox: Sandbox
let client: AuthenticatedClient
shareSandbox({ approve: ['all'] }, (own, app) => {
  sandbox = own
  client = app
})

const addressOf = (name: string) => sandbox.account(name).walletAddress
const left = () => sandbox.faults().map(({ fault }) => fault)
const lastFault = () => sandbox.requests().at(-1)?.fault

async function setUp(value = '1000') {
  const invoice = await invoiceOf(client, addressOf('dana'), value)
  const payer = await payerOf(client, addressOf('alice'))
  const { id: quoteId } = await payer.quote(invoice.id)
  return { invoice, payer, quoteId }
}

/** Sends a request that no wallet accepts. */
async function send(authorization: string) {
  const url = `${sandbox.wallets[0].resourceServer}/outgoing-payments`
  const headers = { 'content-type': 'application/json', authorization }
  return (await fetch(url, { method: 'POST', headers, body: '{}' })).status
}

/** Lets a payment wait for its owner, and returns the URL of its page. */
async function waiting() {
  const { invoice, payer, quoteId } = await setUp()
  sandbox.fault({ fault: 'confirmation-required' })
  const refused = await payer.create(quoteId).catch((error: OpenPaymentsClientError) => error)
  const { url } = (refused as OpenPaymentsClientError).details as { readonly url: string }
  return { invoice, payer, quoteId, url }
}

const paymentFaults = [
  'failed-payment',
  'partial-payment',
  'reviewed-payment',
  'insufficient-funds',
  'confirmation-required',
] as const

describe('a fault that has no effect stays', () => {
  test.each([...paymentFaults, 'too-many-requests', 'expired-grant'] as const)(
    '%s at a request whose token or signature is refused',
    async (fault) => {
      sandbox.fault({ fault })
      expect(await send('GNAP unknown')).toBe(401)
      expect([left(), lastFault()]).toEqual([[fault], undefined])
    },
  )

  test.each(some(paymentFaults, 2))(
    '%s at a signed request with an unknown token',
    async (fault) => {
      const { quoteId } = await setUp()
      sandbox.fault({ fault })
      const where = { url: sandbox.wallets[0].resourceServer, accessToken: 'unknown' }
      const walletAddress = addressOf('alice')
      const refused = client.outgoingPayment.create(where, { walletAddress, quoteId })
      expect(await failure(refused)).toMatchObject({ status: 401 })
      expect([left(), lastFault()]).toEqual([[fault], undefined])
    },
  )

  test.each(some(paymentFaults, 2))('%s at a repeat for a payment that exists', async (fault) => {
    const { payer, quoteId, invoice } = await setUp()
    const { id } = await payer.create(quoteId)
    sandbox.fault({ fault })
    expect((await payer.create(quoteId)).id).toBe(id)
    expect([left(), lastFault()]).toEqual([[fault], undefined])
    await sandbox.advance(1)
    expect((await invoice.read()).completed).toBe(true)
  })

  test('at a payment for which the quote is unknown', async () => {
    const { payer } = await setUp()
    sandbox.fault({ fault: 'failed-payment' })
    const unknown = `${sandbox.wallets[0].resourceServer}/quotes/unknown`
    expect(await failure(payer.create(unknown))).toMatchObject({ status: 404 })
    expect([left(), lastFault()]).toEqual([['failed-payment'], undefined])
  })

  test('such as the end of a grant that has ended', async () => {
    const { invoice } = await setUp()
    sandbox.fault({ fault: 'expired-grant', times: 2 })
    expect(await failure(invoice.read())).toMatchObject({ status: 401 })
    expect(lastFault()).toBe('expired-grant')
    expect(await failure(invoice.read())).toMatchObject({ status: 401 })
    expect(lastFault()).toBeUndefined()
    expect(sandbox.faults()).toMatchObject([{ left: 1 }])
  })
})

describe('a payment that its owner confirms', () => {
  const byPage = async (url: string) => {
    expect((await answer(url, 'confirm')).status).toBe(200)
  }
  const byCall = async (url: string) => {
    await sandbox.decide(url, 'confirm')
  }
  test.each([
    ['failed-payment', '0', 'in the test', byCall],
    ['partial-payment', '500', 'in the test', byCall],
    ['failed-payment', '0', 'on the page', byPage],
  ] as const)('ends as %s, with %s sent, if confirmed %s', async (fault, sent, _, confirm) => {
    const { payer, invoice, quoteId, url } = await waiting()
    sandbox.fault({ fault })
    await confirm(url)
    expect(left()).toEqual([])
    await sandbox.advance(1)
    const { id } = await payer.create(quoteId)
    expect(await payer.read(id)).toMatchObject({ failed: true, sentAmount: { value: sent } })
    expect((await invoice.read()).receivedAmount?.value).toBe(sent)
  })

  test('is refused if the account lacks the funds then', async () => {
    const { payer, quoteId, url } = await waiting()
    sandbox.fault({ fault: 'insufficient-funds' })
    await expect(sandbox.decide(url, 'confirm')).rejects.toMatchObject({
      code: 'ERR_NO_EFFECT',
      message: 'the account has insufficient funds',
    })
    await expect(payer.create(quoteId)).rejects.toMatchObject({ code: 'insufficient_funds' })
  })

  test('does not have to be confirmed twice', async () => {
    const { invoice, url } = await waiting()
    sandbox.fault({ fault: 'confirmation-required' })
    await sandbox.decide(url, 'confirm')
    expect(left()).toEqual(['confirmation-required'])
    await sandbox.advance(1)
    expect((await invoice.read()).completed).toBe(true)
  })
})

describe('a request', () => {
  const lost: Fault = { fault: 'lost-response', operation: 'createOutgoingPayment' }
  const failed: Fault = { fault: 'failed-payment' }
  test.each([
    ['the response first', [lost, failed]],
    ['the payment first', [failed, lost]],
  ])('has a fault of its response and one of its payment: %s', async (_, faults) => {
    const { payer, invoice, quoteId } = await setUp()
    for (const fault of faults) sandbox.fault(fault)
    await expect(payer.create(quoteId)).rejects.toThrow()
    expect([left(), lastFault()]).toEqual([[], 'lost-response, failed-payment'])
    const { id } = await payer.create(quoteId)
    await sandbox.advance(1)
    expect(await payer.read(id)).toMatchObject({ failed: true })
    expect((await invoice.read()).receivedAmount?.value).toBe('0')
  })

  test('that is unavailable or limited leaves the fault of the payment to the next', async () => {
    const { payer, quoteId } = await setUp()
    const operation = 'createOutgoingPayment'
    sandbox.fault({ fault: 'too-many-requests', operation })
    sandbox.fault(failed)
    expect(await failure(payer.create(quoteId))).toMatchObject({ status: 429 })
    expect([left(), lastFault()]).toEqual([['failed-payment'], 'too-many-requests'])
    sandbox.fault({ fault: 'unavailable', operation })
    expect(await failure(payer.create(quoteId))).toMatchObject({ status: 503 })
    expect([left(), lastFault()]).toEqual([['failed-payment'], 'unavailable'])
    await payer.create(quoteId)
    expect([left(), lastFault()]).toEqual([[], 'failed-payment'])
  })

  test('has the first fault of a payment that was planted', async () => {
    const { payer, quoteId } = await setUp()
    sandbox.fault(failed)
    sandbox.fault({ fault: 'confirmation-required' })
    await payer.create(quoteId)
    expect([left(), lastFault()]).toEqual([['confirmation-required'], 'failed-payment'])
  })

  test('that met an unavailable wallet has the code of the response in the list', async () => {
    const codeAt = async (path: string, method: string) => {
      sandbox.fault({ fault: 'unavailable' })
      const { error } = (await (
        await fetch(`${sandbox.wallets[0].url}${path}`, { method })
      ).json()) as { error: { code: string } }
      expect(sandbox.requests().at(-1)?.code).toBe(error.code)
      return error.code
    }
    expect(await codeAt('/alice', 'GET')).toBe('busy')
    expect(await codeAt('/auth', 'POST')).toBe('request_denied')
  })
})

describe('a payment that the wallet of the receiver reviews', () => {
  test('is neither sent nor failed for five minutes, and is then sent once', async () => {
    const { payer, invoice, quoteId } = await setUp()
    sandbox.fault({ fault: 'reviewed-payment' })
    const { id } = await payer.create(quoteId)
    for (const by of [1, 'PT4M'] as const) {
      await sandbox.advance(by)
      expect(await payer.read(id)).toMatchObject({ failed: false, sentAmount: usd('0') })
      expect(await invoice.read()).toMatchObject({ completed: false, receivedAmount: usd('0') })
    }
    expect((await payer.create(quoteId)).id).toBe(id)
    await sandbox.advance('PT1M')
    for (const _ of ['sent', 'sent once']) {
      await sandbox.advance(1)
      expect(await payer.read(id)).toMatchObject({ failed: false, sentAmount: usd('1000') })
      expect(await invoice.read()).toMatchObject({ completed: true, receivedAmount: usd('1000') })
    }
  })

  test('fails with nothing sent if its incoming payment is completed meanwhile', async () => {
    const { payer, invoice, quoteId } = await setUp()
    const other = await payer.quote(invoice.id)
    sandbox.fault({ fault: 'reviewed-payment' })
    const { id } = await payer.create(quoteId)
    await sandbox.advance(1)
    await payer.create(other.id)
    await sandbox.advance('PT5M')
    await sandbox.advance(1)
    expect(await payer.read(id)).toMatchObject({ failed: true, sentAmount: usd('0') })
    expect(await invoice.read()).toMatchObject({ completed: true, receivedAmount: usd('1000') })
  })

  test('also once its owner has confirmed it', async () => {
    const { payer, quoteId, url } = await waiting()
    sandbox.fault({ fault: 'reviewed-payment' })
    await sandbox.decide(url, 'confirm')
    await sandbox.advance(1)
    const { id } = await payer.create(quoteId)
    expect(await payer.read(id)).toMatchObject({ failed: false, sentAmount: usd('0') })
    await sandbox.advance('PT5M')
    await sandbox.advance(1)
    expect(await payer.read(id)).toMatchObject({ failed: false, sentAmount: usd('1000') })
  })
})

describe('money', () => {
  const paid = async (from: string, to: string, value: string) => {
    const invoice = await invoiceOf(client, addressOf(to), value)
    const payer = await payerOf(client, addressOf(from))
    return { invoice, payer, quote: await payer.quote(invoice.id) }
  }

  test('of a partial payment is debited in proportion to the quote, rounded up', async () => {
    const { payer, quote, invoice } = await paid('alice', 'fumi', '1001')
    sandbox.fault({ fault: 'partial-payment' })
    const { id } = await payer.create(quote.id)
    await sandbox.advance(1)
    const { sentAmount } = await payer.read(id)
    const [debit, receive] = [quote.debitAmount, quote.receiveAmount].map((a) => BigInt(a.value))
    const delivered = BigInt((await invoice.read()).receivedAmount?.value ?? 0)
    expect(delivered).toBe(500n)
    const proportion = ((debit ?? 0n) * delivered + (receive ?? 0n) - 1n) / (receive ?? 1n)
    expect([sentAmount.value, `${proportion}`]).toEqual(['336', '336']) // 335 by the rate
    expect((await payer.quote(invoice.id)).receiveAmount.value).toBe('501') // the rest only
  })

  test('fails with nothing sent if another payment has paid the incoming payment', async () => {
    const { payer, quote, invoice } = await paid('alice', 'dana', '1000')
    const other = await payer.quote(invoice.id)
    await payer.create(quote.id)
    await sandbox.advance(1)
    const { id } = await payer.create(other.id)
    await sandbox.advance(1)
    expect(await payer.read(id)).toMatchObject({ failed: true, sentAmount: { value: '0' } })
  })

  test('fails with nothing sent if it would overpay what another payment has paid in part', async () => {
    const { payer, quote, invoice } = await paid('alice', 'dana', '1000')
    const part = await payer.quote(invoice.id, { debitAmount: usd('400') })
    await payer.create(part.id)
    await sandbox.advance(1)
    const { id } = await payer.create(quote.id)
    await sandbox.advance(1)
    expect(await payer.read(id)).toMatchObject({ failed: true, sentAmount: { value: '0' } })
    expect(await invoice.read()).toMatchObject({ completed: false, receivedAmount: usd('400') })
    const rest = await payer.quote(invoice.id)
    await payer.create(rest.id)
    await sandbox.advance(1)
    expect(await invoice.read()).toMatchObject({ completed: true, receivedAmount: usd('1000') })
  })

  test('is not sent for a quote above the limits of a grant, until another grant permits it', async () => {
    const { quote, invoice } = await paid('alice', 'dana', '1000')
    const limited = await payerOf(client, addressOf('alice'), { debitAmount: usd('500') })
    const refused = { status: 403, code: 'insufficient_grant' }
    expect(await failure(limited.create(quote.id))).toMatchObject(refused)
    const permitted = await payerOf(client, addressOf('alice'), { debitAmount: usd('1000') })
    await permitted.create(quote.id)
    await sandbox.advance(1)
    expect((await invoice.read()).completed).toBe(true)
  })

  test('is not sent for a quote that the wallet has refused, with another grant either', async () => {
    const { payer, quote } = await paid('alice', 'dana', '1000')
    sandbox.fault({ fault: 'insufficient-funds' })
    const refused = { status: 403, code: 'insufficient_funds' }
    expect(await failure(payer.create(quote.id))).toMatchObject(refused)
    const other = await payerOf(client, addressOf('alice'))
    expect(await failure(other.create(quote.id))).toMatchObject(refused)
  })

  test('of a fixed debit is sent in full, also if a smaller debit delivers as much', async () => {
    const { authServer, resourceServer } = await client.walletAddress.get({
      url: addressOf('dana'),
    })
    const accessToken = await tokenWithoutConsent(client, authServer, [
      { type: 'incoming-payment', actions: ['create'] },
    ])
    const { id: receiver } = await client.incomingPayment.create(
      { url: resourceServer, accessToken },
      { walletAddress: addressOf('dana') },
    )
    const payer = await payerOf(client, addressOf('chie'))
    const debitAmount = { value: '4', assetCode: 'JPY', assetScale: 0 }
    const quote = await payer.quote(receiver, { debitAmount })
    expect(quote).toMatchObject({ debitAmount, receiveAmount: usd('2') }) // 3 JPY deliver as much
    const { id } = await payer.create(quote.id)
    await sandbox.advance(1)
    expect((await payer.read(id)).sentAmount).toEqual(debitAmount)
  })

  test('counts in the window of its request, also if its owner confirms it in a later one', async () => {
    const invoice = await invoiceOf(client, addressOf('dana'), '1000')
    const interval = `R/${sandbox.now().toISOString()}/PT1M`
    const limits = { debitAmount: usd('1000'), interval }
    const payer = await payerOf(client, addressOf('alice'), limits)
    const { id } = await payer.quote(invoice.id)
    sandbox.fault({ fault: 'confirmation-required' })
    const refused = await payer.create(id).catch((error: OpenPaymentsClientError) => error)
    const { url } = (refused as OpenPaymentsClientError).details as { readonly url: string }
    expect((await payer.spent()).spentDebitAmount).toEqual(usd('1000'))
    await sandbox.advance('PT1M')
    await sandbox.decide(url, 'confirm')
    await sandbox.advance(1)
    expect((await invoice.read()).completed).toBe(true)
    expect((await payer.spent()).spentDebitAmount).toEqual(usd('0'))
  })

  test('in euros for yen is rounded once', async () => {
    // 1000 JPY are 6.70 USD, which are 6.2037… EUR.
    expect((await paid('bruno', 'fumi', '1000')).quote.debitAmount.value).toBe('621')
    // 166 JPY are 1.1122 USD, or 1.0298… EUR; 1.12 USD would be 1.0370… EUR.
    expect((await paid('bruno', 'fumi', '166')).quote.debitAmount.value).toBe('103')
  })
})
