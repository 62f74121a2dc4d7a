import type { Subjects } from '../ports/host.js'
import { canonicalUrl } from '../protocol/url.js'

/**
 * Confirms the requested subject if it is one of the resource owner's wallet addresses.
 *
 * @example
 * ```ts
 * import { createWallet, walletAddressSubjects } from 'open-payments-server'
 *
 * const wallet = createWallet({
 *   baseUrl: 'https://wallet.example',
 *   consentUrl: 'https://wallet.example/consent',
 *   store,
 *   walletAddresses: accounts,
 *   paymentMethods,
 *   subjects: walletAddressSubjects, // apps may ask an owner which account is theirs
 * })
 * ```
 */
export const walletAddressSubjects: Subjects = {
  async resolve({ requested, walletAddresses }) {
    const walletAddress = canonicalUrl(requested.id)
    const theirs = walletAddress !== undefined && walletAddresses.includes(walletAddress)
    return theirs ? requested : undefined
  },
}
