import type { AccessItem } from 'open-payments-server'
import type { CommitOrder, StoreFailure } from './history.js'

/**
 * A step in terms relative to the state when it runs, such as the last payment but one, or the whole
 * remainder. A plan turns wishes into steps. A history stays valid when wishes are removed, so fast-check can
 * shrink long counterexamples.
 */
export type Wish =
  | {
      readonly type: 'grant'
      readonly items: readonly AccessItem[]
      /** Whether the resource owner approves half of each limit. */
      readonly halved: boolean
    }
  | PayWish
  /** Repeats a payment request, also with another amount, or a report of the host. */
  | { readonly type: 'retry' | 'alter' | 'again'; readonly back: number }
  | { readonly type: 'begin' | 'cancel'; readonly back: number; readonly any: boolean }
  | TotalsWish
  | { readonly type: 'lapse' }
  | { readonly type: 'rotate' | 'revoke'; readonly grant: number }
  | { readonly type: 'wait'; readonly ms: number }
  /** Waits until a window of an item ends or begins, or until a hold expires, or 1 ms before or after. */
  | { readonly type: 'edge'; readonly grant: number; readonly item: number; readonly off: number }
  | { readonly type: 'hold'; readonly back: number; readonly off: number }
  | { readonly type: 'at once'; readonly wishes: readonly Wish[]; readonly commits: CommitOrder }
  | { readonly type: 'in a row'; readonly wishes: readonly Wish[] }
  | { readonly type: 'store fails'; readonly wish: Wish; readonly failure: StoreFailure }

/** A report of what was sent and delivered. */
export interface TotalsWish {
  readonly type: 'report-sent' | 'fail'
  readonly back: number
  readonly any: boolean
  readonly share: Share
  /** If absent, what was delivered is in proportion to what was sent. */
  readonly delivered?: Share | undefined
  readonly final: boolean
}

export interface PayWish {
  readonly type: 'pay'
  readonly grant: number
  /** The item whose limit the amount is derived from. */
  readonly item: number
  readonly size: Size
  readonly receiver: number
  /** Whether the payment is from another account than that of the item. */
  readonly other: boolean
  readonly by: 'quote' | 'direct'
}

/** The remainder of a limit or a share of it, each plus or minus up to 1, or a fixed value. */
export type Size =
  | { readonly of: 'rest'; readonly off: bigint }
  | { readonly of: 'limit'; readonly parts: bigint; readonly off: bigint }
  | { readonly of: 'value'; readonly value: bigint }

/** How much of a payment has been sent: a part of its amount, or one unit more than it. */
export type Share = 'nothing' | 'one unit' | 'half' | 'all but one unit' | 'all' | 'too much'
