import {
  type AccessItem,
  type Amount,
  type Asset,
  type Instant,
  InvalidInputError,
  type Limits,
  type SpendingLimit,
} from 'open-payments-server'
import type { SpendingWindow } from 'open-payments-server/core'

/** An incoming payment that can be paid, and its price. */
export interface SpendingReceiver {
  /** URL of the incoming payment. */
  readonly url: string
  /** The asset in which it receives. */
  readonly asset: Asset
  /**
   * The smallest units debited for one smallest unit that arrives: an integer, or a decimal or a fraction as text, such
   * as `1.37` or `137/100`. Default 1. What arrives is the exact quotient, rounded down to whole units.
   */
  readonly unitPrice?: bigint | string
  /**
   * The `receiverWalletAddress` of its price. If present, owners also name it, or others, as the only receivers that a
   * grant may pay.
   */
  readonly walletAddress?: string
}

/** Who pays whom in the histories. */
export interface SpendingScene {
  /** The account that pays. */
  readonly walletAddress: string
  /**
   * Another account of the same resource owner, with the same asset. If present, grants also have items for it, and
   * clients also try to pay from it: the limits of one account must not apply to the other.
   */
  readonly otherWalletAddress?: string
  /** The asset of the accounts that pay. */
  readonly asset: Asset
  /** At least one receiver. */
  readonly receivers: readonly [SpendingReceiver, ...SpendingReceiver[]]
}

const usd: Asset = { assetCode: 'USD', assetScale: 2 }

/**
 * Alice's accounts are in dollars. A payment arrives as dollars, or as half as many euros.
 *
 * @example
 * ```ts
 * import { defaultScene, type SpendingScene } from 'open-payments-server-testing'
 *
 * const scene: SpendingScene = { ...defaultScene, walletAddress: 'https://bank.example/alice' }
 * ```
 */
export const defaultScene: SpendingScene = {
  walletAddress: 'https://wallet.example/alice',
  otherWalletAddress: 'https://wallet.example/alice-savings',
  asset: usd,
  receivers: [
    {
      url: 'https://bank.example/incoming-payments/usd-1',
      asset: usd,
      walletAddress: 'https://bank.example/shop',
    },
    {
      url: 'https://bank.example/incoming-payments/usd-2',
      asset: usd,
      walletAddress: 'https://bank.example/landlord',
    },
    {
      url: 'https://bank.example/incoming-payments/eur-1',
      asset: { assetCode: 'EUR', assetScale: 2 },
      unitPrice: 2n,
    },
  ],
}

/** Returns the wallet addresses of the scene that pay. */
export function accountsOf({
  walletAddress,
  otherWalletAddress,
}: SpendingScene): readonly string[] {
  return [walletAddress, ...(otherWalletAddress === undefined ? [] : [otherWalletAddress])]
}

/**
 * Returns the price of a receiver as a fraction of integers.
 *
 * @throws {InvalidInputError} if it is not a positive number in one of the forms.
 */
export function priceOf({ unitPrice = 1n }: SpendingReceiver) {
  const text = typeof unitPrice === 'number' ? '' : `${unitPrice}`
  const [, whole = '0', decimals = '', divisor = '1'] =
    /^(\d+)(?:\.(\d+)|\/(\d+))?$/.exec(text) ?? []
  const debited = BigInt(whole + decimals)
  const received = BigInt(divisor) * 10n ** BigInt(decimals.length)
  if (debited > 0n && received > 0n) return { debited, received }
  const forms = 'an integer, or a decimal or fraction as text, such as 1.37 or 137/100'
  throw new InvalidInputError('scene', `must have positive prices: ${forms}`)
}

/** Returns the value that arrives for a debit. */
export function receivedOf(debit: bigint, receiver: SpendingReceiver): bigint {
  const { debited, received } = priceOf(receiver)
  return (debit * received) / debited
}

