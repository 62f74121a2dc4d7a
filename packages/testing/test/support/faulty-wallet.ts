import type { Amount, SpendingLimit } from 'open-payments-server'
import type { IntervalCounting } from 'open-payments-server/core'
import type {
  PaymentAnswer,
  SpendingAmendment,
  SpendingAnswer,
  SpendingScene,
  SpendingWallet,
  WalletDecision,
  WalletTotals,
} from '../../src/index.js'
import {
  type AnyRequest,
  charge,
  chargeOwner,
  type FaultyState,
  giveBack,
  type Mistake,
  type Payment,
  refund,
} from './faulty-limits.js'

export { type Mistake, mistakes } from './faulty-limits.js'

const dayMs = 86_400_000
const yes = { accepted: true } as const
const no = (reason: string) => ({ accepted: false, reason }) as const

/**
 * A simple wallet: totals per window in memory, using only the windows of the library. It is correct unless `mistake`
 * is given.
 */
export function faultyWallet(
  scene: SpendingScene,
  mistake?: Mistake,
  intervalCounting: IntervalCounting = 'occurrences',
): SpendingWallet {
  const state: FaultyState = {
    scene,
    intervalCounting,
    makes: (other) => mistake === other,
    grants: new Map(),
    payments: new Map(),
    byKey: new Map(),
    totals: new Map(),
    counts: new Map(),
    accounts: new Map(),
    failing: undefined,
    now: 0,
  }
  const { grants, makes } = state
  return {
    async grant(asked, granted, limits) {
      const id = `grant-${grants.size + 1}`
      const items = makes('the client gets everything that it requested') ? asked : granted
      grants.set(id, { items, conditions: limits === undefined ? {} : { limits }, revoked: false })
      return id
    },
    pay: (request) => pay(state, request),
    order: (request) => pay(state, request),
    async list(_grant, walletAddress) {
      const isListed = ({ request }: Payment) =>
        request.walletAddress === walletAddress &&
        (request.grant !== undefined || makes('a list of a client contains what the owner pays'))
      const listed = [...state.payments.values()].filter(isListed)
      return { accepted: true, listed: listed.map(({ id }) => id) }
    },
    begin: async (id) => write(state, () => begin(state, id)),
    reportSent: async (id, said) => write(state, () => reportSent(state, id, said)),
    fail: async (id, said) => write(state, () => fail(state, id, said)),
    decideDoubt: async (id, decision) => write(state, () => decideDoubt(state, id, decision)),
    cancel: async (id) => write(state, () => cancel(state, id)),
    failStore(failure) {
      state.failing = failure
      return () => {
        state.failing = undefined
      }
    },
    lapse: async () => lapse(state),
    rotate: async () => yes,
    async revoke(grant) {
      const found = grants.get(grant)
      if (found !== undefined) found.revoked = true
    },
    amend: async (grant, amendment) => amend(state, grant, amendment),
    async limitAccount(walletAddress, limits) {
      const { accounts } = state
      if (makes('an account keeps its first limits') && accounts.has(walletAddress)) return
      accounts.set(walletAddress, limits)
    },
    replaceKey: async () => {},
    setClock(instant) {
      state.now = instant
    },
  }
}

/** Writes to a store that may fail, before or after it has written. */
function write<Answer>(state: FaultyState, work: () => Answer): Answer {
  const { failing } = state
  if (failing === 'before') throw new Error('nothing was written')
  const answer = work()
  if (failing === 'after') throw new Error('the response of the store was lost')
  return answer
}

async function pay(state: FaultyState, request: AnyRequest): Promise<PaymentAnswer> {
  const { scene, makes, byKey, totals } = state
  const earlier = byKey.get(request.key)
  const paysAgain =
    makes('a repeat pays again') ||
    (request.grant === undefined && makes('the owner pays twice with one key'))
  if (earlier !== undefined && !paysAgain) {
    const same = earlier.request.debitAmount.value === request.debitAmount.value
    if (same || makes('a repeat with another amount returns the first payment')) {
      return { ...yes, id: earlier.id }
    }
    if (!makes('a repeat with another amount pays again')) return no('another amount')
  }
  const { asset, unitPrice = 1n } =
    scene.receivers.find(({ url }) => url === request.receiver) ?? scene.receivers[0]
  const received = BigInt(request.debitAmount.value) / BigInt(unitPrice)
  const read = makes('a payment reads the budget, waits, and then writes it')
    ? new Map(totals)
    : totals
  if (read !== totals) await undefined
  const arriving = { ...asset, value: received.toString() }
  const charging = () =>
    request.grant === undefined
      ? chargeOwner(state, request, arriving, read)
      : charge(state, request, arriving, read)
  const leaks = makes('a failed write keeps its reservation') && state.failing === 'before'
  if (leaks) charging()
  return write(state, () => {
    const charged = charging()
    return charged === undefined ? no('over the limit') : book(state, request, received, charged)
  })
}

