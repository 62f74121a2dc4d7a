/** Text that encodings, SQL, JSON columns and templates may change. */
export const texts = {
  'U+0000': '\u0000 and a\u0000b',
  'control characters': '\u0001\b\t\n\u000b\f\r\u001b\u001f\u007f\u0080\u009f',
  'a lone high surrogate': 'a\ud800b',
  'a lone low surrogate': 'a\udc00b',
  'surrogates in the wrong order': '\udc00\ud800',
  'a surrogate at the end': 'a\udbff',
  'text outside the basic plane': '💶 👩‍👩‍👧 𝒳 \u{10ffff}',
  'noncharacters and a byte order mark': '\ufeff\ufffe\uffff\ufdd0\ufffd',
  'line separators': '\u2028\u2029\u0085',
  'composed and decomposed letters': 'é e\u0301 Å \u212b \u00c5',
  quotes: `' " \` '' "" \\' \\" $1 $$ :name ? ?? %s`,
  backslashes: '\\ \\\\ \\u0000 \\ud800 \\n \\x00 \\0',
  markup: '<a href="x">&amp;</a>]]><!-- -->',
  spaces: '  a  \u00a0\u3000 ',
  'empty text': '',
  'text that looks like other types': 'null true false 1e3 NaN undefined [object Object]',
}

export const numbers = [
  0,
  -0,
  1,
  -1,
  0.1,
  0.1 + 0.2,
  1 / 3,
  5e-324,
  2.2250738585072014e-308,
  1.7976931348623157e308,
  -1.7976931348623157e308,
  2 ** 53 - 1,
  -(2 ** 53 - 1),
  2 ** 53,
  2 ** 53 + 2,
  2 ** 63,
  2 ** 64,
  1e21,
  1e-7,
  123456789.12345679,
  4.35,
  1e23,
  9.5367431640625e-7,
]

const pieces = [...Object.values(texts), 'a', 'Z', '0', 'plain text']

/** Returns random text that is hard to keep. */
export function anyText(index: (bound: number) => number): string {
  return `${pieces[index(pieces.length)]}${pieces[index(pieces.length)]}`
}

/** Returns a random JSON value made of numbers and texts that are hard to keep. */
export function anyJson(index: (bound: number) => number, depth: number): unknown {
  const branches = depth === 0 ? 4 : 6
  const members = Array.from({ length: index(4) }, () => depth - 1)
  switch (index(branches)) {
    case 0:
      return [null, true, false][index(3)]
    case 1:
      return numbers[index(numbers.length)]
    case 2:
      return index(2 ** 31) / (1 + index(1_000))
    case 3:
      return anyText(index)
    case 4:
      return members.map((less) => anyJson(index, less))
    default:
      return Object.fromEntries(members.map((less) => [anyText(index), anyJson(index, less)]))
  }
}
