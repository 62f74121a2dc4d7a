import { setTimeout as sleep } from 'node:timers/promises'
import type { Client, IssuedGrant } from 'open-payments-client'
import { amountOf, decode, encode, type PaymentRequirements } from './messages.js'

export interface AgentOptions {
  readonly client: Client
  /** The account that pays. */
  readonly walletAddress: string
  /** What its owner has consented to: the wallet of the account keeps the agent within it. */
  readonly grant: IssuedGrant
}

/** What came of a request: the answer of the resource, or why the agent could not pay for it. */
export type Fetched =
  | { readonly ok: true; readonly response: Response; readonly paid?: string }
  | { readonly ok: false; readonly reason: string }

/** Returns a `fetch` that pays for what it gets, without asking anybody. */
export function createAgent(options: AgentOptions): (url: string) => Promise<Fetched> {
  return async (url) => {
    const response = await fetch(url)
    const required = decode(response.headers.get('payment-required'))
    if (response.status !== 402 || required === undefined) return { ok: true, response }
    const accepted = acceptable(required['accepts'])
    if (accepted === undefined) return failed('it takes no payment over Open Payments')
    const paid = await pay(options, accepted)
    if (!paid.ok) return failed(`${paid.refusal}: ${paid.reason}`)
    const payload = { incomingPaymentUrl: paid.url }
    const message = { x402Version: 2, resource: required['resource'], accepted, payload }
    const headers = { 'payment-signature': encode(message) }
    return { ok: true, response: await fetch(url, { headers }), paid: paid.url }
  }
}

function acceptable(accepts: unknown): PaymentRequirements | undefined {
  const all = Array.isArray(accepts) ? (accepts as PaymentRequirements[]) : []
  return all.find(({ scheme, network }) => scheme === 'exact' && network === 'ilp:openpayments')
}

const failed = (reason: string) => ({ ok: false, reason }) as const

/** Creates an incoming payment of exactly the amount at the wallet of the other side, and pays it. */
async function pay({ client, walletAddress, grant }: AgentOptions, required: PaymentRequirements) {
  const amount = amountOf(required)
  const until = Date.now() + required.maxTimeoutSeconds * 1_000
  const created = await client.createReceiver({
    ...{ walletAddress: required.payTo, incomingAmount: amount, expiresAt: until },
  })
  if (!created.ok) return created
  const { url } = created
  const quoted = await client.createQuote({ walletAddress, receiver: url })
  if (!quoted.ok) return quoted
  const order = { walletAddress, grant, quote: quoted.quote.id }
  let paid = await client.createPayment(order)
  // The reply was lost: the same quote is paid once, however often it is ordered.
  if (!paid.ok && paid.refusal === 'outcome_unknown') paid = await client.createPayment(order)
  if (!paid.ok) return paid
  while (Date.now() < until) {
    const found = await client.receiverOf(url)
    if (!found.ok && found.refusal === 'receiver_closed') {
      // Closed, because it has received its amount, or because it has expired without.
      return found.receivedAmount.value === amount.value ? created : found
    }
    await sleep(50)
  }
  return {
    ok: false,
    refusal: 'not_arrived',
    reason: `${url} has not received its amount`,
  } as const
}
