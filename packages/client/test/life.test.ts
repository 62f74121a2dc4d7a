import { createClient, type IssuedGrant, verifyFinish } from 'open-payments-client'
import {
  type CreatedWallet,
  plainWallet,
  startCreatedWallet,
} from 'open-payments-test-support/created-wallet'
import { decide } from 'open-payments-test-support/examples/demo'
import { testKey } from 'open-payments-test-support/keys'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'

const key = testKey('app')
let running: CreatedWallet
beforeAll(async () => {
  running = await startCreatedWallet({ create: plainWallet })
  await running.publish(at('/bob'), { kid: key.kid, x: key.x })
})
afterAll(() => running.stop())

const at = (path: string) => `${running.baseUrl}${path}`
const finishUri = 'http://localhost:1/finish?order=7'
const usd = (value: string) => ({ value, assetCode: 'USD', assetScale: 2 })

function clientOf(more: object = {}) {
  return createClient({
    ...{ walletAddress: at('/bob'), keyId: key.kid, privateKey: key.privateKey },
    ...{ allowLoopback: true, limitMs: 60_000 },
    ...more,
  })
}

/** Returns the result of a call that succeeds. */
function done<Result extends { readonly ok: boolean }>(result: Result) {
  if (!result.ok) expect.fail(JSON.stringify(result))
  return result as Extract<Result, { readonly ok: true }>
}

const inAnHour = () => Date.now() + 3_600_000

async function granted(client: ReturnType<typeof clientOf>, debit: string): Promise<IssuedGrant> {
  const access = [
    {
      ...({ type: 'outgoing-payment', identifier: at('/alice') } as const),
      ...({ actions: ['create', 'read'], limits: { debitAmount: usd(debit) } } as const),
    },
  ]
  const asked = await client.requestGrant({
    ...{ walletAddress: at('/alice'), access },
    interact: { finishUri },
  })
  const requested = done(asked)
  if (requested.status !== 'pending') expect.fail('the grant is issued')
  // What a host keeps until the owner has decided.
  const pending = JSON.parse(JSON.stringify(requested.pending))
  const { location } = await decide(pending.redirect, 'approve')
  const { interactRef } = done(await verifyFinish(pending, new URL(`${location}`).searchParams))
  const state = done(await client.continueGrant(pending, { interactRef }))
  return state.status === 'issued' ? state.grant : expect.fail('the grant is pending')
}

