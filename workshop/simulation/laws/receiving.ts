import type { Stored } from '../../../src/entry-adapter.js'
import type { IncomingPayment } from '../../../src/entry-core.js'
import { differsIn, type Law, writesOf } from './law.js'

interface Transfer extends Stored {
  readonly paymentId: string
  readonly amount: { readonly value: string }
}

/** What a payment has received is the sum of its transfers, each of which was reported, and never falls. */
export function everyTransferCountsOnce(): Law {
  const sums = new Map<string, bigint>()
  return (change) => {
    for (const { before, after } of writesOf<Transfer>(change, 'transfer')) {
      if (before !== undefined) return [`the transfer ${after.id} changed`]
      if ('closed' in after) continue
      sums.set(after.paymentId, (sums.get(after.paymentId) ?? 0n) + BigInt(after.amount.value))
    }
    return writesOf<IncomingPayment>(change, 'incoming-payment').flatMap(({ before, after }) => {
      const sum = sums.get(after.id) ?? 0n
      if (BigInt(after.received) !== sum) {
        return [`${after.id} has received ${after.received} by transfers of ${sum}`]
      }
      if (BigInt(after.received) < BigInt(before?.received ?? 0)) {
        return [`what ${after.id} has received fell to ${after.received}`]
      }
      const arrived = [...change.journal.transfers.values()]
        .filter(({ paymentId }) => paymentId === after.id)
        .reduce((total, { value }) => total + value, 0n)
      return sum > arrived ? [`${after.id} counts ${sum}, but only ${arrived} arrived`] : []
    })
  }
}

const mutable = [
  'version',
  'lastEvent',
  'updatedAt',
  'commandId',
  'received',
  'completed',
  'retainUntil',
  'dueAt',
  'expiryRecorded',
  // It leaves the list of open payments when it ends.
  'lists',
]

/** What a cancellation changes in addition. */
const cancelled = ['cancellation', 'expiresAt']

/** A completed payment never changes, and a payment is complete once it has received its amount. */
export const completionIsFinal: Law = (change) =>
  writesOf<IncomingPayment>(change, 'incoming-payment').flatMap(({ before, after }) => {
    if (before?.completed) return [`the completed payment ${after.id} changed`]
    const isCancelled = before?.cancellation === undefined && after.cancellation !== undefined
    const changed =
      before && differsIn(before, after, isCancelled ? [...mutable, ...cancelled] : mutable)
    if (changed !== undefined) return [`${changed} of the payment ${after.id} changed`]
    const wanted = after.incomingAmount?.value
    return wanted !== undefined && BigInt(after.received) >= BigInt(wanted) && !after.completed
      ? [`${after.id} has received its amount, and is not complete`]
      : []
  })