/** Returns the smallest debit for which at least this value arrives. */
export function debitFor(value: bigint, receiver: SpendingReceiver): bigint {
  const { debited, received } = priceOf(receiver)
  return (value * debited + received - 1n) / received
}

export function amountOf(value: bigint, { assetCode, assetScale }: Asset): Amount {
  return { value: value.toString(), assetCode, assetScale }
}

/** Formats an amount: `USD 12.50`. */
export function amountText({ value, assetCode, assetScale }: Amount): string {
  const digits = value.padStart(assetScale + 1, '0')
  const whole = digits.slice(0, digits.length - assetScale)
  const fraction = digits.slice(digits.length - assetScale)
  return `${assetCode} ${assetScale === 0 ? whole : `${whole}.${fraction}`}`
}

/** Formats a value in an asset. */
export function valueText(value: bigint, { assetCode, assetScale }: Omit<Amount, 'value'>): string {
  const sign = value < 0n ? '-' : ''
  const digits = (value < 0n ? -value : value).toString()
  return sign + amountText({ value: digits, assetCode, assetScale })
}

export function instantText(at: Instant): string {
  return new Date(at).toISOString()
}

export function windowText(window: SpendingWindow | undefined): string {
  if (window === undefined) return 'the life of the grant'
  return `the window from ${instantText(window.start)} to ${instantText(window.end)}`
}

/** Describes limits on one line. */
export function limitsText(limits: Limits = {}): string {
  const { debitAmount, receiveAmount, interval, receiver } = limits
  const most = [
    ...(debitAmount === undefined ? [] : [`at most ${amountText(debitAmount)} debited`]),
    ...(receiveAmount === undefined ? [] : [`at most ${amountText(receiveAmount)} received`]),
  ]
  const often = interval === undefined ? 'in all' : `in each window of ${interval}`
  const amounts = most.length === 0 ? 'any amount' : most.join(' and ')
  const when = most.length === 0 && interval === undefined ? '' : ` ${often}`
  return `${amounts}${when}${receiver === undefined ? '' : `, only to ${receiver}`}`
}

/** Describes an access item on one line. */
export function itemText({ type, actions, identifier, limits }: AccessItem): string {
  const where = identifier === undefined ? '' : ` at ${identifier}`
  const most = type === 'outgoing-payment' ? `: ${limitsText(limits)}` : ''
  return `${actions.join(', ')} ${type}${where}${most}`
}

/** Gives an object a readable `toString`, or another one. Its JSON and its keys stay the same. */
export function readable<Value extends object>(value: Value, text: () => string): Value {
  return Object.defineProperty(value, 'toString', { value: text, configurable: true })
}

/**
 * A request for a payment: of a client, or of the owner of the account in the wallet's own app. Payments are numbered
 * from 1 in the order of their first request.
 */
export interface PaymentRequest {
  readonly payment: number
  /** Absent if the owner orders the payment: no grant counts it, and no client sees it. */
  readonly grant?: number
  /** Whether the limits of the account count what the owner orders. Default false: they are for apps. */
  readonly countsInAccountLimits?: true
  /** `quote`: a quote is created first. `direct`: the request names the incoming payment. */
  readonly by: 'quote' | 'direct'
  /** The account that pays: the account of the scene, or the other account of its owner. */
  readonly walletAddress: string
  readonly receiver: string
  /** What the payer is debited in all, the wallet's fees included, in the asset of the scene. */
  readonly debitAmount: Amount
  /** The amount that arrives, according to the scene. */
  readonly receiveAmount: Amount
}

/** What the resource owner changes after the approval. An absent member changes nothing. */
export interface SpendingAmendment {
  /** The items that remain, in their order. An item that is not listed is removed. */
  readonly items?: readonly RemainingItem[]
  readonly conditions?: {
    /** The maximum debit of one payment. */
    readonly paymentMax?: Amount
    /** The only wallet addresses that may be paid. */
    readonly receivers?: readonly string[]
    /** No payment is created before this instant. `null` ends the pause. */
    readonly pausedUntil?: Instant | null
    /** All limits of the owner that then apply. */
    readonly limits?: readonly SpendingLimit[]
  }
}

