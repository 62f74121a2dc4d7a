import fc from 'fast-check'
import type { HttpRequest } from '../../../src/entry-adapter.js'
import type { ServerRoute } from '../../../src/index.js'
import { contentDigest } from '../sign.js'
import { changed, dictionary, soup } from '../structured-fields.js'
import type { Dice } from './dice.js'
import { jsonTexts, mutatedJson, oddObject } from './json.js'

/** Texts of the slower generators, from which the dice pick. */
export interface Texts {
  readonly dictionaries: readonly string[]
  readonly json: readonly string[]
}

export function createTexts(seed: number, count = 40): Texts {
  const sample = <Value>(texts: fc.Arbitrary<Value>) => fc.sample(texts, { numRuns: count, seed })
  const written = dictionary.map(({ text }) => text)
  return {
    dictionaries: [...sample(written), ...sample(changed(written)), ...sample(soup)],
    json: jsonTexts(4 * count, seed),
  }
}

const components = [
  ...['"@method"', '"@target-uri"', '"@authority"', '"@path"', '"@query"', '"@scheme"'],
  ...['"@request-target"', '"@status"', '"@query-param";name="first"', '"@query-param"'],
  ...['"authorization"', '"content-digest"', '"content-length"', '"content-type"'],
  ...['"idempotency-key"', '"content-digest";key="sha-512"', '"content-digest";sf', '"x-a";bs'],
  ...['"x-a";tr', '"@method";req', '"signature";key="sig1"', '"@signature-params"', '"X-A"', '"é"'],
]
const parameters = [
  ...['keyid="shop-key"', 'keyid="bank-key"', 'keyid=""', 'keyid=shop-key', 'keyid="k"'],
  ...[
    'nonce="n"',
    'nonce=""',
    'alg="ed25519"',
    'alg="hmac-sha256"',
    'expires=1',
    'tag="x"',
    'x=1.0',
    'x=?0',
  ],
]
const labels = ['sig1', 'sig1', 'a', 'sig-b1', '*', 'SIG']

function signatureInput(dice: Dice, now: number): string {
  const created = now + dice.pick([0, 0, 0, -1, -301, 61, 1e15, -now - 1, 0.5])
  const items = dice.some(0, 8, () => dice.pick(components)).join(dice.chance(90) ? ' ' : '  ')
  const all = [`created=${created}`, ...dice.some(0, 3, () => dice.pick(parameters))]
  return `${dice.pick(labels)}=(${items})${all.map((one) => `;${one}`).join('')}`
}

/** A header line that the servers read. */
export function oddLine(dice: Dice, { dictionaries, json }: Texts, now: number): [string, string] {
  const text = () => dice.pick(dice.chance(80) ? dictionaries : json)
  const name = dice.pick(readNames)
  if (dice.chance(20)) return [name, text()]
  if (name === 'Signature-Input') return [name, signatureInput(dice, now)]
  if (name === 'Signature') {
    const bytes = Buffer.alloc(dice.pick([64, 64, 63, 65, 0]), dice.below(256)).toString('base64')
    return [name, `${dice.pick(labels)}=:${bytes}:`]
  }
  return [name, dice.pick(values.get(name) ?? plain)]
}

