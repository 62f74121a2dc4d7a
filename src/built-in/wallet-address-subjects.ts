import type { Subjects } from '../ports/host.js'
import { canonicalUrl } from '../protocol/url.js'

/** Confirms the requested subject if it is one of the resource owner's wallet addresses. */
export const walletAddressSubjects: Subjects = {
  async resolve({ requested, walletAddresses }) {
    const walletAddress = canonicalUrl(requested.id)
    const theirs = walletAddress !== undefined && walletAddresses.includes(walletAddress)
    return theirs ? requested : undefined
  },
}
