import type { Clock, Instant } from 'open-payments-server'

/** An order that the other side gets. */
export interface ReceivedOrder {
  /** The key of the other side for repeats: the reference of the attempt, or the id of the settlement. */
  readonly reference: string
  /** What the order moves, in smallest units of the asset that arrives. */
  readonly amount: bigint
  /** The instant of the request after which it is not carried out. */
  readonly notAfter?: Instant | undefined
}

/** The accounts of the other side, for its API in a test. */
export interface OtherAccounts {
  /** Carries out an order, once for its reference, unless its time is over or its reference is closed. */
  carryOut(order: ReceivedOrder): 'done' | 'too_late' | 'closed'
  /** Returns what was carried out for a reference. */
  find(reference: string): { readonly amount: bigint } | undefined
  /** Returns whether an order was carried out. If it was not, it never will be. */
  close(reference: string): 'arrived' | 'never'
  /** Returns what the receiver has received in total, from everybody. */
  received(): bigint
}

/** The accounts, and what truly happened. */
export interface TrueAccounts extends OtherAccounts {
  /** What arrived from the host. */
  arrived(): bigint
  hasArrived(reference: string): boolean
  payByOther(amount: bigint): void
  /** Whether the next orders are carried out and denied. */
  denies: boolean
}

/** What the receiver has before a history. */
const before = 7_000n

export function otherAccounts(clock: Clock, behindMs: number): TrueAccounts {
  const done = new Map<string, bigint>()
  const denied = new Set<string>()
  const closed = new Set<string>()
  let others = 0n
  const sum = (isCounted: (reference: string) => boolean) =>
    [...done].reduce((all, [each, amount]) => (isCounted(each) ? all + amount : all), 0n)
  return {
    denies: false,
    carryOut({ reference, amount, notAfter }) {
      if (done.has(reference)) return 'done'
      if (closed.has(reference)) return 'closed'
      const isLate = notAfter !== undefined && clock.now() - behindMs > notAfter
      if (isLate) return 'too_late'
      done.set(reference, amount)
      if (this.denies) denied.add(reference)
      return 'done'
    },
    find(reference) {
      const amount = done.get(reference)
      return amount === undefined || denied.has(reference) ? undefined : { amount }
    },
    close(reference) {
      if (done.has(reference) && !denied.has(reference)) return 'arrived'
      closed.add(reference)
      return 'never'
    },
    received: () => before + others + sum((reference) => !denied.has(reference)),
    arrived: () => sum(() => true),
    hasArrived: (reference) => done.has(reference),
    payByOther(amount) {
      others += amount
    },
  }
}
