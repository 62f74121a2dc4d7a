import type {
  Asset,
  GrantView,
  LimitStatus,
  PaymentToConfirm,
  SpendingLimit,
} from 'open-payments-server'
import { parseInterval } from 'open-payments-server/core'
import { describeInterval, every } from './access.js'
import { amountHtml, readAmount } from './amounts.js'
import { isIn } from './app-limits.js'
import { type AppOptions, type ConnectedApp, fieldsFor, isPaying } from './connected-apps.js'
import { type Html, html } from './html.js'
import { type LimitProblem, limitField, numberField } from './limits.js'
import { formatInstant, isolated, type Locale, say, timesOf } from './locale.js'
import { isSameUrl, type OwnedAccount } from './owned-account.js'
import type { TextKey } from './texts.js'

/** The most limits that a grant can have, and the most payments that a limit can permit. */
const limitsMax = 3
const paymentsMax = 1_000_000_000n

/**
 * The intervals of limits that owners can add. A limit is identified by its interval, so each period has the same one
 * for every owner. They begin on a Monday, which is also the first day of a month.
 */
export const periods = {
  everyDay: 'R/2024-01-01T00:00:00Z/P1D',
  everyWeek: 'R/2024-01-01T00:00:00Z/P1W',
  everyMonth: 'R/2024-01-01T00:00:00Z/P1M',
  inAll: undefined,
} as const

/** The input of an owner who adds a limit, or lowers the one with the same interval. */
export interface TypedLimit {
  /** The interval; empty for all payments together. */
  readonly interval: string
  readonly most: string
  readonly payments: string
}

/** Returns what an owner typed in the form of a limit. */
export function typedLimit(fields: URLSearchParams): TypedLimit {
  const [interval = '', most = '', payments = ''] = ['interval', 'most', 'payments'].map(
    (name) => fields.get(name)?.trim() ?? '',
  )
  return { interval, most, payments }
}

type Limited<Value> =
  | { readonly ok: true; readonly value: Value }
  | { readonly ok: false; readonly problem: LimitProblem | 'unchanged' }

/**
 * Returns all limits of a grant or an account, after it adds the limit that the owner typed, or lowers an existing
 * limit to it; or the reason why it cannot. A field that the owner leaves empty changes nothing, and a limit that is
 * set already stays, so that a form can be sent twice.
 *
 * @param asset of the accounts, in which an amount is typed; without it, only the number of payments can be limited.
 * @param more `section` is the prefix of the ids of the fields; `mayWiden` lets a limit become higher.
 */
export function withTypedLimit(
  limits: readonly SpendingLimit[],
  { interval: text, most, payments }: TypedLimit,
  asset: Asset | undefined,
  locale: Pick<Locale, 'tag'>,
  { section = ofApp, mayWiden = false }: { section?: string; mayWiden?: boolean } = {},
): Limited<readonly SpendingLimit[]> {
  const interval = text || undefined
  const index = limits.findIndex((each) => each.interval === interval)
  const before = limits[index]
  const isNew = before === undefined
  if (
    isNew &&
    (limits.length >= limitsMax || !Object.values<unknown>(periods).includes(interval))
  ) {
    return { ok: false, problem: 'unchanged' }
  }
  const ids = fieldsOfLimit(section, isNew ? undefined : index)
  const refuse = (name: LimitProblem['name'], field: string) =>
    ({ ok: false, problem: { name, field } }) as const

  const amountAsset = before?.debitAmount ?? asset
  const amount = most === '' ? undefined : amountAsset && readAmount(most, amountAsset, locale)
  const count = payments === '' ? undefined : readAmount(payments, countOf, locale)
  if (most !== '') {
    if (amount === undefined) return refuse('unreadable', ids.most)
    if (BigInt(amount) === 0n) return refuse('ownersLimitZero', ids.most)
    if (!mayWiden && isHigher(amount, before?.debitAmount?.value))
      return refuse('notNarrower', ids.most)
  }
  if (payments !== '') {
    if (count === undefined || BigInt(count) > paymentsMax) {
      return refuse('countUnreadable', ids.payments)
    }
    if (BigInt(count) === 0n) return refuse('ownersLimitZero', ids.payments)
    if (!mayWiden && isHigher(count, before?.payments)) return refuse('notNarrower', ids.payments)
  }
  if (most === '' && payments === '') {
    return refuse('limitMissing', amountAsset ? ids.most : ids.payments)
  }

  const { assetCode = '', assetScale = 0 } = amountAsset ?? {}
  const limit: SpendingLimit = {
    ...before,
    ...(amount !== undefined && { debitAmount: { value: amount, assetCode, assetScale } }),
    ...(count !== undefined && { payments: Number(count) }),
    ...(interval !== undefined && { interval }),
  }
  return { ok: true, value: isNew ? [...limits, limit] : limits.with(index, limit) }
}

