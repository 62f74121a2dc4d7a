import type { AccessItem, Amount, Instant, InteractionView } from 'open-payments-server'
import {
  type CalendarDuration,
  endOfWindows,
  type IntervalCounting,
  parseInterval,
  type RepeatingInterval,
  type SpendingWindow,
  windowAt,
} from 'open-payments-server/core'
import { amountHtml } from './amounts.js'
import { type Html, html } from './html.js'
import { formatInstant, isolated, type Locale, listed, say, timesOf } from './locale.js'
import { accountHtml, isSameUrl, type OwnedAccount } from './owned-account.js'
import { grantedReceiverHtml, type Receivers } from './receivers.js'
import type { TextKey } from './texts.js'

/** The values that a description of access needs in addition to the access. */
export interface DescriptionOptions {
  readonly locale: Locale
  readonly now: Instant
  /** The receivers that are known, by the URL of their incoming payment. */
  readonly receivers?: Receivers | undefined
  /** The option `compatibility.intervalCounting` of the authorization server. Default: `occurrences`. */
  readonly intervalCounting?: IntervalCounting | undefined
  /** The accounts of the signed-in owner, to name them. */
  readonly accounts?: readonly OwnedAccount[] | undefined
}

/** Describes an access item completely, line by line. */
export function describeItem(item: AccessItem, describing: DescriptionOptions): readonly Html[] {
  const { locale, accounts } = describing
  const { type, actions, identifier } = item
  const known = accounts?.find(({ url }) => isSameUrl(url, identifier))
  return [
    ...actions.map((action) => html`${actionText(type, action, locale)}`),
    ...(identifier === undefined
      ? []
      : [say(locale, 'onlyFor', { account: accountHtml(identifier, known) })]),
    ...describeLimits(item, describing),
  ]
}

/** Describes what an app may do. Returns an action of another version of the library unchanged. */
export function actionText(type: string, action: string, { texts }: Pick<Locale, 'texts'>): string {
  const key = `${type}.${action}`
  return Object.hasOwn(texts, key) ? texts[key as TextKey] : `${type} ${action}`
}

function describeLimits(
  { type, actions, limits = {} }: AccessItem,
  describing: DescriptionOptions,
): readonly Html[] {
  const { debitAmount, receiveAmount, interval, receiver } = limits
  const { locale } = describing
  const period =
    interval === undefined ? say(locale, 'inAll') : describeInterval(interval, describing)
  const lines: Html[] = []
  if (debitAmount !== undefined) {
    lines.push(say(locale, 'debited', { amount: amountHtml(debitAmount, locale), period }))
  }
  if (receiveAmount !== undefined) {
    lines.push(say(locale, 'arrives', { amount: amountHtml(receiveAmount, locale), period }))
  }
  if (!debitAmount && !receiveAmount) {
    const canPay = type === 'outgoing-payment' && actions.includes('create')
    if (canPay) lines.push(say(locale, 'unlimited'))
    if (interval !== undefined) lines.push(say(locale, 'atTheseTimes', { period }))
  }
  if (receiver !== undefined) {
    const named = grantedReceiverHtml(receiver, describing.receivers)
    lines.push(say(locale, 'onlyTo', { receiver: named }))
  }
  return lines
}

/** Describes how often an interval repeats and its first window, from which owners can infer the others. */
export function describeInterval(
  text: string,
  { locale, intervalCounting }: Pick<DescriptionOptions, 'locale' | 'intervalCounting'>,
): Html {
  const parsed = parseInterval(text)
  if (!parsed.ok) return isolated(text)
  const interval = parsed.value
  const { comma } = locale.texts
  const { count = 0 } = interval
  const times = intervalCounting === 'repetitions' ? count + 1 : count
  const often = interval.count === undefined ? '' : comma + timesOf(times, locale)
  return html`${every(interval, locale)}${often}${comma}${turn(interval, times, locale)}`
}

/** Describes the window that the text names: the first, or the last if the interval has an end. */
function turn(interval: RepeatingInterval, times: number, locale: Locale): Html {
  const isBackwards = interval.form === 'duration/end'
  const window = windowAt(interval, isBackwards ? interval.end - 1 : interval.start)
  if (window === undefined) return say(locale, 'never')
  const which = times === 1 ? 'onlyWindow' : isBackwards ? 'lastWindow' : 'firstWindow'
  const [start, end] = [formatInstant(window.start, locale), formatInstant(window.end, locale)]
  return say(locale, which, { start, end })
}

const units = {
  years: 'everyYear',
  months: 'everyMonth',
  weeks: 'everyWeek',
  days: 'everyDay',
  hours: 'everyHour',
  minutes: 'everyMinute',
  seconds: 'everySecond',
} as const satisfies Record<keyof CalendarDuration, TextKey>

