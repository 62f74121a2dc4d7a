import type { Subjects } from '../ports/subjects.js'
import { canonicalUrl } from '../protocol/url.js'

/** Confirms the wallet address that a client instance asked about, when it is one of the owner's. */
export const walletAddressSubjects: Subjects = {
  async resolve({ requested, walletAddresses }) {
    const walletAddress = canonicalUrl(requested.id)
    const theirs = walletAddress !== undefined && walletAddresses.includes(walletAddress)
    return theirs ? requested : undefined
  },
}
