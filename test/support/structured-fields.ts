import fc from 'fast-check'
import {
  type BareItem,
  type Dictionary,
  isInnerList,
  OpaqueItem,
} from '../../src/protocol/http-signature/structured-fields.js'

/** Text with its meaning, each derived from the other according to RFC 9651 alone. */
interface Written<Meaning> {
  readonly text: string
  readonly meaning: Meaning
}
interface Attributes extends Written<readonly (readonly [string, unknown])[]> {
  readonly repeats: boolean
}
interface Member extends Written<readonly [string, unknown]> {
  readonly repeats: boolean
}

const spaces = fc.constantFrom('', '', '', ' ', '  ')
const someSpaces = fc.constantFrom(' ', ' ', '   ')
const whiteSpace = fc.constantFrom('', '', ' ', '\t', ' \t ')
const keys = fc.constantFrom('sig1', 'a', 'b', 'created', '*', 'x.y', 'sha-256', 'a_b', 'b*')
const printable = fc
  .array(fc.integer({ min: 0x20, max: 0x7e }), { maxLength: 12 })
  .map((codes) => String.fromCharCode(...codes))

const integer: fc.Arbitrary<Written<unknown>> = fc
  .tuple(
    fc.boolean(),
    fc.nat(999),
    fc.constantFrom('', '0', '000'),
    fc.constantFrom('', '999999999'),
  )
  .map(([negative, number, padding, tail]) => {
    const digits = `${padding}${number}${tail}`
    const value = Number(digits) * (negative ? -1 : 1)
    return { text: (negative ? '-' : '') + digits, meaning: { number: value + 0 } }
  })

const decimal: fc.Arbitrary<Written<unknown>> = fc
  .tuple(fc.boolean(), fc.nat(999_999), fc.stringMatching(/^[0-9]{1,3}$/))
  .map(([negative, whole, fraction]) => {
    const canonical = `${whole}.${fraction.replace(/0+$/, '') || '0'}`
    return {
      text: `${negative ? '-' : ''}${whole}.${fraction}`,
      meaning: { other: negative && canonical !== '0.0' ? `-${canonical}` : canonical },
    }
  })

const string: fc.Arbitrary<Written<unknown>> = printable.map((value) => ({
  text: `"${value.replace(/["\\]/g, '\\$&')}"`,
  meaning: { string: value },
}))

