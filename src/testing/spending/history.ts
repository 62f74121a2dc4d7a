import type { AccessItem, Amount, Instant } from 'open-payments-server'
import type { SpendingScene } from './scene.js'
import { amountText, instantText, limitsText } from './text.js'

/** A payment that a client instance asks for. Payments are numbered from 1 in the order of their first request. */
export interface PaymentRequest {
  readonly payment: number
  readonly grant: number
  /** By a quote that is asked for first, or straight to the incoming payment. */
  readonly by: 'quote' | 'direct'
  readonly receiver: string
  readonly debitAmount: Amount
  /** What arrives of it, as the scene says. */
  readonly receiveAmount: Amount
}

/** One thing that a client instance, the account's owner, the host or time does. */
export type SpendingAction =
  | {
      readonly type: 'grant'
      /** Grants are numbered from 1. */
      readonly grant: number
      readonly asked: readonly AccessItem[]
      /** What the account's owner consented to: all of it, or less. */
      readonly granted: readonly AccessItem[]
    }
  | ({ readonly type: 'pay' } & PaymentRequest)
  /** The request of that payment once more, since its response was lost. */
  | { readonly type: 'retry'; readonly request: PaymentRequest }
  | { readonly type: 'begin'; readonly payment: number }
  | {
      readonly type: 'settle'
      readonly payment: number
      /** Sent and delivered in all. */
      readonly sentAmount: Amount
      readonly deliveredAmount: Amount
      readonly final: boolean
    }
  | {
      readonly type: 'fail'
      readonly payment: number
      readonly sentAmount: Amount
      readonly deliveredAmount: Amount
    }
  | { readonly type: 'cancel'; readonly payment: number }
  /** Payments that were not begun in time fail, and what is old is removed. */
  | { readonly type: 'lapse' }
  | { readonly type: 'rotate'; readonly grant: number }
  | { readonly type: 'revoke'; readonly grant: number }
  | { readonly type: 'wait'; readonly until: Instant }

/** What the host says of a payment. */
export type SpendingReport = Extract<
  SpendingAction,
  { readonly type: 'begin' | 'settle' | 'fail' | 'cancel' }
>

export function isReport(action: SpendingAction): action is SpendingReport {
  return ['begin', 'settle', 'fail', 'cancel'].includes(action.type)
}

/**
 * In which order the first commits of actions that run at once reach the store: all together, or one after
 * the other. A wallet behind a network decides that for itself.
 */
export type CommitOrder = 'together' | 'in turn' | 'in reverse'

export interface ActionsAtOnce {
  readonly type: 'at once'
  readonly actions: readonly SpendingAction[]
  readonly commits: CommitOrder
}

export type SpendingStep = SpendingAction | ActionsAtOnce

/** What happens to payments, step by step. Its `toString` tells it line by line. */
export interface SpendingHistory {
  readonly scene: SpendingScene
  readonly start: Instant
  readonly steps: readonly SpendingStep[]
}

/** The history as a person reads it, a step on each line. */
export function historyText({ start, steps }: SpendingHistory): string {
  const lines = steps.map((step, index) => numbered(index, stepText(step)))
  return ['', `     it is ${instantText(start)}`, ...lines, ''].join('\n')
}

/** A step with its number; further lines of it are set in. */
export function numbered(index: number, text: string): string {
  return `${String(index + 1).padStart(3)}. ${text.replaceAll('\n', '\n     ')}`
}

const orders: Readonly<Record<CommitOrder, string>> = {
  together: 'at once',
  'in turn': 'at once, committed one after the other',
  'in reverse': 'at once, committed one after the other from the last',
}

/** A step in words. `answers` are what came of its actions, in their order. */
export function stepText(step: SpendingStep, answers: readonly string[] = []): string {
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
      return `the request for payment ${action.request.payment} again`
    case 'begin':
      return `begin to send payment ${action.payment}`
    case 'settle':
      return `settle payment ${action.payment}, ${totalsText(action)}${action.final ? ', final' : ''}`
    case 'fail':
      return `fail payment ${action.payment}, ${totalsText(action)}`
    case 'cancel':
      return `cancel payment ${action.payment}`
    case 'lapse':
      return 'let lapse what was not begun in time'
    case 'rotate':
      return `rotate the token of grant ${action.grant}`
    case 'revoke':
      return `revoke grant ${action.grant}`
    case 'wait':
      return `wait until ${instantText(action.until)}`
  }
}

function grantText({ grant, asked, granted }: SpendingAction & { type: 'grant' }): string {
  const whole = JSON.stringify(asked) === JSON.stringify(granted)
  const items = granted.map((item, index) => `- item ${index + 1}: ${limitsText(item.limits)}`)
  return [`grant ${grant}, approved${whole ? '' : ' for less than was asked'}`, ...items].join('\n')
}

function requestText({ payment, grant, by, ...paid }: PaymentRequest): string {
  const { receiver, debitAmount, receiveAmount } = paid
  const same = JSON.stringify(debitAmount) === JSON.stringify(receiveAmount)
  const arriving = same ? '' : `, of which ${amountText(receiveAmount)} arrives`
  const how = by === 'quote' ? ' by a quote' : ''
  return `pay ${amountText(debitAmount)} to ${receiver}${how} (payment ${payment}, grant ${grant}${arriving})`
}

function totalsText({
  sentAmount,
  deliveredAmount,
}: {
  readonly sentAmount: Amount
  readonly deliveredAmount: Amount
}): string {
  return `${amountText(sentAmount)} sent and ${amountText(deliveredAmount)} delivered`
}
