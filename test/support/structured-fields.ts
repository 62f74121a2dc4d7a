import fc from 'fast-check'
import { unicodeText } from './unicode-text.js'

/** A text of RFC 9651, and whether it repeats a key in one scope. */
interface Written {
  readonly text: string
  readonly repeats: boolean
}

const spaces = fc.constantFrom('', '', '', ' ', '  ')
const someSpaces = fc.constantFrom(' ', ' ', '   ')
const whiteSpace = fc.constantFrom('', '', ' ', '\t', ' \t ')
const key = fc.constantFrom('sig1', 'a', 'b', 'created', '*', 'x.y', 'sha-256', 'a_b', 'b*')
const bytes = fc.uint8Array({ maxLength: 9 }).map((value) => Buffer.from(value).toString('base64'))

/** An Integer, Decimal, String, Token, Byte Sequence, Boolean or Display String. */
const bare = fc.oneof(
  fc.stringMatching(/^-?0{0,3}[0-9]{1,3}(?:9{9})?$/),
  fc.stringMatching(/^-?[0-9]{1,6}\.[0-9]{1,3}$/),
  fc.stringMatching(/^"(?:[ !#-[\]-~]|\\["\\]){0,12}"$/),
  fc.stringMatching(/^[A-Za-z*][A-Za-z0-9:/!#$%&'*+\-.^_`|~]{0,6}$/),
  fc.tuple(bytes, fc.constantFrom('', '=')).map(([text, pad]) => `:${text.replaceAll('=', pad)}:`),
  fc.constantFrom('?1', '?0'),
  fc.stringMatching(/^%"(?:[ !#$&-~]|%0a|%22|%25|%c3%bc|%f0%9f%92%b8|\\|, b=1|;){0,6}"$/),
)

const attributes: fc.Arbitrary<Written> = fc
  .array(fc.tuple(spaces, key, fc.option(bare, { nil: undefined })), { maxLength: 3 })
  .map((all) => ({
    text: all.map(([space, key, value]) => `;${space}${memberOf(key, value)}`).join(''),
    repeats: hasRepeats(all.map(([, key]) => key)),
  }))

const item: fc.Arbitrary<Written> = fc
  .tuple(bare, attributes)
  .map(([value, { text, repeats }]) => ({ text: value + text, repeats }))

const innerList: fc.Arbitrary<Written> = fc
  .tuple(fc.array(fc.tuple(someSpaces, item), { maxLength: 3 }), attributes, spaces)
  .map(([items, { text, repeats }, space]) => {
    const inside = items.map(([gap, item], index) => (index === 0 ? '' : gap) + item.text)
    return {
      text: `(${space}${inside.join('')}${space})${text}`,
      repeats: repeats || items.some(([, item]) => item.repeats),
    }
  })

/** A member whose value is absent has attributes only. */
const member = fc
  .tuple(key, fc.oneof(item, innerList, attributes))
  .map(([key, { text, repeats }]) => {
    const isFlag = text === '' || text.startsWith(';')
    return { key, text: memberOf(key, isFlag ? undefined : text) + (isFlag ? text : ''), repeats }
  })

export const dictionary: fc.Arbitrary<Written> = fc
  .tuple(spaces, fc.array(fc.tuple(whiteSpace, whiteSpace, member), { maxLength: 4 }), whiteSpace)
  .map(([leading, members, trailing]) => {
    const texts = members.map(([before, after, { text }], index) =>
      index === 0 ? text : `${before},${after}${text}`,
    )
    return {
      text: leading + texts.join('') + (members.length === 0 ? '' : trailing),
      repeats:
        hasRepeats(members.map(([, , { key }]) => key)) ||
        members.some(([, , { repeats }]) => repeats),
    }
  })

function memberOf(key: string, value: string | undefined): string {
  return value === undefined ? key : `${key}=${value}`
}

function hasRepeats(names: readonly string[]): boolean {
  return new Set(names).size < names.length
}

/** A text with one character added, removed or changed. */
export function changed(text: fc.Arbitrary<string>): fc.Arbitrary<string> {
  const noise = fc.constantFrom(...' \t"\\();=,:?@%-.01aA*é'.split(''), '')
  return fc.tuple(text, fc.nat(), noise, fc.boolean()).map(([text, at, character, insert]) => {
    const index = at % (text.length + 1)
    return text.slice(0, index) + character + text.slice(insert ? index : index + 1)
  })
}

const scraps = ['sig1', 'a', '1', '0.5', '"x"', ':AA==:', ';created=1', '("@method")', '%"\\"']

export const soup = fc
  .array(
    fc.oneof(
      fc.constantFrom(...' \t"\\();=,:?@%-.*'.split('')),
      fc.constantFrom(...scraps),
      unicodeText({ maxLength: 2 }),
    ),
    { maxLength: 12 },
  )
  .map((parts) => parts.join(''))