/** An item of a grant as it remains, with its amounts. Everything else in it stays. */
export interface RemainingItem extends Pick<Limits, 'debitAmount' | 'receiveAmount'> {
  /** The position of the item when the grant was approved, from 1. */
  readonly item: number
}

/** One action of a client, the resource owner or the host, or the passage of time. */
export type SpendingAction =
  | {
      readonly type: 'grant'
      /** Grants are numbered from 1. */
      readonly grant: number
      readonly asked: readonly AccessItem[]
      /** The access that the resource owner approved: all or a part of the request. */
      readonly granted: readonly AccessItem[]
      /** The limits that the owner sets in addition to it. Default: none. */
      readonly limits?: readonly SpendingLimit[]
    }
  /** The owner sets all limits of an account, whatever the grants. They may be lower or higher than before. */
  | {
      readonly type: 'limit-account'
      readonly walletAddress: string
      readonly limits: readonly SpendingLimit[]
    }
  | ({ readonly type: 'pay' } & PaymentRequest)
  /** Repeats a payment request whose response was lost. */
  | { readonly type: 'retry'; readonly request: PaymentRequest }
  /** Repeats a request with another amount, which the wallet must refuse if it accepted the first. */
  | { readonly type: 'alter'; readonly request: PaymentRequest }
  | { readonly type: 'begin'; readonly payment: number }
  | {
      readonly type: 'report-sent'
      readonly payment: number
      /** The cumulative sent and delivered amounts. */
      readonly sentAmount: Amount
      readonly deliveredAmount: Amount
      readonly final: boolean
      /** May arrive, and is not proven. A part of `sentAmount` in the report that ends the payment, else beside it. */
      readonly inDoubt?: Amount
    }
  | {
      readonly type: 'fail'
      readonly payment: number
      readonly sentAmount: Amount
      readonly deliveredAmount: Amount
      readonly inDoubt?: Amount
    }
  /** The host finds out what became of the part in doubt of a payment that has ended. */
  | {
      readonly type: 'decide-doubt'
      readonly payment: number
      /** The part that did not arrive, and goes back to the payer. */
      readonly refunded: Amount
      /** What was delivered in total. */
      readonly deliveredAmount: Amount
    }
  | { readonly type: 'cancel'; readonly payment: number }
  /** Fails payments that were not begun in time and removes old records. */
  | { readonly type: 'lapse' }
  /** The client lists the payments of the account: those of clients, and none that the owner has ordered. */
  | { readonly type: 'list'; readonly grant: number; readonly walletAddress: string }
  | { readonly type: 'rotate'; readonly grant: number }
  | { readonly type: 'revoke'; readonly grant: number }
  | ({ readonly type: 'amend'; readonly grant: number } & SpendingAmendment)
  /** The client publishes another key, and signs all further requests with it. */
  | { readonly type: 'replace-key' }
  | { readonly type: 'wait'; readonly until: Instant }

/** What the host reports about a payment. */
export type SpendingReport = Extract<
  SpendingAction,
  { readonly type: 'begin' | 'report-sent' | 'fail' | 'decide-doubt' | 'cancel' }
>

export function isReport(action: SpendingAction): action is SpendingReport {
  return ['begin', 'report-sent', 'fail', 'decide-doubt', 'cancel'].includes(action.type)
}

/** Whether the store may fail during an action. The other actions cannot be repeated safely. */
export function isInterruptible(action: SpendingAction): boolean {
  return isReport(action) || action.type === 'pay' || action.type === 'retry'
}

/**
 * The order in which the first commits of concurrent actions reach the store: together, or one after the
 * other. A wallet behind a network decides this itself.
 */
export type CommitOrder = 'together' | 'in turn' | 'in reverse'

