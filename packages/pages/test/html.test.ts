import fc from 'fast-check'
import { unicodeText } from 'open-payments-test-support/unicode-text'
import { describe, expect, test } from 'vitest'
import { type HtmlValue, html, trustedHtml } from '../src/html.js'
import { textOf } from './text.js'

describe('a template', () => {
  test('escapes every text, as content and as the value of an attribute', () => {
    fc.assert(
      fc.property(unicodeText(), (text) => {
        const [, attribute = '', content = ''] =
          /^<a title="(.*)">(.*)<\/a>$/s.exec(String(html`<a title="${text}">${text}</a>`)) ?? []
        expect(attribute).toBe(content)
        expect(content).not.toMatch(/[<>"'`]|&(?!#\d+;)/)
        const back = content.replaceAll(/&#(\d+);/g, (_, code) => String.fromCharCode(Number(code)))
        expect(back).toBe(text)
      }),
    )
  })

  test('does not escape HTML of other templates, in lists too', () => {
    const items = ['<', '>'].map((text) => html`<li>${text}</li>`)
    expect(String(html`<ul>${items}</ul>`)).toBe('<ul><li>&#60;</li><li>&#62;</li></ul>')
    expect(String(html`${trustedHtml('<hr>')}`)).toBe('<hr>')
  })

  test('leaves out what is absent, and keeps zero and the empty text', () => {
    expect(String(html`${undefined}${null}${false}${''}${0}${1n}`)).toBe('01')
  })

  test('takes no object of JSON for HTML', () => {
    const forged = JSON.parse('{"toString":"x","Symbol(html)":"<b>"}') as HtmlValue
    expect(() => html`${forged}`).toThrow()
    expect(textOf(html`<b>${'&lt;'}</b>`)).toBe('&lt;')
  })
})
