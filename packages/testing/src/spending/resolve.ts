import type { AccessItem, Amount, Instant, SpendingLimit } from 'open-payments-server'
import { allowsSame, amountValueMax } from 'open-payments-server/core'
import { type ExpectedPayment, emptyModel, type Model } from './expected.js'
import {
  amountOf,
  type CommitOrder,
  debitFor,
  historyText,
  isInterruptible,
  isReport,
  type PaymentRequest,
  type RemainingItem,
  readable,
  receivedOf,
  type SpendingAction,
  type SpendingAmendment,
  type SpendingHistory,
  type SpendingReceiver,
  type SpendingReport,
  type SpendingScene,
  type SpendingStep,
  type StoreFailure,
} from './history.js'
import { accountAt, expectationOf, isRemoved, type SpendingRules, spentIn } from './model.js'
import { leftFor, withTimeLeft as limitsWithTimeLeft } from './owner-limits.js'
import { hasEnded, windowAt } from './windows.js'

/**
 * A generated step in terms relative to the history before it, such as the last payment but one, or the whole
 * remainder; `resolve` calculates its actions. A history stays valid when commands are removed, so fast-check can
 * shrink long counterexamples.
 */
export type Command =
  | {
      readonly type: 'grant'
      readonly items: readonly AccessItem[]
      /** Whether the resource owner approves half of each limit. */
      readonly halved: boolean
      readonly limits: readonly SpendingLimit[]
    }
  /** The owner sets limits of the account that pays, or of the other one. */
  | {
      readonly type: 'limit-account'
      readonly other: boolean
      readonly limits: readonly SpendingLimit[]
    }
  | PayCommand
  /** Repeats a payment request, possibly with another amount, or a report of the host. */
  | { readonly type: 'retry' | 'alter' | 'again'; readonly back: number }
  | { readonly type: 'begin' | 'cancel'; readonly back: number; readonly any: boolean }
  | TotalsCommand
  | DecideCommand
  | { readonly type: 'lapse' }
  | { readonly type: 'list' | 'rotate' | 'revoke'; readonly grant: number }
  | AmendCommand
  | { readonly type: 'replace-key' }
  | { readonly type: 'wait'; readonly ms: number }
  /** Waits until a window of an item ends or begins, or until a hold expires, or 1 ms before or after. */
  | { readonly type: 'edge'; readonly grant: number; readonly item: number; readonly off: number }
  | { readonly type: 'hold'; readonly back: number; readonly off: number }
  | {
      readonly type: 'at once'
      readonly commands: readonly Command[]
      readonly commits: CommitOrder
    }
  | { readonly type: 'in a row'; readonly commands: readonly Command[] }
  | {
      readonly type: 'store fails'
      readonly command: Command
      readonly failure: StoreFailure
      readonly write: number
      readonly sweeps: boolean
    }

/** A report of what was sent and delivered. */
export interface TotalsCommand {
  readonly type: 'report-sent' | 'fail'
  readonly back: number
  readonly any: boolean
  readonly share: Share
  /** If absent, what was delivered is in proportion to what was sent. */
  readonly delivered?: Share | undefined
  /** The part that is in doubt: of what was sent if the payment ends, or else of the rest. Absent: nothing is. */
  readonly inDoubt?: Share | undefined
  readonly final: boolean
}

/** A decision about the doubt of a payment. */
export interface DecideCommand {
  readonly type: 'decide-doubt'
  readonly back: number
  readonly any: boolean
  /** The part of the doubt that is refunded. */
  readonly share: Share
}

export interface AmendCommand {
  readonly type: 'amend'
  readonly grant: number
  /** The item that is lowered or removed, or whose limit the amount is derived from. */
  readonly item: number
  /** `cap` limits each payment; `widen` raises a limit by one unit, which the wallet must refuse. */
  readonly how: 'lower' | 'remove' | 'cap' | 'receivers' | 'pause' | 'resume' | 'widen' | 'limit'
  /** `limit` adds this limit, or lowers those that are set. */
  readonly limit: SpendingLimit
  /** The amount is the limit divided by this. */
  readonly parts: bigint
}