/** Returns the limit with the interval that was typed. */
export function limitOf(
  limits: readonly SpendingLimit[],
  { interval }: Pick<TypedLimit, 'interval'>,
): SpendingLimit | undefined {
  return limits.find((each) => (each.interval ?? '') === interval)
}

/** Returns the limits with this one in place of that with the interval, or without it; `undefined` if too many. */
export function withLimit(
  limits: readonly SpendingLimit[],
  typed: Pick<TypedLimit, 'interval'>,
  limit: SpendingLimit | undefined,
): readonly SpendingLimit[] | undefined {
  const before = limitOf(limits, typed)
  const changed = limits.flatMap((each) => (each === before ? (limit ?? []) : each))
  const next = before === undefined && limit !== undefined ? [...limits, limit] : changed
  return next.length > limitsMax ? undefined : next
}

/** Whether payments are allowed that were not, because a limit is gone or higher. */
export function allowsMore(
  before: SpendingLimit | undefined,
  after: SpendingLimit | undefined,
): boolean {
  const isMore = (most: string | number | undefined, now: string | number | undefined) =>
    most !== undefined && (now === undefined || BigInt(now) > BigInt(most))
  return (
    isMore(before?.debitAmount?.value, after?.debitAmount?.value) ||
    isMore(before?.payments, after?.payments)
  )
}

/** Whether two limits are the same, whatever the order of their members, which a database can change. */
export function isSameLimit(
  one: SpendingLimit | undefined,
  other: SpendingLimit | undefined,
): boolean {
  return (
    (one === undefined) === (other === undefined) &&
    one?.interval === other?.interval &&
    one?.payments === other?.payments &&
    one?.debitAmount?.value === other?.debitAmount?.value
  )
}

/** A number of payments is written as a whole amount of nothing. */
const countOf: Asset = { assetCode: '', assetScale: 0 }

function isHigher(typed: string, most: string | number | undefined): boolean {
  return most !== undefined && BigInt(typed) > BigInt(most)
}

/** The prefix of the ids of the fields on the page of an app. */
const ofApp = 'own'

/** The ids of the fields of a limit; without an index, of those for a new one. */
function fieldsOfLimit(section: string, index: number | undefined) {
  const id = `${section}-${index ?? 'new'}`
  return { most: `${id}-most`, payments: `${id}-payments`, interval: `${id}-interval` }
}

/** The ids of the fields of a new limit for one app. */
export const newLimitFields = fieldsOfLimit(ofApp, undefined)

/** Returns the asset in which all accounts from which an app may pay are debited, if it is known and the same. */
export function debitedAsset(
  { access }: Pick<GrantView, 'access'>,
  accounts: readonly OwnedAccount[],
): Asset | undefined {
  const assets = access.filter(isPaying).map(({ identifier, limits }): Asset | undefined => {
    const account = accounts.find(
      ({ url }) => identifier !== undefined && isSameUrl(url, identifier),
    )
    return limits?.debitAmount ?? account
  })
  const [first] = assets
  const isSame = (asset: Asset | undefined) =>
    asset?.assetCode === first?.assetCode && asset?.assetScale === first?.assetScale
  return assets.every(isSame) ? first : undefined
}

interface FormState {
  /** The result of a form: the problem with what was typed, or anything else. */
  readonly outcome?: LimitProblem | string | undefined
  /** What was posted, to show it again. */
  readonly given?: URLSearchParams | undefined
}

/** The limits that the owner has set for an app or an account, and what their forms need. */
interface LimitsSection extends FormState {
  readonly locale: Locale
  /** The prefix of the ids of the fields: another one for each section of a page. */
  readonly id: string
  readonly limits: readonly SpendingLimit[]
  /** What is left of each limit. */
  readonly statuses: readonly LimitStatus[] | undefined
  /** The payments that wait for the owner: the limits of a grant count them, those of an account do not. */
  readonly waiting?: readonly PaymentToConfirm[] | undefined
  readonly canAdd: boolean
  /** Whether the forms can also raise and remove a limit. */
  readonly mayWiden?: boolean
  readonly asset: Asset | undefined
  /** The hidden fields of each form. */
  readonly fields: Html
  readonly words: LimitWords
}

