import type { Client, Receiver } from 'open-payments-client'
import type { Amount } from 'open-payments-server'

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

/** Finds receivers with a client of other wallets. */
export function receiversOf(client: Pick<Client, 'receiverOf'>): Receivers {
  return async (url) => {
    const found = await client.receiverOf(url)
    if (found.ok) return found
    const { reason, publicReason, isTemporary } = found
    return {
      ...{ ok: false, reason, publicReason },
      ...(isTemporary && { temporary: true }),
      ...(found.refusal === 'receiver_closed' && { receivedAmount: found.receivedAmount }),
    }
  }
}

export function noReceiver(publicReason: string, reason = publicReason) {
  return { ok: false, reason, publicReason } as const
}
