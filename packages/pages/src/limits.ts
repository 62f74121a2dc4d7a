import type { AccessItem, Amount } from 'open-payments-server'
import { amountHtml, formatAmount, readAmount } from './amounts.js'
import { type Html, html } from './html.js'
import { type Locale, say, visible } from './locale.js'
import { alertOf } from './notice.js'

/** Why a limit that an owner typed is not accepted. */
export interface LimitProblem {
  readonly name:
    | 'unreadable'
    | 'notNarrower'
    | 'limitZero'
    | 'ownersLimitZero'
    | 'countUnreadable'
    | 'limitMissing'
  /** The id of the field. */
  readonly field: string
}

/** The amount that limits an item, which an owner can lower. */
export function limitOf({ type, actions, limits = {} }: AccessItem): Amount | undefined {
  const isPaying = type === 'outgoing-payment' && actions.includes('create')
  return isPaying ? (limits.debitAmount ?? limits.receiveAmount) : undefined
}

/** Returns the item with the lower limit that the owner typed, or the reason why that is not accepted. */
export function lowered<Item extends AccessItem>(
  item: Item,
  limit: Amount,
  typed: string,
  locale: Locale,
): Item | LimitProblem['name'] {
  const value = readAmount(typed, limit, locale)
  if (value === undefined) return 'unreadable'
  if (BigInt(value) === 0n) return 'limitZero'
  if (BigInt(value) >= BigInt(limit.value)) return 'notNarrower'
  const { debitAmount } = item.limits ?? {}
  const lower = { ...limit, value }
  const changed = debitAmount === undefined ? { receiveAmount: lower } : { debitAmount: lower }
  return { ...item, limits: { ...item.limits, ...changed } }
}

/** Returns the summary of a problem, which takes the focus and leads to the field. */
export function limitAlert({ name, field }: LimitProblem, locale: Locale): Html {
  return alertOf(name, locale, `#${field}`, exampleIn(locale))
}

function exampleIn(locale: Locale) {
  const example = formatAmount({ value: '1250', assetCode: '', assetScale: 2 }, locale)
  return { example: example.trim() }
}

/** What a field for a number shows. */
export interface NumberField {
  /** Its id. */
  readonly field: string
  /** Its name. Default: `field`. */
  readonly name?: string
  readonly label: Html
  readonly isRequired?: boolean
  /** The keyboard of a phone. Default: `decimal`. */
  readonly mode?: 'decimal' | 'numeric'
  /** Tells several fields apart. */
  readonly about?: Html | undefined
  /** What the owner has typed. */
  readonly typed?: string | null | undefined
  readonly problem?: LimitProblem | undefined
}

/** What a field for a lower limit shows. */
export interface LimitField extends Omit<NumberField, 'label' | 'mode'> {
  readonly limit: Amount
}

/** Returns the field for a lower limit, with its problem, and with what the owner typed. */
export function limitField({ limit, ...field }: LimitField, locale: Locale): Html {
  const label = say(locale, 'ownLimit', { amount: amountHtml(limit, locale) })
  return numberField({ ...field, label }, locale)
}

/** Returns a field for a number, with its problem, and with what the owner typed. */
export function numberField(
  { field, name = field, label, mode = 'decimal', about, typed, problem, isRequired }: NumberField,
  locale: Locale,
): Html {
  const refused = problem?.field === field && problem.name
  const error =
    refused &&
    html`<p class="problem" id="${field}-problem">${say(locale, refused, exampleIn(locale))}</p>`
  return html`<label for="${field}">${label}
    ${about && html`<small>${about}</small>`}</label>${error}
    <input id="${field}" name="${name}" inputmode="${mode}" enterkeyhint="done" autocomplete="off" value="${visible(typed ?? '')}"
    ${refused && html` aria-invalid="true" aria-describedby="${field}-problem"`}${isRequired && html` required`}>`
}
