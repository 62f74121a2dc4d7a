import type { AccessItem, Amount, Asset, Instant } from 'open-payments-server'
import type { IntervalCounting } from 'open-payments-server/core'
import { type CountedAmount, ok, type Result } from 'open-payments-server/core'
import {
  type Account,
  type ExpectedGrant,
  type ExpectedPayment,
  grantAt,
  type LimitedAccount,
  type Model,
  type Problems,
  takenBy,
  wrong,
} from './expected.js'
import {
  instantText,
  type PaymentRequest,
  type SpendingAction,
  type SpendingAmendment,
  type SpendingReport,
  type SpendingScene,
  valueText,
  windowText,
} from './history.js'
import { areNarrower, scopesFor } from './owner-limits.js'
import { type Closed, hasEnded, windowAt } from './windows.js'

/** The rules of the wallet besides the limits. */
export interface SpendingRules {
  /** How the wallet counts the repetitions of an interval. */
  readonly intervalCounting: IntervalCounting
  /** How long a payment may wait until the host begins it, in milliseconds. */
  readonly holdMs: number
  /** How long the wallet waits for the host's decision about a payment, in milliseconds. */
  readonly decideMs: number
  readonly scene: SpendingScene
}

export function paymentIn({ payments }: Model, number: number): ExpectedPayment | undefined {
  return payments.find(({ request }) => request.payment === number)
}

/** Returns the model with one payment changed. */
export function withPayment(model: Model, number: number, change: Partial<ExpectedPayment>): Model {
  const payments = model.payments.map((payment) =>
    payment.request.payment === number ? { ...payment, ...change } : payment,
  )
  return { ...model, payments }
}

/** Returns how much all payments of an account take together. */
export function spentIn({ payments }: Model, account: Account): bigint {
  return payments
    .filter((payment) => payment.account !== undefined && sameAccount(payment.account, account))
    .reduce((sum, payment) => sum + takenBy(payment, account.counts), 0n)
}

/**
 * Returns how much of an amount the payments of all open windows of a grant's remaining items take together, or
 * `undefined` if the model does not contain it: a payment was charged to an item without a limit, or is in another
 * asset.
 */
export function spentUnder(
  { grants, payments }: Model,
  grant: number,
  counts: CountedAmount,
  asset: Asset,
  now: Instant,
): bigint | undefined {
  let total = 0n
  for (const payment of payments) {
    if (payment.request.grant !== grant) continue
    if (payment.account === undefined) return undefined
    const { item, window } = payment.account
    const charged = grants[grant - 1]?.items[item - 1]
    if (charged === undefined || isRemoved(charged)) continue
    if (window !== undefined && !(window.start <= now && now < window.end)) continue
    const { assetCode, assetScale } = payment.request[counts]
    if (assetCode !== asset.assetCode || assetScale !== asset.assetScale) return undefined
    total += takenBy(payment, counts)
  }
  return total
}

function sameAccount(a: Account, b: Account): boolean {
  return a.grant === b.grant && a.item === b.item && a.window?.start === b.window?.start
}

/** An account and what has been spent from it. */
export interface Spent {
  readonly account: Account
  /** What its payments have taken, in smallest units of the asset of its limit. */
  readonly spent: bigint
}

/** Returns every account that has payments, in the order of the first payment of each. */
export function accountsIn(model: Model): readonly Spent[] {
  const accounts: Account[] = []
  for (const { account } of model.payments) {
    if (account === undefined || accounts.some((known) => sameAccount(known, account))) continue
    accounts.push(account)
  }
  return accounts.map((account) => ({ account, spent: spentIn(model, account) }))
}

/** Describes every account that exceeds its limit. */
export function overspentIn(model: Model): readonly string[] {
  return accountsIn(model).flatMap(({ account, spent }) =>
    spent > BigInt(account.limit.value) ? [overspentText(account, spent)] : [],
  )
}

function overspentText(account: Account, spent: bigint): string {
  const { grant, item, limit, window } = account
  const over = spent - BigInt(limit.value)
  return (
    `grant ${grant}, item ${item}, ${windowText(window)}: limit ${valueText(BigInt(limit.value), limit)}, ` +
    `spent ${valueText(spent, limit)}, over by ${valueText(over, limit)}`
  )
}

