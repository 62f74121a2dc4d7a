/** Payments of an account under monthly allowances: stands for a wallet with limits of its own. */

export interface Allowance {
  readonly limit: bigint
  /** The start of the first month. Absent if the limit applies to all payments together. */
  readonly start?: number
}

/** Returns the start of the month that contains an instant, counted from `start`. */
export type MonthOf = (start: number, now: number) => number

interface Payment {
  readonly id: string
  readonly amount: bigint
  /** The allowance and the month that the payment is charged to. */
  readonly charged: string
  readonly createdAt: number
  state: 'created' | 'begun' | 'ended'
  sent: bigint
  delivered: bigint
}

const holdMs = 24 * 60 * 60 * 1_000

export function createAllowances(monthOf: MonthOf) {
  const grants = new Map<string, readonly Allowance[]>()
  const payments = new Map<string, Payment>()
  const spent = (charged: string) =>
    [...payments.values()]
      .filter((payment) => payment.charged === charged)
      .reduce((sum, { state, sent, amount }) => sum + (state === 'ended' ? sent : amount), 0n)

  return {
    grant(allowances: readonly Allowance[]): string {
      const id = `grant-${grants.size}`
      grants.set(id, allowances)
      return id
    },

    /** Charges a payment to the first allowance that covers it. Returns its id, or `undefined` if none does. */
    pay(grant: string, key: string, amount: bigint, now: number): string | undefined {
      const id = `payment-${key}`
      const earlier = payments.get(id)
      if (earlier !== undefined) return earlier.amount === amount ? id : undefined
      for (const [index, { limit, start }] of (grants.get(grant) ?? []).entries()) {
        const charged = `${grant} ${index} ${start === undefined ? '' : monthOf(start, now)}`
        if (spent(charged) + amount > limit) continue
        const nothing = { state: 'created', sent: 0n, delivered: 0n } as const
        payments.set(id, { id, amount, charged, createdAt: now, ...nothing })
        return id
      }
      return undefined
    },

    begin(id: string, now: number): boolean {
      const payment = payments.get(id)
      if (payment?.state !== 'created' || now >= payment.createdAt + holdMs) return false
      payment.state = 'begun'
      return true
    },

    /** Records totals, which never decrease. The payment ends with `ends`, or when all of it has been sent. */
    report(id: string, sent: bigint, delivered: bigint, ends: 'failed' | boolean): boolean {
      const payment = payments.get(id)
      if (payment?.state !== 'begun') return false
      if (sent < payment.sent || delivered < payment.delivered) return false
      if (sent > payment.amount || delivered > payment.amount) return false
      const isWhole = sent === payment.amount || delivered === payment.amount
      if (isWhole && ends === 'failed') return false
      Object.assign(payment, { sent, delivered, state: isWhole || ends ? 'ended' : 'begun' })
      return true
    },
  }
}

/** Counts every month from the first one: 31 January, 28 February, 31 March. */
export const fromFirstMonth: MonthOf = (start, now) => {
  let months = 0
  while (monthsAfter(start, months + 1) <= now) months += 1
  return monthsAfter(start, months)
}

/** Counts every month from the one before: 31 January, 28 February, 28 March. This is a mistake. */
export const fromMonthBefore: MonthOf = (start, now) => {
  let month = start
  while (monthsAfter(month, 1) <= now) month = monthsAfter(month, 1)
  return month
}

function monthsAfter(at: number, months: number): number {
  const date = new Date(at)
  const [year, month] = [date.getUTCFullYear(), date.getUTCMonth() + months]
  const lastDay = new Date(Date.UTC(year, month + 1, 0)).getUTCDate()
  const midnight = Math.floor(at / 86_400_000) * 86_400_000
  return Date.UTC(year, month, Math.min(date.getUTCDate(), lastDay)) + (at - midnight)
}
