import { type Ok, ok } from '../core/decision.js'
import type { Json } from '../core/stored.js'
import type { SignedMessage } from '../protocol/http-signature/components.js'
import { parseJson } from '../protocol/json.js'
import type { BodyProblem, Parsed } from '../protocol/schema.js'
import type { HttpResponse } from './message.js'
import { type HttpRefusal, type HttpResult, refuse } from './refusals.js'

const notJson = { path: '', problem: 'the body is not JSON, or exceeds a limit for JSON' }

/** The problem of content where none is allowed. */
export const notEmpty = { path: '', problem: 'the body must be empty' }

/** Parses the JSON of a request's body. `value` is `undefined` if the body is empty. */
export function readBody({ body }: SignedMessage): HttpResult<Json | undefined> {
  if (body.length === 0) return ok(undefined)
  const value = parseJson(body)
  return value === undefined ? refuseProblem('body_invalid', notJson) : ok(value)
}

/** Parses and validates a request's body. */
export function readContent<Content>(
  message: SignedMessage,
  read: (value: Json | undefined) => Parsed<Content>,
): HttpResult<Content> {
  const body = readBody(message)
  if (!body.ok) return body
  const content = read(body.value)
  return content.ok ? content : refuseProblem('body_invalid', content)
}

/** Refuses a part of a request; the response's `details` contain the path and the problem. */
export function refuseProblem(
  refusal: 'body_invalid' | 'query_invalid' | 'idempotency_key_invalid',
  { path, problem }: Omit<BodyProblem, 'ok'>,
): HttpRefusal {
  const details = path === '' ? { problem } : { path, problem }
  return { ...refuse(refusal, `${path} ${problem}`.trim()), details }
}

/** Creates a response with a JSON body. Caches must not store any response. */
export function json(status: number, value: object): Ok<HttpResponse> {
  const headers = { 'content-type': 'application/json', 'cache-control': 'no-store' }
  return ok({ status, headers, body: JSON.stringify(value) })
}

export const noContent: Ok<HttpResponse> = ok({
  status: 204,
  headers: { 'cache-control': 'no-store' },
})
