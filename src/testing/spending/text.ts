import type { AccessItem, Amount, Instant, Limits } from 'open-payments-server'
import type { SpendingWindow } from 'open-payments-server/core'

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
