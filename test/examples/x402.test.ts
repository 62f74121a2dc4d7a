import type { AddressInfo } from 'node:net'
import { type Client, createClient, type IssuedGrant, verifyFinish } from 'open-payments-client'
import { type Sandbox, startSandbox } from 'open-payments-sandbox'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createAgent } from '../../examples/x402/agent.js'
import { createFacilitator } from '../../examples/x402/facilitator.js'
import { decode, encode, type PaymentRequirements } from '../../examples/x402/messages.js'
import { serveResource } from '../../examples/x402/resource.js'

let sandbox: Sandbox
let agentsClient: Client
beforeAll(async () => {
  sandbox = await startSandbox({ port: 0 })
  agentsClient = clientOf('app')
})
afterAll(() => sandbox.stop())

const usd = (value: string) => ({ value, assetCode: 'USD', assetScale: 2 })
const address = (name: string) => sandbox.account(name).walletAddress

function clientOf(name: string) {
  const { walletAddress, keyId, privateKeyJwk } = sandbox.account(name)
  const key = { walletAddress, keyId, privateKey: privateKeyJwk }
  return createClient({ ...key, allowLoopback: true, limitMs: 60_000 })
}

function done<Result extends { readonly ok: boolean }>(result: Result) {
  if (!result.ok) expect.fail(JSON.stringify(result))
  return result as Extract<Result, { readonly ok: true }>
}

/** Alice consents to what the agent may spend in all. */
async function consented(most: string): Promise<IssuedGrant> {
  const item = {
    ...({ type: 'outgoing-payment', actions: ['create', 'read'] } as const),
    ...{ identifier: address('alice'), limits: { debitAmount: usd(most) } },
  }
  const asked = await agentsClient.requestGrant({
    ...{ walletAddress: address('alice'), access: [item] },
    interact: { finishUri: 'http://localhost:1/finish' },
  })
  const requested = done(asked)
  if (requested.status !== 'pending') expect.fail('nobody was asked')
  const { pending } = requested
  const { redirect = '' } = await sandbox.decide(pending.redirect ?? '', 'approve')
  const finish = await verifyFinish(pending, new URL(redirect).searchParams)
  const { interactRef } = done(finish)
  const state = done(await agentsClient.continueGrant(pending, { interactRef }))
  return state.status === 'issued' ? state.grant : expect.fail('it is pending')
}

const clock = { offsetMs: 0, now: () => Date.now() + clock.offsetMs }

/** A resource of Dana for 1.00 USD. */
async function served(more: Partial<PaymentRequirements> = {}) {
  const { walletAddress, keyId, privateKeyJwk } = sandbox.account('dana')
  const facilitator = createFacilitator({
    ...{ walletAddress, keyId, privateKey: privateKeyJwk, clock },
  })
  const requirements: PaymentRequirements = {
    ...{ scheme: 'exact', network: 'ilp:openpayments', amount: '100', asset: 'USD' },
    ...{ payTo: walletAddress, maxTimeoutSeconds: 300, extra: { assetScale: 2 } },
    ...more,
  }
  const options = { url: 'http://localhost/data', requirements, facilitator, content: 'the data' }
  const server = serveResource(options)
  await new Promise<void>((resolve) => server.listen(0, 'localhost', resolve))
  const url = `http://localhost:${(server.address() as AddressInfo).port}/data`

  /** Presents an incoming payment. Resolves to the status, and to why it is refused. */
  async function present(incomingPaymentUrl: string) {
    const message = { x402Version: 2, accepted: requirements, payload: { incomingPaymentUrl } }
    const response = await fetch(url, { headers: { 'payment-signature': encode(message) } })
    const settled = decode(response.headers.get('payment-response'))
    return [response.status, settled?.['errorReason']]
  }
  return { url, requirements, present, [Symbol.asyncDispose]: async () => void server.close() }
}

const agentWith = (grant: IssuedGrant) =>
  createAgent({ client: agentsClient, walletAddress: address('alice'), grant })

/** Pays an incoming payment of an account, in its asset. Returns its URL. */
async function paid(account: string, amount = usd('100')): Promise<string> {
  const expiresAt = Date.now() + 3_600_000
  const asked = { walletAddress: address(account), incomingAmount: amount, expiresAt }
  const { url } = done(await agentsClient.createReceiver(asked))
  const walletAddress = address('alice')
  const { quote } = done(await agentsClient.createQuote({ walletAddress, receiver: url }))
  const grant = await consented('100000')
  done(await agentsClient.createPayment({ walletAddress, grant, quote: quote.id }))
  await sandbox.advance(1)
  return url
}

