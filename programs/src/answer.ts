import type { WireAnswer } from './exchange.js'
import { show } from './text.js'

/** Fails unless the condition holds. The message states what the server did and what was expected. */
export function demand(condition: boolean, message: string | (() => string)): asserts condition {
  if (!condition) throw new Error(typeof message === 'string' ? message : message())
}

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
