import type {
  Amount,
  Handler,
  IlpPaymentMethod,
  IlpPaymentMethods,
  OutgoingPaymentEvent,
  ResourceServer,
  Totals,
} from 'open-payments-server'
import { ilpOverHttp } from './ilp-over-http.js'
import type { IlpHandler } from './packet.js'
import { createStreamReceiver } from './receiver.js'
import { payOverIlp } from './sender.js'

// #region ilp-receiver
/**
 * Mount it at the URL where your connector sends packets: `app.use('/ilp', toExpress(receiveOverIlp(…)))`.
 */
export function receiveOverIlp(
  { incomingPayments }: Pick<ResourceServer, 'incomingPayments'>,
  paymentMethods: IlpPaymentMethods, // the same as for createResourceServer
  token: string, // your connector's bearer token
): Handler<string | Uint8Array> {
  const handle = createStreamReceiver({
    ilpAddress: 'g.wallet.example', // the addressPrefix of the payment methods
    paymentMethods,
    incomingPayments, // or { get, receive } with a receive that also writes to your ledger
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
 * Sends the remainder of an outgoing payment that you have begun. Report the result with `reportSent` or `fail`.
 */
export async function sendOverIlp(
  { debitAmount, receiveAmount, sentAmount, deliveredAmount }: OutgoingPaymentEvent,
  { methods, receivedAmount: asset }: Receiver, // the incoming payment, from its resource server
  send: IlpHandler, // sendOverHttp({ url, token }), to your connector
): Promise<Totals & { readonly arrived: boolean }> {
  const [method] = methods
  if (method === undefined) throw new Error('the incoming payment accepts no more funds')
  const deliver = BigInt(receiveAmount.value) - BigInt(deliveredAmount.value)
  const maxSourceAmount = BigInt(debitAmount.value) - BigInt(sentAmount.value)
  const receiver = { ...method, asset }
  const paid = await payOverIlp({ send, receiver, amount: { deliver }, maxSourceAmount })
  const delivered = paid.delivered < deliver ? paid.delivered : deliver // a receiver can overstate it
  return {
    arrived: paid.ok,
    sentAmount: add(sentAmount, paid.sent),
    deliveredAmount: add(deliveredAmount, delivered),
  }
}
// #endregion ilp-sender

function add(amount: Amount, more: bigint): Amount {
  return { ...amount, value: (BigInt(amount.value) + more).toString() }
}
