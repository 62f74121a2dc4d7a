import * as v from 'valibot'
import type { Amount } from '../core/amount.js'
import { amountSchema, receiverSchema } from '../protocol/schema.js'
import { InvalidInputError } from '../util/invalid-input.js'

/** The members of a request of the host that say what is paid, and to whom. */
export const askedPayment = {
  receiver: receiverSchema,
  debitAmount: v.optional(amountSchema),
  receiveAmount: v.optional(amountSchema),
}

/** @throws {InvalidInputError} for a request with both amounts. */
export function requireOneAmount(
  path: string,
  asked: { readonly debitAmount?: Amount | undefined; readonly receiveAmount?: Amount | undefined },
): void {
  if (asked.debitAmount !== undefined && asked.receiveAmount !== undefined) {
    throw new InvalidInputError(path, 'must not have both amounts')
  }
}