function book(
  state: FaultyState,
  request: AnyRequest,
  received: bigint,
  charged: Pick<Payment, 'account' | 'scopes'>,
): PaymentAnswer {
  const { payments, byKey, makes } = state
  const id = `payment-${payments.size + 1}`
  const payment: Payment = {
    id,
    request,
    received,
    ...charged,
    holdUntil: state.now + dayMs,
    state: 'created',
    sent: 0n,
    delivered: 0n,
  }
  payments.set(id, payment)
  const forgets = makes('a key is kept only after the response') && state.failing === 'after'
  if (!forgets) byKey.set(request.key, payment)
  return { ...yes, id }
}

function begin({ payments, makes, now }: FaultyState, id: string): SpendingAnswer {
  const payment = payments.get(id)
  if (payment === undefined) return no('unknown')
  const again = makes('a payment can be begun twice') && payment.state === 'begun'
  if (payment.state !== 'created' && !again) return no(payment.state)
  const late = now >= payment.holdUntil && !makes('a lapsed payment can still be begun')
  if (late) return no('too late')
  payment.state = 'begun'
  return yes
}

function reportSent(state: FaultyState, id: string, said: WalletTotals): SpendingAnswer {
  const { payments, makes } = state
  const payment = payments.get(id)
  const again =
    payment?.state === 'completed' && makes('a repeated final report releases the amount twice')
  if (payment === undefined || (payment.state !== 'begun' && !again)) return no('not begun')
  const { received, request } = payment
  const debit = BigInt(request.debitAmount.value)
  const [sent, delivered] = [said.sentAmount, said.deliveredAmount].map(({ value }) =>
    BigInt(value),
  )
  const ends = said.final || sent === debit || delivered === received
  const problem = note(state, payment, said, ends)
  if (problem !== undefined) return no(problem)
  if (!ends && payment.sent < debit && payment.delivered < received) return yes
  payment.state = 'completed'
  if (makes('a completed payment counts in full')) return yes
  const forgets = makes('a payment that completes with less releases its full amount')
  giveBack(state, forgets ? { ...payment, sent: 0n, delivered: 0n } : payment)
  return yes
}

function fail(state: FaultyState, id: string, said: Omit<WalletTotals, 'final'>): SpendingAnswer {
  const { payments, makes } = state
  const payment = payments.get(id)
  const again = payment?.state === 'failed' && makes('failing twice releases the amount twice')
  if (payment === undefined || (payment.state !== 'begun' && !again)) return no('not begun')
  const [sent, delivered] = [BigInt(said.sentAmount.value), BigInt(said.deliveredAmount.value)]
  const isWhole = sent >= BigInt(payment.request.debitAmount.value) || delivered >= payment.received
  if (isWhole && said.inDoubt === undefined) return no('all was sent')
  const problem = note(state, payment, said, true)
  if (problem !== undefined) return no(problem)
  payment.state = 'failed'
  const forgets = makes('a failed payment also releases what was sent')
  giveBack(state, forgets ? { ...payment, sent: 0n, delivered: 0n } : payment)
  return yes
}

function decideDoubt(
  state: FaultyState,
  id: string,
  { refunded, deliveredAmount }: WalletDecision,
): SpendingAnswer {
  const { payments, makes } = state
  const payment = payments.get(id)
  if (payment === undefined) return no('unknown')
  const { state: end, inDoubt = 0n } = payment
  const value = BigInt(refunded.value)
  if ((end !== 'completed' && end !== 'failed') || inDoubt === 0n) return no('no doubt')
  if (payment.refunded !== undefined) {
    if (payment.refunded === value) {
      if (makes('a repeated refund counts back twice')) refund(state, payment, value, value)
      return yes
    }
    if (!makes('a doubt can be decided a second time')) return no('decided')
  }
  if (value > inDoubt && !makes('a refund can be more than the doubt')) return no('too much')
  const undelivered = payment.delivered - BigInt(deliveredAmount.value)
  if (undelivered < 0n) return no('more than was delivered')
  Object.assign(payment, {
    refunded: value,
    sent: payment.sent - value,
    delivered: payment.delivered - undelivered,
  })
  refund(state, payment, value, undelivered)
  return yes
}

