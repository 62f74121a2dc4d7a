import type { HttpResponse } from 'open-payments-server/adapter'

/** Follows the answer to a form to the page that says what became of it, as a browser does. */
export async function followed(
  answer: HttpResponse,
  url: string,
  get: (url: string) => HttpResponse | Promise<HttpResponse>,
): Promise<HttpResponse> {
  const { location = '' } = answer.headers
  const isOutcome = answer.status === 303 && new URLSearchParams(location).has('outcome')
  return isOutcome ? get(url.split('?', 1)[0] + location) : answer
}