/** Actions that begin at the same time, and the order of their commits. */
export interface ActionsAtOnce {
  readonly type: 'at once'
  readonly actions: readonly SpendingAction[]
  readonly commits: CommitOrder
}

/** Whether a write takes effect before the store fails: a commit that fails may have been written. */
export type StoreFailure = 'before' | 'after'

/**
 * An action during which the store of the wallet fails, from just before or just after one of its writes. If its
 * outcome is then unknown, it is repeated on the working store, which must settle it.
 */
export interface ActionDuringFailure {
  readonly type: 'store fails'
  readonly failure: StoreFailure
  /** Which write of the action fails: 1 is the first. If the action has fewer, none fails. */
  readonly write: number
  /** Whether the sweeps of the wallet run before the action is repeated. */
  readonly sweeps: boolean
  readonly action: SpendingAction
}

/** One step of a history: an action, or several that race. */
export type SpendingStep = SpendingAction | ActionsAtOnce | ActionDuringFailure

/** Returns the actions of a step. */
export function actionsOf(step: SpendingStep): readonly SpendingAction[] {
  if (step.type === 'at once') return step.actions
  return [step.type === 'store fails' ? step.action : step]
}

/** What happens to payments, step by step. Its `toString` prints it line by line. */
export interface SpendingHistory {
  readonly scene: SpendingScene
  readonly start: Instant
  readonly steps: readonly SpendingStep[]
}

/** Prints the history with one step on each line. */
export function historyText({ start, steps }: SpendingHistory): string {
  const lines = steps.map((step, index) => numbered(index, stepText(step)))
  return ['', `     time: ${instantText(start)}`, ...lines, ''].join('\n')
}

/** Prints a step with its number; further lines are indented. */
export function numbered(index: number, text: string): string {
  return `${String(index + 1).padStart(3)}. ${text.replaceAll('\n', '\n     ')}`
}

const orders: Readonly<Record<CommitOrder, string>> = {
  together: 'concurrently',
  'in turn': 'concurrently, with commits in this order',
  'in reverse': 'concurrently, with commits in reverse order',
}

/** Describes a step. `answers` are the outcomes of its actions, in their order. */
export function stepText(step: SpendingStep, answers: readonly string[] = []): string {
  if (step.type === 'store fails') {
    const { failure, write, action } = step
    const when = `${failure} ${write === 1 ? 'it writes' : `write ${write}`}`
    const [first, ...later] = answers
    const text = withAnswer(`while the store fails ${when}: ${actionText(action)}`, first)
    const repeated = later.length === 0 ? '' : `, and repeated: ${later.at(-1)}`
    return `${text}${later.length > 1 ? ', swept' : ''}${repeated}`
  }
  if (step.type !== 'at once') return withAnswer(actionText(step), answers[0])
  const lines = step.actions.map((action, i) => `- ${withAnswer(actionText(action), answers[i])}`)
  return [`${orders[step.commits]}:`, ...lines].join('\n')
}

function withAnswer(text: string, answer: string | undefined): string {
  return answer === undefined ? text : `${text}: ${answer}`
}

function actionText(action: SpendingAction): string {
  switch (action.type) {
    case 'grant':
      return grantText(action)
    case 'pay':
      return requestText(action)
    case 'retry':
      return `repeat the request for payment ${action.request.payment}`
    case 'alter': {
      const { payment, debitAmount } = action.request
      return `repeat the request for payment ${payment} with ${amountText(debitAmount)}`
    }
    case 'begin':
      return `begin payment ${action.payment}`
    case 'report-sent':
      return `report payment ${action.payment}, ${totalsText(action)}${action.final ? ', final' : ''}`
    case 'fail':
      return `fail payment ${action.payment}, ${totalsText(action)}`
    case 'decide-doubt': {
      const { payment, refunded, deliveredAmount } = action
      return `decide the doubt of payment ${payment}, ${amountText(refunded)} refunded and ${amountText(deliveredAmount)} delivered`
    }
    case 'cancel':
      return `cancel payment ${action.payment}`
    case 'lapse':
      return 'fail payments that were not begun in time'
    case 'list':
      return `list the payments of ${action.walletAddress} under grant ${action.grant}`
    case 'rotate':
      return `rotate the token of grant ${action.grant}`
    case 'revoke':
      return `revoke grant ${action.grant}`
    case 'limit-account':
      return [`limit ${action.walletAddress}`, ...listed(ownersText(action.limits))].join('\n')
    case 'amend':
      return amendmentText(action)
    case 'replace-key':
      return 'replace the key of the client'
    case 'wait':
      return `wait until ${instantText(action.until)}`
  }
}

