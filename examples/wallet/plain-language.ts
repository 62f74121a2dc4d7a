import type { AccessItem, Amount, Limits, SpendingTotal } from 'open-payments-server'
import type { AccessType } from 'open-payments-server/core'
import {
  type CalendarDuration,
  parseInterval,
  type RepeatingInterval,
  windowAt,
} from 'open-payments-server/core'
import type { Unit } from './languages/messages.js'
import { formatAmount, formatInstant, isolated, type Locale } from './locale.js'

/** Describes an access item line by line, in words for the owner. */
export function describeAccess(
  { type, actions, identifier, limits }: AccessItem,
  locale: Locale,
): string[] {
  const { messages } = locale
  const lines = actions.map((action) => messages.actions[type][action] ?? action)
  if (identifier !== undefined) {
    lines.push(messages.limits.onlyFor(isolated(identifier, messages)))
  }
  return [...lines, ...describeLimits(limits ?? {}, type, locale)]
}

/** Describes the sum of the limits of several items, or `undefined` for a single item, which says it itself. */
export function describeTotal(
  { items, identifier, ...limits }: SpendingTotal,
  locale: Locale,
): string | undefined {
  if (items === 1) return undefined
  const { messages, tag } = locale
  const account = identifier === undefined ? messages.limits.chosen : isolated(identifier, messages)
  const [limit = ''] = describeLimits(limits, 'outgoing-payment', locale)
  const count = new Intl.NumberFormat(tag).format(items)
  return messages.limits.total(count, account, limit)
}

function describeLimits(limits: Limits, type: AccessType, locale: Locale): string[] {
  const { debitAmount, receiveAmount, interval, receiver } = limits
  const { messages } = locale
  const said = messages.limits
  const lines: string[] = []
  const period =
    interval === undefined ? messages.periods.inAll : describeInterval(interval, locale)
  if (debitAmount !== undefined) lines.push(said.debited(formatAmount(debitAmount, locale), period))
  if (receiveAmount !== undefined) {
    lines.push(said.arrives(formatAmount(receiveAmount, locale), period))
  }
  if (type === 'outgoing-payment' && !debitAmount && !receiveAmount) {
    lines.push(said.unlimited)
    if (interval !== undefined) lines.push(said.atTheseTimes(period))
  }
  if (receiver !== undefined) lines.push(said.onlyTo(isolated(receiver, messages)))
  return lines
}

/** Formats an amount for logs, in which a program may look for it. */
export function money({ value, assetCode, assetScale }: Amount): string {
  const digits = value.padStart(assetScale + 1, '0')
  const whole = digits.slice(0, digits.length - assetScale)
  const fraction = digits.slice(digits.length - assetScale)
  return `${assetCode} ${assetScale === 0 ? whole : `${whole}.${fraction}`}`
}

/** Describes how often an interval repeats and its first window, from which owners can infer the others. */
function describeInterval(text: string, locale: Locale): string {
  const { messages } = locale
  const parsed = parseInterval(text)
  if (!parsed.ok) return `(${isolated(text, messages)})`
  const interval = parsed.value
  const { periods, comma } = messages
  const duration =
    interval.form === 'start/end' ? elapsed(interval.end - interval.start) : interval.duration
  const parts = [
    every(duration, locale),
    ...(interval.count === undefined ? [] : [periods.times(interval.count)]),
    turn(interval, locale),
  ]
  return parts.join(comma)
}

/** Describes the window that the text names: the first, or the last if the interval has an end. */
function turn(interval: RepeatingInterval, locale: Locale): string {
  const { periods } = locale.messages
  const isBackwards = interval.form === 'duration/end'
  const window = windowAt(interval, isBackwards ? interval.end - 1 : interval.start)
  if (window === undefined) return periods.never
  const which = interval.count === 1 ? 'only' : isBackwards ? 'last' : 'first'
  return periods[which](formatInstant(window.start, locale), formatInstant(window.end, locale))
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

function every(duration: Partial<CalendarDuration>, { tag, messages }: Locale): string {
  const counts = Object.entries(duration)
    .filter(([, count]) => count > 0)
    .map(([units, count]) => ({ unit: units.slice(0, -1) as Unit, count }))
  const [first, ...rest] = counts
  if (first?.count === 1 && rest.length === 0) return messages.periods.every[first.unit]
  const texts = counts.map(({ unit, count }) =>
    new Intl.NumberFormat(tag, { style: 'unit', unit, unitDisplay: 'long' }).format(count),
  )
  const list = new Intl.ListFormat(tag, { type: 'conjunction' }).format(texts)
  return messages.periods.everyDuration(isolated(list, messages))
}
