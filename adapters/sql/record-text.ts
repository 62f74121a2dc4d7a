import type { Stored } from '../../src/index.js'

/**
 * A record's text is JSON that `jsonb` accepts. `jsonb` refuses U+0000 and lone surrogates. One such character, for
 * example in the metadata of a client, would make every query over all records fail, and every write to an index over
 * them. The text therefore replaces each such character, and U+E000 itself, with U+E000 and four hexadecimal digits.
 * U+E000 belongs to a private use area, so almost no other text contains it.
 */
const mark = '\ue000'

/** Text without a match needs no change; `JSON.stringify` writes all of these as escapes, except for the mark. */
const marked = /\\u(?:0000|d[89a-f])|\ue000/
/** Matches each escape as a whole, so that the second half of an escaped backslash begins none. */
const escapes = /\\(?:u([0-9a-f]{4})|.)|\ue000/g
const replaced = /^(?:0000|d[89a-f]..)$/
const marks = /\ue000([0-9a-f]{4})/g

/** Returns the text of a record. */
export function textOf(record: Stored): string {
  const text = JSON.stringify(record)
  if (!marked.test(text)) return text
  return text.replace(escapes, (found, code: string | undefined) => {
    if (found === mark) return `${mark}e000`
    return code !== undefined && replaced.test(code) ? `${mark}${code}` : found
  })
}

/** Returns the record of a text, which is equal to the record that `textOf` received. */
export function recordIn(text: string): Stored {
  return JSON.parse(text.includes(mark) ? text.replace(marks, '\\u$1') : text) as Stored
}
