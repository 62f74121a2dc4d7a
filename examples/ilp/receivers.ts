import type { Amount, Asset, IncomingPaymentServices } from 'open-payments-server'
import { parseValue } from 'open-payments-server/core'

/** An incoming payment that accepts money, in this wallet or in another one. */
export interface Receiver {
  readonly asset: Asset
  readonly receivedAmount: Amount
  /** The amount that is still missing, if the payment has an amount. */
  readonly wanted?: Amount
  /** Absent if it is not known for sure. */
  readonly walletAddress?: string
  /** Milliseconds since 1970. */
  readonly expiresAt?: number
  /** How to pay it over Interledger. Absent for a payment of this wallet. */
  readonly ilp?: { readonly ilpAddress: string; readonly sharedSecret: string }
}

export type FoundReceiver =
  | { readonly ok: true; readonly receiver: Receiver }
  | {
      readonly ok: false
      /** For the operator. */
      readonly reason: string
      /** For the app: a public fact about the receiver. */
      readonly publicReason?: string
      /** The other wallet may respond later. Absent: the receiver will never accept the payment. */
      readonly temporary?: true
      /** What the receiver has received, if it could be read. */
      readonly receivedAmount?: Amount
    }

/** Finds the receiver of a payment by its URL. */
export type Receivers = (url: string) => Promise<FoundReceiver>

/** Looks up receivers of this wallet in `incomingPayments`, and all others with `elsewhere`. */
export function receiversOf(
  incomingPayments: Pick<IncomingPaymentServices, 'get' | 'idOf'>,
  elsewhere: Receivers,
  now = () => Date.now(),
): Receivers {
  return async (url) => {
    const id = incomingPayments.idOf(url)
    if (id === undefined) return elsewhere(url)
    const payment = await incomingPayments.get(id)
    if (payment === undefined) return noReceiver('the incoming payment does not exist')
    const { walletAddress, incomingAmount, receivedAmount, status, expiresAt } = payment
    const terms = {
      completed: status === 'completed',
      receivedAmount,
      expiresAt,
      ...(incomingAmount && { incomingAmount }),
    }
    const found = receiverFrom(terms, now())
    return found.ok ? { ...found, receiver: { ...found.receiver, walletAddress } } : found
  }
}

interface Terms {
  readonly completed: boolean
  readonly incomingAmount?: Amount
  readonly receivedAmount: Amount
  readonly expiresAt?: number
}

/** Returns the receiver if it accepts money. */
export function receiverFrom(
  { completed, incomingAmount, receivedAmount, expiresAt }: Terms,
  now: number,
): FoundReceiver {
  const closed = (reason: string): FoundReceiver => ({ ...noReceiver(reason), receivedAmount })
  if (completed) return closed('the incoming payment is complete')
  if (expiresAt !== undefined && now > expiresAt) return closed('the incoming payment has expired')
  const { assetCode, assetScale } = receivedAmount
  const asset = { assetCode, assetScale }
  const receiver = { asset, receivedAmount, ...(expiresAt !== undefined && { expiresAt }) }
  if (incomingAmount === undefined) return { ok: true, receiver }
  const [asked, received] = [parseValue(incomingAmount.value), parseValue(receivedAmount.value)]
  if (asked === undefined || received === undefined || asked <= received) {
    return closed('the incoming payment has received its amount')
  }
  const wanted = { ...asset, value: `${asked - received}` }
  return { ok: true, receiver: { ...receiver, wanted } }
}

export function sameAsset(one: Asset, other: Asset): boolean {
  return one.assetCode === other.assetCode && one.assetScale === other.assetScale
}

export function noReceiver(publicReason: string, reason = publicReason) {
  return { ok: false, reason, publicReason } as const
}
