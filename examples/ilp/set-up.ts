import { createStreamReceiver, ilpOverHttp } from 'open-payments-ilp'
import type { Handler, IlpPaymentMethods, ResourceServer } from 'open-payments-server'

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
