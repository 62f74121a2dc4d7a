import { parseInterval, windowAt } from '../../src/entry-core.js'
import type { AccessItem, Amount, IntervalCounting } from '../../src/index.js'
import type {
  PaymentAnswer,
  SpendingAnswer,
  SpendingScene,
  SpendingWallet,
  WalletRequest,
  WalletTotals,
} from '../../src/testing/index.js'

/** Mistakes in counting what was spent that an implementation may plausibly contain. */
export const mistakes = [
  'a late failure gives back to the window of today',
  'what was sent of a failed payment is given back too',
  'a payment that is settled for less gives back all of it',
  'a settled payment is counted whole',
  'all items of a grant share one budget',
  'a window still holds the instant at which it ends',
  'the first window is reckoned from midnight',
  'a repeat pays again',
  'sums are floating point',
  'amounts are compared as text',
  'a limit has to be kept strictly',
  'a revoked grant still pays',
  'the owner is granted what was asked',
  'withdrawing twice gives back twice',
  'failing twice gives back twice',
  'a payment is begun by everybody who tries',
  'what has lapsed can still be begun',
  'more can be settled than was reserved',
  'looks at the budget, waits, and writes it',
  'months have 30 days',
  'the receiver is not looked at',
  'what is received is not limited',
] as const

export type Mistake = (typeof mistakes)[number]

interface Payment {
  readonly id: string
  readonly request: WalletRequest
  readonly received: bigint
  readonly account?: { readonly key: string; readonly item: AccessItem; readonly place: number }
  readonly holdUntil: number
  state: 'created' | 'begun' | 'completed' | 'failed'
  sent: bigint
  delivered: bigint
}

const dayMs = 86_400_000
const yes = { accepted: true } as const
const no = (reason: string) => ({ accepted: false, reason }) as const

/**
 * A simple wallet: totals per window in memory, using only the windows of the library. It is correct unless
 * it is given a mistake to make.
 */
