import fc from 'fast-check'

const surrogates = { first: 0xd800, count: 0x800 }

/**
 * Any code point that is no surrogate. The unit `binary` of fast-check generates the same, but a process that uses it
 * first builds a table of all code points.
 */
const codePoint = fc.nat({ max: 0x10ffff - surrogates.count }).map(
  (n) => String.fromCodePoint(n < surrogates.first ? n : n + surrogates.count),
  (text) => {
    const point = typeof text === 'string' ? text.codePointAt(0) : undefined
    if (point === undefined || String.fromCodePoint(point) !== text)
      throw new Error('no code point')
    return point < surrogates.first ? point : point - surrogates.count
  },
)

/** Text of any characters. */
export function unicodeText(
  constraints: Omit<fc.StringConstraints, 'unit'> = {},
): fc.Arbitrary<string> {
  return fc.string({ ...constraints, unit: codePoint })
}
