import fc from 'fast-check'
import { unicodeText } from '../unicode-text.js'
import type { Dice } from './dice.js'

/** A JSON text that stands for itself, so that it can contain what no value can. */
class Raw {
  readonly text: string
  constructor(text: string) {
    this.text = text
  }
}

/** A member of an object, of which an object may have two of one name. */
type Members = (readonly [name: string, value: Tree])[]
class ObjectTree {
  readonly members: Members
  constructor(members: Members) {
    this.members = members
  }
}
type Tree = Raw | ObjectTree | Tree[]

const nested = (levels: number) => '['.repeat(levels) + ']'.repeat(levels)
const wide = (count: number) => `[${Array.from({ length: count }, () => 0).join(',')}]`
const amount = (value: string, more = '"assetCode":"USD","assetScale":2') =>
  `{"value":${value},${more}}`

/** JSON texts at the edges of what a server may read, and beyond them. */
const odd: readonly string[] = [
  ...['null', 'true', 'false', '""', '[]', '{}', '0', '-0', '-1', '1', '2.5', '1e400', '-1e999'],
  ...['9007199254740993', '18446744073709551616', '1'.repeat(400), '0.1e-400', '01', '+1', 'NaN'],
  ...['"\\ud800"', '"\\udc00\\ud800"', '"\\u0000"', '"\\u2028"', '"\ufeff"', '"\ud83d"', '"\\x"'],
  ...['{"__proto__":{"a":1}}', '{"constructor":{"prototype":{}}}', '{"toString":1,"length":-1}'],
  ...['{"a":1,"a":2}', '{"":{}}', '{"\\u0061":1,"a":2}', '[,]', '{"a"}', '"', '\u0000'],
  ...[nested(31), nested(33), nested(2_000), wide(510), wide(513), `"${'x'.repeat(9_000)}"`],
  ...['"0"', '"1"', '"01"', '"-1"', '"1e3"', '" 1"', '"0x10"', '"18446744073709551615"'],
  ...[amount('"0"'), amount('"2500"'), amount('2500'), amount('"18446744073709551616"')],
  ...[amount('"1"', '"assetCode":"EUR","assetScale":2'), amount('"1"', '"assetScale":256')],
  '"https://wallet.example/bob"',
  '"https://wallet.example/alice/"',
  '"https://WALLET.example/bob"',
  ...['"https://wallet.example:443/%62ob"', '"https://wallet.example/closed"', '"https://[::1]/a"'],
  ...['"http://127.0.0.1:9200/a"', '"https://user:pw@wallet.example/bob"', '"https://a/..%2fb"'],
  '"https://bank.example/incoming-payments/gone"',
  '"javascript:alert(1)"',
  '"https://"',
  '"//a"',
  ...['"https://shop.example"', '"https://shop.example/other"', '"https://broken.example"'],
  ...['"2026-11-21T12:00:00Z"', '"2026-12-01T00:00:00+23:59"', '"2026-02-30T00:00:00Z"', '"9999"'],
  ...['"+275760-09-13T00:00:00.001Z"', '"R/2026-11-21T12:00:00Z/P1M"', '"R0/2026-11-21/PT0S"'],
  '"R5/2026-11-21T12:00:00Z/P999999999Y"',
  '"create"',
  '["create","read","create"]',
  '["root"]',
  ...['"incoming-payment"', '"outgoing-payment"', '"quote"', '"httpsig"', '"redirect"', '"ilp"'],
]

const accounts = ['bob', 'alice', 'carol', 'closed', 'nobody', 'bob/'].map(
  (name) => `"https://wallet.example/${name}"`,
)
const receivers = ['usd-1', 'usd-2', 'eur-1', 'gone'].map(
  (name) => `"https://bank.example/incoming-payments/${name}"`,
)
const amounts = ['0', '1', '100', '2501', '18446744073709551615'].map((value) =>
  amount(`"${value}"`),
)
const times = ['2026-11-21T12:00:00Z', '2026-12-24T00:00:00+01:00', '2036-01-01T00:00:00Z', '1970']

/** Values that are almost right for a member of this name, so that a body is refused late. */
const near = new Map<string, readonly string[]>([
  ['value', ['"0"', '"1"', '"3"', '"2500"', '"2501"', '"18446744073709551615"', '"-1"']],
  ['assetCode', ['"USD"', '"EUR"', '"usd"', '"JPY"', '""']],
  ['assetScale', ['0', '1', '2', '9', '255', '256', '2.0']],
  ['walletAddress', accounts],
  ['identifier', accounts],
  ['receiver', receivers],
  ['incomingPayment', receivers],
  ['debitAmount', amounts],
  ['receiveAmount', amounts],
  ['incomingAmount', amounts],
  ['expiresAt', times.map((time) => `"${time}"`)],
  ['actions', ['["create"]', '["read-all"]', '["list","list-all"]', '["complete"]', '[]']],
  ['type', ['"incoming-payment"', '"outgoing-payment"', '"quote"']],
  ['interval', ['"R/2026-11-01T00:00:00Z/P1M"', '"R1/2020-01-01T00:00:00Z/P1D"', '"R"', '"P1D"']],
  ['start', ['["redirect"]', '["user_code"]', '[]']],
  ['hash_method', ['"sha-256"', '"sha-512"', '"sha3-512"', '"md5"']],
  [
    'client',
    ['"https://shop.example"', '"https://shop.example/"', '"https://broken.example"', '{}'],
  ],
])