/** Returns the account of an item at an instant (`undefined` if nothing is limited), or why the item is closed. */
export function accountAt(
  model: Model,
  grant: number,
  item: number,
  now: Instant,
  { intervalCounting }: SpendingRules,
): Result<Account | undefined, Closed> {
  const limits = model.grants[grant - 1]?.items[item - 1]?.limits ?? {}
  const { interval, debitAmount, receiveAmount } = limits
  const found = interval === undefined ? undefined : windowAt(interval, now, intervalCounting)
  if (found !== undefined && !found.ok) return found
  const window = found !== undefined && { window: found.value }
  if (debitAmount !== undefined) {
    return ok({ grant, item, counts: 'debitAmount', limit: debitAmount, ...window })
  }
  if (receiveAmount === undefined) return ok(undefined)
  return ok({ grant, item, counts: 'receiveAmount', limit: receiveAmount, ...window })
}

/** Where a payment counts. */
type Charge = Pick<ExpectedPayment, 'account' | 'scopes'>

/** Returns where a payment must count, or why it must be refused. */
function chargeFor(
  model: Model,
  request: PaymentRequest,
  now: Instant,
  rules: SpendingRules,
): Result<Charge, Problems> {
  const account = accountFor(model, request, now, rules)
  const scopes = account.ok ? scopesFor(model, request, now) : account
  if (!account.ok || !scopes.ok) return scopes as Problems
  return ok({
    ...(account.value !== undefined && { account: account.value }),
    scopes: scopes.value,
  })
}

/** Returns the account that must be charged for a payment (`undefined` if nothing is limited), or why none can be. */
function accountFor(
  model: Model,
  request: PaymentRequest,
  now: Instant,
  rules: SpendingRules,
): Result<Account | undefined, Problems> {
  // The owner needs no grant.
  if (request.grant === undefined) return ok(undefined)
  const { items = [], revoked = true } = grantAt(model.grants, request.grant) ?? {}
  if (revoked) return wrong(`grant ${request.grant} was revoked`)
  const unmet = unmetCondition(model, request, now, rules)
  if (unmet !== undefined) return wrong(`grant ${request.grant} ${unmet}`)
  const problems: string[] = []
  for (const [index, item] of items.entries()) {
    const tried = tryItem(model, item, index + 1, { ...request, grant: request.grant }, now, rules)
    if (tried.ok) return tried
    problems.push(...tried.problems)
  }
  return wrong(...problems)
}

/** Returns the condition of the owner that a payment does not meet. */
function unmetCondition(
  { grants }: Model,
  { grant, debitAmount, receiver }: PaymentRequest,
  now: Instant,
  { scene }: SpendingRules,
): string | undefined {
  const { paymentMax, receivers, pausedUntil } = grantAt(grants, grant)?.conditions ?? {}
  if (typeof pausedUntil === 'number' && now < pausedUntil) {
    return `is paused until ${instantText(pausedUntil)}`
  }
  if (paymentMax !== undefined && BigInt(debitAmount.value) > BigInt(paymentMax.value)) {
    return `allows at most ${valueText(BigInt(paymentMax.value), paymentMax)} in one payment`
  }
  const { walletAddress = '' } = scene.receivers.find(({ url }) => url === receiver) ?? {}
  return receivers === undefined || receivers.includes(walletAddress)
    ? undefined
    : 'does not allow payments to this receiver'
}

