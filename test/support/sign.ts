import { createHash } from 'node:crypto'
import type { HttpRequest } from 'open-payments-server/adapter'

export { type SignOptions, signedRequest } from 'open-payments-server-testing'

export function contentDigest(body: Uint8Array, algorithm: 'sha-256' | 'sha-512'): string {
  const hash = createHash(algorithm.replace('-', '')).update(body).digest('base64')
  return `${algorithm}=:${hash}:`
}

export function bytesOf(body: string | Uint8Array | undefined): Uint8Array {
  if (body === undefined) return new Uint8Array()
  return typeof body === 'string' ? Buffer.from(body) : body
}

/** Replaces or adds header lines of one name. */
export function withHeader(request: HttpRequest, name: string, ...values: string[]): HttpRequest {
  const others = request.headers.filter(([each]) => each.toLowerCase() !== name.toLowerCase())
  return { ...request, headers: [...others, ...values.map((value) => [name, value] as const)] }
}

/** Returns the request with the signatures of both requests. */
export function withSignaturesOf(request: HttpRequest, other: HttpRequest): HttpRequest {
  return ['signature-input', 'signature'].reduce(
    (both, name) =>
      withHeader(both, name, headerOf(request, name) ?? '', headerOf(other, name) ?? ''),
    request,
  )
}

export function headerOf({ headers }: HttpRequest, name: string): string | undefined {
  return headers.find(([each]) => each.toLowerCase() === name.toLowerCase())?.[1]
}