describe('an agent with a grant of its owner', () => {
  test('gets a resource for exactly its price, asking nobody', async () => {
    await using resource = await served()
    const grant = await consented('250')
    const { response, paid: receiver = '' } = done(await agentWith(grant)(resource.url))
    expect([response.status, await response.text()]).toEqual([200, 'the data'])
    expect(decode(response.headers.get('payment-response'))).toEqual({
      ...{ success: true, transaction: receiver, network: 'ilp:openpayments' },
    })
    const closed = await agentsClient.receiverOf(receiver)
    expect(closed).toMatchObject({ refusal: 'receiver_closed', receivedAmount: usd('100') })
  })

  test('never pays more than its owner has consented to, for however many resources', async () => {
    await using resource = await served()
    const agent = agentWith(await consented('250'))
    sandbox.clearRequests()
    for (const _ of [1, 2]) expect(done(await agent(resource.url)).response.status).toBe(200)
    const reason = expect.stringMatching(/^forbidden: .* 403 insufficient_grant/)
    expect(await agent(resource.url)).toEqual({ ok: false, reason })
    const ordered = sandbox
      .requests()
      .filter(({ operation }) => operation === 'createOutgoingPayment')
    expect(ordered.map(({ status }) => status)).toEqual([201, 201, 403])
  })

  test('pays once if the reply of its wallet is lost', async () => {
    await using resource = await served()
    const agent = agentWith(await consented('100'))
    sandbox.fault({ fault: 'lost-response', operation: 'createOutgoingPayment' })
    expect(done(await agent(resource.url)).response.status).toBe(200)
    expect(await agent(resource.url)).toMatchObject({ ok: false })
  })

  test('pays nothing where another scheme or network is required', async () => {
    await using resource = await served({ network: 'eip155:8453' as never })
    sandbox.clearRequests()
    const fetched = await agentWith(await consented('250'))(resource.url)
    expect(fetched).toEqual({ ok: false, reason: 'it takes no payment over Open Payments' })
    expect(sandbox.requests().map(({ path }) => path)).not.toContain('/outgoing-payments')
  })
})

describe('a resource', () => {
  test('is served once for a payment, also if it is presented twice at a time', async () => {
    await using resource = await served()
    const receiver = await paid('dana')
    const answers = await Promise.all([resource.present(receiver), resource.present(receiver)])
    expect(answers.sort()).toEqual([
      [200, undefined],
      [402, 'payment_used'],
    ])
    expect(await resource.present(receiver)).toEqual([402, 'payment_used'])
  })

  test('is not served for a payment to another, or of another amount', async () => {
    await using resource = await served()
    const reasons = async (url: string) => (await resource.present(url)).at(-1)
    expect(await reasons(await paid('app'))).toBe('another_wallet')
    const euros = { value: '100', assetCode: 'EUR', assetScale: 2 }
    expect(await reasons(await paid('emil', euros))).toBe('another_receiver')
    expect(await reasons(await paid('dana', usd('99')))).toBe('another_amount')
    expect(await reasons(`${await paid('dana')}x`)).toBe('payment_unknown')
    const expiresAt = Date.now() + 3_600_000
    const asked = { walletAddress: address('dana'), incomingAmount: usd('100'), expiresAt }
    const { url } = done(await agentsClient.createReceiver(asked))
    expect(await reasons(url)).toBe('payment_not_completed')
  })

  test('is not served for a payment that is too old', async () => {
    await using resource = await served()
    const receiver = await paid('dana')
    clock.offsetMs = 301_000
    expect(await resource.present(receiver)).toEqual([402, 'payment_too_old'])
    clock.offsetMs = 0
    expect(await resource.present(receiver)).toEqual([200, undefined])
  })

  test('names its price, and refuses what is no payment of its kind', async () => {
    await using resource = await served()
    const { status, headers } = await fetch(resource.url)
    const required = decode(headers.get('payment-required'))
    expect([status, required]).toEqual([
      402,
      expect.objectContaining({ x402Version: 2, accepts: [resource.requirements] }),
    ])
    const accepted = resource.requirements
    const payload = { incomingPaymentUrl: 'http://localhost/1' }
    const wrong = [
      'no base64 of JSON',
      encode({ x402Version: 1, accepted, payload }),
      encode({ x402Version: 2, accepted: { ...accepted, scheme: 'upto' }, payload }),
      encode({ x402Version: 2, accepted, payload: { incomingPaymentUrl: 7 } }),
      encode({ x402Version: 2 }),
    ]
    for (const field of wrong) {
      const answer = await fetch(resource.url, { headers: { 'payment-signature': field } })
      expect(answer.status, field).toBe(400)
    }
  })
})