export function carelessWallet(
  scene: SpendingScene,
  mistake?: Mistake,
  intervalCounting: IntervalCounting = 'occurrences',
): SpendingWallet {
  const makes = (this_: Mistake) => mistake === this_
  const grants = new Map<string, { items: readonly AccessItem[]; revoked: boolean }>()
  const payments = new Map<string, Payment>()
  const byKey = new Map<string, Payment>()
  const totals = new Map<string, bigint>()
  let now = 0

  /** Returns where a payment of an item would be counted now, or `undefined` if the limits refuse it. */
  function keyOf(grant: string, item: AccessItem, place: number): string | undefined {
    const { interval } = item.limits ?? {}
    const name = makes('all items of a grant share one budget') ? grant : `${grant} ${place}`
    if (interval === undefined) return name
    const start = windowStart(interval)
    return start === undefined ? undefined : `${name} ${start}`
  }

  function windowStart(text: string): number | undefined {
    const parsed = parseInterval(text)
    if (!parsed.ok) return undefined
    let interval = parsed.value
    if (makes('the first window is reckoned from midnight') && interval.form !== 'duration/end') {
      interval = { ...interval, start: Math.floor(interval.start / dayMs) * dayMs }
    }
    if (makes('months have 30 days') && interval.form !== 'start/end') {
      const { months, days } = interval.duration
      const duration = { ...interval.duration, months: 0, days: days + 30 * months }
      interval = { ...interval, duration }
    }
    if (makes('a window still holds the instant at which it ends')) {
      const before = windowAt(interval, now - 1, intervalCounting)
      if (before !== undefined) return before.start
    }
    return windowAt(interval, now, intervalCounting)?.start
  }

  function fits(total: bigint, limit: Amount): boolean {
    if (makes('sums are floating point')) return Number(total) <= Number(limit.value)
    if (makes('amounts are compared as text')) return total.toString() <= limit.value
    if (makes('a limit has to be kept strictly')) return total < BigInt(limit.value)
    return total <= BigInt(limit.value)
  }

  /** Charges a payment to the first item that can cover it, by the totals that were read. */
  function charge(request: WalletRequest, received: Amount, read: ReadonlyMap<string, bigint>) {
    const { items = [], revoked = true } = grants.get(request.grant) ?? {}
    if (revoked && !makes('a revoked grant still pays')) return undefined
    for (const [place, item] of items.entries()) {
      const { receiver, debitAmount, receiveAmount } = item.limits ?? {}
      const wrong = receiver !== undefined && receiver !== request.receiver
      if (wrong && !makes('the receiver is not looked at')) continue
      const key = keyOf(request.grant, item, place)
      if (key === undefined) continue
      const limit = debitAmount ?? receiveAmount
      if (limit === undefined) return {}
      if (debitAmount === undefined && makes('what is received is not limited')) return {}
      const amount = debitAmount === undefined ? received : request.debitAmount
      if (amount.assetCode !== limit.assetCode) continue
      const total = (read.get(key) ?? 0n) + BigInt(amount.value)
      if (!fits(total, limit)) continue
      totals.set(key, makes('sums are floating point') ? BigInt(Number(total)) : total)
      return { account: { key, item, place } }
    }
    return undefined
  }

  async function pay(request: WalletRequest): Promise<PaymentAnswer> {
    const earlier = byKey.get(request.key)
    if (earlier !== undefined && !makes('a repeat pays again')) return { ...yes, id: earlier.id }
    const { asset, unitPrice = 1n } =
      scene.receivers.find(({ url }) => url === request.receiver) ?? scene.receivers[0]
    const received = BigInt(request.debitAmount.value) / unitPrice
    const read = makes('looks at the budget, waits, and writes it') ? new Map(totals) : totals
    if (read !== totals) await undefined
    const charged = charge(request, { ...asset, value: received.toString() }, read)
    if (charged === undefined) return no('over the limit')
    const id = `payment-${payments.size + 1}`
    const payment: Payment = {
      id,
      request,
      received,
      ...charged,
      holdUntil: now + dayMs,
      state: 'created',
      sent: 0n,
      delivered: 0n,
    }
    payments.set(id, payment)
    byKey.set(request.key, payment)
    return { ...yes, id }
  }

  /** Releases the part of a payment that was not sent. */
  function giveBack({ account, request, received, sent, delivered }: Payment): void {
    if (account === undefined) return
    const { item, place } = account
    const today = keyOf(request.grant, item, place)
    const late = makes('a late failure gives back to the window of today')
    const key = late && today !== undefined ? today : account.key
    const debits = item.limits?.debitAmount !== undefined
    const reserved = debits ? BigInt(request.debitAmount.value) : received
    const total = totals.get(key) ?? 0n
    totals.set(key, total - reserved + (debits ? sent : delivered))
  }

  function settle(id: string, said: WalletTotals): SpendingAnswer {
    const payment = payments.get(id)
    if (payment?.state !== 'begun') return no('not begun')
    const problem = note(payment, said)
    if (problem !== undefined) return no(problem)
    const { sent, delivered, received, request } = payment
    if (!said.final && sent < BigInt(request.debitAmount.value) && delivered < received) return yes
    payment.state = 'completed'
    if (makes('a settled payment is counted whole')) return yes
    const forgets = makes('a payment that is settled for less gives back all of it')
    giveBack(forgets ? { ...payment, sent: 0n, delivered: 0n } : payment)
    return yes
  }

  function fail(id: string, said: Omit<WalletTotals, 'final'>): SpendingAnswer {
    const payment = payments.get(id)
    const again = payment?.state === 'failed' && makes('failing twice gives back twice')
    if (payment === undefined || (payment.state !== 'begun' && !again)) return no('not begun')
    if (BigInt(said.sentAmount.value) >= BigInt(payment.request.debitAmount.value)) {
      return no('all was sent')
    }
    if (BigInt(said.deliveredAmount.value) >= payment.received) return no('all was delivered')
    const problem = note(payment, said)
    if (problem !== undefined) return no(problem)
    payment.state = 'failed'
    const forgets = makes('what was sent of a failed payment is given back too')
    giveBack(forgets ? { ...payment, sent: 0n, delivered: 0n } : payment)
    return yes
  }

  /** Records what has been sent, unless the totals are invalid. */
  function note(payment: Payment, said: Omit<WalletTotals, 'final'>): string | undefined {
    const sent = BigInt(said.sentAmount.value)
    const delivered = BigInt(said.deliveredAmount.value)
    if (sent < payment.sent || delivered < payment.delivered) return 'less than before'
    const more = sent > BigInt(payment.request.debitAmount.value) || delivered > payment.received
    if (more && !makes('more can be settled than was reserved')) return 'more than was reserved'
    Object.assign(payment, { sent, delivered })
    return undefined
  }

  return {
    async grant(asked, granted) {
      const id = `grant-${grants.size + 1}`
      const items = makes('the owner is granted what was asked') ? asked : granted
      grants.set(id, { items, revoked: false })
      return id
    },
    pay,
    async begin(id) {
      const payment = payments.get(id)
      if (payment === undefined) return no('unknown')
      const again = makes('a payment is begun by everybody who tries') && payment.state === 'begun'
      if (payment.state !== 'created' && !again) return no(payment.state)
      const late = now >= payment.holdUntil && !makes('what has lapsed can still be begun')
      if (late) return no('too late')
      payment.state = 'begun'
      return yes
    },
    settle: async (id, said) => settle(id, said),
    fail: async (id, said) => fail(id, said),
    async cancel(id) {
      const payment = payments.get(id)
      if (payment === undefined) return no('unknown')
      const again = payment.state === 'failed' && payment.sent === 0n
      if (again && !makes('withdrawing twice gives back twice')) return yes
      if (payment.state !== 'created' && !again) return no(payment.state)
      payment.state = 'failed'
      giveBack(payment)
      return yes
    },
    async lapse() {
      for (const payment of payments.values()) {
        if (payment.state !== 'created' || now < payment.holdUntil) continue
        payment.state = 'failed'
        giveBack(payment)
      }
    },
    rotate: async () => yes,
    async revoke(grant) {
      const found = grants.get(grant)
      if (found !== undefined) found.revoked = true
    },
    setClock(instant) {
      now = instant
    },
  }
}
