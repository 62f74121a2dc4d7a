import { isObject } from '../../../src/protocol/json.js'
import type { Answer, Outgoing } from './message.js'
import {
  type CallRefusal,
  confirmationRequired,
  cut,
  type ErrorAnswer,
  outcomeUnknown,
  type Refused,
  refused,
} from './refusal.js'

const codeLengthMax = 128
const descriptionLengthMax = 1_024
/** As JSON. Details that are cut off would say something else. */
const detailsLengthMax = 16_384

/** Resource servers and authorization servers write errors in the same way, some of them without a code. */
export function errorIn({ status, body }: Pick<Answer, 'status' | 'body'>): ErrorAnswer {
  const error = isObject(body) ? body['error'] : undefined
  // RFC 9635 section 3.6 permits a code alone.
  if (typeof error === 'string') return { status, code: cut(error, codeLengthMax) }
  if (!isObject(error)) return { status }
  const { code, description, details } = error
  const hasDetails = details !== undefined && details !== null
  const isShort = hasDetails && JSON.stringify(details).length <= detailsLengthMax
  return {
    status,
    ...(typeof code === 'string' && { code: cut(code, codeLengthMax) }),
    ...(typeof description === 'string' && { description: cut(description, descriptionLengthMax) }),
    ...(isShort && { details }),
  }
}

const codes: Readonly<Record<string, CallRefusal>> = {
  signature_used: 'signature_used',
  too_fast: 'too_fast',
  invalid_client: 'client_refused',
  invalid_signature: 'client_refused',
}

const statuses: Readonly<Record<number, CallRefusal>> = {
  401: 'unauthenticated',
  403: 'forbidden',
  404: 'not_found',
  409: 'conflict',
  422: 'conflict',
  429: 'rate_limited',
}

/** Rafiki's resource server has the status as its code, and tells these apart in words alone. */
function refusalInWords({ status, description = '', details }: ErrorAnswer) {
  if (status === 403 && description === 'Inactive Token') return 'unauthenticated'
  if (status !== 401) return undefined
  if (description.startsWith('Signature validation error')) return 'client_refused'
  if (description === 'invalid access token') return 'unauthenticated'
  const why = isObject(details) ? details['description'] : undefined
  const isUnknown = typeof why === 'string' && why.startsWith('Failed to get wallet address from ')
  return isUnknown ? 'not_found' : undefined
}

function refusalOf(error: ErrorAnswer): CallRefusal {
  const { status, code = '' } = error
  const said = refusalInWords(error)
  if (said !== undefined) return said
  const known = Object.hasOwn(codes, code) ? codes[code] : undefined
  if (known !== undefined && status < 500) return known
  if (status >= 300 && status < 400) return 'redirected'
  if (status >= 500 || status === 408) return 'unavailable'
  return statuses[status] ?? (status >= 400 ? 'request_refused' : 'response_invalid')
}

/** A redirect with which the server says that the request belongs elsewhere, unchanged. */
const unprocessed: readonly number[] = [307, 308]

/**
 * The refusal of an answer that is not the one that was asked for. If the request creates something, only an answer
 * that says that nothing was created counts as a refusal.
 */
export function refusedBy(request: Outgoing, answer: Answer): Refused {
  const error = errorIn(answer)
  const refusal = refusalOf(error)
  const { status, code, description } = error
  const said = code === undefined ? `${status}` : `${status} ${code}`
  const why = description === undefined ? '' : `: ${description}`
  const reason = `${request.method} ${request.url} responded with ${said}${why}`
  const retryAfterMs = retryAfterIn(answer)
  const more = { answer: error, ...(retryAfterMs !== undefined && { retryAfterMs }) }
  const { creates } = request
  const isUndone = unprocessed.includes(status) || (status >= 400 && status < 500 && status !== 408)
  // Rafiki says this of a quote that has been paid before, too.
  const mayBePaid = creates === 'same_quote' && status === 400 && description === 'invalid quote'
  if (creates !== undefined && (!isUndone || refusal === 'signature_used' || mayBePaid)) {
    return outcomeUnknown(creates, reason, more)
  }
  if (code === 'confirmation_required') {
    const page = confirmationIn(error, request.url)
    if (page !== undefined) return confirmationRequired(page, reason, more)
  }
  return code === 'not_permitted_now'
    ? refused(refusal, reason, { ...more, isTemporary: true })
    : refused(refusal, reason, more)
}

function confirmationIn({ details }: ErrorAnswer, server: string) {
  if (!isObject(details)) return undefined
  const url = pageIn(details['url'], server)
  if (url === undefined) return undefined
  const { until } = details
  const at = typeof until === 'string' ? Date.parse(until) : Number.NaN
  return { url, ...(!Number.isNaN(at) && { until: at }) }
}

const pageLengthMax = 8_192
/** Controls, and marks that reorder text. */
const unprintable = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u

/**
 * Returns the URL of a page at which the owner decides, in the form that every browser and terminal takes. Another
 * scheme could run something on the device of the owner, a user in it hides the host, and http would show to a network
 * what the server shows over https.
 */
export function pageIn(text: unknown, server: string): string | undefined {
  if (typeof text !== 'string' || text.length > pageLengthMax) return undefined
  if (unprintable.test(text) || !URL.canParse(text)) return undefined
  const { protocol, username, password, href } = new URL(text)
  const isPage =
    protocol === 'https:' || (protocol === 'http:' && new URL(server).protocol === 'http:')
  return isPage && username === '' && password === '' ? href : undefined
}

const retryAfterMaxMs = 24 * 60 * 60 * 1_000

/** Reads the seconds of `Retry-After` (RFC 9110 section 10.2.3); dates are not read. */
function retryAfterIn({ headers }: Pick<Answer, 'headers'>): number | undefined {
  const text = headers['retry-after'] ?? ''
  if (!/^\d{1,9}$/.test(text)) return undefined
  return Math.min(Number(text) * 1_000, retryAfterMaxMs)
}