describe('at a wallet of open-payments-server, a client', () => {
  test('creates a receiver, pays it by a quote, once, and completes it', async () => {
    const client = clientOf()
    const { address } = done(await client.addressOf(at('/bob')))
    expect(address).toMatchObject({ asset: { assetCode: 'USD', assetScale: 2 } })
    const { url, receiver } = done(
      await client.createReceiver({ walletAddress: address, expiresAt: inAnHour() }),
    )
    expect(receiver.walletAddress).toBe(at('/bob'))
    expect(done(await client.publicReceiverOf(url)).receivedAmount).toEqual(usd('0'))

    const debitAmount = usd('250')
    const asked = { walletAddress: at('/alice'), receiver: url, debitAmount }
    const { quote } = done(await client.createQuote(asked))
    expect(done(await client.getQuote(at('/alice'), quote.id)).quote).toEqual(quote)
    const grant = await granted(client, '1000')
    const pay = () => client.createPayment({ walletAddress: at('/alice'), grant, quote: quote.id })
    const first = done(await pay())
    expect(first.payment.spent?.debitAmount).toEqual(debitAmount)
    expect(done(await pay()).payment.id).toBe(first.payment.id)
    await expect
      .poll(async () => done(await client.getPayment(grant, first.payment.id)).payment.sentAmount)
      .toEqual(debitAmount)
    const found = done(await client.receiverOf(url))
    expect(found.receiver.receivedAmount).toEqual(usd('250'))
    expect(done(await client.completeReceiver(url)).receivedAmount).toEqual(usd('250'))
    expect(await client.receiverOf(url)).toMatchObject({ refusal: 'receiver_closed' })
  })

  test('pays with a key once, and learns what exceeds its grant', async () => {
    const client = clientOf()
    const { url } = done(
      await client.createReceiver({ walletAddress: at('/bob'), expiresAt: inAnHour() }),
    )
    const grant = await granted(client, '300')
    const pay = (idempotencyKey: string) =>
      client.createPayment({
        ...{ walletAddress: at('/alice'), grant, receiver: url, debitAmount: usd('200') },
        idempotencyKey,
      })
    const { payment } = done(await pay('order 7'))
    expect(done(await pay('order 7')).payment.id).toBe(payment.id)
    expect(await pay('order 8')).toMatchObject({
      refusal: 'forbidden',
      answer: { status: 403, code: 'insufficient_grant', details: { left: usd('100') } },
    })
  })

  test('rotates, revokes and cancels, and may cancel twice', async () => {
    const client = clientOf()
    const first = await granted(client, '300')
    const { grant } = done(await client.rotateToken(first))
    expect(grant.token).not.toBe(first.token)
    expect(grant.continuation).toEqual(first.continuation)
    expect(await client.revokeToken(grant)).toEqual({ ok: true })
    expect(await client.cancelGrant(grant)).toEqual({ ok: true })
    expect(await client.cancelGrant(grant)).toEqual({ ok: true })
    expect(await client.rotateToken(grant)).toMatchObject({ ok: false })
  })

  test('polls for the decision as slowly as the server wants', async () => {
    const client = clientOf()
    const access = [
      { type: 'outgoing-payment', actions: ['read'], identifier: at('/alice') },
    ] as const
    const asked = { walletAddress: at('/alice'), access, interact: 'poll' } as const
    const requested = done(await client.requestGrant(asked))
    if (requested.status !== 'pending') expect.fail('the grant is issued')
    const { pending } = requested
    expect(pending.finish).toBeUndefined()
    const hasty = clientOf({ limitMs: 1 })
    expect(await hasty.continueGrant(pending)).toMatchObject({ refusal: 'too_fast' })
    await decide(pending.redirect ?? '', 'deny')
    expect(await client.continueGrant(pending)).toMatchObject({ refusal: 'consent_denied' })
  })

  test('without a wallet address presents its key, and gets what needs no consent', async () => {
    const client = createClient({
      ...{ keyId: key.kid, privateKey: key.privateKey },
      ...{ allowLoopback: true, limitMs: 60_000 },
    })
    const asked = { walletAddress: at('/bob'), expiresAt: inAnHour() }
    expect(await client.createReceiver(asked)).toMatchObject({ ok: true })
    const access = [{ type: 'quote', actions: ['create'] }] as const
    const state = await client.requestGrant({ walletAddress: at('/bob'), access })
    expect(state).toMatchObject({ ok: true, status: 'issued' })
  })
})

describe('a return of the browser', () => {
  const pending = {
    authServer: 'https://bank.example/auth',
    finish: { clientNonce: 'VJLO6A4CATR0KRO', serverNonce: 'MBDOFXG4Y5CVJCX821LH' },
  }

  test.each([
    ['another reference', { interact_ref: 'other', hash: 'x' }, 'finish_invalid'],
    ['no hash', { interact_ref: '4IFWWIKYB2PQ6U56NL1' }, 'finish_invalid'],
    ['an empty hash', { interact_ref: 'a', hash: '' }, 'finish_invalid'],
    ['a denial', { result: 'grant_rejected' }, 'consent_denied'],
    ['another result', { result: 'grant_invalid' }, 'finish_invalid'],
  ])('with %s is refused', async (_, query, refusal) => {
    const found = await verifyFinish(pending, new URLSearchParams(query as Record<string, string>))
    expect(found).toMatchObject({ ok: false, refusal })
  })
})
