import { describe, expect, test } from 'vitest'
import type { HttpRequest } from '../../src/entry-adapter.js'
import { createSignatureVerifier } from '../../src/index.js'
import { bankId, bankKey } from '../support/introspection.js'
import { type Sdk, sdkSignedRequest, sdks } from '../support/sdk-signatures.js'
import { headerOf, type SignOptions, withHeader } from '../support/sign.js'
import {
  answerOf,
  approvedGrant,
  bob,
  createWorld,
  grantEndpoint,
  incomingAccess,
  resourceServer,
  type TestClient,
  type World,
  type WorldOptions,
} from '../support/world.js'

/** Signs and sends requests like an SDK, with the key of a client. */
function sender(sdk: Sdk, world: World, { key }: Pick<TestClient, 'key'>) {
  type Request = Omit<SignOptions, 'key' | 'created'>
  const sign = (request: Request) =>
    sdkSignedRequest(sdk, { ...request, key, created: Math.floor(world.clock.now() / 1000) })
  const send = async (request: Request) => answerOf(await world.handle(sign(request)))
  return { sign, send }
}

/** Returns the request with its signature in the form of RFC 9421. */
function withColons(request: HttpRequest): HttpRequest {
  const signature = headerOf(request, 'signature')?.replace('sig1=', '') ?? ''
  return withHeader(request, 'Signature', `sig1=:${signature}:`)
}

const compatibility = { signatureFields: 'rfc9421' } as const
const strictServers: WorldOptions = { auth: { compatibility }, resources: { compatibility } }

const malformed = {
  php: 'Signature is not a Structured Fields dictionary, or contains a duplicate key',
  rust: 'Signature-Input is not a Structured Fields dictionary, or contains a duplicate key',
}

const grantBody = JSON.stringify({
  client: 'https://shop.example',
  access_token: { access: [incomingAccess] },
})

describe.each(sdks)('a client that signs like the SDK for %s', (sdk) => {
  test('gets a grant, creates an incoming payment and reads it', async () => {
    const world = createWorld()
    const { send } = sender(sdk, world, world.client('shop'))
    const granted = await send({ method: 'POST', url: grantEndpoint, body: grantBody })
    expect(granted.status).toBe(200)
    const token: string = granted.body.access_token.value
    const created = await send({
      method: 'POST',
      url: `${resourceServer}/incoming-payments`,
      token,
      body: JSON.stringify({ walletAddress: bob }),
    })
    expect(created.status).toBe(201)
    const read = await send({ method: 'GET', url: created.body.id, token })
    expect([read.status, read.body.id]).toEqual([200, created.body.id])
    expect(world.refusals).toEqual([])
  })

  test('is refused by strict servers, which report the reason', async () => {
    const world = createWorld(strictServers)
    const client = world.client('shop')
    const { send } = sender(sdk, world, client)
    const granted = await send({ method: 'POST', url: grantEndpoint, body: grantBody })
    expect([granted.status, granted.body.error.code]).toEqual([401, 'invalid_client'])
    const { body } = await client.request([incomingAccess])
    const token: string = body.access_token.value
    const payment = await client.createPayment(token, { walletAddress: bob })
    const read = await send({ method: 'GET', url: payment.body.id, token })
    expect([read.status, read.body.error.code]).toEqual([401, 'invalid_signature'])
    expect(world.refusals.map(({ refusal, reason }) => [refusal, reason])).toEqual([
      ['signature_invalid', malformed[sdk]],
      ['signature_invalid', malformed[sdk]],
    ])
    expect((await client.getPayment(token, payment.body.id)).status).toBe(200)
  })

  test('cannot continue twice with the same signature, in any form', async () => {
    const world = createWorld()
    const client = world.client('shop')
    const { body, interactRef } = await approvedGrant(world, client)
    const request = sender(sdk, world, client).sign({
      method: 'POST',
      url: body.continue.uri,
      token: body.continue.access_token.value,
      body: JSON.stringify({ interact_ref: interactRef }),
    })
    expect((await world.handle(request)).status).toBe(200)
    expect((await world.handle(request)).status).toBe(409)
    expect(world.refusals.at(-1)?.refusal).toBe('repeated')
    expect((await world.handle(withColons(request))).status).toBe(sdk === 'php' ? 409 : 401)
    // Only the PHP SDK signs the standard signature base, so that the colons make it a standard
    // signature.
    const refusal = sdk === 'php' ? 'repeated' : 'signature_invalid'
    expect(world.refusals.at(-1)?.refusal).toBe(refusal)
  })

  test('is verified on routes of the host, unless the verifier is strict', async () => {
    const world = createWorld()
    const { key } = world.client('shop')
    const { sign } = sender(sdk, world, { key })
    const request = sign({ method: 'POST', url: 'https://wallet.example/own', body: '{}' })
    const options = { url: 'https://wallet.example', clock: world.clock }
    const verify = createSignatureVerifier(options)
    const strict = createSignatureVerifier({ ...options, compatibility })
    expect(await verify(request, key)).toEqual({ ok: true, keyid: key.kid })
    expect(await strict(request, key)).toEqual({ ok: false, reason: malformed[sdk] })
  })

  test('is refused at introspection, which only resource servers use', async () => {
    const resourceServers = [{ id: bankId, keys: [bankKey] }]
    const world = createWorld({ auth: { resourceServers } })
    const { body } = await world.client('shop').request([incomingAccess])
    const answer = await sender(sdk, world, { key: bankKey }).send({
      method: 'POST',
      url: `${grantEndpoint}/introspect`,
      body: JSON.stringify({
        access_token: body.access_token.value,
        proof: 'httpsig',
        resource_server: bankId,
      }),
    })
    expect([answer.status, answer.body.error.code]).toEqual([400, 'invalid_resource_server'])
    expect(world.refusals.at(-1)?.reason).toBe(malformed[sdk])
  })
})

test('a retry of the TypeScript client that lost its signature is refused with this reason', async () => {
  const world = createWorld()
  const client = world.client('shop')
  const { body } = await client.request([incomingAccess])
  const token: string = body.access_token.value
  const payment = await client.createPayment(token, { walletAddress: bob })
  const signed = client.sign({ method: 'GET', url: payment.body.id, token })
  const withoutInput = withHeader(signed, 'Signature-Input', 'undefined')
  const answer = await world.handle(withHeader(withoutInput, 'Signature', 'undefined'))
  expect(answer.status).toBe(401)
  expect(world.refusals.at(-1)).toMatchObject({
    refusal: 'signature_invalid',
    reason: 'repeated without a signature: the first answer was another one',
  })
  expect(JSON.parse(`${answer.body}`).error).toEqual({
    code: 'invalid_signature',
    description: 'Signature validation error',
    details: { problem: 'repeated without a signature: the first answer was another one' },
  })
  expect((await client.getPayment(token, payment.body.id)).status).toBe(200)
})
