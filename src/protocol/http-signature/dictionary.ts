import {
  type Dictionary,
  type InnerList,
  type Item,
  type Parameters,
  parseDictionary,
} from './structured-fields.js'

/** The longest dictionary that is parsed, in characters. */
export const dictionaryLengthMax = 2048

/**
 * Parses a dictionary. Returns `undefined` for a text that is too long, for a syntax error, and for a duplicate key in
 * one scope: in RFC 9651 the last one wins, but RFC 9421 does not allow duplicates.
 */
export function parseStrictDictionary(text: string): Dictionary | undefined {
  if (text.length > dictionaryLengthMax) return undefined
  return parseCanonicalList(text) ?? parseDictionary(text)
}

const noParameters: Parameters = new Map()
const key = '[a-z*][a-z0-9_\\-.*]*'
const plainString = '"[\\x20\\x21\\x23-\\x5b\\x5d-\\x7e]*"'
const plainValue = `(?:(?:0|[1-9][0-9]{0,14})|${plainString})`
const canonicalParameter = new RegExp(`;(${key})=(${plainValue})`, 'y')
const canonicalList = new RegExp(
  `^(?<label>${key})=(?<list>\\((?<items>${plainString}(?: ${plainString})*)\\)(?:;${key}=${plainValue})*)$`,
)

/** The groups of `canonicalList`, each of which takes part in every match. */
type CanonicalGroups = Readonly<Record<'label' | 'list' | 'items', string>>

/**
 * Parses a single list of strings with string and integer parameters in canonical form, the usual `Signature-Input`.
 * The general parser takes twice as long, and its result has to be serialized again for the signature base.
 */
function parseCanonicalList(text: string): Dictionary | undefined {
  const groups = canonicalList.exec(text)?.groups as CanonicalGroups | undefined
  if (groups === undefined) return undefined
  const { label, list, items } = groups
  const tail = list.slice(items.length + 2)
  const names = items.slice(1, -1).split('" "')
  const parameters: Parameters = new Map()
  let count = 0
  canonicalParameter.lastIndex = 0
  for (let found = canonicalParameter.exec(tail); found; found = canonicalParameter.exec(tail)) {
    const [, name = '', value = ''] = found
    parameters.set(name, value.startsWith('"') ? value.slice(1, -1) : Number(value))
    count += 1
  }
  // The general parser rejects duplicate parameters.
  if (parameters.size < count) return undefined
  const member: InnerList = [names.map((name): Item => [name, noParameters]), parameters, list]
  return new Map([[label, member]])
}
