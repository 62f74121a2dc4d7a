import type { Shop } from '../../../examples/demo/shop.js'
import type { HttpRequest } from '../../../src/entry-adapter.js'
import { exchange, headerValues, requestBytes } from '../raw-http.js'
import type { Dialect } from './dialect.js'
import { written } from './write.js'

/** A request before a client has encoded its content. */
export interface SentRequest {
  readonly method: string
  readonly url: string
  readonly token?: string | undefined
  /** Absent for a request without content. */
  readonly value?: object | undefined
}

export interface Answered {
  readonly status: number
  // biome-ignore lint/suspicious/noExplicitAny: bodies are what the tests are about
  readonly body: any
}

/** Sends a request to a server on this machine, as a client writes it, and reads the response. */
export async function sent(
  dialect: Dialect,
  { method, url, token, value }: SentRequest,
  { keyId, privateKey }: Pick<Shop, 'keyId' | 'privateKey'>,
): Promise<Answered> {
  const request = written(
    dialect,
    {
      method,
      url,
      ...(token === undefined ? {} : { token }),
      ...(value === undefined ? {} : { body: dialect.json(value) }),
    },
    { key: { kid: keyId, privateKey }, created: Math.floor(Date.now() / 1000) },
  )
  return exchanged(url, request)
}

/** Sends a request as a client writes it when it has no key: without content, a token and a signature. */
export function sentUnsigned(
  dialect: Dialect,
  { method, url }: Pick<SentRequest, 'method' | 'url'>,
): Promise<Answered> {
  const { origin, pathname, search } = new URL(url)
  const message = { method, url: new URL(url), signature: { input: '', value: '' } }
  const headers = dialect.lines(message).filter(([name]) => !/^signature/i.test(name))
  return exchanged(origin, { method, url: pathname + search, headers, body: new Uint8Array() })
}

async function exchanged(
  origin: string,
  { method, url, headers, body }: HttpRequest,
): Promise<Answered> {
  const bytes = requestBytes(method, url, headers, body)
  const response = await exchange(Number(new URL(origin).port), bytes)
  const isJson = headerValues(response, 'content-type').some((type) => type.includes('json'))
  const text = response.body.toString()
  return { status: response.status, body: isJson ? JSON.parse(text) : text }
}