/** The texts about limits that differ for an app and for an account. */
type LimitWords = Readonly<Record<'pays' | 'amount' | 'payments' | 'hint' | 'closed', TextKey>> & {
  /** What the page says without a limit. */
  readonly none?: TextKey
  /** The button of a form that leads to another page. */
  readonly save?: TextKey
}

const wordsForApp: LimitWords = {
  pays: 'paysAtMost',
  amount: 'limitAmount',
  payments: 'limitPayments',
  hint: 'limitHint',
  closed: 'notNow',
}

const wordsForAccount: LimitWords = {
  pays: 'accountPaysAtMost',
  amount: 'accountLimitAmount',
  payments: 'accountLimitPayments',
  hint: 'accountLimitHint',
  closed: 'accountNotNow',
  none: 'accountLimitsNone',
  save: 'limitCheck',
}

/**
 * Returns the limits that the owner has set for an app, with what is left, and the forms that lower them and add one.
 */
export function ownerLimitsHtml(app: ConnectedApp, options: AppOptions & FormState): Html {
  const { conditions, access } = app.grant
  const { locale, accounts, outcome, given } = options
  const { limits = [] } = conditions ?? {}
  const canAdd = limits.length < limitsMax && access.some(isPaying)
  if (limits.length === 0 && !canAdd) return html``
  const section: LimitsSection = {
    locale,
    id: ofApp,
    limits,
    statuses: app.ownerLimits,
    waiting: app.waiting,
    canAdd,
    asset: debitedAsset(app.grant, accounts),
    fields: fieldsFor(app, options),
    words: wordsForApp,
    outcome,
    given,
  }
  return html`<section>${limits.length > 0 && html`<h2>${say(locale, 'limitsTitle')}</h2>`}
    ${limitsHtml(section)}</section>`
}

/** Returns the limits that the owner has set for an account, with what is left, and the same forms. */
export function accountLimitsHtml(
  section: Omit<LimitsSection, 'canAdd' | 'words'> & { readonly asset: Asset },
): Html {
  const canAdd = section.limits.length < limitsMax
  return limitsHtml({ ...section, canAdd, words: wordsForAccount })
}

/** Returns what a limit for all apps permits, in words. */
export function accountLimitTerms(limit: SpendingLimit, locale: Locale): Html {
  return html`<ul>${termsOf(limit, { locale, words: wordsForAccount })}</ul>`
}

function limitsHtml(section: LimitsSection): Html {
  const { limits, statuses, words, locale } = section
  return html`${limits.length === 0 && words.none && html`<p>${say(locale, words.none)}</p>`}
    ${limits.map(
      (limit, index) => html`<ul>${termsOf(limit, section)}</ul>
    ${leftHtml(statuses?.[index], section)}
    ${limitForm({ limit, index }, section)}`,
    )}
    ${section.canAdd && limitForm({}, section)}`
}

/** What a limit permits, in words. */
function termsOf(
  { debitAmount, payments, interval }: SpendingLimit,
  { locale, words }: Pick<LimitsSection, 'locale' | 'words'>,
) {
  const period = periodOf(interval, locale)
  const times = payments !== undefined && isolated(timesOf(payments, locale))
  return html`${debitAmount && html`<li>${say(locale, 'debited', { amount: amountHtml(debitAmount, locale), period })}</li>`}
    ${times && html`<li>${say(locale, words.pays, { times, period })}</li>`}`
}

function periodOf(interval: string | undefined, locale: Locale): Html {
  if (interval === undefined) return say(locale, 'inAll')
  const parsed = parseInterval(interval)
  const isOwn = Object.values<unknown>(periods).includes(interval)
  return parsed.ok && isOwn
    ? every(parsed.value, locale)
    : describeInterval(interval, { locale, intervalCounting: 'occurrences' })
}

function leftHtml(
  status: LimitStatus | undefined,
  { locale, words, waiting = [] }: LimitsSection,
): Html {
  if (status === undefined) return html``
  const { isOpen, window } = status
  if (!isOpen) return html`<p class="quiet">${say(locale, words.closed)}</p>`
  const { debitAmount, payments } = status.left
  const end = window && formatInstant(window.end, locale)
  const line = (key: 'left' | 'paymentsLeft', left: Html) => {
    const text =
      end === undefined ? say(locale, key, { left }) : say(locale, `${key}Until`, { left, end })
    return html`<p class="quiet">${text}</p>`
  }
  return html`${debitAmount && line('left', amountHtml(debitAmount, locale))}
    ${waitsHtml(waiting, window, locale)}
    ${payments !== undefined && line('paymentsLeft', isolated(numberText(payments, locale)))}`
}

