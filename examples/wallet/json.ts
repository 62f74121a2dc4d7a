import type { HttpResponse } from 'open-payments-server'

/** A JSON response that must not be cached. */
export function json(status: number, value: object): HttpResponse {
  const headers = { 'content-type': 'application/json', 'cache-control': 'no-store' }
  return { status, headers, body: JSON.stringify(value) }
}

/** An error response with a code. */
export function failure(
  status: number,
  code: string,
  headers: Record<string, string> = {},
): HttpResponse {
  const response = json(status, { error: { code } })
  return { ...response, headers: { ...response.headers, ...headers } }
}
