import type { Amount } from 'open-payments-server'
import type { HttpRequest } from 'open-payments-server/adapter'
import { arabic } from './languages/ar.js'
import { german } from './languages/de.js'
import { english } from './languages/en.js'
import { spanish } from './languages/es.js'
import type { Messages } from './languages/messages.js'

/** In what language the pages speak, and how they write numbers and dates. */
export interface Locale {
  /** A BCP 47 language tag, such as `de-CH`. */
  readonly tag: string
  /** An IANA time zone, such as `Europe/Zurich`. */
  readonly timeZone: string
  readonly messages: Messages
}

/** What an owner has chosen. Without a language, the browser's preferences decide. */
export interface LocaleSettings {
  readonly language?: string | undefined
  readonly timeZone?: string | undefined
}

const languages: ReadonlyMap<string, Messages> = new Map([
  ['en', english],
  ['de', german],
  ['es', spanish],
  ['ar', arabic],
])

/** Returns the locale for a request: the owner's language, else the browser's, else English; UTC without a time zone. */
export function localeFor(request: HttpRequest, settings: LocaleSettings = {}): Locale {
  const { language, timeZone = 'UTC' } = settings
  const wanted = [...(language === undefined ? [] : [language]), ...acceptedLanguages(request)]
  for (const text of wanted) {
    const tag = canonical(text)
    const messages = tag && languages.get(tag.split('-', 1)[0] ?? '')
    if (tag && messages) return { tag, timeZone, messages }
  }
  return { tag: 'en', timeZone, messages: english }
}

/** The languages of `Accept-Language` (RFC 9110 section 12.5.4), the preferred one first. */
function acceptedLanguages({ headers }: HttpRequest): string[] {
  const values = headers.filter(([name]) => name.toLowerCase() === 'accept-language')
  return values
    .flatMap(([, value]) => value.split(','))
    .map((entry) => {
      const [tag = '', quality] = entry.split(/;\s*q=/i)
      return { tag: tag.trim(), quality: quality === undefined ? 1 : Number(quality) }
    })
    .filter(({ quality }) => quality > 0)
    .sort((a, b) => b.quality - a.quality)
    .map(({ tag }) => tag)
}

function canonical(tag: string): string | undefined {
  try {
    return Intl.getCanonicalLocales(tag)[0]
  } catch {
    return undefined // the header contains a value that is not a language tag, such as *
  }
}

/** Formats an amount exactly, at the scale of its asset, whatever number of digits it has. */
export function formatAmount(
  { value, assetCode, assetScale }: Amount,
  { tag, messages }: Pick<Locale, 'tag' | 'messages'>,
): string {
  const digits = value.padStart(assetScale + 1, '0')
  const whole = BigInt(digits.slice(0, digits.length - assetScale))
  const fraction = digits.slice(digits.length - assetScale)
  const isCurrency = /^[A-Z]{3}$/.test(assetCode)
  const format = new Intl.NumberFormat(tag, {
    ...(isCurrency && { style: 'currency', currency: assetCode, currencyDisplay: 'code' }),
    minimumFractionDigits: assetScale > 0 ? 1 : 0,
    maximumFractionDigits: assetScale > 0 ? 1 : 0,
  })
  // The format has places for more digits than a number is exact to, so it writes one, which stands for all.
  const parts = format.formatToParts(whole).map(({ type, value: text }) => {
    return type === 'fraction' ? localDigits(fraction, tag) : text
  })
  const text = parts.join('')
  return isolated(isCurrency ? text : `${text}\u00a0${assetCode}`, messages)
}

function localDigits(digits: string, tag: string): string {
  const format = new Intl.NumberFormat(tag)
  return digits.replace(/\d/g, (digit) => format.format(Number(digit)))
}

/** Formats an instant in the owner's time zone, which it names. */
export function formatInstant(instant: number, { tag, timeZone, messages }: Locale): string {
  const date = new Intl.DateTimeFormat(tag, {
    weekday: 'short',
    day: 'numeric',
    month: 'long',
    year: 'numeric',
    timeZone,
  })
  const seconds = instant % 60_000 === 0 ? {} : ({ second: '2-digit' } as const)
  const time = new Intl.DateTimeFormat(tag, {
    hour: '2-digit',
    minute: '2-digit',
    ...seconds,
    hourCycle: 'h23',
    timeZone,
    timeZoneName: 'short',
  })
  return isolated(date.format(instant) + messages.comma + time.format(instant), messages)
}

/** Keeps text of the other direction, such as a URL, from reordering an Arabic sentence around it. */
export function isolated(text: string, { direction }: Messages): string {
  return direction === 'rtl' ? `\u2068${text}\u2069` : text
}

/** Names an app by its wallet address, behind the name that it chose, which can be any text of any direction. */
export function appName(
  walletAddress: string,
  display: { readonly name?: string } | undefined,
  messages: Messages,
): string {
  const address = isolated(walletAddress, messages)
  return display?.name === undefined ? address : `\u2068${display.name}\u2069 (${address})`
}
