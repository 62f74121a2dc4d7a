// #region app
import {
  type Client,
  type PaymentRequest,
  type PendingGrant,
  verifyFinish,
} from 'open-payments-client'

/** Quotes a payment, and asks its owner: send the browser to `pending.redirect`. */
export async function ask(client: Client, walletAddress: string, receiver: string) {
  const quoted = await client.createQuote({ walletAddress, receiver })
  if (!quoted.ok) return quoted
  const { id, debitAmount } = quoted.quote
  const asked = await client.requestGrant({
    walletAddress,
    access: [
      {
        type: 'outgoing-payment',
        actions: ['create', 'read'],
        identifier: walletAddress,
        limits: { receiver, debitAmount },
      },
    ],
    interact: { finishUri: 'https://app.example/finish' },
  })
  return asked.ok ? { ...asked, quote: id } : asked
}

/** Gets the grant after the browser has returned, once: keep it with the quote. */
export async function granted(client: Client, pending: PendingGrant, returned: URL) {
  const finish = await verifyFinish(pending, returned.searchParams)
  if (!finish.ok) return finish
  return client.continueGrant(pending, { interactRef: finish.interactRef })
}

/** Pays a quote, once, however often it is called. Resolves to what to show. */
export async function pay(client: Client, order: PaymentRequest): Promise<string> {
  const paid = await client.createPayment(order)
  if (paid.ok) return `Created: ${paid.payment.id}`
  // It has not failed, it waits for its owner: call again after the answer.
  if (paid.refusal === 'confirmation_required') return `Please confirm it: ${paid.url}`
  // The token has expired meanwhile: `rotateToken`, and call again with the new grant.
  if (paid.refusal === 'unauthenticated') return 'Please continue'
  if (paid.isTemporary || paid.refusal === 'outcome_unknown') return 'Please try again'
  return `Not paid: ${paid.publicReason}`
}
// #endregion app