/** Returns the length of an interval, such as `every month` or `every 2 weeks`. */
export function every(interval: RepeatingInterval, locale: Locale): Html {
  const duration =
    interval.form === 'start/end' ? elapsed(interval.end - interval.start) : interval.duration
  const counts = Object.entries(duration).filter(([, count]) => count > 0)
  const [first, ...rest] = counts
  if (first?.[1] === 1 && rest.length === 0) {
    return say(locale, units[first[0] as keyof CalendarDuration])
  }
  const texts = counts.map(([unit, count]) => {
    const style = { style: 'unit', unit: unit.slice(0, -1), unitDisplay: 'long' } as const
    return new Intl.NumberFormat(locale.tag, style).format(count)
  })
  return say(locale, 'everyDuration', { duration: listed(texts, locale) })
}

/** Splits a number of milliseconds into units of time. */
function elapsed(ms: number): Partial<CalendarDuration> {
  const seconds = ms / 1000
  const days = Math.floor(seconds / 86_400)
  return {
    ...(days % 7 === 0 ? { weeks: days / 7 } : { days }),
    hours: Math.floor(seconds / 3_600) % 24,
    minutes: Math.floor(seconds / 60) % 60,
    seconds: seconds % 60,
  }
}

/** What an app may spend from now on, under the items of a total. */
export interface SpendingOutlook {
  /** The limit, for all items together; absent without one. */
  readonly limit?: Amount
  /** Whether the limit counts what the receiver gets, and not what the account pays. */
  readonly isReceived: boolean
  readonly interval?: RepeatingInterval
  /** The number of windows that have not ended; absent without an end, and for more than 1,200. */
  readonly windows?: number
  /** The first window that has not ended. */
  readonly first?: SpendingWindow
  /** The end of the last window. */
  readonly end?: Instant
  /** What the limits of all windows add up to. */
  readonly total?: Amount
  /** The receivers, if each item has one. */
  readonly receivers: readonly string[]
}

/** Returns what an app may spend from now on. */
export function outlookOf(
  total: InteractionView['totals'][number],
  access: readonly AccessItem[],
  { now, intervalCounting }: DescriptionOptions,
): SpendingOutlook {
  const limit = total.debitAmount ?? total.receiveAmount
  const parsed = total.interval === undefined ? undefined : parseInterval(total.interval)
  const interval = parsed?.ok ? parsed.value : undefined
  const ahead = interval && windowsAhead(interval, now, intervalCounting)
  const end = interval && endOfWindows(interval, intervalCounting)
  const count = interval === undefined ? (parsed === undefined ? 1 : undefined) : ahead?.windows
  const items = access.filter((item) => belongsTo(item, total))
  const receivers = items.flatMap(({ limits }) => limits?.receiver ?? [])
  return {
    ...(limit !== undefined && { limit }),
    isReceived: total.debitAmount === undefined && limit !== undefined,
    ...(interval !== undefined && { interval }),
    ...ahead,
    ...(end !== undefined && { end }),
    ...(limit !== undefined && count !== undefined && { total: times(limit, count) }),
    receivers: receivers.length === items.length ? [...new Set(receivers)] : [],
  }
}

/** Whether a total counts an item. */
function belongsTo(
  { type, actions, identifier, limits = {} }: AccessItem,
  total: InteractionView['totals'][number],
): boolean {
  return (
    type === 'outgoing-payment' &&
    actions.includes('create') &&
    identifier === total.identifier &&
    limits.interval === total.interval &&
    isSameAsset(limits.debitAmount, total.debitAmount) &&
    (limits.debitAmount !== undefined || isSameAsset(limits.receiveAmount, total.receiveAmount))
  )
}

function isSameAsset(one: Amount | undefined, other: Amount | undefined): boolean {
  return one?.assetCode === other?.assetCode && one?.assetScale === other?.assetScale
}

function times(amount: Amount, count: number): Amount {
  if (!/^\d+$/.test(amount.value)) return amount
  return { ...amount, value: String(BigInt(amount.value) * BigInt(count)) }
}

const windowsMax = 1_200

/** Counts the windows that have not ended, if there is a last one, and finds the first of them. */
function windowsAhead(
  interval: RepeatingInterval,
  now: Instant,
  counting: IntervalCounting | undefined,
): Pick<SpendingOutlook, 'windows' | 'first'> {
  const at = (instant: Instant) => windowAt(interval, instant, counting)
  const isBackwards = interval.form === 'duration/end'
  let window = at(isBackwards ? interval.end - 1 : Math.max(now, interval.start))
  if (window === undefined || window.end <= now) return { windows: 0 }
  if (!isBackwards && interval.count === undefined) return { first: window }
  let first = window
  for (let windows = 1; windows <= windowsMax; windows++) {
    if (isBackwards) first = window
    const isLast: boolean = isBackwards && window.start <= now
    window = isLast ? undefined : at(isBackwards ? window.start - 1 : window.end)
    if (window === undefined) return { windows, first }
  }
  // The windows that have ended are counted too, so the total can be too high, but never too low.
  const { count } = interval
  if (count === undefined) return {}
  return { windows: counting === 'repetitions' ? count + 1 : count, ...(!isBackwards && { first }) }
}
