import * as v from 'valibot'
import type { AddressScope, DoubtScope, GrantScope } from '../service/lists.js'
import { text } from '../util/input.js'
import { InvalidInputError } from '../util/invalid-input.js'
import { type ScopeReader, scopeOf } from './payments.js'

/** Selects the payments of a wallet address, or those under a grant. */
export type OutgoingPaymentScope =
  | { readonly walletAddress: string; readonly grantId?: undefined }
  | { readonly grantId: string; readonly walletAddress?: undefined }

/** Selects also the payments of the server of which a part is in doubt, oldest doubt first. */
export type ListedPayments =
  | (OutgoingPaymentScope & { readonly inDoubt?: undefined })
  | {
      readonly inDoubt: true
      readonly walletAddress?: undefined
      readonly grantId?: undefined
    }

const ofAddressOrGrant = { walletAddress: v.optional(text), grantId: v.optional(text) }

export const byAddressOrGrant: ScopeReader<OutgoingPaymentScope> = {
  members: ofAddressOrGrant,
  read: readAddressOrGrant,
}

export const byAddressGrantOrDoubt: ScopeReader<
  ListedPayments,
  AddressScope | GrantScope | DoubtScope
> = {
  members: { ...ofAddressOrGrant, inDoubt: v.optional(v.literal(true, 'must be true')) },
  read({ inDoubt, ...others }) {
    if (inDoubt === undefined) return readAddressOrGrant(others as OutgoingPaymentScope)
    if (others.walletAddress === undefined && others.grantId === undefined) return { inDoubt }
    throw new InvalidInputError('query.inDoubt', 'must be alone')
  },
}

function readAddressOrGrant({ walletAddress, grantId }: OutgoingPaymentScope) {
  if (grantId === undefined) return scopeOf({ walletAddress: walletAddress ?? '' })
  if (walletAddress === undefined) return { grantId }
  throw new InvalidInputError('query.grantId', 'must not be used together with walletAddress')
}
