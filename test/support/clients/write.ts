import { sign } from 'node:crypto'
import type { HttpRequest } from '../../../src/entry-adapter.js'
import type { TestKey } from '../keys.js'
import { sdkSignature } from '../sdk-signatures.js'
import { bytesOf, contentDigest } from '../sign.js'
import type { Dialect, HeaderLine, Message } from './dialect.js'

/** A request before a client has written it. */
export interface Unwritten {
  readonly method: string
  readonly url: string
  readonly token?: string
  /** JSON text. */
  readonly body?: string
}

export interface Signing {
  readonly key: Pick<TestKey, 'kid' | 'privateKey'>
  /** Seconds since 1970. */
  readonly created: number
  /** Default: `sha-512`, as all published clients. */
  readonly digest?: 'sha-256' | 'sha-512'
  /** Content other than the body, for the digest. */
  readonly digestOf?: string
}

/** A request as a client writes it: header lines in its order and case, with its signature. */
export function written(dialect: Dialect, request: Unwritten, signing: Signing): HttpRequest {
  const body = bytesOf(request.body)
  const message = { ...messageOf(request, body, signing), signature: { input: '', value: '' } }
  const signature = signed(dialect, request, message, signing)
  return {
    method: request.method,
    url: message.url.pathname === '/' ? '/' : request.url.slice(message.url.origin.length),
    headers: dialect.lines({ ...message, signature }),
    body,
  }
}

function messageOf(
  { method, url, token, body: text }: Unwritten,
  body: Uint8Array,
  { digest = 'sha-512', digestOf = text }: Signing,
): Omit<Message, 'signature'> {
  const content = {
    length: String(body.length),
    digest: contentDigest(bytesOf(digestOf), digest),
  }
  return {
    method,
    url: new URL(url),
    ...(token === undefined ? {} : { authorization: `GNAP ${token}` }),
    ...(text === undefined ? {} : { content }),
  }
}

/** The values of the two signature fields. */
function signed(
  dialect: Dialect,
  { method, url }: Unwritten,
  message: Message,
  { key, created }: Signing,
): Message['signature'] {
  const headers = dialect.lines(message)
  const components = dialect.covers(message)
  if (dialect.signatureForm !== 'standard') {
    const fields = { method, url, headers, created, components }
    const signature = sdkSignature(dialect.signatureForm, fields, key)
    return { input: signature['Signature-Input'], value: signature.Signature }
  }
  const list = components.map((name) => `"${name}"`).join(' ')
  const input = [`(${list})`, ...dialect.parameters(key.kid, created)].join(';')
  const values: readonly HeaderLine[] = [['@method', method], ['@target-uri', url], ...headers]
  const lines = components.map((name) => `"${name}": ${fieldValue(values, name)}`)
  const base = [...lines, `"@signature-params": ${input}`].join('\n')
  const bytes = sign(null, Buffer.from(base, 'latin1'), key.privateKey)
  const { label } = dialect
  return { input: `${label}=${input}`, value: `${label}=:${bytes.toString('base64')}:` }
}

function fieldValue(lines: readonly HeaderLine[], name: string): string {
  const found = lines.find(([each]) => each.toLowerCase() === name)
  if (found === undefined) throw new Error(`the request has no ${name}`)
  return found[1]
}

/** The URL of a list request. */
export function listUrl(dialect: Dialect, collection: string, walletAddress: string): string {
  const query = dialect
    .listParameters(walletAddress)
    .map(([name, value]) => `${name}=${dialect.query(value)}`)
  return `${collection}?${query.join('&')}`
}
