import type { HttpRequest, HttpResponse, RecordChange } from '../../../src/entry-adapter.js'
import { type RefusalReport, StoreTimeoutError } from '../../../src/index.js'

/** What happened while a handler served one request. */
export interface Passage {
  /** The changes of commits that took effect. */
  readonly written: RecordChange[]
  /** Whether the next store calls fail. */
  readonly storeFails: boolean
  /** Whether a store call has failed. */
  storeFailed: boolean
  refusal?: RefusalReport
  readonly errors: unknown[]
}

const stack = /\bat .*\.[jt]s:\d+|node_modules|Error:/
const code = /^[a-z_]+$/

/** Returns what is wrong with the response to any request, whatever its sender did, and with what was stored. */
export function problemOf(
  request: Pick<HttpRequest, 'method' | 'body'>,
  response: HttpResponse<string | Uint8Array>,
  passage: Passage,
): string | undefined {
  const { status } = response
  if (status >= 500 && !isExcused(request, passage)) return `a response with ${status}`
  const error = passage.errors.find((each) => !isLate(each))
  if (error !== undefined && !passage.storeFailed) return `an error in a port: ${String(error)}`
  return formProblem(request, response) ?? storedProblem(status, passage)
}

/** A database on a busy machine may not settle a call in time. */
function isLate(error: unknown): boolean {
  return error instanceof StoreTimeoutError
}

/** The store failed, or the key set of a client that is not the shop could not be read. */
function isExcused({ body }: Pick<HttpRequest, 'body'>, passage: Passage): boolean {
  if (passage.storeFailed || passage.errors.some(isLate)) return true
  if (passage.refusal?.refusal !== 'client_unavailable') return false
  const { client } = JSON.parse(Buffer.from(body).toString())
  return (client?.walletAddress ?? client) !== 'https://shop.example'
}

function formProblem(
  { method }: Pick<HttpRequest, 'method'>,
  { status, headers, body }: HttpResponse<string | Uint8Array>,
): string | undefined {
  if (!Number.isInteger(status) || status < 200) return `the status ${status}`
  const isPublic = headers['access-control-allow-origin'] === '*'
  if (isPublic ? headers['vary'] !== undefined : headers['vary'] !== 'Authorization') {
    return `the header Vary: ${headers['vary']}`
  }
  // Caches may keep what is public, and ask each time whether it still holds.
  const isChecked =
    isPublic && headers['cache-control'] === 'no-cache' && headers['etag'] !== undefined
  if (headers['cache-control'] !== 'no-store' && !isChecked)
    return 'a response that caches may store'
  if (status === 304) return isChecked && body === undefined ? undefined : 'a wrong 304'
  if (status === 204) return body === undefined ? undefined : 'a body of a response with 204'
  if (headers['content-type'] !== 'application/json') return 'a response that is not JSON'
  if (method === 'HEAD') return body === undefined ? undefined : 'a body in a response to HEAD'
  if (typeof body !== 'string') return 'a response without a body'
  if (status < 400) return JSON.parse(body) === null ? 'a response of null' : undefined
  if (stack.test(body)) return 'a stack trace'
  if (status === 401 && !headers['www-authenticate']?.startsWith('GNAP as_uri=')) {
    return 'no WWW-Authenticate in a response with 401'
  }
  const { error, ...more } = JSON.parse(body)
  const named = typeof error?.description === 'string' && code.test(error.code)
  return named && Object.keys(more).length === 0 ? undefined : 'an error of another form'
}

/** A refused request may store one record: the one by which its signature counts once. */
function storedProblem(status: number, { written }: Passage): string | undefined {
  if (status < 400) return undefined
  const others = written.filter(({ kind }) => kind !== 'replay')
  if (others[0] !== undefined) return `a refused request that stored a record: ${others[0].kind}`
  return written.length > 1 ? 'a refused request that stored two nonces' : undefined
}
