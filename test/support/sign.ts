import type { HttpRequest } from '../../src/entry-adapter.js'

export {
  bytesOf,
  contentDigest,
  type SignOptions,
  signedRequest,
} from '../../packages/testing/src/sign.js'

/** Replaces or adds header lines of one name. */
export function withHeader(request: HttpRequest, name: string, ...values: string[]): HttpRequest {
  const others = request.headers.filter(([each]) => each.toLowerCase() !== name.toLowerCase())
  return { ...request, headers: [...others, ...values.map((value) => [name, value] as const)] }
}

export function headerOf({ headers }: HttpRequest, name: string): string | undefined {
  return headers.find(([each]) => each.toLowerCase() === name.toLowerCase())?.[1]
}