const token = `opa_${'A'.repeat(30)}.${'b'.repeat(43)}`
const values = new Map<string, readonly string[]>(
  Object.entries({
    Authorization: [
      ...[`GNAP ${token}`, `gnap  ${token}`, `GNAP ${token},${token}`, 'GNAP', 'GNAP ', 'Bearer x'],
      ...[`GNAP opc_${token.slice(4)}`, `GNAP ${token}==`, 'GNAP é', `GNAP ${'x'.repeat(8_000)}`],
      ...[`GNAP access_token="${token}"`, `GNAP${' '.repeat(4_000)}x`, `Basic ${token}`],
    ],
    'Content-Digest': [
      ...[contentDigest(Buffer.from('{}'), 'sha-512'), contentDigest(Buffer.from('{}'), 'sha-256')],
      ...['sha-256=:AA==:', 'sha-512=::', 'md5=:AA==:', 'sha-256=AA', 'sha-512=:AA==:, sha-512=1'],
    ],
    'Content-Type': [
      ...['application/json', 'application/json; charset=utf-8', 'APPLICATION/JSON', 'text/plain'],
      ...[
        'application/json, text/plain',
        'application/json; charset=latin1',
        '',
        '/',
        'application',
      ],
    ],
    'Idempotency-Key': ['k', '', '"k"', 'k, k', 'é', 'x'.repeat(255), 'x'.repeat(300), 'a b', '\t'],
    'Content-Length': ['0', '1', '-1', '1, 1', '99999999999999999999', '0x2', '+1', ' 2'],
    'Content-Encoding': ['gzip', 'identity', ''],
  }),
)
const plain = ['', 'x', '\t', 'a,b', 'é\u0100', 'a\r\nX-B: 1', '\0', 'wallet.example', '*/*']
const readNames = [
  ...['Signature-Input', 'Signature-Input', 'Signature', 'Signature', 'Authorization'],
  ...['Content-Digest', 'Content-Type', 'Idempotency-Key', 'Content-Length', 'Content-Encoding'],
  ...['Host', 'X-A', 'Transfer-Encoding', 'Forwarded', 'Access-Control-Request-Method'],
  ...['', ':path', '__proto__', 'Expect', 'Accept'],
]

const segments = [
  ...['', 'é', '\\', '\ud800', 'x'.repeat(3_000), 'a'.repeat(128)],
  ...'. .. %2e %2E%2e %2F %5c %00 %zz % %E0%A4 %c3%a9 a alice bob ;a=1 :id *'.split(' '),
  ...'jwks.json complete auth op continue token introspect incoming-payments quotes'.split(' '),
]
const queries = [
  '',
  ...'wallet-address first last cursor 7 101 0 -1 MSBh % + %00 1e2 %ff [] #'.split(' '),
  ...['https://wallet.example/bob', 'https%3A%2F%2Fwallet.example%2Falice'],
]

/** A target with any segments, or with the path of a route and an odd id. */
export function oddTarget(dice: Dice, routes: readonly ServerRoute[]): string {
  const path = dice.chance(30)
    ? dice.some(0, 5, () => `/${dice.pick(segments)}`).join('')
    : dice.pick(['/auth', '/op', '']) +
      dice.pick(routes).path.replace(/\{\w+\}/, () => dice.pick(segments))
  return path + (dice.chance(40) ? oddQuery(dice) : '')
}

export function oddQuery(dice: Dice): string {
  const pairs = dice.some(0, 4, () => `${dice.pick(queries)}=${dice.pick(queries)}`)
  return `?${pairs.join(dice.chance(90) ? '&' : '&&')}`
}

const methods = ['GET', 'POST', 'POST', 'DELETE', 'OPTIONS', 'HEAD', 'PUT', 'get', '', 'TRACE']

/** A request of which every part follows a grammar, and no part is valid for its own sake. */
export function oddRequest(
  dice: Dice,
  texts: Texts,
  routes: readonly ServerRoute[],
  now: number,
): HttpRequest {
  const headers = dice.some(0, 8, () => oddLine(dice, texts, now))
  const body = dice.chance(30) ? '' : oddBody(dice, texts)
  if (dice.chance(60)) headers.push(['Content-Digest', contentDigest(Buffer.from(body), 'sha-256')])
  return {
    method: dice.pick(methods),
    url: dice.chance(95) ? oddTarget(dice, routes) : dice.pick(texts.dictionaries),
    headers: dice.chance(1) ? Array.from({ length: 200 }, () => ['X-A', 'b'] as const) : headers,
    body: Buffer.from(body),
    ...(dice.chance(5) && { headersMerged: true }),
  }
}

/** A body: JSON of known names, a valid body with a change, arbitrary text, or too many bytes. */
export function oddBody(dice: Dice, { json }: Texts, valid?: string): string {
  if (dice.below(1_000) === 0) return ' '.repeat(65_537)
  if (valid !== undefined && valid !== '' && dice.chance(85)) return mutatedJson(valid, dice, json)
  return dice.chance(60) ? oddObject(dice, json) : dice.pick(json)
}
