import type { Server } from 'node:http'
import {
  type AuthenticatedClient,
  createAuthenticatedClient,
  type Grant,
  isFinalizedGrantWithAccessToken,
  isFinalizedGrantWithSubject,
  isPendingGrant,
  OpenPaymentsClientError,
  type PendingGrant,
} from '@interledger/open-payments'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import {
  type AuthorizationServer,
  createAuthorizationServer,
  memoryStore,
  walletAddressSubjects,
} from '../../src/index.js'
import { hosts, listening, stopped } from '../support/hosts.js'
import { publishedKeys, testKey } from '../support/keys.js'
import { interactionId } from '../support/world.js'

const alice = 'https://wallet.example/alice'
const shop = 'https://shop.example'
const key = testKey('shop')
const clientKeys = publishedKeys()
clientKeys.publish(shop, key)

const mounts = hosts.filter(({ name }) => ['express', 'fastify', 'hono'].includes(name))

describe.each(mounts)('the published client asks who the owner is, on $name', ({ create }) => {
  let auth: AuthorizationServer
  let server: Server
  let url: string
  let client: AuthenticatedClient

  beforeAll(async () => {
    server = await create((request) => auth.handle(request))
    url = `http://localhost:${await listening(server)}/`
    auth = createAuthorizationServer({
      grantEndpoint: url,
      consentUrl: 'https://wallet.example/consent',
      store: memoryStore(),
      clientKeys,
      subjects: walletAddressSubjects,
    })
    client = await createAuthenticatedClient({
      walletAddressUrl: shop,
      keyId: key.kid,
      privateKey: key.privateKey,
      useHttp: true,
      validateResponses: true,
      logLevel: 'silent',
    })
  })
  afterAll(() => stopped(server))

  const subject = { sub_ids: [{ id: alice, format: 'uri' as const }] }
  const outgoing = {
    access: [
      { type: 'outgoing-payment' as const, actions: ['create' as const], identifier: alice },
    ],
  }
  const interact = {
    start: ['redirect' as const],
    finish: { method: 'redirect' as const, uri: `${shop}/back`, nonce: 'a-nonce' },
  }

  async function approved(grant: Grant | PendingGrant) {
    if (!isPendingGrant(grant)) throw new Error('it is not pending')
    const id = interactionId(grant.interact.redirect)
    const approval = { resourceOwner: 'alice', walletAddresses: [alice] }
    const result = await auth.interactions.approve(id, approval)
    const redirect = new URL((result.ok && result.redirect) || '')
    const { uri, access_token } = grant.continue
    return {
      continuation: { url: uri, accessToken: access_token.value },
      interact_ref: redirect.searchParams.get('interact_ref') ?? '',
    }
  }

  test('and of nothing else: it gets the name and no token', async () => {
    const grant = await client.grant.request({ url }, { subject, interact })
    const { continuation, interact_ref } = await approved(grant)
    const answer = (await client.grant.continue(continuation, { interact_ref })) as Grant
    expect(isFinalizedGrantWithSubject(answer) && answer.subject).toEqual(subject)
    expect(isFinalizedGrantWithAccessToken(answer)).toBe(false)
    expect(await client.grant.cancel(continuation)).toBeUndefined()
  })

  test('beside access: it gets both', async () => {
    const request = { access_token: outgoing, subject, interact }
    const { continuation, interact_ref } = await approved(
      await client.grant.request({ url }, request),
    )
    const answer = (await client.grant.continue(continuation, { interact_ref })) as Grant
    expect(isFinalizedGrantWithSubject(answer) && answer.subject).toEqual(subject)
    expect(isFinalizedGrantWithAccessToken(answer) && answer.access_token?.access).toEqual(
      outgoing.access,
    )
  })

  test('without an interaction: it is told that there must be one', async () => {
    const request = { access_token: outgoing, subject }
    const error = await client.grant.request({ url }, request).catch((error: unknown) => error)
    expect(error).toBeInstanceOf(OpenPaymentsClientError)
    expect(error).toMatchObject({ status: 400, code: 'invalid_request' })
  })
})
