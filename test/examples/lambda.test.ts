import { type ClientRequest, testClient } from 'open-payments-server-testing'
import { describe, expect, test } from 'vitest'
import { handler } from '../../examples/frameworks/lambda.js'
import type { Handler } from '../../src/index.js'

const origin = 'https://wallet.example'
const client = testClient({ seed: 'shop', kid: 'shop-1' })

/** Sends a request as API Gateway does: lines of one name are joined, and a lone question mark is lost. */
function gateway(isBase64Encoded: boolean): Handler {
  return async ({ method, url, headers, body }) => {
    const [rawPath = '', rawQueryString = ''] = url.split('?')
    const lines = new Map<string, string>()
    for (const [name, value] of headers) {
      const key = name.toLowerCase()
      lines.set(key, lines.has(key) ? `${lines.get(key)},${value}` : value)
    }
    const answer = await handler({
      rawPath,
      rawQueryString,
      headers: Object.fromEntries(lines),
      ...(body.length > 0 && {
        body: Buffer.from(body).toString(isBase64Encoded ? 'base64' : 'utf8'),
      }),
      isBase64Encoded,
      requestContext: { http: { method } },
    })
    const { statusCode: status, headers: own, body: text } = answer
    return text === '' ? { status, headers: own } : { status, headers: own, body: text }
  }
}

describe.each([
  ['text', false],
  ['base64', true],
])('the handler for AWS Lambda, with bodies as %s', (_, isBase64Encoded) => {
  // biome-ignore lint/suspicious/noExplicitAny: bodies of several operations
  async function send(request: ClientRequest): Promise<{ status: number; body: any }> {
    return client.send(gateway(isBase64Encoded), { nonce: crypto.randomUUID(), ...request })
  }

  test('serves a client from its grant to the revocation', async () => {
    const access = [{ type: 'incoming-payment', actions: ['create', 'list', 'complete'] }]
    const asked = { client: client.client, access_token: { access } }
    const granted = await send({ method: 'POST', url: `${origin}/auth`, body: asked })
    expect(granted.status).toBe(200)
    const { value, manage: url } = granted.body.access_token
    const rotated = await send({ method: 'POST', url, token: value })
    const { value: token, manage } = rotated.body.access_token
    const body = { walletAddress: `${origin}/alice`, metadata: { note: 'Grüße' } }
    const created = await send({ method: 'POST', url: `${origin}/incoming-payments`, token, body })
    expect(created.status).toBe(201)
    const query = `wallet-address=${encodeURIComponent(`${origin}/alice`)}`
    const listed = await send({ method: 'GET', url: `${origin}/incoming-payments?${query}`, token })
    expect(listed.body.result).toContainEqual(expect.objectContaining({ id: created.body.id }))
    const complete = { method: 'POST', url: `${created.body.id}/complete`, token }
    expect((await send(complete)).body).toMatchObject({ completed: true })
    expect((await send({ method: 'DELETE', url: manage, token })).status).toBe(204)
  })
})
