import { type Client, createClient, type IssuedGrant } from 'open-payments-client'
import { type Amount, type PrivateJwk, requestSigner } from 'open-payments-server'
import { amountOf, type PaymentRequirements } from './messages.js'

export interface FacilitatorOptions {
  /** A wallet address that publishes the key: that of the one who is paid, or another. */
  readonly walletAddress: string
  readonly keyId: string
  readonly privateKey: PrivateJwk
  readonly clock?: { now(): number }
}

export type Verdict =
  | { readonly isValid: true }
  | { readonly isValid: false; readonly invalidReason: string }

/** Says whether an incoming payment is the payment that a resource requires. It settles nothing: it is settled. */
export interface Facilitator {
  verify(incomingPaymentUrl: string, requirements: PaymentRequirements): Promise<Verdict>
}

interface IncomingPayment {
  readonly id: string
  readonly walletAddress: string
  readonly completed: boolean
  readonly receivedAmount: Amount
  readonly createdAt: string
}

/**
 * Returns a facilitator that reads incoming payments at the wallet of the one who is paid. One process remembers the
 * payments that it has accepted; several need a table with a unique key.
 *
 * `receiverOf` of the client finds what can still be paid, so a completed payment is read here with a request of its
 * own.
 */
export function createFacilitator({
  clock = { now: () => Date.now() },
  ...key
}: FacilitatorOptions): Facilitator {
  const client = createClient({ ...key, allowLoopback: true })
  const sign = requestSigner(key)
  const used = new Set<string>()

  async function read(url: string, { token }: IssuedGrant): Promise<IncomingPayment | undefined> {
    const nonce = crypto.randomUUID()
    const headers = await sign({ method: 'GET', url, token, nonce, createdAt: Date.now() })
    const response = await fetch(url, { headers, redirect: 'manual' })
    if (response.status !== 200) return undefined
    return (await response.json()) as IncomingPayment // of the wallet that is trusted
  }

  return {
    async verify(url, requirements) {
      const { payTo, maxTimeoutSeconds } = requirements
      // Only the wallet of the one who is paid is asked: the client chose the URL.
      if (!URL.canParse(url) || new URL(url).host !== new URL(payTo).host) {
        return invalid('another_wallet')
      }
      const grant = await readingGrant(client, payTo)
      const payment = grant && (await read(url, grant))
      if (payment === undefined || payment.id !== url) return invalid('payment_unknown')
      if (payment.walletAddress !== payTo) return invalid('another_receiver')
      if (!payment.completed) return invalid('payment_not_completed')
      if (!isSame(payment.receivedAmount, amountOf(requirements))) return invalid('another_amount')
      const ageMs = clock.now() - Date.parse(payment.createdAt)
      if (!(ageMs <= maxTimeoutSeconds * 1_000)) return invalid('payment_too_old')
      // Last, and without waiting in between: one of two requests with one payment is accepted.
      if (used.has(url)) return invalid('payment_used')
      used.add(url)
      return { isValid: true }
    },
  }
}

async function readingGrant(client: Client, walletAddress: string) {
  const access = [{ type: 'incoming-payment', actions: ['read-all'] }] as const
  const asked = await client.requestGrant({ walletAddress, access })
  return asked.ok && asked.status === 'issued' ? asked.grant : undefined
}

const invalid = (invalidReason: string): Verdict => ({ isValid: false, invalidReason })

function isSame(one: Amount, other: Amount): boolean {
  return (
    one.value === other.value &&
    one.assetScale === other.assetScale &&
    one.assetCode.toUpperCase() === other.assetCode.toUpperCase()
  )
}
