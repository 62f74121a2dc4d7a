const nameLengthMax = 64
/** Bounds the work for a name that a port of the host returns. */
const givenLengthMax = 8_192

/**
 * The characters that must not be in a name: control, format, private-use and unassigned characters, lone surrogates,
 * and characters that are not visible although they are letters or symbols. Control characters that are white space
 * remain, until they are replaced.
 */
const invisible = /(?!\p{White_Space})[\p{C}\p{Default_Ignorable_Code_Point}\u2800]/gu
const whiteSpace = /\p{White_Space}/gu
/** Combining marks after four others. Stacks of them cover the lines above and below, and so the wallet address. */
const stackedMarks = /(?<=\p{M}{4})\p{M}/gu
const leadingMarks = /^[\p{M} ]+/u

/**
 * Returns a name that a stranger chose, as it may be shown to a person: at most 64 code points on one line, in NFC,
 * without invisible characters and without characters that reorder the text around them. Returns `undefined` if nothing
 * remains, or for a value that is not a string. A name that was cleaned does not change when it is cleaned again. It
 * can contain any visible characters: escape it for HTML, and show what is verified beside it.
 *
 * @example
 * ```ts
 * import { displayName } from 'open-payments-server'
 *
 * displayName(' Bob\u202e\n the  builder ') // Bob the builder
 * ```
 */
export function displayName(given: unknown): string | undefined {
  if (typeof given !== 'string') return undefined
  const name = given
    .slice(0, givenLengthMax)
    .replace(invisible, '')
    .normalize('NFC')
    .replace(stackedMarks, '')
    .replace(whiteSpace, ' ')
    .split(' ')
    .filter((word) => word !== '')
    .join(' ')
    .replace(leadingMarks, '')
  return name === '' ? undefined : shortened(name)
}

/** Cuts a long name between two characters as people see them, and says so with an ellipsis. */
function shortened(name: string): string {
  const points = [...name]
  if (points.length <= nameLengthMax) return name
  let length = 0
  let kept = ''
  for (const { segment } of new Intl.Segmenter('en').segment(name)) {
    length += [...segment].length
    if (length >= nameLengthMax) break
    kept += segment
  }
  return `${(kept || points.slice(0, nameLengthMax - 1).join('')).trimEnd()}…`
}