function tryItem(
  model: Model,
  { type, actions, identifier, limits = {} }: AccessItem,
  number: number,
  request: PaymentRequest & { readonly grant: number },
  now: Instant,
  rules: SpendingRules,
): Result<Account | undefined, Problems> {
  const name = `grant ${request.grant}, item ${number}`
  const fits = type === 'outgoing-payment' && actions.includes('create')
  if (!fits || identifier !== request.walletAddress) {
    return wrong(`${name} does not cover this payment`)
  }
  if (limits.receiver !== undefined && limits.receiver !== request.receiver) {
    return wrong(`${name} limits payments to another receiver`)
  }
  const found = accountAt(model, request.grant, number, now, rules)
  if (hasEnded(found)) return wrong(`${name}: its last window has ended`)
  if (!found.ok) return wrong(`${name}: its first window has not started`)
  const account = found.value
  if (account === undefined) return found
  const { limit, counts } = account
  const { value, ...asset } = request[counts]
  if (asset.assetCode !== limit.assetCode || asset.assetScale !== limit.assetScale) {
    return wrong(`${name} has limits in another asset`)
  }
  const spent = spentIn(model, account) + BigInt(value)
  return spent > BigInt(limit.value) ? wrong(overspentText(account, spent)) : found
}

/** Returns whether a grant can no longer pay: it was revoked, or all its windows have ended. */
export function isOver(model: Model, grant: number, now: Instant, rules: SpendingRules): boolean {
  const { items = [], revoked = true } = model.grants[grant - 1] ?? {}
  if (revoked) return true
  return items.every(
    (item, index) => isRemoved(item) || hasEnded(accountAt(model, grant, index + 1, now, rules)),
  )
}

/** Returns whether the owner has removed every item of a grant that pays from the account of a payment. */
function hasLostAccess({ grants }: Model, { grant, walletAddress }: PaymentRequest): boolean {
  const { items = [] } = grantAt(grants, grant) ?? {}
  return items.every((item) => isRemoved(item) || item.identifier !== walletAddress)
}

export function isRemoved({ actions }: AccessItem): boolean {
  return actions.length === 0
}

/** Returns the grant after an amendment, or `undefined` if the amendment would allow more than before. */
function amended(
  { items, conditions: before, ...rest }: ExpectedGrant,
  { items: remaining, conditions = {} }: SpendingAmendment,
): ExpectedGrant | undefined {
  const kept = items.map((item, index): AccessItem | undefined => {
    const found = remaining?.find((each) => each.item === index + 1)
    if (remaining === undefined) return item
    if (found === undefined) return { ...item, actions: [] }
    const { item: _item, ...amounts } = found
    const isNarrower =
      !isRemoved(item) &&
      isLower(amounts.debitAmount, item.limits?.debitAmount) &&
      isLower(amounts.receiveAmount, item.limits?.receiveAmount)
    return isNarrower ? { ...item, limits: { ...item.limits, ...amounts } } : undefined
  })
  const { paymentMax, receivers, limits } = conditions
  const narrows =
    (limits === undefined || areNarrower(before.limits ?? [], limits)) &&
    (paymentMax === undefined || isLower(paymentMax, before.paymentMax)) &&
    (receivers === undefined || receivers.every((each) => before.receivers?.includes(each) ?? true))
  const all = kept.filter((item) => item !== undefined)
  if (!narrows || all.length < kept.length || all.every(isRemoved)) return undefined
  return { ...rest, items: all, conditions: { ...before, ...conditions } }
}

/** Whether an amount is at most as high as the present one. Without a present one, any amount is lower. */
function isLower(amount: Amount | undefined, present: Amount | undefined): boolean {
  if (present === undefined) return true
  return amount !== undefined && BigInt(amount.value) <= BigInt(present.value)
}

/** The expected answer to an action, and the model after it is accepted. */
export interface Expectation {
  /** `either` if both outcomes leave all amounts correct. */
  readonly answer: 'accepted' | 'refused' | 'either'
  readonly after: Model
  /** Why the wallet must refuse it. */
  readonly problems?: readonly string[]
  /** The payment that the answer must identify, because the request is a repeat. */
  readonly repeats?: ExpectedPayment
}

/**
 * The rules of payment limits: returns what must happen to an action at an instant, given the history before it.
 */