export interface PayCommand {
  readonly type: 'pay'
  readonly grant: number
  /** The item whose limit the amount is derived from. */
  readonly item: number
  readonly size: Size
  readonly receiver: number
  /** Whether the payment is from another account than the item allows. */
  readonly other: boolean
  readonly by: 'quote' | 'direct'
  /** Who pays. `counted`: the owner has the limits of the account count the payment. */
  readonly as: 'client' | 'owner' | 'owner, counted'
}

/** The remainder of a limit or a share of it, each plus or minus up to 1, or a fixed value. */
export type Size =
  | { readonly of: 'rest'; readonly off: bigint }
  | { readonly of: 'limit'; readonly parts: bigint; readonly off: bigint }
  | { readonly of: 'value'; readonly value: bigint }

/** How much of a payment has been sent: a part of its amount, or one unit more than it. */
export type Share = 'nothing' | 'one unit' | 'half' | 'all but one unit' | 'all' | 'too much'

/** The state after the steps so far, if the wallet answers as expected. */
interface State {
  readonly scene: SpendingScene
  readonly debitMax: bigint
  readonly wholePayments: boolean
  readonly rules: SpendingRules
  readonly latest: Instant
  now: Instant
  /** By how much the clock of the wallet can be ahead of `now`: a repeat after a failure may wait, see `run.ts`. */
  aheadMs: number
  model: Model
  /** The payments that exist when a step begins: concurrent actions can only refer to these. */
  known: readonly ExpectedPayment[]
  requests: readonly { readonly request: PaymentRequest; readonly at: Instant }[]
  /** The host's reports about payments. */
  reports: readonly SpendingReport[]
}

/** The minimum time for which a wallet must recognize a repeated request, in milliseconds. */
const retryMs = 30 * 86_400_000

/** The settings for resolving commands. */
interface Setting {
  readonly scene: SpendingScene
  readonly start: Instant
  /** The maximum number of steps after the first one. */
  readonly stepsMax: number
  /** The most that one payment debits. */
  readonly debitMax: bigint
  /** Whether no part of a payment is sent. */
  readonly wholePayments: boolean
  readonly rules: SpendingRules
}

/** The maximum length of a history, so that a token can be made to outlive it. */
const longestMs = 90 * 366 * 86_400_000

/**
 * Turns commands into a history: steps with numbers, amounts and instants. Each step is derived from the
 * expected outcome of the steps before it; commands that are impossible by then are dropped.
 */
export function resolve(
  commands: readonly Command[],
  { start, stepsMax, ...setting }: Setting,
): SpendingHistory {
  const latest = Math.min(start + longestMs, Date.UTC(9990, 0))
  const begun = { model: emptyModel, known: [], requests: [], reports: [] }
  const state: State = { ...setting, latest, now: start, aheadMs: 0, ...begun }
  const single = commands.flatMap((command) =>
    command.type === 'in a row' ? command.commands : [command],
  )
  const steps: SpendingStep[] = []
  for (const command of single) {
    state.known = state.model.payments
    if (steps.length <= stepsMax) steps.push(...stepsFor(state, command))
  }
  const history = { scene: setting.scene, start, steps }
  return readable(history, () => historyText(history))
}

function stepsFor(state: State, command: Command): SpendingStep[] {
  if (command.type === 'store fails') {
    const { command: failing, ...how } = command
    const actions = resolveOne(state, failing)
    state.aheadMs += state.rules.decideMs
    return actions.map((action) => (isInterruptible(action) ? { ...how, action } : action))
  }
  if (command.type !== 'at once') return resolveOne(state, command)
  // A request is in flight for one change of the key at most. Limits of an account change between payments: a wallet
  // reads them before it commits.
  const changeAt = command.commands.findIndex(({ type }) => type === 'replace-key')
  const commands = command.commands.filter(
    ({ type }, index) => type !== 'limit-account' && (type !== 'replace-key' || index === changeAt),
  )
  const actions = commands.flatMap((each) => resolveOne(state, each))
  return actions.length < 2 ? actions : [{ type: 'at once', actions, commits: command.commits }]
}