const token: fc.Arbitrary<Written<unknown>> = fc
  .stringMatching(/^[A-Za-z*][A-Za-z0-9:/!#$%&'*+\-.^_`|~]{0,6}$/)
  .map((value) => ({ text: value, meaning: { other: value } }))

const bytes: fc.Arbitrary<Written<unknown>> = fc
  .tuple(fc.uint8Array({ maxLength: 9 }), fc.boolean())
  .map(([value, padded]) => {
    const base64 = Buffer.from(value).toString('base64')
    const text = padded ? base64 : base64.replaceAll('=', '')
    return { text: `:${text}:`, meaning: { bytes: [...value] } }
  })

const boolean: fc.Arbitrary<Written<unknown>> = fc
  .boolean()
  .map((value) => ({ text: value ? '?1' : '?0', meaning: { boolean: value } }))

const displayString: fc.Arbitrary<Written<unknown>> = fc
  .oneof(printable, fc.constantFrom('\\', 'a\\', '\\"', 'ü', '"', '%', '💸', ', b=1', ';'))
  .map((value) => {
    const text = [...Buffer.from(value)]
      .map((byte) => {
        const character = String.fromCharCode(byte)
        return /[ !#$&-~]/.test(character) ? character : `%${byte.toString(16).padStart(2, '0')}`
      })
      .join('')
    return { text: `%"${text}"`, meaning: { other: `%"${text}"` } }
  })

const date: fc.Arbitrary<Written<unknown>> = fc
  .tuple(fc.boolean(), fc.nat(), fc.constantFrom('', '00'))
  .map(([negative, seconds, padding]) => {
    const sign = negative ? '-' : ''
    const canonical = seconds === 0 ? '@0' : `@${sign}${seconds}`
    return { text: `@${sign}${padding}${seconds}`, meaning: { other: canonical } }
  })

const bare = fc.oneof(integer, decimal, string, token, bytes, boolean, date, displayString)

const attribute: fc.Arbitrary<Written<readonly [string, unknown]>> = fc
  .tuple(spaces, keys, fc.option(bare, { nil: undefined }))
  .map(([space, key, value]) => ({
    text: `;${space}${key}${value === undefined ? '' : `=${value.text}`}`,
    meaning: [key, value === undefined ? { boolean: true } : value.meaning],
  }))

const attributes: fc.Arbitrary<Attributes> = fc.array(attribute, { maxLength: 3 }).map((all) => ({
  text: all.map(({ text }) => text).join(''),
  meaning: all.map(({ meaning }) => meaning),
  repeats: repeats(all.map(({ meaning }) => meaning[0])),
}))

const item: fc.Arbitrary<Written<unknown> & Attributes> = fc
  .tuple(bare, attributes)
  .map(([value, attributes]) => ({
    ...attributes,
    text: value.text + attributes.text,
    meaning: [value.meaning, attributes.meaning] as never,
  }))

const innerList: fc.Arbitrary<Written<unknown> & Attributes> = fc
  .tuple(fc.array(fc.tuple(item, someSpaces), { maxLength: 3 }), attributes, spaces)
  .map(([items, attributes, space]) => {
    const inside = items.map(([item, gap], index) => (index === 0 ? '' : gap) + item.text)
    return {
      text: `(${space}${inside.join('')}${space})${attributes.text}`,
      meaning: [items.map(([{ meaning }]) => meaning), attributes.meaning] as never,
      repeats: attributes.repeats || items.some(([item]) => item.repeats),
    }
  })

const member: fc.Arbitrary<Member> = fc.oneof(
  fc.tuple(keys, fc.oneof(item, innerList)).map(([key, value]) => ({
    text: `${key}=${value.text}`,
    meaning: [key, value.meaning] as const,
    repeats: value.repeats,
  })),
  fc.tuple(keys, attributes).map(([key, attributes]) => ({
    text: key + attributes.text,
    meaning: [key, [{ boolean: true }, attributes.meaning]] as const,
    repeats: attributes.repeats,
  })),
)

export const dictionary = fc
  .tuple(spaces, fc.array(fc.tuple(whiteSpace, whiteSpace, member), { maxLength: 4 }), whiteSpace)
  .map(([leading, members, trailing]) => {
    const texts = members.map(([before, after, { text }], index) =>
      index === 0 ? text : `${before},${after}${text}`,
    )
    const all = members.map(([, , member]) => member)
    const repeated =
      repeats(all.map(({ meaning }) => meaning[0])) || all.some((member) => member.repeats)
    return {
      text: leading + texts.join('') + (all.length === 0 ? '' : trailing),
      meaning: repeated ? undefined : all.map(({ meaning }) => meaning),
    }
  })

const plainString = fc.stringMatching(/^[ !#-[\]-~]{0,8}$/)
const plainAttribute = fc
  .tuple(
    keys,
    fc.oneof(
      fc.nat(999_999_999).map(String),
      plainString.map((value) => `"${value}"`),
      fc.constantFrom('0', '999999999999999', '"a;created=1;x="', '")(;"'),
    ),
  )
  .map(([key, value]) => ({ key, text: `;${key}=${value}` }))

/** A list as clients write it: in its serialized form. */
export const canonicalList = fc
  .tuple(
    keys,
    fc.array(plainString, { minLength: 1, maxLength: 4 }),
    fc.uniqueArray(plainAttribute, { maxLength: 4, selector: ({ key }) => key }),
  )
  .map(([label, names, attributes]) => {
    const items = names.map((name) => `"${name}"`).join(' ')
    return { label, list: `(${items})${attributes.map(({ text }) => text).join('')}` }
  })

export const canonicalBytes = fc
  .tuple(keys, fc.uint8Array({ maxLength: 70 }))
  .map(([label, value]) => ({ label, value, base64: Buffer.from(value).toString('base64') }))

/** A text with one character added, removed or changed. */
export function changed(text: fc.Arbitrary<string>): fc.Arbitrary<string> {
  const noise = fc.constantFrom(...' \t"\\();=,:?@%-.01aA*é'.split(''), '')
  return fc.tuple(text, fc.nat(), noise, fc.boolean()).map(([text, at, character, insert]) => {
    const index = at % (text.length + 1)
    return text.slice(0, index) + character + text.slice(insert ? index : index + 1)
  })
}

export const soup = fc
  .array(
    fc.oneof(
      fc.constantFrom(...' \t"\\();=,:?@%-.*'.split('')),
      fc.constantFrom(
        'sig1',
        'a',
        '1',
        '0.5',
        '"x"',
        ':AA==:',
        ';created=1',
        '("@method")',
        '%"\\"',
      ),
      fc.string({ maxLength: 2, unit: 'binary' }),
    ),
    { maxLength: 12 },
  )
  .map((parts) => parts.join(''))

function repeats(names: readonly string[]): boolean {
  return new Set(names).size < names.length
}

/** Converts a parsed dictionary to the notation of the generators. */
export function meaningOf(
  parsed: Dictionary | undefined,
  meaning: (value: BareItem) => unknown = bareMeaning,
) {
  const pairs = (parameters: ReadonlyMap<string, BareItem>) =>
    [...parameters].map(([key, value]) => [key, meaning(value)])
  return (
    parsed &&
    Array.from(parsed, ([key, member]) => {
      const value = isInnerList(member)
        ? member[0].map(([value, parameters]) => [meaning(value), pairs(parameters)])
        : meaning(member[0])
      return [key, [value, pairs(member[1])]]
    })
  )
}

export function bareMeaning(value: BareItem): unknown {
  // Negative zero equals zero.
  if (typeof value === 'number') return { number: value + 0 }
  if (value instanceof OpaqueItem) return { other: value.text }
  return value instanceof Uint8Array ? { bytes: [...value] } : { [typeof value]: value }
}

export function onlyMember(parsed: Dictionary | undefined) {
  const [member] = parsed?.values() ?? []
  if (member === undefined) throw new Error('no member')
  return member
}

/** Returns the text of the only member, if it is a list whose text was kept. */
export function keptText(parsed: Dictionary | undefined): string | undefined {
  const [member] = parsed?.size === 1 ? parsed.values() : []
  return member && isInnerList(member) ? member[2] : undefined
}

/** Returns a dictionary without the texts that were kept. */
export function withoutTexts(parsed: Dictionary | undefined) {
  return parsed && new Map(Array.from(parsed, ([key, [value, rest]]) => [key, [value, rest]]))
}
