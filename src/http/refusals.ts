import type { Result } from '../core/decision.js'
import type { Instant } from '../core/instant.js'
import type { JsonObject } from '../core/stored.js'
import type { HttpResponse } from './message.js'
import type { ErrorRow, ErrorTable, Refusal } from './public-errors.js'
import type { ServerOperation } from './routes.js'

/**
 * A refused request: the code and reason for the operator, and the additional content of the response
 * (`Retry-After`, error `details`, `Allow`). A function that yields a value or declines returns an `HttpResult`. A
 * guard, which yields no value, returns the refusal, or `undefined` if it lets the request pass.
 */
export interface HttpRefusal {
  readonly ok: false
  readonly outcome: 'refused'
  readonly refusal: Refusal
  readonly reason: string
  readonly retryAt?: Instant
  readonly details?: JsonObject
  readonly allow?: string
}

export type HttpResult<Value> = Result<Value, HttpRefusal>

export interface RefusalContext {
  /** The errors of the server. */
  readonly errors: ErrorTable
  readonly operation: ServerOperation | undefined
  readonly challenge: string | undefined
  readonly now: Instant
}

const retryLaterSeconds = 1

/** The error that a client receives, without details. */
interface PublicError {
  readonly status: number
  readonly code: string
  readonly description: string
}

const internalError: PublicError = {
  status: 500,
  code: 'internal_error',
  description: 'Internal server error',
}

export function publicError(
  refusal: Refusal,
  { errors, operation }: Pick<RefusalContext, 'errors' | 'operation'>,
): PublicError {
  const entry = errors[refusal] ?? errors.internal
  const row = isRow(entry) ? entry : ((operation && entry?.[operation]) ?? entry?.otherwise)
  if (row === undefined) return internalError
  const [status, code, description] = row
  return { status, code, description }
}

export function isRow(entry: ErrorTable[Refusal]): entry is ErrorRow | undefined {
  return entry === undefined || Array.isArray(entry)
}

export function refusalResponse(refused: HttpRefusal, context: RefusalContext): HttpResponse {
  const { status, code, description } = publicError(refused.refusal, context)
  const { details, allow, retryAt } = refused
  const headers: Record<string, string> = {
    'content-type': 'application/json',
    'cache-control': 'no-store',
  }
  if (status === 401 && context.challenge) headers['www-authenticate'] = context.challenge
  if (allow !== undefined) headers['allow'] = allow
  if (retryAt !== undefined) {
    headers['retry-after'] = String(Math.max(1, Math.ceil((retryAt - context.now) / 1000)))
  } else if (status === 503) {
    headers['retry-after'] = String(retryLaterSeconds)
  }
  const error = details === undefined ? { code, description } : { code, description, details }
  return { status, headers, body: JSON.stringify({ error }) }
}

export function refuse(refusal: Refusal, reason: string): HttpRefusal {
  return { ok: false, outcome: 'refused', refusal, reason }
}