function resolveOne(state: State, command: Command): SpendingAction[] {
  const action = actionOf(state, command)
  if (action === undefined) return []
  if (action.type === 'wait') state.now = action.until
  if (action.type === 'pay') {
    const { type: _, ...request } = action
    state.requests = [...state.requests, { request, at: state.now }]
  }
  if (isReport(action)) state.reports = [...state.reports, action]
  const { answer, after } = expectationOf(state.model, action, state.now, state.rules)
  if (answer !== 'refused') state.model = after
  return [action]
}

function actionOf(state: State, command: Command): SpendingAction | undefined {
  const { model, now } = state
  switch (command.type) {
    case 'grant': {
      const latest = now + state.aheadMs
      const asked = unlike(command.items.map((item) => withTimeLeft(item, latest, state.rules)))
      const granted = command.halved ? asked.map(halved) : asked
      const limits = limitsWithTimeLeft(command.limits, latest)
      const grant = model.grants.length + 1
      return { type: 'grant', grant, asked, granted, ...(limits.length > 0 && { limits }) }
    }
    case 'limit-account': {
      const walletAddress = choosePayer(state.scene, undefined, command.other)
      const limits = limitsWithTimeLeft(command.limits, now + state.aheadMs)
      return { type: 'limit-account', walletAddress, limits }
    }
    case 'pay':
      return paymentOf(state, command)
    case 'retry': {
      const made = fromTheEnd(state.requests, command.back)
      const recent = made !== undefined && now - made.at <= retryMs
      return recent ? { type: 'retry', request: made.request } : undefined
    }
    case 'alter':
      return alteredOf(state, command.back)
    case 'again':
      return fromTheEnd(state.reports, command.back)
    case 'begin':
    case 'cancel': {
      const payment = paymentFor(state, command, 'held')?.request.payment
      return payment === undefined ? undefined : { type: command.type, payment }
    }
    case 'report-sent':
    case 'fail': {
      const begun = paymentFor(state, command, 'begun')
      // A handler that sends whole payments begins them itself.
      const isEarly = state.wholePayments && begun?.state === 'held'
      if (begun !== undefined && !isEarly) return totalsOf(state, command, begun)
      // The host must begin a payment before it reports amounts.
      const payment = paymentFor(state, command, 'held')?.request.payment
      return payment === undefined ? undefined : { type: 'begin', payment }
    }
    case 'decide-doubt':
      return decisionOf(state, command)
    case 'lapse':
      return { type: 'lapse' }
    case 'list': {
      const grant = grantNumber(model, command.grant)
      const [first] = model.grants[grant - 1]?.items ?? []
      return { type: 'list', grant, walletAddress: choosePayer(state.scene, first, false) }
    }
    case 'rotate':
    case 'revoke':
      return { type: command.type, grant: grantNumber(model, command.grant) }
    case 'amend':
      return amendmentOf(state, command)
    case 'replace-key':
      return { type: 'replace-key' }
    case 'wait':
      return waitUntil(state, now + command.ms)
    case 'edge':
      return waitUntil(state, edgeOf(state, command.grant, command.item), command.off)
    case 'hold':
      return waitUntil(state, fromTheEnd(model.payments, command.back)?.holdUntil, command.off)
    case 'at once':
    case 'in a row':
    case 'store fails':
      return undefined
  }
}

/** Drops an interval that has ended: the library does not grant an item without remaining windows. */
function withTimeLeft(item: AccessItem, now: Instant, { intervalCounting }: SpendingRules) {
  const { interval, ...limits } = item.limits ?? {}
  if (interval === undefined || !hasEnded(windowAt(interval, now, intervalCounting))) return item
  return { ...item, limits }
}

/** Removes items that allow the same as another, which the library rejects. */
function unlike(items: readonly AccessItem[]): readonly AccessItem[] {
  return items.filter(
    (item, index) => !items.slice(0, index).some((other) => allowsSame(other, item)),
  )
}

function halved(item: AccessItem): AccessItem {
  const { debitAmount, receiveAmount } = item.limits ?? {}
  const half = (amount: Amount) => amountOf((BigInt(amount.value) + 1n) / 2n, amount)
  const limits = {
    ...item.limits,
    ...(debitAmount !== undefined && { debitAmount: half(debitAmount) }),
    ...(receiveAmount !== undefined && { receiveAmount: half(receiveAmount) }),
  }
  return item.limits === undefined ? item : { ...item, limits }
}