/** What is not left although it is not spent: the payments that wait for the owner, in the window of their request. */
function waitsHtml(
  waiting: readonly PaymentToConfirm[],
  window: LimitStatus['window'],
  locale: Locale,
): Html {
  const counted = waiting.filter(({ createdAt }) => isIn(window, createdAt))
  const assets = new Set(counted.map(({ debitAmount }) => debitAmount.assetCode))
  return html`${[...assets].map((assetCode) => {
    const amounts = counted.flatMap(({ debitAmount }) =>
      debitAmount.assetCode === assetCode ? debitAmount : [],
    )
    const value = amounts.reduce((sum, each) => sum + BigInt(each.value), 0n).toString()
    const { assetScale = 0 } = amounts[0] ?? {}
    const amount = amountHtml({ value, assetCode, assetScale }, locale)
    return html`<p class="quiet">${say(locale, 'waitsReserved', { amount })}</p>`
  })}`
}

function numberText(count: number, { tag }: Locale): string {
  return new Intl.NumberFormat(tag).format(count)
}

/** The form that lowers a limit, or, without one, adds one. After a problem, it is open, with what was typed. */
function limitForm(
  { limit, index }: { readonly limit?: SpendingLimit; readonly index?: number },
  section: LimitsSection,
): Html {
  const { locale, limits, asset, words, outcome, given, mayWiden = false } = section
  const ids = fieldsOfLimit(section.id, index)
  const problem = typeof outcome === 'object' ? outcome : undefined
  const posted = given?.get('do') === 'limit' ? typedLimit(given) : undefined
  const isPosted =
    limit === undefined
      ? !limits.some(({ interval = '' }) => interval === posted?.interval)
      : (limit.interval ?? '') === posted?.interval
  const typed = isPosted ? posted : undefined
  const canLimitPayments = mayWiden || limit?.payments !== 1
  if (!canLimitPayments && !limit?.debitAmount && !asset) return html``
  const most = { field: ids.most, name: 'most', typed: typed?.most, problem }
  const payments = { field: ids.payments, name: 'payments', typed: typed?.payments, problem }
  const lowered = mayWiden ? undefined : limit
  const period = limit
    ? html`<input type="hidden" name="interval" value="${limit.interval}">`
    : periodField(ids.interval, limits, typed, locale)
  const remove =
    mayWiden &&
    limit &&
    html` <button name="do" value="remove">${say(locale, 'limitRemove')}</button>`
  return html`<details${typed && html` open`}><summary>${say(locale, summaryOf(limit, mayWiden))}</summary><form method="post">
    ${section.fields}
    ${lowered?.debitAmount ? limitField({ ...most, limit: lowered.debitAmount }, locale) : amountField(most, section)}
    ${canLimitPayments && numberField({ ...payments, label: paymentsLabel(lowered, section), mode: 'numeric' }, locale)}
    ${period}
    <p class="quiet small">${say(locale, mayWiden ? 'accountLimitHintChecked' : words.hint)}</p>
    <p><button name="do" value="limit">${say(locale, words.save ?? (limit ? 'lower' : 'limitAdd'))}</button>${remove}</p></form></details>`
}

function summaryOf(limit: SpendingLimit | undefined, mayWiden: boolean): TextKey {
  if (limit === undefined) return 'limitAdd'
  return mayWiden ? 'limitChange' : 'change'
}

function amountField(
  field: Omit<Parameters<typeof numberField>[0], 'label'>,
  { asset, locale, words }: LimitsSection,
): Html {
  if (asset === undefined) return html``
  const label = say(locale, words.amount, { asset: asset.assetCode })
  return numberField({ ...field, label }, locale)
}

function paymentsLabel(limit: SpendingLimit | undefined, { locale, words }: LimitsSection): Html {
  return limit?.payments === undefined
    ? say(locale, words.payments)
    : say(locale, 'fewerPayments', { count: numberText(limit.payments, locale) })
}

/** The choice of a period that has no limit yet. */
export function periodField(
  id: string,
  limits: readonly SpendingLimit[],
  typed: TypedLimit | undefined,
  locale: Locale,
): Html {
  const free = (Object.keys(periods) as (keyof typeof periods)[]).filter(
    (name) => !limits.some(({ interval }) => interval === periods[name]),
  )
  const choices = free.map((name) => {
    const value = periods[name] ?? ''
    return html`<option value="${value}"${typed?.interval === value && html` selected`}>${locale.texts[name]}</option>`
  })
  return html`<label for="${id}">${say(locale, 'limitPeriod')}</label><select id="${id}" name="interval">${choices}</select>`
}
