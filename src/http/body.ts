import { type Ok, ok } from '../core/decision.js'
import type { Json } from '../core/stored.js'
import type { SignedMessage } from '../protocol/http-signature/components.js'
import { parseJson } from '../protocol/json.js'
import type { BodyProblem, Parsed } from '../protocol/schema.js'
import { hashText } from '../util/hash.js'
import type { HttpResponse } from './message.js'
import { type HttpRefusal, type HttpResult, refuse } from './refusals.js'

const notJson = { path: '', problem: 'the body is not JSON, or exceeds a limit for JSON' }

/** The problem of content where none is allowed. */
export const notEmpty = { path: '', problem: 'the body must be empty' }

/** `value` is `undefined` if the body is empty. */
export function readBody({ body }: SignedMessage): HttpResult<Json | undefined> {
  if (body.length === 0) return ok(undefined)
  const value = parseJson(body)
  return value === undefined ? refuseProblem('body_invalid', notJson) : ok(value)
}

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

/**
 * Creates the response to a read of what everyone may see. Caches may keep it, but ask each time whether it still holds
 * (RFC 9111 section 5.2.2.4), so that a new key works at once. Without content if the client has this version.
 */
export async function revalidated(
  { fields }: SignedMessage,
  value: object,
): Promise<Ok<HttpResponse>> {
  const body = JSON.stringify(value)
  const etag = `"${await hashText(body)}"`
  const headers = { 'cache-control': 'no-cache', etag }
  return hasVersion(fields.get('if-none-match') ?? [], etag)
    ? ok({ status: 304, headers })
    : ok({ status: 200, headers: { 'content-type': 'application/json', ...headers }, body })
}

/** Compares weakly, as RFC 9110 section 13.1.2 requires: a proxy that compresses makes entity tags weak. */
function hasVersion(lines: readonly string[], etag: string): boolean {
  const given = lines.join().split(',')
  return given.some((each) => each.trim().replace(/^W\//, '') === etag || each.trim() === '*')
}

/** Caches must not store the response. */
export function json(status: number, value: object): Ok<HttpResponse> {
  const headers = { 'content-type': 'application/json', 'cache-control': 'no-store' }
  return ok({ status, headers, body: JSON.stringify(value) })
}

export const noContent: Ok<HttpResponse> = ok({
  status: 204,
  headers: { 'cache-control': 'no-store' },
})
