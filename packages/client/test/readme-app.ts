// #region app
import { type Client, type PendingGrant, verifyFinish } from 'open-payments-client'

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

interface Waiting {
  readonly walletAddress: string
  readonly quote: string
  readonly pending: PendingGrant
}

/** Pays after the browser has returned. The quote is paid once, however often. */
export async function pay(client: Client, waiting: Waiting, query: URLSearchParams) {
  const { walletAddress, quote, pending } = waiting
  const finish = await verifyFinish(pending, query)
  if (!finish.ok) return finish
  const state = await client.continueGrant(pending, { interactRef: finish.interactRef })
  if (!state.ok || state.status === 'pending') return state
  return client.createPayment({ walletAddress, grant: state.grant, quote })
}
// #endregion app
