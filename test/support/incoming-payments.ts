import type { Amount } from '../../src/core/amount.js'
import {
  closedTransfer,
  closeTransfer,
  type TransferRecord,
  transferOf,
} from '../../src/core/incoming-payment/transfer.js'
import {
  type CreateIncomingPayment,
  createIncomingPayment,
  decideIncomingPayment,
  type IncomingPaymentEvent,
  type IncomingPaymentPolicy,
  type ReceiveFunds,
} from '../../src/core/incoming-payment.js'
import type { Instant } from '../../src/core/instant.js'
import { startOfTests } from './clock.js'
import { deepFreeze } from './frozen.js'

const day = 86_400_000

/** All durations differ, so that a test notices any confusion between them. */
export const paymentPolicy: IncomingPaymentPolicy = {
  expiryDefaultMs: 30 * day,
  expiryMaxMs: 60 * day,
  retentionMs: 365 * day,
  unpaidRetentionMs: 90 * day,
}

export function usd(value: string | bigint): Amount {
  return { value: value.toString(), assetCode: 'USD', assetScale: 2 }
}

export function creation(more: Partial<CreateIncomingPayment> = {}): CreateIncomingPayment {
  return {
    commandId: 'command-0',
    id: 'namespac-payment',
    walletAddress: 'https://wallet.example/bob',
    asset: { assetCode: 'USD', assetScale: 2 },
    client: 'https://shop.example',
    lists: [{ list: 'namespac https://wallet.example/bob', at: startOfTests }],
    ...more,
  }
}

export function newPayment(more: Partial<CreateIncomingPayment> = {}) {
  const decision = createIncomingPayment(creation(more), startOfTests, paymentPolicy)
  if (decision.outcome === 'refused') throw new Error(decision.reason)
  return deepFreeze(decision.record)
}

/** One payment with its transfers and its own clock. Commits each decision. */
export function paymentLife(more: Partial<CreateIncomingPayment> = {}) {
  let payment = newPayment(more)
  let now = startOfTests
  let commands = 0
  const transfers = new Map<string, TransferRecord>()
  const events: IncomingPaymentEvent[] = []

  return {
    events,
    payment: () => payment,
    now: () => now,
    set(instant: Instant) {
      now = instant
    },
    /** Reports an arrival; without an id, under a new transfer id. */
    receive(
      amount: Amount,
      transferId = `transfer ${commands + 1}`,
      more: Pick<ReceiveFunds, 'refuseExcess' | 'notAfter' | 'decidedAt'> = {},
    ) {
      const commandId = `command-${++commands}`
      const recorded = transfers.get(transferId)
      const command = deepFreeze({
        type: 'receive' as const,
        commandId,
        recordId: transferId,
        transferId,
        amount,
        ...more,
        recorded,
      })
      const decision = decideIncomingPayment<'receive'>(payment, command, now)
      if (decision.outcome === 'changed') {
        transfers.set(transferId, deepFreeze(transferOf(payment, command)))
        payment = deepFreeze(decision.record)
        events.push(...decision.events)
      } else if (decision.outcome === 'refused' && decision.refusal === 'transfer_closed') {
        transfers.set(transferId, recorded ?? deepFreeze(closedTransfer(payment, command)))
      }
      return decision
    },
    /** Closes a transfer. */
    close(transferId: string) {
      const commandId = `command-${++commands}`
      const recorded = transfers.get(transferId)
      const command = deepFreeze({ commandId, recordId: transferId, recorded })
      const decision = closeTransfer(payment, command, now)
      if (decision.outcome === 'changed') transfers.set(transferId, deepFreeze(decision.record))
      return decision
    },
    /** Completes the payment with a new command id, unless one is repeated. */
    complete(commandId = `command-${++commands}`) {
      const command = deepFreeze({ type: 'complete' as const, commandId })
      const decision = decideIncomingPayment<'complete'>(payment, command, now)
      if (decision.outcome === 'changed') {
        payment = deepFreeze(decision.record)
        events.push(...decision.events)
      }
      return decision
    },
    /** Cancels the payment. */
    cancel(reason?: string) {
      const commandId = `command-${++commands}`
      const told = reason === undefined ? {} : { reason }
      const command = deepFreeze({ type: 'cancel' as const, commandId, ...told })
      const decision = decideIncomingPayment<'cancel'>(payment, command, now)
      if (decision.outcome === 'changed') {
        payment = deepFreeze(decision.record)
        events.push(...decision.events)
      }
      return decision
    },
    /** Runs a sweep on the payment. */
    expire() {
      const command = deepFreeze({ type: 'expire' as const, commandId: `command-${++commands}` })
      const decision = decideIncomingPayment<'expire'>(payment, command, now)
      if (decision.outcome === 'changed') {
        payment = deepFreeze(decision.record)
        events.push(...decision.events)
      }
      return decision
    },
  }
}
