import * as v from 'valibot'
import { text } from '../util/input.js'
import { InvalidInputError } from '../util/invalid-input.js'
import { type ScopeReader, scopeOf } from './payments.js'

/** Selects the payments of a wallet address, or those under a grant. */
export type OutgoingPaymentScope =
  | { readonly walletAddress: string; readonly grantId?: undefined }
  | { readonly grantId: string; readonly walletAddress?: undefined }

export const byAddressOrGrant: ScopeReader<OutgoingPaymentScope> = {
  members: { walletAddress: v.optional(text), grantId: v.optional(text) },
  read({ walletAddress, grantId }) {
    if (grantId === undefined) return scopeOf({ walletAddress: walletAddress ?? '' })
    if (walletAddress === undefined) return { grantId }
    throw new InvalidInputError('query.grantId', 'must not be used together with walletAddress')
  },
}
