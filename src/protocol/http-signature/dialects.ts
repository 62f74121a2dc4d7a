import type { BareItem, InnerList, Item } from 'structured-headers'
import { fromBase64 } from '../../util/bytes.js'
import type { Dictionary } from './dictionary.js'

/** The `Signature-Input` and `Signature` fields of one message, parsed. */
export interface SignatureFields {
  readonly inputs: Dictionary
  readonly signatures: Dictionary
}

/** How one client SDK writes the two fields. */
interface Dialect {
  /** `Signature-Input`: the groups are `list`, `names`, `created` and `keyid`. */
  readonly inputs: readonly RegExp[]
  /** `Signature`: the group is `base64`. */
  readonly signature: RegExp
}

const label = 'sig1'
const createdForm = 'created=(?<created>0|[1-9][0-9]{0,14})'
const keyidForm = 'keyid="(?<keyid>[\\x20\\x21\\x23-\\x5b\\x5d-\\x7e]+)"'
/** 64 bytes in standard base64 (RFC 4648 section 4): 86 digits and two `=`. */
const base64Form = '(?<base64>[A-Za-z0-9+/]{86}==)'

/**
 * The official PHP SDK: `sig1=("@method" "@target-uri");keyid="…";created=…` and `sig1=<base64>`. It writes
 * `keyid` first; `created` first is accepted as well.
 */
const php: Dialect = {
  inputs: [
    inputForm('"', `${keyidForm};${createdForm}`),
    inputForm('"', `${createdForm};${keyidForm}`),
  ],
  signature: new RegExp(`^${label}=${base64Form}$`),
}

/** The official Rust SDK: `sig1=(@method @target-uri content-type);created=…;keyid="…"` and `<base64>`. */
const rust: Dialect = {
  inputs: [inputForm('', `${createdForm};${keyidForm}`)],
  signature: new RegExp(`^${base64Form}$`),
}

const dialects = [php, rust]

/**
 * One signature that covers components from the six that these SDKs cover. Their order is free, as it is in
 * RFC 9421. Everything else is written in exactly one way.
 */
function inputForm(quote: '"' | '', parameters: string): RegExp {
  const names = '@method|@target-uri|authorization|content-digest|content-length|content-type'
  const name = `${quote}(?:${names})${quote}`
  return new RegExp(`^${label}=(?<list>\\((?<names>${name}(?: ${name})*)\\);${parameters})$`)
}

/**
 * Reads the signature fields of two published client SDKs, which are not Structured Fields. Returns
 * `undefined` unless both fields are written exactly as one of the SDKs writes them.
 *
 * No message has two readings: a `Signature` without colons ends with `=`, which no dictionary does, so a pair
 * of fields is either standard or in one dialect. The signature base of the PHP dialect is the standard one, so
 * the dialect accepts nothing that the same message with the colons added would not be accepted for. In the Rust
 * dialect, the list in the last line of the signature base begins with `(` and a letter or `@`, where a standard
 * list begins with `("` or is empty. No signature base is therefore both, and since no component value contains
 * a line break, the last line determines what the lines above it stand for.
 */
export function readDialect(input: string, signature: string): SignatureFields | undefined {
  for (const dialect of dialects) {
    const text = firstGroups([dialect.signature], signature)?.['base64']
    if (text === undefined) continue
    const bytes = fromBase64(text)
    const groups = bytes && firstGroups(dialect.inputs, input)
    return groups && signatureFields(bytes, groups)
  }
  return undefined
}

type Groups = Readonly<Record<string, string>>

function firstGroups(patterns: readonly RegExp[], text: string): Groups | undefined {
  for (const pattern of patterns) {
    const groups = pattern.exec(text)?.groups
    if (groups !== undefined) return groups
  }
  return undefined
}

function signatureFields(bytes: Uint8Array, groups: Groups): SignatureFields {
  const { list = '', names = '', created = '', keyid = '' } = groups
  const parameters = new Map<string, BareItem>([
    ['created', Number(created)],
    ['keyid', keyid],
  ])
  const components = names.replaceAll('"', '').split(' ')
  const items = components.map((name): Item => [name, new Map()])
  const input: InnerList = [items, parameters]
  const signature: Item = [bytes.buffer as ArrayBuffer, new Map()]
  return {
    inputs: new Map([[label, { value: input, text: list }]]),
    signatures: new Map([[label, { value: signature }]]),
  }
}
