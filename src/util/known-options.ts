import { OptionError } from './option-error.js'

/**
 * Rejects unknown options, because a misspelled option would otherwise silently keep its default. The error message
 * suggests the nearest known name.
 *
 * @param path the name of the options object, such as `policy`; empty for the options of a function.
 * @param known an object with a member for each option, so that the compiler reports a missing one.
 * @throws {OptionError} for an unknown option, and for a value that is not an object.
 */
export function requireKnownOptions<Options extends object>(
  path: string,
  options: Options,
  known: Readonly<Record<keyof Options, unknown>>,
): void {
  if (typeof options !== 'object' || options === null) {
    throw new OptionError(path || 'options', 'must be an object')
  }
  const unknown = unknownName(options, known)
  if (unknown === undefined) return
  const { name, hint } = unknown
  throw new OptionError(path === '' ? name : `${path}.${name}`, `is not an option${hint}`)
}

/** Returns the first member whose name is not known, and a hint at the nearest known name. */
export function unknownName(
  given: object,
  known: object,
): { readonly name: string; readonly hint: string } | undefined {
  const name = Object.keys(given).find((each) => !Object.hasOwn(known, each))
  if (name === undefined) return undefined
  const nearest = nearestName(name, Object.keys(known))
  return { name, hint: nearest === undefined ? '' : `; did you mean ${nearest}?` }
}

/** The maximum number of edits between a misspelled name and the name that the hint suggests. */
const editsMax = 3

/** Returns the known name with the fewest edits: at most three, and at most half of the letters. */
function nearestName(name: string, known: readonly string[]): string | undefined {
  let nearest: string | undefined
  let fewest = editsMax + 1
  for (const candidate of known) {
    const edits = editDistance(name, candidate)
    if (edits >= fewest || edits * 2 > Math.max(name.length, candidate.length)) continue
    nearest = candidate
    fewest = edits
  }
  return nearest
}

/** The Levenshtein distance: the number of letters to insert, remove or replace. */
function editDistance(from: string, to: string): number {
  let row = Array.from({ length: to.length + 1 }, (_, column) => column)
  for (const [index, letter] of [...from].entries()) {
    const next = [index + 1]
    for (let column = 1; column <= to.length; column++) {
      const replaced = (row[column - 1] ?? 0) + (letter === to[column - 1] ? 0 : 1)
      next.push(Math.min(replaced, (row[column] ?? 0) + 1, (next[column - 1] ?? 0) + 1))
    }
    row = next
  }
  return row[to.length] ?? 0
}
