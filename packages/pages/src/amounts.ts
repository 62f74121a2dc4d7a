import type { Amount, Asset } from 'open-payments-server'
import { parseValue } from 'open-payments-server/core'
import { type Html, html } from './html.js'
import { type Locale, visible } from './locale.js'

/**
 * Formats an amount exactly, at the scale of its asset, whatever number of digits it has.
 *
 * @example
 * ```ts
 * import { formatAmount } from 'open-payments-pages'
 *
 * formatAmount({ value: '1250', assetCode: 'USD', assetScale: 2 }, { tag: 'en' }) // 12.50 USD
 * ```
 */
export function formatAmount(
  { value: signed, assetCode, assetScale }: Amount,
  { tag }: Pick<Locale, 'tag'>,
): string {
  const isNegative = signed.startsWith('-')
  const value = isNegative ? signed.slice(1) : signed
  const digits = value.padStart(assetScale + 1, '0')
  const whole = digits.slice(0, digits.length - assetScale)
  // The view of another version could contain anything.
  if (!/^\d+$/.test(digits)) return `${signed} ${assetCode}`
  const fraction = digits.slice(digits.length - assetScale)
  const format = new Intl.NumberFormat(tag, {
    minimumFractionDigits: assetScale > 0 ? 1 : 0,
    maximumFractionDigits: assetScale > 0 ? 1 : 0,
  })
  // A number is not exact to as many digits as the fraction may have, so the format writes one digit, which is replaced
  // below.
  const number = format.formatToParts(BigInt(whole))
  const parts = number.map(({ type, value: text }) => {
    return type === 'fraction' ? localDigits(fraction, tag) : text
  })
  return `${isNegative ? negative(parts.join(''), tag) : parts.join('')}\u00a0${assetCode}`
}

/** The lengths of amounts for which the stylesheet has a size. */
const amountLengths = [6, 8, 10, 12, 14, 16, 20, 24, 28, 32, 36, 40]

/**
 * Returns an amount as HTML, which no line breaks: where it does not fit, its letters are smaller.
 *
 * @example
 * ```ts
 * import { amountHtml, html } from 'open-payments-pages'
 *
 * html`<p>${amountHtml({ value: '1250', assetCode: 'USD', assetScale: 2 }, { tag: 'en' })}</p>`
 * ```
 */
export function amountHtml(amount: Amount, locale: Pick<Locale, 'tag'>): Html {
  const text = visible(formatAmount(amount, locale))
  const length = amountLengths.find((each) => text.length <= each)
  return html`<bdi${length !== undefined && html` class="number n${length}"`}>${text}</bdi>`
}

/** The rules for these sizes. A bold digit of DejaVu Sans, the widest usual font, is 0.696 times as wide as high. */
export const amountRules = amountLengths
  .map((length) => `.n${length}{font-size:min(1em,${(100 / (length * 0.7)).toFixed(2)}cqi)}`)
  .join('\n')

function negative(text: string, tag: string): string {
  const parts = new Intl.NumberFormat(tag).formatToParts(-1)
  return parts.map(({ type, value }) => (type === 'integer' ? text : value)).join('')
}

function localDigits(digits: string, tag: string): string {
  const format = new Intl.NumberFormat(tag)
  return digits.replace(/\d/g, (digit) => format.format(Number(digit)))
}

/** More than the digits of a value, its groups and the longest asset code. */
const typedLengthMax = 400

/**
 * Reads an amount that a person types: as the language writes it, with its own marks, except that groups and zeros at
 * the end may be missing. The marks of another language would change the amount, as in `1.000`. A point or comma that
 * can only begin decimals, as in `12,50`, is read in each language, because a phone has only the mark of its region.
 *
 * @returns the value in the smallest units of the asset, or `undefined`.
 *
 * @example
 * ```ts
 * import { readAmount } from 'open-payments-pages'
 *
 * readAmount('12,50', { assetCode: 'EUR', assetScale: 2 }, { tag: 'de' }) // '1250'
 * ```
 */
export function readAmount(
  text: string,
  { assetCode, assetScale }: Asset,
  { tag }: Pick<Locale, 'tag'>,
): string | undefined {
  if (text.length > typedLengthMax) return undefined
  const typed = plainMarks(text).trim()
  const code = ` ${plainMarks(assetCode)}`
  // A code with digits could be the last group of a number.
  const number = typed.endsWith(code) && !/\d/.test(code) ? typed.slice(0, -code.length) : typed
  for (const system of [undefined, 'latn', 'arab']) {
    const value = readNumber(number, assetScale, system === undefined ? tag : inDigits(tag, system))
    if (value !== undefined) return parseValue(value) === undefined ? undefined : value
  }
  const [, whole, decimals = ''] = /^(0|[1-9]\d*)[.,](\d{1,2}|\d{4,})$/.exec(number) ?? []
  if (whole === undefined || decimals.length > assetScale) return undefined
  return parseValue(BigInt(whole + decimals.padEnd(assetScale, '0')).toString())?.toString()
}

/** Keyboards have one space and one apostrophe. */
function plainMarks(text: string): string {
  return text.replace(/\s/g, ' ').replaceAll('\u2019', "'")
}

function inDigits(tag: string, numberingSystem: string): string {
  return new Intl.Locale(tag, { numberingSystem }).toString()
}

function readNumber(number: string, scale: number, tag: string): string | undefined {
  const [whole = '', fraction, ...more] = number.split(decimalMark(tag))
  const digits = asciiDigits(whole, tag)
  if (digits === '' || more.length > 0 || !formsOf(BigInt(digits), tag).includes(whole)) {
    return undefined
  }
  const decimals = fraction === undefined ? '' : asciiDigits(fraction, tag)
  if (fraction !== undefined && (fraction === '' || localDigits(decimals, tag) !== fraction)) {
    return undefined
  }
  if (decimals.length > scale) return undefined
  return BigInt(digits + decimals.padEnd(scale, '0')).toString()
}

function decimalMark(tag: string): string {
  const parts = new Intl.NumberFormat(tag).formatToParts(0.5)
  return parts.find(({ type }) => type === 'decimal')?.value ?? '.'
}

/**
 * The whole number in the forms of the language: with groups, even where the language omits them, and without groups.
 */
function formsOf(whole: bigint, tag: string): readonly string[] {
  // TypeScript does not know the values of useGrouping that Node.js 20 has.
  const groupings = ['auto', 'always', false] as unknown as readonly boolean[]
  return groupings.map((useGrouping) =>
    plainMarks(new Intl.NumberFormat(tag, { useGrouping }).format(whole)),
  )
}

/** The digits of a text, which are those of the language. */
function asciiDigits(text: string, tag: string): string {
  const local = Array.from('0123456789', (digit) => localDigits(digit, tag))
  return Array.from(text, (character) => {
    const digit = local.indexOf(character)
    return digit < 0 ? '' : digit
  }).join('')
}