function grantText({
  grant,
  asked,
  granted,
  limits = [],
}: SpendingAction & { type: 'grant' }): string {
  const whole = JSON.stringify(asked) === JSON.stringify(granted)
  const items = granted.map(({ identifier, limits }, index) => {
    return `- item ${index + 1}, from ${identifier}: ${limitsText(limits)}`
  })
  const approved = `grant ${grant}, approved${whole ? '' : ' for less than requested'}`
  return [approved, ...items, ...listed(limits.map(ownersLimitText))].join('\n')
}

const listed = (texts: readonly string[]) => texts.map((text) => `- ${text}`)

function ownersText(limits: readonly SpendingLimit[]): readonly string[] {
  return limits.length === 0 ? ['no limit of the owner'] : limits.map(ownersLimitText)
}

function ownersLimitText({ debitAmount, payments, interval }: SpendingLimit): string {
  const most = [
    ...(debitAmount === undefined ? [] : [`${amountText(debitAmount)} debited`]),
    ...(payments === undefined ? [] : [`${payments} payments`]),
  ]
  const often = interval === undefined ? 'in all' : `in each window of ${interval}`
  return `the owner allows at most ${most.join(' and ')} ${often}`
}

function amendmentText({ grant, items, conditions = {} }: SpendingAction & { type: 'amend' }) {
  const { paymentMax, receivers, pausedUntil, limits } = conditions
  const changes = [
    ...(items ?? []).map(({ item, ...limits }) => `item ${item} remains: ${limitsText(limits)}`),
    ...(items?.length === 0 ? ['no item remains'] : []),
    ...(paymentMax === undefined ? [] : [`at most ${amountText(paymentMax)} in one payment`]),
    ...(receivers === undefined ? [] : [`only to ${receivers.join(' and ')}`]),
    ...(typeof pausedUntil === 'number' ? [`paused until ${instantText(pausedUntil)}`] : []),
    ...(pausedUntil === null ? ['no longer paused'] : []),
    ...(limits === undefined ? [] : ownersText(limits)),
  ]
  return [`amend grant ${grant}`, ...listed(changes)].join('\n')
}

function requestText({ payment, grant, by, ...paid }: PaymentRequest): string {
  const counted = paid.countsInAccountLimits ? ', counted in the limits of the account' : ''
  const who = grant === undefined ? `ordered by the owner${counted}` : `grant ${grant}`
  const { walletAddress, receiver, debitAmount, receiveAmount } = paid
  const same = JSON.stringify(debitAmount) === JSON.stringify(receiveAmount)
  const arriving = same ? '' : `, ${amountText(receiveAmount)} arrives`
  const how = by === 'quote' ? ' with a quote' : ''
  return `pay ${amountText(debitAmount)} from ${walletAddress} to ${receiver}${how} (payment ${payment}, ${who}${arriving})`
}

function totalsText({
  sentAmount,
  deliveredAmount,
  inDoubt,
}: {
  readonly sentAmount: Amount
  readonly deliveredAmount: Amount
  readonly inDoubt?: Amount
}): string {
  const doubt = inDoubt === undefined ? '' : `, ${amountText(inDoubt)} in doubt`
  return `${amountText(sentAmount)} sent and ${amountText(deliveredAmount)} delivered${doubt}`
}
