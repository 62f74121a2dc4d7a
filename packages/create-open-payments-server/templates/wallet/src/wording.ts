import type { AccessItem, Amount, Limits, SpendingTotal } from 'open-payments-server'
import type { AccessAction, AccessType } from 'open-payments-server/core'
import { parseInterval, windowAt } from 'open-payments-server/core'

const verbs: Record<AccessType, Partial<Record<AccessAction, string>>> = {
  'incoming-payment': {
    create: 'request payments to you',
    complete: 'close the payment requests it made',
    read: 'see the payment requests it made',
    'read-all': 'see every payment request of your account',
    list: 'list the payment requests it made',
    'list-all': 'list every payment request of your account',
  },
  'outgoing-payment': {
    create: 'pay from your account',
    read: 'see the payments it made',
    'read-all': 'see every payment from your account',
    list: 'list the payments it made',
    'list-all': 'list every payment from your account',
  },
  quote: {
    create: 'ask what a payment would cost',
    read: 'see the quotes it asked for',
    'read-all': 'see every quote of your account',
  },
}

/** Describes an access item for its owner, line by line. */
export function describeAccess({ type, actions, identifier, limits }: AccessItem): string[] {
  const lines = actions.map((action) => verbs[type][action] ?? action)
  if (identifier !== undefined) lines.push(`only for ${identifier}`)
  return type === 'outgoing-payment' ? [...lines, ...describeLimits(limits ?? {})] : lines
}

/** Describes what several items allow to spend together, or `undefined` for a single item. */
export function describeTotal({ items, ...limits }: SpendingTotal): string | undefined {
  return items === 1 ? undefined : `Together: ${describeLimits(limits).join(', ')}`
}

function describeLimits({ debitAmount, receiveAmount, interval, receiver }: Limits): string[] {
  const period = interval === undefined ? ' in all' : ` ${describeInterval(interval)}`
  const amounts = [
    ...(debitAmount === undefined ? [] : [`spend at most ${money(debitAmount)}${period}`]),
    ...(receiveAmount === undefined ? [] : [`deliver at most ${money(receiveAmount)}${period}`]),
  ]
  const none = `spend without a limit on the amount${interval === undefined ? '' : period}`
  const only = receiver === undefined ? [] : [`pay only ${receiver}`]
  return [...(amounts.length === 0 ? [none] : amounts), ...only]
}

/** Formats an amount, without a number of JavaScript, which could not represent it exactly. */
export function money({ value, assetCode, assetScale }: Amount): string {
  const digits = value.padStart(assetScale + 1, '0')
  const whole = digits.slice(0, digits.length - assetScale)
  const fraction = digits.slice(digits.length - assetScale)
  return `${assetCode} ${assetScale === 0 ? whole : `${whole}.${fraction}`}`
}

/** Describes how often an interval repeats and one of its windows, from which owners can infer the others. */
function describeInterval(text: string): string {
  const parsed = parseInterval(text)
  if (!parsed.ok) return `in each window of ${text}`
  const interval = parsed.value
  const at = interval.form === 'duration/end' ? interval.end - 1 : interval.start
  const window = windowAt(interval, at)
  if (window === undefined) return 'never'
  const count = interval.count === undefined ? '' : `, ${interval.count} times`
  const which = interval.form === 'duration/end' ? 'last' : 'first'
  const length = 'duration' in interval ? interval.duration : elapsed(interval.end - interval.start)
  return `every ${lengthOf(length)}${count}, the ${which} from ${date(window.start)} until ${date(window.end)}`
}

/** Splits a number of milliseconds into units of time. */
function elapsed(ms: number) {
  const seconds = ms / 1000
  const days = Math.floor(seconds / 86_400)
  return {
    ...(days % 7 === 0 ? { weeks: days / 7 } : { days }),
    hours: Math.floor(seconds / 3_600) % 24,
    minutes: Math.floor(seconds / 60) % 60,
    seconds: seconds % 60,
  }
}

/** Returns the text of a duration, such as `month`, `2 weeks` or `1 hour and 30 minutes`. */
function lengthOf(duration: object): string {
  const units = Object.entries(duration).filter(([, count]) => count > 0)
  const [first, ...others] = units
  if (first?.[1] === 1 && others.length === 0) return first[0].slice(0, -1)
  return units
    .map(([unit, count]) => `${count} ${count === 1 ? unit.slice(0, -1) : unit}`)
    .join(' and ')
}

function date(instant: number): string {
  return new Date(instant).toUTCString().replace(/:00 GMT$/, ' UTC')
}
