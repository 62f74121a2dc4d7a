import type { Clock, EventHandler, ResourceServer, Store } from 'open-payments-server'
import {
  type Answer,
  attempts,
  type Order,
  type Reply,
  type SettleRequest,
  settlementHandler,
} from 'open-payments-server/attempts'
import type { Pool } from 'pg'
import { releaseFunds } from './hold-funds.js'
import { postSettled } from './settle-outgoing.js'

/** What the payments of a wallet need whose money moves at a bank. */
export interface BankParts {
  readonly pool: Pool
  /** The store of the servers. */
  readonly store: Store
  readonly resources: Pick<ResourceServer, 'outgoingPayments' | 'within'>
  readonly bank: Bank
  readonly clock?: Clock
}

/** The API of the bank, as your client of it. */
export interface Bank {
  /** Carries out an order once, and not after its `notAfter`. */
  transfer(order: Order<SettleRequest>): Promise<Reply>
  /** What it knows of each reference; `undefined` if it cannot be asked. */
  look(references: readonly string[]): Promise<Answer | undefined>
}

// #region bank
/** Pays through a bank, each payment once, and posts to the ledger what has arrived. */
export function bankPayments({ pool, store, resources, bank, ...clock }: BankParts) {
  const settlements = attempts({
    ...clock,
    name: 'bank',
    store, // of the servers: one record for each settlement
    evidence: 'id', // or 'sum'
    notAfter: (now) => now + 60_000, // the order contains it
    send: (order) => bank.transfer(order), // resolves to a `Reply`, below
    ask: ({ references }) => bank.look(references), // to an `Answer`, or undefined
  })
  const settle = settlementHandler({
    ...clock,
    outgoingPayments: resources.outgoingPayments,
    settlements,
    report: (id, settled) => postSettled(pool, resources, id, settled),
  })
  const release = releaseFunds(pool) // what is in doubt is debited, and held no more
  const handle: EventHandler = async (event, delivery) => {
    await release(event, delivery)
    return settle(event, delivery)
  }
  return { settlements, handle } // for `runSweeps`, and for `consumeEvents`
}
// #endregion bank
