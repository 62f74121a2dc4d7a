import type { UnderGrant } from '../../src/core/outgoing-payment/authority.js'
import type { PaymentRecord } from '../../src/core/outgoing-payment/record.js'
import type { Grant, GrantedItem } from '../../src/entry-core.js'
import { birth } from './birth.js'
import type { Database } from './database.js'

/** The item and the window that a payment is charged to, and a name for both. */
export function windowOfPayment(database: Database, payment: PaymentRecord & UnderGrant) {
  const { grantId, itemId, createdAt } = payment
  const grant = database.peek('grant', grantId) as Grant | undefined
  const item = grant?.granted?.find((each) => each.itemId === itemId)
  const window = item === undefined ? 'unknown' : windowOf(item, createdAt)
  return { grant, item, window, group: `${grantId} ${itemId} ${window}` }
}

const periods: Readonly<Record<string, number>> = { PT1H: 3_600_000, P1D: 86_400_000 }

/** The windows of the intervals that the simulated client instances request, which all begin at the same instant. */
function windowOf({ limits }: GrantedItem, at: number): number | undefined {
  if (limits?.interval === undefined) return 0
  const [count = '', , period = ''] = limits.interval.split('/')
  const index = Math.floor((at - birth) / (periods[period] ?? 1))
  const windows = count === 'R' ? Number.POSITIVE_INFINITY : Number(count.slice(1))
  return index >= 0 && index < windows ? index : undefined
}
