import { describe, expect, test } from 'vitest'
import { type LocaleSettings, localeFor } from '../../examples/wallet/locale.js'

function chosen(acceptLanguage: string | undefined, settings?: LocaleSettings) {
  const headers = acceptLanguage === undefined ? [] : [['Accept-Language', acceptLanguage] as const]
  return localeFor({ method: 'GET', url: '/', headers, body: new Uint8Array() }, settings)
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
    const directions = ['en', 'de', 'es', 'ar'].map((tag) => chosen(tag).messages.direction)
    expect(directions).toEqual(['ltr', 'ltr', 'ltr', 'rtl'])
  })

  test('comes with the time zone that the owner chose, or UTC', () => {
    expect(chosen('de').timeZone).toBe('UTC')
    expect(chosen('de', { timeZone: 'Asia/Tokyo' }).timeZone).toBe('Asia/Tokyo')
  })
})
