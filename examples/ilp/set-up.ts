import { createStreamReceiver, type IlpHandler, ilpOverHttp, payOverIlp } from 'open-payments-ilp'
import type {
  Amount,
  Handler,
  IlpPaymentMethod,
  IlpPaymentMethods,
  ResourceServer,
  Totals,
} from 'open-payments-server'
import type { OutgoingPaymentEvent } from 'open-payments-server/core'

// #region ilp-receiver
/**
 * Mount it where your connector sends packets: `app.use('/ilp', toExpress(…))`.
 */
export function receiveOverIlp(
  { incomingPayments }: Pick<ResourceServer, 'incomingPayments'>,
  paymentMethods: IlpPaymentMethods, // the same as for createResourceServer
  token: string, // your connector's bearer token
): Handler<string | Uint8Array> {
  const handle = createStreamReceiver({
    ilpAddress: 'g.wallet.example', // the addressPrefix of the payment methods
    paymentMethods,
    incomingPayments, // or { get, receive }, with a receive that writes to your ledger
    onError: (error, funds) => console.error(error, funds), // with funds: see below
  })
  return ilpOverHttp({ token, handle })
}
// #endregion ilp-receiver

/** The members of an incoming payment that the sender reads from the receiver's resource server. */
export interface Receiver {
  readonly methods: readonly IlpPaymentMethod[]
  readonly receivedAmount: { readonly assetCode: string; readonly assetScale: number }
}

// #region ilp-sender
/**
 * Sends the remainder of an outgoing payment that you have begun. Report the result
 * with `reportSent` or `fail`.
 */
export async function sendOverIlp(
  { debitAmount, receiveAmount, sentAmount, deliveredAmount }: OutgoingPaymentEvent,
  { methods, receivedAmount: asset }: Receiver, // as its resource server returns it
  send: IlpHandler, // sendOverHttp({ url, token }), to your connector
): Promise<Totals & { readonly arrived: boolean }> {
  const [method] = methods
  if (method === undefined) throw new Error('the receiver accepts no more funds')
  const deliver = BigInt(receiveAmount.value) - BigInt(deliveredAmount.value)
  const maxSourceAmount = BigInt(debitAmount.value) - BigInt(sentAmount.value)
  const receiver = { ...method, asset }
  const amount = { deliver }
  const paid = await payOverIlp({ send, receiver, amount, maxSourceAmount })
  // A receiver can overstate the amount.
  const delivered = paid.delivered < deliver ? paid.delivered : deliver
  return {
    arrived: paid.ok,
    // The receiver may have packets whose outcome is unknown.
    sentAmount: add(sentAmount, paid.sent + paid.unknown),
    deliveredAmount: add(deliveredAmount, delivered),
  }
}
// #endregion ilp-sender

function add(amount: Amount, more: bigint): Amount {
  return { ...amount, value: (BigInt(amount.value) + more).toString() }
}