/** Returns a payment to which the action applies, or sometimes any payment. */
function paymentFor(
  { known }: State,
  { back, any }: { readonly back: number; readonly any: boolean },
  state: ExpectedPayment['state'],
): ExpectedPayment | undefined {
  return fromTheEnd(any ? known : known.filter((each) => each.state === state), back)
}

function waitUntil(
  { now, latest }: State,
  instant: Instant | undefined,
  off = 0,
): SpendingAction | undefined {
  if (instant === undefined) return undefined
  const until = instant + off
  return until > now && until <= latest ? { type: 'wait', until } : undefined
}

/** Returns the end of an item's current window or, outside a window, the start of the next if it is near. */
function edgeOf({ model, now, rules }: State, grant: number, item: number): Instant | undefined {
  const number = grantNumber(model, grant)
  const items = model.grants[number - 1]?.items ?? []
  const place = (item % Math.max(1, items.length)) + 1
  const found = accountAt(model, number, place, now, rules)
  // The end of a window of the owner's limits, where the item has none.
  const request = { grant: number, walletAddress: items[place - 1]?.identifier ?? '' }
  if (found.ok) return found.value?.window?.end ?? leftFor(model, request, now).end
  if (hasEnded(found)) return undefined
  const [, first = ''] = items[place - 1]?.limits?.interval?.toUpperCase().split('/') ?? []
  return first.startsWith('P') ? undefined : Date.parse(first)
}

function paymentOf(state: State, command: PayCommand): SpendingAction {
  const { model, now, rules, scene, requests } = state
  const grant = grantNumber(model, command.grant)
  const items = model.grants[grant - 1]?.items ?? []
  const place = command.item % Math.max(1, items.length)
  const found = accountAt(model, grant, place + 1, now, rules)
  const account = found.ok ? found.value : undefined
  const receiver = chooseReceiver(scene, items[place], account?.limit, command.receiver)
  const limit = BigInt(account?.limit.value ?? 1_000n)
  const walletAddress = choosePayer(scene, items[place], command.other)
  const unspent = account === undefined ? limit : limit - spentIn(model, account)
  const payer = {
    client: { grant },
    owner: {},
    'owner, counted': { countsInAccountLimits: true },
  } as const satisfies Record<PayCommand['as'], object>
  const who = payer[command.as]
  const { left = unspent } = leftFor(model, { ...who, walletAddress }, now)
  const rest = left < unspent ? left : unspent
  const { size } = command
  const wanted =
    size.of === 'rest'
      ? rest + size.off
      : size.of === 'limit'
        ? limit / size.parts + size.off
        : size.value
  return {
    type: 'pay',
    payment: requests.length + 1,
    ...who,
    by: command.by,
    walletAddress,
    receiver: receiver.url,
    ...amountsOf(
      account?.counts === 'receiveAmount' ? debitFor(wanted, receiver) : wanted,
      receiver,
      state,
    ),
  }
}

/** How long an owner pauses payments. */
const pauseMs = 3_600_000

