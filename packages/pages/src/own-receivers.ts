import type { PagesOptions } from './options.js'
import type { NamedReceiver } from './receivers.js'

/** Looks an incoming payment of this wallet up, and the name of its account. */
export function ownReceiverOf({ auth, resources }: Pick<PagesOptions, 'auth' | 'resources'>) {
  return async (url: string): Promise<NamedReceiver | undefined> => {
    const payments = resources?.incomingPayments
    const id = payments?.idOf(url)
    const payment = id === undefined ? undefined : await payments?.get(id)
    if (payment === undefined) return undefined
    const { walletAddress, incomingAmount } = payment
    const { name } = (await auth.grants.displayOf(walletAddress)) ?? {}
    return {
      walletAddress,
      ...(name !== undefined && { name }),
      ...(incomingAmount !== undefined && { amount: incomingAmount }),
    }
  }
}