export function expectationOf(
  model: Model,
  action: SpendingAction,
  now: Instant,
  rules: SpendingRules,
): Expectation {
  switch (action.type) {
    case 'grant': {
      const { granted: items, limits } = action
      const conditions = limits === undefined ? {} : { limits }
      const grants = [...model.grants, { items, revoked: false, conditions }]
      return { answer: 'accepted', after: { ...model, grants } }
    }
    case 'limit-account': {
      const { type: _, ...limited } = action
      const isOther = ({ walletAddress }: LimitedAccount) => walletAddress !== limited.walletAddress
      const accounts = [...model.accounts.filter(isOther), limited]
      return { answer: 'accepted', after: { ...model, accounts } }
    }
    case 'pay':
      return expectPayment(model, action, now, rules, false)
    case 'retry':
      return expectPayment(model, action.request, now, rules, true)
    case 'alter': {
      const expected = expectPayment(model, action.request, now, rules, true)
      // A wallet may remember the keys of requests that it refused.
      return expected.answer === 'accepted' ? { ...expected, answer: 'either' } : expected
    }
    case 'lapse':
      return { answer: 'accepted', after: lapsed(model, now) }
    case 'list':
    case 'rotate': {
      const answer = isOver(model, action.grant, now, rules) ? 'either' : 'accepted'
      return { answer, after: model }
    }
    case 'revoke': {
      const grants = model.grants.map((grant, index) =>
        index + 1 === action.grant ? { ...grant, revoked: true } : grant,
      )
      return { answer: 'accepted', after: { ...model, grants } }
    }
    case 'amend': {
      const present = model.grants[action.grant - 1]
      const next = present && amended(present, action)
      if (next === undefined) {
        return refused(model, `the amendment allows more than grant ${action.grant} before it`)
      }
      const grants = model.grants.map((each) => (each === present ? next : each))
      const after = { ...model, grants }
      // An amendment must not end a grant by leaving only items whose windows are over.
      const mayRefuse = [model, after].some((each) => isOver(each, action.grant, now, rules))
      return { answer: mayRefuse ? 'either' : 'accepted', after }
    }
    case 'replace-key':
    case 'wait':
      return { answer: 'accepted', after: model }
    default: {
      const payment = paymentIn(model, action.payment)
      if (payment === undefined) return refused(model, `payment ${action.payment} does not exist`)
      return expectReport(model, payment, action, now)
    }
  }
}

function expectPayment(
  model: Model,
  request: PaymentRequest,
  now: Instant,
  rules: SpendingRules,
  isRetry: boolean,
): Expectation {
  const earlier = paymentIn(model, request.payment)
  if (earlier !== undefined && earlier.request.debitAmount.value !== request.debitAmount.value) {
    return refused(model, `the request for payment ${request.payment} had another amount`)
  }
  if (earlier !== undefined) {
    const { grant } = request
    const isWithoutAccess =
      grant !== undefined && (isOver(model, grant, now, rules) || hasLostAccess(model, request))
    return { answer: isWithoutAccess ? 'either' : 'accepted', after: model, repeats: earlier }
  }
  const charge = chargeFor(model, request, now, rules)
  const payment: ExpectedPayment = {
    request,
    ...(charge.ok ? charge.value : { scopes: [] }),
    holdUntil: now + rules.holdMs,
    state: 'held',
    sent: 0n,
    delivered: 0n,
    inDoubt: 0n,
  }
  const after = { ...model, payments: [...model.payments, payment] }
  if (!charge.ok) return { answer: 'refused', after, problems: charge.problems }
  // The quote may have expired by now, which is a reason to refuse that is unrelated to limits.
  return { answer: isRetry && request.by === 'quote' ? 'either' : 'accepted', after }
}

function lapsed(model: Model, now: Instant): Model {
  const payments = model.payments.map((payment) =>
    payment.state === 'held' && now >= payment.holdUntil
      ? { ...payment, state: 'failed' as const }
      : payment,
  )
  return { ...model, payments }
}