function amendmentOf(state: State, command: AmendCommand): SpendingAction | undefined {
  const { model, now, scene } = state
  const grant = grantNumber(model, command.grant)
  const { items = [], conditions = {} } = model.grants[grant - 1] ?? {}
  const place = command.item % Math.max(1, items.length)
  const { debitAmount, receiveAmount } = items[place]?.limits ?? {}
  const amend = (amendment: SpendingAmendment): SpendingAction => ({
    type: 'amend',
    grant,
    ...amendment,
  })
  const remaining = items.flatMap((item, index): RemainingItem[] => {
    const { debitAmount, receiveAmount } = item.limits ?? {}
    const amounts = {
      ...(debitAmount !== undefined && { debitAmount }),
      ...(receiveAmount !== undefined && { receiveAmount }),
    }
    return isRemoved(item) ? [] : [{ item: index + 1, ...amounts }]
  })
  const changed = (change: (amount: Amount) => Amount) =>
    remaining.map((each) =>
      each.item === place + 1
        ? {
            ...each,
            ...(debitAmount !== undefined && { debitAmount: change(debitAmount) }),
            ...(receiveAmount !== undefined && { receiveAmount: change(receiveAmount) }),
          }
        : each,
    )
  const part = (amount: Amount) =>
    amountOf(within(BigInt(amount.value) / command.parts, 1n, amountValueMax), amount)
  switch (command.how) {
    case 'lower':
      return amend({ items: changed(part) })
    case 'remove':
      return amend({ items: remaining.filter(({ item }) => item !== place + 1) })
    case 'cap': {
      const { paymentMax = debitAmount ?? amountOf(1_000n, scene.asset) } = conditions
      return amend({ conditions: { paymentMax: part(paymentMax) } })
    }
    case 'receivers': {
      const named = scene.receivers.flatMap(({ walletAddress }) => walletAddress ?? [])
      const { receivers = [...new Set(named)] } = conditions
      const [first, ...others] = receivers
      const fewer = command.parts === 1n ? receivers : others.length > 0 ? others : [first ?? '']
      return named.length === 0 ? undefined : amend({ conditions: { receivers: fewer } })
    }
    case 'limit': {
      const { limits = [] } = conditions
      const { limit, parts } = command
      const [added] = limitsWithTimeLeft([limit], now)
      const isSet = limits.some(({ interval }) => interval === added?.interval)
      if (added !== undefined && !isSet && limits.length < 3) {
        return amend({ conditions: { limits: [...limits, added] } })
      }
      return amend({ conditions: { limits: limits.map((each) => loweredLimit(each, parts)) } })
    }
    case 'pause':
      return amend({ conditions: { pausedUntil: now + pauseMs / Number(command.parts) } })
    case 'resume':
      return amend({ conditions: { pausedUntil: null } })
    case 'widen': {
      const more = (amount: Amount) =>
        amountOf(within(BigInt(amount.value) + 1n, 1n, amountValueMax), amount)
      const { paymentMax } = conditions
      return paymentMax !== undefined && command.parts === 1n
        ? amend({ conditions: { paymentMax: more(paymentMax) } })
        : amend({ items: changed(more) })
    }
  }
}

function loweredLimit({ debitAmount, payments, ...limit }: SpendingLimit, parts: bigint) {
  const amount = debitAmount && BigInt(debitAmount.value) / parts
  const count = payments && Math.floor(payments / Number(parts))
  return {
    ...limit,
    ...(debitAmount !== undefined && { debitAmount: amountOf(amount || 1n, debitAmount) }),
    ...(payments !== undefined && { payments: count || 1 }),
  }
}

/** Repeats a recent request with half of the amount, or with one unit more. */
function alteredOf(state: State, back: number): SpendingAction | undefined {
  const { requests, scene, now } = state
  const made = fromTheEnd(requests, back)
  // A repeat of a quote has no amount.
  if (made === undefined || made.request.by === 'quote' || now - made.at > retryMs) return undefined
  const { request } = made
  const receiver = receiverAt(scene, request.receiver)
  const debit = BigInt(request.debitAmount.value)
  const least = debitFor(1n, receiver)
  // The smaller amount may fit where the first one did not.
  const other = debit / 2n >= least ? debit / 2n : debit + least
  const amounts = amountsOf(other, receiver, state)
  if (amounts.debitAmount.value === request.debitAmount.value) return undefined
  return { type: 'alter', request: { ...request, ...amounts } }
}

function amountsOf(wanted: bigint, receiver: SpendingReceiver, { scene, debitMax }: State) {
  // Both the debit and what arrives must be amounts.
  const most = debitFor(amountValueMax + 1n, receiver) - 1n
  const debit = within(wanted, debitFor(1n, receiver), most < debitMax ? most : debitMax)
  return {
    debitAmount: amountOf(debit, scene.asset),
    receiveAmount: amountOf(receivedOf(debit, receiver), receiver.asset),
  }
}

/** Returns the account of the item, or the other one. */
function choosePayer(
  { walletAddress, otherWalletAddress = walletAddress }: SpendingScene,
  item: AccessItem | undefined,
  other: boolean,
): string {
  const identifier = item?.identifier ?? walletAddress
  if (!other) return identifier
  return identifier === walletAddress ? otherWalletAddress : walletAddress
}

