import { createHash, createHmac } from 'node:crypto'

/**
 * Returns the value of `Rafiki-Signature` for a canonical body. The time is in milliseconds, as Rafiki sends it,
 * although its documentation says seconds.
 *
 * @param version the setting SIGNATURE_VERSION of Rafiki.
 *
 * @example
 * ```ts
 * import { canonicalize, rafikiSignature } from 'open-payments-rafiki'
 *
 * const body = { id: '1', type: 'incoming_payment.created', data: {} }
 * rafikiSignature(canonicalize(body), 'secret', Date.now()) // 't=1790000000000, v1=…'
 * ```
 */
export function rafikiSignature(
  canonicalBody: string,
  secret: string,
  at: number,
  version = 1,
): string {
  const digest = createHmac('sha256', secret).update(`${at}.${canonicalBody}`).digest('hex')
  return `t=${at}, v${version}=${digest}`
}

/**
 * Returns the canonical form of JSON: no white space, and members in the order of their UTF-16 code units (RFC 8785).
 *
 * @example
 * ```ts
 * import { canonicalize } from 'open-payments-rafiki'
 *
 * canonicalize({ b: [1, 2], a: null }) // '{"a":null,"b":[1,2]}'
 * ```
 */
export function canonicalize(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonicalize).join(',')}]`
  if (value === null || typeof value !== 'object') return JSON.stringify(value)
  const members = Object.entries(value).sort(([one], [other]) => (one < other ? -1 : 1))
  const written = members.map(([name, member]) => `${JSON.stringify(name)}:${canonicalize(member)}`)
  return `{${written.join(',')}}`
}

/** Returns a UUID that is the same for the same text (RFC 9562 section 5.8). */
export function uuidOf(text: string): string {
  const hash = createHash('sha256').update(text).digest('hex')
  const variant = '89ab'[Number.parseInt(hash.slice(16, 17), 16) % 4]
  const parts = [hash.slice(0, 8), hash.slice(8, 12), `8${hash.slice(13, 16)}`]
  return [...parts, `${variant}${hash.slice(17, 20)}`, hash.slice(20, 32)].join('-')
}
