import { isDeepStrictEqual } from 'node:util'
import {
  demand,
  demandJson,
  demandStatus,
  pick,
  responded,
  show,
  type WireAnswer,
} from 'open-payments-programs'

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

/** Fails unless the value is a date and time of RFC 3339. */
export function demandInstant(value: unknown, what: string): void {
  const form = /^\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:\d\d)$/
  const holds = typeof value === 'string' && form.test(value) && !Number.isNaN(Date.parse(value))
  demand(holds, () => `${what} must be an RFC 3339 date and time but is ${show(value)}`)
}

/** Fails unless both are the same JSON, regardless of key order. */
export function demandSame(actual: unknown, expected: unknown, what: string): void {
  const isSame = isDeepStrictEqual(actual, expected)
  demand(isSame, () => `${what} must be ${show(expected)} but is ${show(actual)}`)
}
