import type { HttpRequest, HttpResponse } from 'open-payments-server/adapter'

/** A JSON response that must not be cached. */
export function json(status: number, value: object): HttpResponse {
  const headers = { 'content-type': 'application/json', 'cache-control': 'no-store' }
  return { status, headers, body: JSON.stringify(value) }
}

/**
 * Returns whether a request names JSON as its media type. A page of another site can only post text and forms:
 * browsers ask the server before they post JSON.
 */
export function isJson({ headers }: Pick<HttpRequest, 'headers'>): boolean {
  const types = headers.filter(([name]) => name.toLowerCase() === 'content-type')
  return types.length === 1 && /^application\/json\s*(;|$)/i.test(types[0]?.[1] ?? '')
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
