import { createServer, type Server } from 'node:http'
import type { Facilitator } from './facilitator.js'
import { decode, encode, type PaymentRequired, type PaymentRequirements } from './messages.js'

export interface PaidResource {
  readonly url: string
  readonly requirements: PaymentRequirements
  readonly facilitator: Facilitator
  /** What a payer gets. */
  readonly content: string
}

/** Serves a resource for money: 402 with what it costs, 400 for a payment of another kind, or 200 with the content. */
export function serveResource({ url, requirements, facilitator, content }: PaidResource): Server {
  const required = (error: string): PaymentRequired => ({
    ...{ x402Version: 2, error, resource: { url }, accepts: [requirements] },
  })
  const settled = (transaction: string, errorReason?: string) =>
    encode({
      ...{ success: errorReason === undefined, transaction, network: requirements.network },
      ...(errorReason === undefined ? {} : { errorReason }),
    })

  return createServer(async (request, response) => {
    const answer = (status: number, fields: Record<string, string>, body = '') =>
      void response.writeHead(status, fields).end(body)
    const field = request.headers['payment-signature']
    const demand = { 'payment-required': encode(required('PAYMENT-SIGNATURE is required')) }
    if (typeof field !== 'string') return answer(402, demand)
    const paid = paymentIn(field, requirements)
    if (paid === undefined) return answer(400, demand)
    try {
      const verdict = await facilitator.verify(paid, requirements)
      if (verdict.isValid) return answer(200, { 'payment-response': settled(paid) }, content)
      answer(402, { ...demand, 'payment-response': settled('', verdict.invalidReason) })
    } catch {
      answer(500, {}) // the wallet did not answer: the same payment is verified when it is presented again
    }
  })
}

/** Returns the URL of the incoming payment, if the payment is one that the resource accepts. */
function paymentIn(field: string, requirements: PaymentRequirements): string | undefined {
  const { x402Version, accepted, payload } = decode(field) ?? {}
  const { scheme, network } = membersOf(accepted)
  const { incomingPaymentUrl } = membersOf(payload)
  if (x402Version !== 2 || scheme !== requirements.scheme) return undefined
  if (network !== requirements.network || typeof incomingPaymentUrl !== 'string') return undefined
  return incomingPaymentUrl
}

function membersOf(value: unknown): Record<string, unknown> {
  return typeof value === 'object' && value !== null ? { ...value } : {}
}