const names: readonly string[] = [
  ...['client', 'jwk', 'walletAddress', 'access_token', 'access', 'type', 'actions', 'identifier'],
  ...['limits', 'receiver', 'debitAmount', 'receiveAmount', 'interval', 'value', 'assetCode'],
  ...['assetScale', 'interact', 'start', 'finish', 'method', 'uri', 'nonce', 'hash_method'],
  ...['subject', 'sub_ids', 'interact_ref', 'incomingAmount', 'expiresAt', 'metadata', 'quoteId'],
  ...['incomingPayment', 'resource_server', 'proof', 'kid', 'x', 'kty', 'crv', 'alg', 'use', 'key'],
  ...['__proto__', 'constructor', 'toString', '', 'length', '0'],
]

/** Returns arbitrary JSON texts, and texts that are none. */
export function jsonTexts(count: number, seed: number): string[] {
  const text = fc.oneof(fc.json({ maxDepth: 6 }), unicodeText({ maxLength: 60 }))
  return fc.sample(text, { numRuns: count, seed })
}

function treeOf(value: unknown): Tree {
  if (Array.isArray(value)) return value.map(treeOf)
  if (typeof value !== 'object' || value === null) return new Raw(JSON.stringify(value))
  return new ObjectTree(Object.entries(value).map(([name, member]) => [name, treeOf(member)]))
}

function textOf(tree: Tree): string {
  if (tree instanceof Raw) return tree.text
  if (Array.isArray(tree)) return `[${tree.map(textOf).join(',')}]`
  const members = tree.members.map(([name, value]) => `${JSON.stringify(name)}:${textOf(value)}`)
  return `{${members.join(',')}}`
}

/** Returns a JSON text with one value, member or name changed. */
export function mutatedJson(text: string, dice: Dice, others: readonly string[]): string {
  const root = treeOf(JSON.parse(text))
  const odds = () => new Raw(dice.chance(80) ? dice.pick(odd) : dice.pick(others))
  return textOf(changed(root, dice, odds))
}

/** Walks down to a random value and changes it. */
function changed(tree: Tree, dice: Dice, odds: () => Tree): Tree {
  if (tree instanceof Raw || dice.chance(12)) return odds()
  if (Array.isArray(tree)) {
    const at = dice.below(tree.length || 1)
    const item = tree[at]
    if (item === undefined || dice.chance(15)) return [...tree, odds()]
    if (dice.chance(15)) return [...tree, item]
    return tree.with(at, changed(item, dice, odds))
  }
  return new ObjectTree(changedMembers([...tree.members], dice, odds))
}

function changedMembers(members: Members, dice: Dice, odds: () => Tree): Members {
  const at = dice.below(members.length || 1)
  const member = members[at]
  if (member === undefined || dice.chance(10)) return [...members, [dice.pick(names), odds()]]
  const [name, value] = member
  const how = dice.weighted([
    [12, 'deeper'],
    [near.has(name) ? 12 : 0, 'near'],
    [2, 'without'],
    [1, 'twice'],
    [1, 'renamed'],
    [1, 'swapped'],
  ] as const)
  if (how === 'without') return members.toSpliced(at, 1)
  if (how === 'twice') return [...members, [name, odds()]]
  if (how === 'renamed') return members.with(at, [dice.pick(names), value])
  if (how === 'near') return members.with(at, [name, new Raw(dice.pick(near.get(name) ?? odd))])
  if (how === 'deeper') return members.with(at, [name, changed(value, dice, odds)])
  const other = dice.below(members.length)
  const [otherName, otherValue] = members[other] ?? member
  return members.with(at, [name, otherValue]).with(other, [otherName, value])
}

/** Returns a JSON object of known names and odd values. */
export function oddObject(dice: Dice, others: readonly string[]): string {
  const value = (depth: number): string =>
    depth > 0 && dice.chance(40) ? object(depth - 1) : dice.pick(dice.chance(70) ? odd : others)
  const object = (depth: number) => {
    const members = dice.some(0, 6, () => `${JSON.stringify(dice.pick(names))}:${value(depth)}`)
    return dice.chance(10) ? `[${value(depth)}]` : `{${members.join(',')}}`
  }
  return object(3)
}
