const source: unique symbol = Symbol('html')

/** Safe HTML. Only `html` and `trustedHtml` make it, so text from elsewhere, such as JSON, is never taken for it. */
export interface Html {
  readonly [source]: string
  toString(): string
}

/** A value that a template may contain. Text is escaped; `false`, `null` and `undefined` are left out. */
export type HtmlValue =
  | Html
  | string
  | number
  | bigint
  | false
  | null
  | undefined
  | readonly HtmlValue[]

/**
 * Returns the HTML of a template. Every value in it that is not itself `Html` is escaped, so that it is text, or the
 * value of an attribute in quotes.
 *
 * @example
 * ```ts
 * import { html } from 'open-payments-pages'
 *
 * const name = '<b>Shop</b>'
 * html`<p>${name} wants to pay</p>` // <p>&lt;b&gt;Shop&lt;/b&gt; wants to pay</p>
 * ```
 */
export function html(strings: TemplateStringsArray, ...values: readonly HtmlValue[]): Html {
  return trustedHtml(strings.map((part, index) => part + rendered(values[index])).join(''))
}

/**
 * Returns text as HTML without escaping it. Never pass text that came over the network.
 *
 * @example
 * ```ts
 * import { readFileSync } from 'node:fs'
 * import { html, trustedHtml } from 'open-payments-pages'
 *
 * const logo = trustedHtml(readFileSync('logo.svg', 'utf8')) // a file of your own
 * html`<header>${logo}</header>`
 * ```
 */
export function trustedHtml(text: string): Html {
  return Object.freeze({ [source]: text, toString: () => text })
}

function rendered(value: HtmlValue): string {
  if (value === undefined || value === null || value === false) return ''
  if (typeof value === 'object')
    return source in value ? value[source] : value.map(rendered).join('')
  return escaped(String(value))
}

function escaped(text: string): string {
  return text.replace(/[&<>"'`]/g, (character) => `&#${character.charCodeAt(0)};`)
}
