import type { AccessAction, AccessItem, AccessType, Amount, Limits } from 'open-payments-server'
import {
  type CalendarDuration,
  parseInterval,
  type RepeatingInterval,
  windowAt,
} from 'open-payments-server/core'

const verbs: Record<AccessType, Partial<Record<AccessAction, string>>> = {
  'incoming-payment': {
    create: 'create payment requests for you',
    complete: 'close the payment requests it made',
    read: 'see the payment requests it made',
    'read-all': 'see every payment request of your account',
    list: 'list the payment requests it made',
    'list-all': 'list every payment request of your account',
  },
  'outgoing-payment': {
    create: 'pay money from your account',
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

/** Describes an access item line by line, in words for the owner. */
export function describeAccess({ type, actions, identifier, limits }: AccessItem): string[] {
  const lines = actions.map((action) => verbs[type][action] ?? action)
  if (identifier !== undefined) lines.push(`only for ${identifier}`)
  return [...lines, ...describeLimits(limits ?? {}, type)]
}

function describeLimits(limits: Limits, type: AccessType): string[] {
  const { debitAmount, receiveAmount, interval, receiver } = limits
  const lines: string[] = []
  const period = interval === undefined ? ' in all' : describeInterval(interval)
  if (debitAmount !== undefined)
    lines.push(`at most ${money(debitAmount)} is debited from your account${period}`)
  if (receiveAmount !== undefined)
    lines.push(`at most ${money(receiveAmount)} arrives at the receiver${period}`)
  if (type === 'outgoing-payment' && !debitAmount && !receiveAmount) {
    lines.push('without any limit on the amount')
    if (interval !== undefined) lines.push(`at these times:${period}`)
  }
  if (receiver !== undefined) lines.push(`only to ${receiver}`)
  return lines
}

/** Formats an amount. */
export function money({ value, assetCode, assetScale }: Amount): string {
  const digits = value.padStart(assetScale + 1, '0')
  const whole = digits.slice(0, digits.length - assetScale)
  const fraction = digits.slice(digits.length - assetScale)
  return `${assetCode} ${assetScale === 0 ? whole : `${whole}.${fraction}`}`
}

/** Describes how often an interval repeats and its first window, from which owners can infer the others. */
function describeInterval(text: string): string {
  const parsed = parseInterval(text)
  if (!parsed.ok) return ` (${text})`
  const interval = parsed.value
  const each =
    interval.form === 'start/end'
      ? `every ${length(elapsed(interval.end - interval.start))}`
      : `every ${length(interval.duration)}`
  return ` ${each}${times(interval)}, ${turn(interval)}`
}

function times({ count }: RepeatingInterval): string {
  if (count === undefined) return ''
  return count === 1 ? ', once' : `, ${count} times`
}

/** Describes the window that the text names: the first, or the last if the interval has an end. */
function turn(interval: RepeatingInterval): string {
  const backwards = interval.form === 'duration/end'
  const window = windowAt(interval, backwards ? interval.end - 1 : interval.start)
  if (window === undefined) return 'which never happens'
  const which = interval.count === 1 ? '' : backwards ? 'the last time ' : 'the first time '
  return `${which}from ${date(window.start)} until ${date(window.end)}`
}

/** Splits a number of milliseconds into days, hours, minutes and seconds. */
function elapsed(ms: number) {
  const seconds = ms / 1000
  return {
    days: Math.floor(seconds / 86_400),
    hours: Math.floor(seconds / 3_600) % 24,
    minutes: Math.floor(seconds / 60) % 60,
    seconds: seconds % 60,
  }
}

function length(duration: Partial<CalendarDuration>): string {
  return Object.entries(duration)
    .filter(([, count]) => count > 0)
    .map(([unit, count]) => (count === 1 ? unit.slice(0, -1) : `${count} ${unit}`))
    .join(' and ')
}

function date(instant: number): string {
  return new Date(instant).toUTCString().replace(/:00 GMT$/, ' UTC')
}