function receiverAt({ receivers }: SpendingScene, url: string): SpendingReceiver {
  return receivers.find((each) => each.url === url) ?? receivers[0]
}

function within(value: bigint, least: bigint, most: bigint): bigint {
  if (value < least) return least
  return value > most ? most : value
}

/** Returns the receiver of the item, unless the command selects another; 0 selects none. */
function chooseReceiver(
  { receivers }: SpendingScene,
  item: AccessItem | undefined,
  limit: Amount | undefined,
  command: number,
): SpendingReceiver {
  const [first] = receivers
  if (command > 0) return receivers[command % receivers.length] ?? first
  const { receiver, receiveAmount } = item?.limits ?? {}
  const named = receivers.find(({ url }) => url === receiver)
  if (named !== undefined || receiveAmount === undefined) return named ?? first
  return receivers.find(({ asset }) => asset.assetCode === limit?.assetCode) ?? first
}

function totalsOf(
  { scene, wholePayments }: State,
  { type, share, delivered: deliveredShare, inDoubt: doubtShare, final }: TotalsCommand,
  { request, sent, delivered }: ExpectedPayment,
): SpendingAction {
  const { payment, debitAmount, receiveAmount, receiver } = request
  if (wholePayments && type === 'report-sent') {
    return { type, payment, sentAmount: debitAmount, deliveredAmount: receiveAmount, final: true }
  }
  if (wholePayments) {
    const nothing = (asset: Amount) => amountOf(0n, asset)
    const [sentAmount, deliveredAmount] = [nothing(debitAmount), nothing(receiveAmount)]
    return { type: 'fail', payment, sentAmount, deliveredAmount }
  }
  const total = sentOf(share, sent, BigInt(debitAmount.value))
  const arrived =
    deliveredShare === undefined
      ? within(receivedOf(total, receiverAt(scene, receiver)), 0n, amountValueMax)
      : sentOf(deliveredShare, delivered, BigInt(receiveAmount.value))
  const debit = BigInt(debitAmount.value)
  const ends = type === 'fail' || final || total === debit || `${arrived}` === receiveAmount.value
  const doubt = doubtShare === undefined ? 0n : sentOf(doubtShare, 0n, ends ? total : debit - total)
  const totals = {
    payment,
    sentAmount: amountOf(total, debitAmount),
    deliveredAmount: amountOf(arrived, receiveAmount),
    ...(doubt > 0n && { inDoubt: amountOf(doubt, debitAmount) }),
  }
  return type === 'fail' ? { type, ...totals } : { type, ...totals, final }
}

/** Decides the doubt of a payment that has one, or sometimes of any payment. */
function decisionOf(
  { known }: State,
  { back, any, share }: DecideCommand,
): SpendingAction | undefined {
  const doubted = known.filter(({ state, inDoubt }) => inDoubt > 0n && state !== 'begun')
  const found = fromTheEnd(any ? known : doubted, back)
  if (found === undefined) return undefined
  const { request, sent, delivered, inDoubt } = found
  const refunded = sentOf(share, 0n, inDoubt)
  // What arrived is in proportion to what remains sent.
  const rest = refunded < sent ? sent - refunded : 0n
  return {
    type: 'decide-doubt',
    payment: request.payment,
    refunded: amountOf(refunded, request.debitAmount),
    deliveredAmount: amountOf(sent === 0n ? 0n : (delivered * rest) / sent, request.receiveAmount),
  }
}

/** Returns the cumulative amount for a share of a payment, given the amount before. */
function sentOf(share: Share, before: bigint, debit: bigint): bigint {
  switch (share) {
    case 'nothing':
      return before
    case 'one unit':
      return before < debit ? before + 1n : before
    case 'half':
      return before + (debit - before) / 2n
    case 'all but one unit':
      return before < debit ? debit - 1n : debit
    case 'all':
      return debit
    case 'too much':
      return debit < amountValueMax ? debit + 1n : debit
  }
}

function grantNumber({ grants }: Model, number: number): number {
  return (number % grants.length) + 1
}

function fromTheEnd<Item>(items: readonly Item[], back: number): Item | undefined {
  return items[items.length - 1 - (back % Math.max(1, items.length))]
}