function cancel(state: FaultyState, id: string): SpendingAnswer {
  const { payments, makes } = state
  const payment = payments.get(id)
  if (payment === undefined) return no('unknown')
  const again = payment.state === 'failed' && payment.sent === 0n
  if (again && !makes('cancelling twice releases the amount twice')) return yes
  if (payment.state !== 'created' && !again) return no(payment.state)
  payment.state = 'failed'
  giveBack(state, payment)
  return yes
}

function amend(
  { grants, totals, makes }: FaultyState,
  id: string,
  { items: remaining, conditions = {} }: SpendingAmendment,
): SpendingAnswer {
  const grant = grants.get(id)
  if (grant === undefined || grant.revoked) return no('over')
  const raises = (next: Amount | undefined, present: Amount | undefined) =>
    !makes('an amendment raises a limit') &&
    next !== undefined &&
    present !== undefined &&
    BigInt(next.value) > BigInt(present.value)
  const present = grant.conditions
  const { paymentMax, receivers } = conditions
  if (raises(paymentMax, present.paymentMax)) return no('more')
  if (receivers?.some((each) => present.receivers?.includes(each) === false)) return no('more')
  const later = makes('an added limit of the owner applies only to later grants')
  const { limits = present.limits } = conditions
  const lacks = present.limits?.some((before) => {
    const next = limits?.find(({ interval }) => interval === before.interval)
    return next === undefined || isHigher(next, before)
  })
  if (lacks && !makes('an amendment raises a limit')) return no('more')
  const items = grant.items.map((item, index) => {
    const found = remaining?.find((each) => each.item === index + 1)
    if (remaining === undefined || item === undefined) return item
    if (found === undefined) return makes('a removed item still pays') ? item : undefined
    const { item: _, ...amounts } = found
    const later = makes('a lowered limit applies only to later grants')
    return later ? item : { ...item, limits: { ...item.limits, ...amounts } }
  })
  for (const { item, ...amounts } of remaining ?? []) {
    const limits = grant.items[item - 1]?.limits
    if (raises(amounts.debitAmount, limits?.debitAmount)) return no('more')
    if (raises(amounts.receiveAmount, limits?.receiveAmount)) return no('more')
  }
  if (remaining?.length === 0) return no('nothing remains')
  const forgets = makes('an amendment forgets the conditions before it')
  const next = { ...conditions, ...(later && present.limits && { limits: present.limits }) }
  if (later && present.limits === undefined) delete next.limits
  Object.assign(grant, { items, conditions: forgets ? next : { ...present, ...next } })
  if (makes('an amendment returns what was spent')) {
    for (const key of totals.keys()) if (key.startsWith(`${id} `)) totals.delete(key)
  }
  return yes
}

function isHigher(next: SpendingLimit, before: SpendingLimit): boolean {
  const { debitAmount: most, payments } = before
  const more =
    most !== undefined &&
    (next.debitAmount === undefined || BigInt(next.debitAmount.value) > BigInt(most.value))
  return more || (payments !== undefined && (next.payments ?? payments + 1) > payments)
}

function lapse(state: FaultyState): void {
  for (const payment of state.payments.values()) {
    if (payment.state !== 'created' || state.now < payment.holdUntil) continue
    payment.state = 'failed'
    giveBack(state, payment)
  }
}

/** Records what has been sent, unless the totals are invalid. */
function note(
  { makes }: FaultyState,
  payment: Payment,
  said: Omit<WalletTotals, 'final'>,
  ends: boolean,
): string | undefined {
  const sent = BigInt(said.sentAmount.value)
  const delivered = BigInt(said.deliveredAmount.value)
  if (sent < payment.sent || delivered < payment.delivered) return 'less than before'
  if (makes('the totals of all reports are added up')) {
    Object.assign(payment, { sent: payment.sent + sent, delivered: payment.delivered + delivered })
    return undefined
  }
  const again = sent > 0n && sent === payment.sent && delivered === payment.delivered
  if (again && makes('a repeated report adds to the totals')) {
    Object.assign(payment, { sent: 2n * sent, delivered: 2n * delivered })
    return undefined
  }
  const debit = BigInt(payment.request.debitAmount.value)
  const more = sent > debit || delivered > payment.received
  if (more && !makes('a payment can send more than was reserved')) return 'more than was reserved'
  const inDoubt = BigInt(said.inDoubt?.value ?? 0)
  if (inDoubt > (ends ? sent : debit - sent)) return 'too much is in doubt'
  Object.assign(payment, { sent, delivered, inDoubt })
  return undefined
}
