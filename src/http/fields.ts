import { ok, type Refused, type Result, refused } from '../core/decision.js'
import type { FieldLines, SignedMessage } from '../protocol/http-signature/components.js'
import { jsonType } from '../protocol/json.js'
import type { HttpRequest } from './message.js'

const linesMax = 128
const valueLengthMax = 8 * 1024

/** Fields that must not repeat, because two recipients could then interpret the request differently. */
const singletons = [
  'authorization',
  'content-type',
  'content-length',
  'content-encoding',
  'content-digest',
  'host',
]

/** Singletons whose value never contains a comma, so that a comma reveals joined lines. */
const commaless = singletons.filter((name) => name !== 'content-digest')

type InvalidFields = Refused<'headers_invalid' | 'media_type_unsupported'>

/** Groups header lines by lower-case name, and refuses headers that are ambiguous. */
export function readFields(request: HttpRequest): Result<FieldLines, InvalidFields> {
  const { headers, headersMerged = false, body } = request
  if (headers.length > linesMax)
    return refused('headers_invalid', `the request has more than ${linesMax} header lines`)
  const fields = new Map<string, string[]>()
  for (const [name, value] of headers) {
    if (name.startsWith(':')) continue
    if (value.length > valueLengthMax)
      return refused('headers_invalid', `a header value exceeds ${valueLengthMax} bytes`)
    const line = unusual.test(value) ? trimmed(value) : value
    if (line === undefined)
      return refused('headers_invalid', 'a header value contains a line break')
    const key = name.toLowerCase()
    const lines = fields.get(key)
    if (lines === undefined) fields.set(key, [line])
    else lines.push(line)
  }
  const repeated = singletons.find((name) => (fields.get(name)?.length ?? 0) > 1)
  if (repeated !== undefined) return refused('headers_invalid', `the request repeats ${repeated}`)
  if (headersMerged) {
    const joined = commaless.find((name) => fields.get(name)?.[0]?.includes(','))
    if (joined !== undefined) return refused('headers_invalid', `the request repeats ${joined}`)
  }
  const coding = fields.get('content-encoding')?.[0]
  if (coding !== undefined && coding.toLowerCase() !== 'identity') {
    return refused('media_type_unsupported', 'the body is content-encoded')
  }
  if (body.length > 0 && !jsonType.test(fields.get('content-type')?.[0] ?? '')) {
    return refused('media_type_unsupported', 'the body is not application/json')
  }
  return ok(fields)
}

/** Reads the message that a signature covers, and refuses a request with ambiguous headers. */
export function readMessage(
  request: HttpRequest,
  origin: string,
  target: string,
): Result<SignedMessage, InvalidFields> {
  const read = readFields(request)
  if (!read.ok) return read
  const { method, headersMerged: fieldsMerged = false, body } = request
  return ok({ method, origin, target, fields: read.value, fieldsMerged, body })
}

const unusual = /^[\t ]|[\t ]$|[\r\n\0]/

/** Strips only the whitespace that may surround a field value (RFC 9110 section 5.5). */
function trimmed(value: string): string | undefined {
  if (/[\r\n\0]/.test(value)) return undefined
  let start = 0
  let end = value.length
  while (start < end && isBlank(value[start])) start++
  while (start < end && isBlank(value[end - 1])) end--
  return value.slice(start, end)
}

function isBlank(character: string | undefined): boolean {
  return character === ' ' || character === '\t'
}
