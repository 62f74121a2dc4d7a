import type { HttpResponse } from 'open-payments-server'

/** An answer in JSON, of this moment only. */
export function json(status: number, value: object): HttpResponse {
  const headers = { 'content-type': 'application/json', 'cache-control': 'no-store' }
  return { status, headers, body: JSON.stringify(value) }
}

/** An answer that says by a code what went wrong. */
export function failure(
  status: number,
  code: string,
  headers: Record<string, string> = {},
): HttpResponse {
  const response = json(status, { error: { code } })
  return { ...response, headers: { ...response.headers, ...headers } }
}
