import { createHash } from 'node:crypto'
import type { EventHandler, PostponedDelivery, ResourceServices } from 'open-payments-server'
import {
  type AttemptsOptions,
  askByRepeating,
  attempts,
  type Settled,
} from 'open-payments-server/attempts'
import type { Custodian } from './custodian.js'
import { paymentsAt } from './payments.js'

export interface SettlementOptions extends Drivers {
  readonly resources: ResourceServices
  readonly custodian: Custodian
  /** How long the custodian may take until it carries out a payout: part of each order. Default: a minute. */
  readonly validMs?: number
}

type Drivers = Pick<AttemptsOptions, 'store' | 'clock' | 'marginMs' | 'onError'>

export type Settlements = ReturnType<typeof custodianSettlements>

/** Longer than the library keeps a payment: a notice that the custodian repeats after years must change nothing. */
const retentionMs = 3 * 366 * 86_400_000

/** The id of a settlement has 1 to 100 of A-Z a-z 0-9 . _ -, and that of a transfer has what the custodian likes. */
function settlementOf(transferId: string): string {
  if (/^[A-Za-z0-9._-]{1,90}$/.test(transferId)) return transferId
  return `sha256.${createHash('sha256').update(transferId).digest('hex')}`
}

/** The ledger is a custodian behind an API: each movement of money happens there once, through any crash. */
export function custodianSettlements(options: SettlementOptions) {
  const { resources, custodian, validMs = 60_000, ...drivers } = options
  const { clock = { now: () => Date.now() } } = drivers
  const { incomingPayments, outgoingPayments } = resources
  const { hold, credit, payout, findPayouts: ask } = custodian
  const driver = { ...drivers, retentionMs, evidence: 'id' } as const
  // The custodian keeps keys for 30 days.
  const kept = { keptMs: 29 * 86_400_000 }
  // A person may look at a hold for hours.
  const held = { send: hold, ask: askByRepeating(hold, kept), giveUpMs: 24 * 3_600_000 }
  const holds = attempts({ ...driver, name: 'holds', ...held })
  const credits = attempts({
    ...driver,
    name: 'credits',
    send: credit,
    ask: askByRepeating(credit, kept),
  })
  const notAfter = (now: number) => now + validMs
  const payouts = attempts({ ...driver, name: 'payouts', send: payout, ask, notAfter })

  const later = (ms: number): PostponedDelivery => ({ retryAt: clock.now() + ms })

  /** What must arrive in the end: asks for it every hour, and leaves what was refused to a person. */
  function arrivalOf(settled: Settled, what: string): PostponedDelivery | undefined {
    if (settled.state === 'ended' && settled.inDoubt > 0n) return later(3_600_000)
    if (settled.state === 'ended' && settled.arrived === 0n) {
      throw new Error(`${what}: ${settled.reason}`)
    }
    return settled.state === 'again' ? settled : undefined
  }

  const { pay, end } = paymentsAt({ outgoingPayments, custodian, holds, payouts, later })

  const handle: EventHandler = async (event) => {
    switch (event.type) {
      case 'incoming-payment.received': {
        const { transferId = '', amount, walletAddress: account } = event
        const id = settlementOf(transferId)
        const settled = await credits.settle({ id, account, amount: BigInt(amount?.value ?? 0) })
        return arrivalOf(settled, `the credit ${id}`)
      }
      case 'outgoing-payment.created':
        return pay(event.outgoingPaymentId)
      case 'outgoing-payment.completed':
      case 'outgoing-payment.failed':
      case 'outgoing-payment.declined':
        return end(event.outgoingPaymentId)
      default:
        return undefined
    }
  }

  /** Funds have arrived at the custodian. What the library does not count goes back, once. */
  async function arrived(transferId: string, paymentId: string, value: string) {
    const payment = await incomingPayments.get(paymentId)
    const amount = payment && { ...payment.receivedAmount, value }
    const received = amount && (await incomingPayments.receive(paymentId, { transferId, amount }))
    if (received?.ok) return undefined // its event credits the account
    if (received?.refusal === 'review_required') return { retryAt: received.retryAt }
    const asked = await incomingPayments.close(transferId, { paymentId })
    if (asked.ok && asked.counted) return undefined
    const id = settlementOf(transferId)
    // A payment that was removed since may have counted it.
    if ((await credits.get(id)) !== undefined) return undefined
    const back = {
      id: `refund.${id}`,
      amount: BigInt(value),
      from: 'arrivals',
      to: transferId,
    }
    return arrivalOf(await payouts.settle(back), back.id)
  }

  return { handle, pay, arrived, drivers: { holds, credits, payouts } }
}
