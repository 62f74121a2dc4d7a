import { describe, expect, test } from 'vitest'
import { english } from '../src/languages/en.js'
import {
  formatDay,
  formatInstant,
  type LocaleSettings,
  languages,
  localeFor,
  plain,
  say,
} from '../src/locale.js'
import { requireTexts, type TextKey } from '../src/texts.js'

function chosen(acceptLanguage: string | undefined, settings?: LocaleSettings) {
  const headers = acceptLanguage === undefined ? [] : [['Accept-Language', acceptLanguage] as const]
  return localeFor({ headers }, settings)
}

describe('the language of a page', () => {
  test.each([
    ['de-CH, en;q=0.5', 'de-CH'],
    ['en;q=0.5, es-MX;q=0.8', 'es-MX'],
    ['fr, AR-eg;q=0.9, en;q=0.5', 'ar-EG'],
    ['de;q=0, es', 'es'],
    ['fr', 'en'],
    ['*', 'en'],
    ['', 'en'],
    ['de;q=x', 'en'],
    ['<script>, de', 'de'],
    [undefined, 'en'],
  ])('for %j is %s', (header, tag) => {
    expect(chosen(header).tag).toBe(tag)
  })

  test('is the one that the owner chose, if the pages have it', () => {
    expect(chosen('de', { language: 'es' }).tag).toBe('es')
    expect(chosen('de', { language: 'fr' }).tag).toBe('de')
  })

  test('is written from right to left in Arabic only', () => {
    const directions = ['en', 'de', 'es', 'ar'].map((tag) => chosen(tag).texts.direction)
    expect(directions).toEqual(['ltr', 'ltr', 'ltr', 'rtl'])
  })

  test('comes with the time zone that the owner chose, or UTC', () => {
    expect(chosen('de').timeZone).toBe('UTC')
    expect(chosen('de', { timeZone: 'Asia/Tokyo' }).timeZone).toBe('Asia/Tokyo')
  })

  test.each(['Etc/Unknown', 'UTC+2', 'Mars/Olympus', '', ' ', '\0', null])(
    'comes with UTC, which pages name, for the time zone %j',
    (timeZone) => {
      for (const language of ['en', 'fr', 'x-unknown']) {
        const locale = chosen(undefined, { language, timeZone: timeZone as string })
        expect(formatInstant(0, locale)).toMatch(/00:00.*UTC/)
        expect(formatDay(0, locale)).toBe('January 1, 1970')
      }
    },
  )
})

describe('the texts', () => {
  test.each(Object.entries(languages))('of %s have every key and slot of English', (tag, texts) => {
    expect(() => requireTexts(`languages.${tag}`, texts, languages.en)).not.toThrow()
    const same = Object.keys(english).filter(
      (key) => texts[key as TextKey] === languages.en[key as TextKey],
    )
    if (tag !== 'en') expect(same.length).toBeLessThan(12)
  })

  test('without a slot are refused, because they would hide something', () => {
    const texts = { ...languages.en, debited: 'at most {amount} is debited' }
    expect(() => requireTexts('languages.fr', texts, languages.en)).toThrow(
      'languages.fr.debited must be a text with the slots amount,period',
    )
    const { approve: _, ...missing } = languages.en
    expect(() => requireTexts('languages.fr', missing as never, languages.en)).toThrow(
      'languages.fr.approve must be a text without slots',
    )
  })

  test('say values isolated, and without characters that hide or reorder text', () => {
    const values = { receiver: 'a\u202eb\u2069c\u0000<d>' }
    const expected = 'a\ufffdb\ufffdc\ufffd'
    expect(String(say(chosen('en'), 'onlyTo', values))).toBe(
      `only to <bdi>${expected}&#60;d&#62;</bdi>`,
    )
    expect(plain(chosen('ar'), 'onlyTo', values)).toContain(`\u2068${expected}<d>\u2069`)
  })
})
