import { createHash, type KeyObject, randomUUID, sign } from 'node:crypto'

/** A client instance: its wallet address, and the key that it publishes there. */
export interface ClientInstance {
  readonly walletAddress: string
  readonly keyId: string
  readonly privateKey: KeyObject
}

/** A request of a client. */
export interface ClientRequest {
  readonly method: 'GET' | 'POST'
  readonly url: string
  /** An access token or continuation token. */
  readonly token?: string
  readonly body?: object
}

const timeoutMs = 10_000

/**
 * Sends a request with the signature of the client (RFC 9421), and resolves to the JSON of the response.
 *
 * @throws an error that names the code and the description of an error response.
 */
export async function send<Answer>(
  client: ClientInstance,
  request: ClientRequest,
): Promise<Answer> {
  const { method, url, body } = request
  const content = body === undefined ? undefined : JSON.stringify(body)
  const headers = signedHeaders(client, request, content)
  const signal = AbortSignal.timeout(timeoutMs)
  const response = await fetch(url, {
    method,
    headers,
    signal,
    ...(content !== undefined && { body: content }),
  })
  const answer = JSON.parse((await response.text()) || '{}')
  if (response.ok) return answer
  const { code = 'an error', description = '' } = answer.error ?? {}
  throw new Error(`${method} ${url}: ${response.status} ${code}. ${description}`.trim())
}

function signedHeaders(
  { keyId, privateKey }: ClientInstance,
  { method, url, token }: ClientRequest,
  content: string | undefined,
): Readonly<Record<string, string>> {
  const headers = {
    ...(token !== undefined && { authorization: `GNAP ${token}` }),
    ...(content !== undefined && {
      'content-digest': `sha-512=:${createHash('sha512').update(content).digest('base64')}:`,
      'content-type': 'application/json',
    }),
  }
  const covered = Object.entries({ '@method': method, '@target-uri': url, ...headers })
  const names = covered.map(([name]) => `"${name}"`).join(' ')
  const created = Math.floor(Date.now() / 1_000)
  const parameters = `(${names});created=${created};nonce="${randomUUID()}";keyid="${keyId}"`
  const lines = [...covered, ['@signature-params', parameters]]
  const base = lines.map(([name, value]) => `"${name}": ${value}`).join('\n')
  const signature = sign(null, Buffer.from(base), privateKey).toString('base64')
  return { ...headers, 'signature-input': `sig1=${parameters}`, signature: `sig1=:${signature}:` }
}
