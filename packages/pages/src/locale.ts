import type { HttpRequest } from 'open-payments-server/adapter'
import { type Html, type HtmlValue, html } from './html.js'
import { arabic } from './languages/ar.js'
import { german } from './languages/de.js'
import { english } from './languages/en.js'
import { spanish } from './languages/es.js'
import { partsOf, type TextKey, type Texts } from './texts.js'

/** The language of the pages, and how they write numbers and dates. */
export interface Locale {
  /** A BCP 47 language tag, such as `de-CH`. */
  readonly tag: string
  /** An IANA time zone, such as `Europe/Zurich`. */
  readonly timeZone: string
  readonly texts: Texts
}

/** The choices of an owner. Without a language, the browser's preferences decide. */
export interface LocaleSettings {
  /** A BCP 47 language tag, such as `de-CH`. */
  readonly language?: string | undefined
  /** An IANA time zone. Default, and instead of one that the runtime does not know: UTC. */
  readonly timeZone?: string | undefined
}

/** Texts by language, such as `de`. */
export type Languages = Readonly<Record<string, Texts>>

/**
 * The languages of this package. Pass these and your own as the option `languages`.
 *
 * @example
 * ```ts
 * import { type Languages, languages } from 'open-payments-pages'
 *
 * const own: Languages = { ...languages, en: { ...languages.en, appsTitle: 'Your apps' } }
 * ```
 */
export const languages = {
  en: english as Texts,
  de: german,
  es: spanish,
  ar: arabic,
}

/**
 * Returns the locale for a request: the owner's language, else the browser's, else English or the first language.
 *
 * @example
 * ```ts
 * import { localeFor } from 'open-payments-pages'
 *
 * const locale = localeFor(request, { timeZone: 'Europe/Berlin' }) // by Accept-Language
 * ```
 */
export function localeFor(
  request: Pick<HttpRequest, 'headers'>,
  { language, timeZone: wantedZone }: LocaleSettings = {},
  from: Languages = languages,
): Locale {
  const timeZone = knownZone(wantedZone)
  const wanted = [...(language === undefined ? [] : [language]), ...acceptedLanguages(request)]
  const fallback = Object.hasOwn(from, 'en') ? 'en' : (Object.keys(from)[0] ?? '')
  for (const text of [...wanted, fallback]) {
    const tag = canonical(text)
    const [primary = ''] = tag?.split('-', 1) ?? []
    const texts = Object.hasOwn(from, primary) ? from[primary] : undefined
    if (tag !== undefined && texts !== undefined) return { tag, timeZone, texts }
  }
  return { tag: 'en', timeZone, texts: languages.en }
}

/** Returns the time zone if this runtime knows it. Browsers report some that it does not, such as `Etc/Unknown`. */
function knownZone(timeZone = 'UTC'): string {
  try {
    new Intl.DateTimeFormat('en', { timeZone })
    return timeZone
  } catch {
    return 'UTC'
  }
}

/** The languages of `Accept-Language` (RFC 9110 section 12.5.4), the preferred one first. */
function acceptedLanguages({ headers }: Pick<HttpRequest, 'headers'>): string[] {
  const values = headers.filter(([name]) => name.toLowerCase() === 'accept-language')
  return values
    .flatMap(([, value]) => value.split(','))
    .map((entry) => {
      const [tag = '', ...parameters] = entry.split(';').map((part) => part.trim())
      const quality = parameters.find((each) => /^q=/i.test(each))
      return { tag, quality: quality === undefined ? 1 : Number(quality.slice(2)) }
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

/**
 * Returns a text with its slots filled, as HTML. A value that is a string may come from the network: it is escaped, and
 * isolated so that its direction does not reorder the sentence.
 *
 * @example
 * ```ts
 * import { say } from 'open-payments-pages'
 *
 * say(locale, 'signedIn', { owner: 'Alice' })
 * ```
 */
export function say(
  { texts }: Pick<Locale, 'texts'>,
  key: TextKey,
  values: Readonly<Record<string, Html | string>> = {},
): Html {
  return html`${partsOf(texts[key]).map((part, index): HtmlValue => {
    if (index % 2 === 0) return part
    const value = values[part] ?? ''
    return typeof value === 'string' ? isolated(value) : value
  })}`
}

/** Returns a text with its slots filled, for places that take no HTML, such as an attribute. */
export function plain(
  { texts }: Pick<Locale, 'texts'>,
  key: TextKey,
  values: Readonly<Record<string, string>> = {},
): string {
  const parts = partsOf(texts[key]).map((part, index) =>
    index % 2 === 0 ? part : `\u2068${visible(values[part] ?? '')}\u2069`,
  )
  return parts.join('')
}

/**
 * Returns text of any origin and direction as HTML that does not change the direction of its surroundings.
 *
 * @example
 * ```ts
 * import { html, isolated } from 'open-payments-pages'
 *
 * html`<p>${isolated('שלום')} wants to pay</p>` // the name does not reorder the words around it
 * ```
 */
export function isolated(text: string): Html {
  return html`<bdi>${visible(text)}</bdi>`
}

/** Replaces invisible characters, and characters that reorder the text around them. */
export function visible(text: string): string {
  return text.replace(
    /[\p{Cc}\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff]/gu,
    '\ufffd',
  )
}

/**
 * Formats an instant in the owner's time zone, which it names.
 *
 * @example
 * ```ts
 * import { formatInstant, localeFor } from 'open-payments-pages'
 *
 * formatInstant(Date.now(), localeFor(request, { timeZone: 'Europe/Berlin' })) // with the time zone
 * ```
 */
export function formatInstant(instant: number, locale: Locale): string {
  const { tag, timeZone, texts } = locale
  const seconds = instant % 60_000 === 0 ? {} : ({ second: '2-digit' } as const)
  const time = new Intl.DateTimeFormat(tag, {
    hour: '2-digit',
    minute: '2-digit',
    ...seconds,
    hourCycle: 'h23',
    timeZone,
    timeZoneName: 'short',
  })
  return (
    dayFormat(locale, { weekday: 'short' }).format(instant) + texts.comma + time.format(instant)
  )
}

/** Formats the end of a time for an answer, at most a minute early: nobody plans by seconds. */
export function formatDeadline(instant: number, locale: Locale): string {
  return formatInstant(Math.floor(instant / 60_000) * 60_000, locale)
}

/**
 * Formats the day of an instant in the owner's time zone.
 *
 * @example
 * ```ts
 * import { formatDay, localeFor } from 'open-payments-pages'
 *
 * formatDay(Date.UTC(2026, 11, 4), localeFor(request, { language: 'en' })) // December 4, 2026
 * ```
 */
export function formatDay(instant: number, locale: Locale): string {
  return dayFormat(locale, {}).format(instant)
}

function dayFormat({ tag, timeZone }: Locale, more: Intl.DateTimeFormatOptions) {
  const day = { day: 'numeric', month: 'long', year: 'numeric' } as const
  return new Intl.DateTimeFormat(tag, { ...more, ...day, timeZone })
}

/** Returns how often something happens, such as `12 times`. */
export function timesOf(count: number, { tag, texts }: Pick<Locale, 'tag' | 'texts'>): string {
  const category = new Intl.PluralRules(tag).select(count)
  const text = (category !== 'other' && texts[`times.${category}`]) || texts.times
  return text.replace('{count}', new Intl.NumberFormat(tag).format(count))
}

/** Joins items as the language does, such as `one, two and three`. */
export function listed(items: readonly string[], { tag }: Pick<Locale, 'tag'>): string {
  return new Intl.ListFormat(tag, { type: 'conjunction' }).format(items)
}
