import { once } from 'node:events'
import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { AuthenticatedClient } from '@interledger/open-payments'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { typescript } from '../support/clients/all.js'
import { type Version, versions } from '../support/clients/versions.js'
import { listUrl, type Unwritten, written } from '../support/clients/write.js'
import { testKey } from '../support/keys.js'
import { clientSettings } from '../support/official-client.js'
import { headerOf } from '../support/sign.js'

const key = testKey('shop')

interface Captured {
  readonly method: string | undefined
  readonly url: string | undefined
  readonly headers: readonly (readonly [name: string, value: string])[]
  readonly body: Uint8Array
}

/** Records every request and refuses it. */
const captured: Captured[] = []
const server = createServer(async (request, response) => {
  const { method, url } = request
  captured.push({ method, url, headers: linesOf(request), body: await bodyOf(request) })
  response.writeHead(400, { connection: 'close' }).end()
})

function linesOf({ rawHeaders }: IncomingMessage): Captured['headers'] {
  return rawHeaders.flatMap((name, at) =>
    at % 2 === 0 ? [[name, rawHeaders[at + 1] ?? ''] as const] : [],
  )
}

async function bodyOf(request: IncomingMessage): Promise<Uint8Array> {
  const chunks: Uint8Array[] = []
  for await (const chunk of request) chunks.push(chunk)
  return Buffer.concat(chunks)
}

let origin: string
const clients = new Map<string, AuthenticatedClient>()

beforeAll(async () => {
  server.listen(0, 'localhost')
  await once(server, 'listening')
  origin = `http://localhost:${(server.address() as AddressInfo).port}`
  for (const [version, { createAuthenticatedClient }] of Object.entries(versions)) {
    const { kid: keyId, privateKey } = key
    const identity = { walletAddressUrl: `${origin}/shop`, keyId, privateKey }
    // The responses are refusals. Without response validation the client starts immediately.
    const settings = { ...identity, ...clientSettings, validateResponses: false }
    clients.set(version, await createAuthenticatedClient(settings))
  }
})
afterAll(() => void server.close())

const access = { type: 'quote', actions: ['create', 'read'] } as const
const accessToken = 'a-token'

interface Case {
  readonly call: (client: AuthenticatedClient) => Promise<unknown>
  readonly request: () => Unwritten
}

const cases: Readonly<Record<string, Case>> = {
  'a grant request': {
    call: ({ grant }) =>
      grant.request({ url: origin }, { access_token: { access: [access] } } as never),
    request: () => ({
      method: 'POST',
      url: `${origin}/`,
      body: typescript.json({
        access_token: { access: [access] },
        client: `${origin}/shop`,
      }),
    }),
  },
  'a continuation': {
    call: ({ grant }) =>
      grant.continue({ url: `${origin}/continue/1`, accessToken }, { interact_ref: 'a-ref' }),
    request: () => ({
      method: 'POST',
      url: `${origin}/continue/1`,
      token: accessToken,
      body: typescript.json({ interact_ref: 'a-ref' }),
    }),
  },
  'a rotation': {
    call: ({ token }) => token.rotate({ url: `${origin}/token/1`, accessToken }),
    request: () => ({ method: 'POST', url: `${origin}/token/1`, token: accessToken }),
  },
  'a revocation': {
    call: ({ token }) => token.revoke({ url: `${origin}/token/1`, accessToken }),
    request: () => ({ method: 'DELETE', url: `${origin}/token/1`, token: accessToken }),
  },
  'a list request': {
    call: ({ incomingPayment }) =>
      incomingPayment.list({ url: origin, accessToken, walletAddress: `${origin}/bob` }),
    request: () => ({
      method: 'GET',
      url: listUrl(typescript, `${origin}/incoming-payments`, `${origin}/bob`),
      token: accessToken,
    }),
  },
}

const rows = Object.keys(versions).flatMap((version) =>
  Object.entries(cases).map(([name, row]) => ({ version, name, ...row })),
)

describe('the TypeScript dialect of the tests', () => {
  test.each(rows)('writes $name as version $version of the client does', async (row) => {
    captured.length = 0
    await row
      .call(clients.get(row.version as Version) as AuthenticatedClient)
      .catch(() => undefined)
    const [sent] = captured
    if (sent === undefined) throw new Error('the client sent nothing')
    const input = headerOf({ ...sent, method: '', url: '' }, 'Signature-Input') ?? ''
    const created = Number(/;created=(\d+)/.exec(input)?.[1])
    const ours = written(typescript, row.request(), { key, created })
    expect([sent.method, sent.url]).toEqual([ours.method, ours.url])
    expect(Buffer.from(sent.body).toString()).toBe(Buffer.from(ours.body).toString())
    // The signature is deterministic. It covers the target, the token, the digest, the length and the type.
    const named = (lines: Captured['headers']) =>
      lines
        .map(([name, value]) => [name.toLowerCase(), value] as const)
        .filter(([name]) => compared.has(name))
        .toSorted()
    expect(named(sent.headers)).toEqual(named(ours.headers))
  })
})

/** The header fields that do not depend on the version of Node.js. */
const compared = new Set([
  'accept',
  'authorization',
  'content-digest',
  'content-length',
  'content-type',
  'signature',
  'signature-input',
])
