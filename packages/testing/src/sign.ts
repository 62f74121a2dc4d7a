import { createHash, sign } from 'node:crypto'
import type { HttpRequest } from 'open-payments-server/adapter'
import type { KeyPair } from './key.js'

/** A request, and what its signature has instead of that of the published client. */
export interface SignOptions {
  readonly method: string
  /** The absolute URL that the server expects in `@target-uri`. */
  readonly url: string
  readonly key: Pick<KeyPair, 'kid' | 'privateKey'>
  /** Seconds since 1970. */
  readonly created: number
  readonly body?: string | Uint8Array
  /** An access token or continuation token, sent as `Authorization: GNAP …`. */
  readonly token?: string
  /** Default: none. */
  readonly nonce?: string
  /** Additional header lines. */
  readonly headers?: readonly (readonly [string, string])[]
  /** Serialized component identifiers, in order. Default: those that the published client covers. */
  readonly components?: readonly string[]
  /** Serialized signature parameters, in order. Default: keyid, created and, if given, nonce. */
  readonly parameters?: readonly string[]
  /** The label of the signature. Default: `sig1`. */
  readonly label?: string
  /** The algorithm of `Content-Digest`. Default: `sha-512`. */
  readonly digest?: 'sha-256' | 'sha-512' | 'none'
  /** Values for the signature base that replace the true ones of components. */
  readonly override?: Readonly<Record<string, string>>
}

/**
 * Signs a request like a client (RFC 9421 section 3.1). It shares no code with the verifier, so that a mistake there is
 * not repeated here. Every part of the signature can be overridden, for tests of what a server refuses; `testClient`
 * signs correctly.
 *
 * @example
 * ```ts
 * import { signedRequest, throwAwayKey } from 'open-payments-server-testing'
 *
 * const url = 'https://wallet.example/quotes'
 * const created = Date.now() / 1_000 - 3_600 // too old
 * const late = signedRequest({ method: 'POST', url, body: '{}', key: throwAwayKey(), created })
 * const { status } = await wallet.handle(late) // 401
 * ```
 */
export function signedRequest(options: SignOptions): HttpRequest {
  const { method, url, key, created, token, nonce, label = 'sig1' } = options
  const body = bytesOf(options.body)
  const headers: [string, string][] = (options.headers ?? []).map(([name, value]) => [name, value])
  if (token !== undefined) headers.push(['Authorization', `GNAP ${token}`])
  const { digest = 'sha-512' } = options
  if (body.length > 0) {
    if (digest !== 'none') headers.push(['Content-Digest', contentDigest(body, digest)])
    headers.push(['Content-Length', String(body.length)])
    headers.push(['Content-Type', 'application/json'])
  }
  const components = options.components ?? defaultComponents(headers)
  const parameters = options.parameters ?? [
    `keyid="${key.kid}"`,
    `created=${created}`,
    ...(nonce === undefined ? [] : [`nonce="${nonce}"`]),
  ]
  const input = `(${components.join(' ')})${parameters.map((one) => `;${one}`).join('')}`
  const lines = components.map((component) => {
    const value = options.override?.[component] ?? componentValue(component, method, url, headers)
    return `${component}: ${value}`
  })
  const base = [...lines, `"@signature-params": ${input}`].join('\n')
  const signature = sign(null, Buffer.from(base, 'latin1'), key.privateKey).toString('base64')
  headers.push(['Signature-Input', `${label}=${input}`], ['Signature', `${label}=:${signature}:`])
  return { method, url: targetOf(url), headers, body }
}

export function contentDigest(body: Uint8Array, algorithm: 'sha-256' | 'sha-512'): string {
  const hash = createHash(algorithm.replace('-', '')).update(body).digest('base64')
  return `${algorithm}=:${hash}:`
}

export function bytesOf(body: string | Uint8Array | undefined): Uint8Array {
  if (body === undefined) return new Uint8Array()
  return typeof body === 'string' ? Buffer.from(body) : body
}

function defaultComponents(headers: readonly (readonly [string, string])[]): string[] {
  const names = headers.map(([name]) => name.toLowerCase())
  const covered = [
    'authorization',
    'content-digest',
    'content-length',
    'content-type',
    'idempotency-key',
  ]
  return ['@method', '@target-uri', ...covered.filter((name) => names.includes(name))].map(
    (name) => `"${name}"`,
  )
}

function componentValue(
  component: string,
  method: string,
  url: string,
  headers: readonly (readonly [string, string])[],
): string {
  const name = component.slice(1, component.indexOf('"', 1))
  if (name === '@method') return method
  if (name === '@target-uri') return url
  if (name === '@authority') return new URL(url).host
  if (name === '@path') return targetOf(url).split('?', 1)[0] ?? ''
  if (name === '@query') return `?${targetOf(url).split('?')[1] ?? ''}`
  return headers
    .filter(([each]) => each.toLowerCase() === name)
    .map(([, value]) => value)
    .join(', ')
}

function targetOf(url: string): string {
  const start = url.indexOf('/', url.indexOf('//') + 2)
  return start === -1 ? '/' : url.slice(start)
}