function expectReport(
  model: Model,
  payment: ExpectedPayment,
  report: SpendingReport,
  now: Instant,
): Expectation {
  const number = report.payment
  const { state } = payment
  const changed = (change: Partial<ExpectedPayment>) => withPayment(model, number, change)
  switch (report.type) {
    case 'begin': {
      const after = changed({ state: 'begun' })
      if (state !== 'held') return refused(after, `payment ${number} is ${state}`)
      return now < payment.holdUntil
        ? { answer: 'accepted', after }
        : refused(after, `payment ${number} was not begun in time`)
    }
    case 'cancel': {
      const after = changed({ state: 'failed' })
      if (state === 'held') return { answer: 'accepted', after }
      if (state === 'failed' && payment.sent === 0n) return { answer: 'either', after: model }
      return refused(after, `payment ${number} is ${state}`)
    }
    case 'report-sent':
    case 'fail':
      return expectTotals(payment, report, changed)
    case 'decide-doubt':
      return expectDecision(payment, report, changed)
  }
}

/** A doubt is decided once, after the end of its payment. At most all of it comes back. */
function expectDecision(
  payment: ExpectedPayment,
  report: Extract<SpendingReport, { readonly type: 'decide-doubt' }>,
  changed: (change: Partial<ExpectedPayment>) => Model,
): Expectation {
  const { state, inDoubt, delivered, refund: decided } = payment
  const sent = BigInt(report.refunded.value)
  const refund = { sent, delivered: delivered - BigInt(report.deliveredAmount.value) }
  const after = changed({ refund })
  const name = `payment ${report.payment}`
  if (state === 'held' || state === 'begun') return refused(after, `${name} is ${state}`)
  if (inDoubt === 0n) return refused(after, `nothing of ${name} is in doubt`)
  if (decided !== undefined) {
    return decided.sent === sent
      ? { answer: 'either', after: changed({}) }
      : refused(after, `the doubt of ${name} was decided otherwise`)
  }
  if (sent > inDoubt) return refused(after, `less of ${name} is in doubt`)
  if (refund.delivered < 0n) return refused(after, `less of ${name} was delivered`)
  return { answer: 'accepted', after }
}

/** Checks reports of sent totals: they never decrease and never exceed the payment's amounts. */
function expectTotals(
  payment: ExpectedPayment,
  report: Extract<SpendingReport, { readonly type: 'report-sent' | 'fail' }>,
  changed: (change: Partial<ExpectedPayment>) => Model,
): Expectation {
  const number = report.payment
  const { state, request } = payment
  const sent = BigInt(report.sentAmount.value)
  const delivered = BigInt(report.deliveredAmount.value)
  const [debit, receive] = [BigInt(request.debitAmount.value), BigInt(request.receiveAmount.value)]
  const whole = sent === debit || delivered === receive
  const completes = report.type === 'report-sent' && (whole || report.final)
  const next = report.type === 'fail' ? 'failed' : completes ? 'completed' : 'begun'
  const inDoubt = BigInt(report.inDoubt?.value ?? 0)
  const after = changed({ sent, delivered, inDoubt, state: next })
  const hasSameTotals = sent === payment.sent && delivered === payment.delivered
  const same = hasSameTotals && inDoubt === payment.inDoubt
  if (state === 'held') {
    // Failing a payment that was not begun moves no money, so a wallet may allow or refuse it.
    if (report.type === 'fail' && sent === 0n) return { answer: 'either', after }
    return refused(after, `payment ${number} was not begun`)
  }
  if (state !== 'begun') {
    const repeated = same && state === (report.type === 'fail' ? 'failed' : 'completed')
    if (repeated) return { answer: 'either', after: changed({}) }
    return refused(after, `payment ${number} is ${state}`)
  }
  if (sent < payment.sent || delivered < payment.delivered) {
    return refused(after, `the totals of payment ${number} must not decrease`)
  }
  if (sent > debit || delivered > receive) {
    return refused(after, `the totals of payment ${number} must not exceed its amounts`)
  }
  // A payment that goes on has sent what is proven; one that ends is charged for its doubt.
  if (inDoubt > (next === 'begun' ? debit - sent : sent)) {
    return refused(after, `too much of payment ${number} is in doubt`)
  }
  if (report.type === 'fail' && whole && inDoubt === 0n) {
    return refused(after, `payment ${number} was sent in full`)
  }
  return { answer: 'accepted', after }
}

function refused(after: Model, problem: string): Expectation {
  return { answer: 'refused', after, problems: [problem] }
}
