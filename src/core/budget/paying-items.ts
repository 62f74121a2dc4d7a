import type { GrantedItem } from '../access.js'
import type { Instant } from '../instant.js'
import { type Allowance, allowanceAt } from '../limits.js'
import type { OpenLimit } from '../spending-limits.js'

/** The grant under which payments are charged. */
export interface ChargedGrant {
  /** Prefix of the budget's id: the namespace of the server. */
  readonly namespace: string
  readonly grantId: string
}

/**
 * A granted item for outgoing payments at an instant, with the id of the budget that counts its payments. Outside all
 * windows of its interval it has neither allowance nor budget.
 */
export interface PayingItem {
  readonly item: GrantedItem
  readonly open?: OpenLimit
}

/** Returns the items for outgoing payments of a token or grant, in the order in which they were granted. */
export function payingItems(
  access: readonly GrantedItem[],
  charge: ChargedGrant,
  now: Instant,
): readonly PayingItem[] {
  return access
    .filter(({ type }) => type === 'outgoing-payment')
    .map((item) => {
      const allowed = allowanceAt(item, now)
      return allowed.ok ? { item, open: clientLimit(charge, item, allowed.value) } : { item }
    })
}

export function clientLimit(
  charge: ChargedGrant,
  item: GrantedItem,
  allowance: Allowance,
): OpenLimit {
  const { itemId, limits = {}, intervalCounting } = item
  return {
    source: 'client',
    scope: { grantId: charge.grantId, itemId },
    budgetId: budgetId(charge, item, allowance),
    ...allowance,
    ...(limits.interval !== undefined && { interval: limits.interval }),
    ...(intervalCounting !== undefined && { intervalCounting }),
  }
}

/** Returns the id of the budget that counts payments under an item. */
export function budgetId(
  { namespace, grantId }: ChargedGrant,
  { itemId }: Pick<GrantedItem, 'itemId'>,
  { window }: Allowance,
): string {
  return `${namespace}${grantId}.${itemId}.${window === undefined ? 'life' : window.start}`
}
