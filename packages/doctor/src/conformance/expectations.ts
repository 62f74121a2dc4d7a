import { demand, show } from '../../../testing/src/conformance/expectations.js'
import type { WireAnswer } from './exchange.js'

/** Describes a response without its body, which may contain tokens, except for its error. */
export function responded(answer: WireAnswer): string {
  const error = pick(answer.body, 'error')
  const detail = error === undefined ? '' : ` and the error ${show(error)}`
  return `${answer.request} responded with status ${answer.status}${detail}`
}

/** Returns the value at a path of members, or `undefined`. */
export function pick(value: unknown, ...path: readonly string[]): unknown {
  return path.reduce<unknown>((inner, name) => {
    const isObject = typeof inner === 'object' && inner !== null && Object.hasOwn(inner, name)
    return isObject ? (inner as Record<string, unknown>)[name] : undefined
  }, value)
}

/** Returns the text at a path of members of a response. Fails if there is none. */
export function textAt(answer: WireAnswer, ...path: readonly string[]): string {
  const value = pick(answer.body, ...path)
  demand(
    typeof value === 'string' && value !== '',
    () => `${responded(answer)}; expected text in ${path.join('.')}`,
  )
  return value
}

/** Fails unless the response has one of the statuses. */
export function demandStatus(answer: WireAnswer, ...statuses: readonly number[]): void {
  const expected = statuses.join(' or ')
  demand(statuses.includes(answer.status), () => `${responded(answer)}; expected ${expected}`)
}

/** Fails unless the response has one of the statuses and a JSON object. */
export function demandJson(answer: WireAnswer, ...statuses: readonly number[]): void {
  demandStatus(answer, ...statuses)
  const { body, headers } = answer
  demand(
    typeof body === 'object' && body !== null && !Array.isArray(body),
    () => `${responded(answer)} without a JSON object`,
  )
  const type = headers.get('content-type') ?? 'none'
  demand(
    /^application\/json\s*(;|$)/i.test(type),
    () => `${responded(answer)} and Content-Type ${type}; expected application/json`,
  )
}

/** Fails unless the response is an error of this form: `{ error: { code, description } }`. */
export function demandErrorBody(answer: WireAnswer): void {
  demandJson(answer, answer.status)
  const [code, description] = ['code', 'description'].map((name) =>
    pick(answer.body, 'error', name),
  )
  demand(
    typeof code === 'string' && typeof description === 'string',
    () => `${responded(answer)}; expected { error: { code, description } } with text in both`,
  )
}

/** Fails unless the response has one of the statuses and contains no access token. */
export function demandRefusal(answer: WireAnswer, ...statuses: readonly number[]): void {
  demandStatus(answer, ...statuses)
  demandNoToken(answer)
}

/** Fails unless the error of the authorization server has one of the codes. */
export function demandCode(answer: WireAnswer, ...codes: readonly string[]): void {
  const error = pick(answer.body, 'error')
  const code = typeof error === 'string' ? error : pick(error, 'code')
  const expected = codes.join(' or ')
  demand(
    typeof code === 'string' && codes.includes(code),
    () => `${responded(answer)}; expected the code ${expected}`,
  )
}

export function demandNoToken(answer: WireAnswer): void {
  const issued = pick(answer.body, 'access_token') !== undefined
  demand(!issued, () => `${responded(answer)} with an access token; expected none`)
}

/** Fails unless the value is an absolute https URL, or http on loopback, without userinfo, query or fragment. */
export function demandUrl(value: unknown, what: string): void {
  demand(isServiceUrl(value), () => `${what} must be an absolute https URL but is ${show(value)}`)
}

function isServiceUrl(value: unknown): boolean {
  if (typeof value !== 'string' || !URL.canParse(value)) return false
  const { protocol, hostname, username, password } = new URL(value)
  const local = /^(localhost|.*\.localhost|127(\.\d+){3}|\[::1\])$/.test(hostname)
  const secure = protocol === 'https:' || (protocol === 'http:' && local)
  return secure && username === '' && password === '' && !/[?#]/.test(value)
}

/** Fails unless the value is an amount whose value is text: an unsigned 64-bit integer. */
export function demandAmount(value: unknown, what: string): void {
  const [text, code, scale] = ['value', 'assetCode', 'assetScale'].map((name) => pick(value, name))
  const isUint64 = typeof text === 'string' && /^\d{1,20}$/.test(text) && BigInt(text) < 1n << 64n
  demand(
    isUint64,
    () => `${what}.value must be text with an unsigned 64-bit integer: ${show(text)}`,
  )
  demand(typeof code === 'string' && code !== '', () => `${what}.assetCode must be text`)
  demand(
    isScale(scale),
    () => `${what}.assetScale must be an integer from 0 to 255: ${show(scale)}`,
  )
}

export function isScale(value: unknown): boolean {
  return Number.isInteger(value) && Number(value) >= 0 && Number(value) <= 255
}

/** Fails unless the value is a date and time of RFC 3339. */
export function demandInstant(value: unknown, what: string): void {
  const form = /^\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:\d\d)$/
  const holds = typeof value === 'string' && form.test(value) && !Number.isNaN(Date.parse(value))
  demand(holds, () => `${what} must be an RFC 3339 date and time but is ${show(value)}`)
}
