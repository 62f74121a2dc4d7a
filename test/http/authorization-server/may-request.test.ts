import { describe, expect, test } from 'vitest'
import { HostAnswerError, type MayRequest, walletAddressSubjects } from '../../../src/index.js'
import {
  alice,
  createWorld,
  grantEndpoint,
  incomingAccess,
  outgoingAccess,
  withFinish,
} from '../../support/world.js'

function setUp(mayRequest: MayRequest) {
  const world = createWorld({ auth: { policy: { mayRequest }, subjects: walletAddressSubjects } })
  return { world, client: world.client() }
}

const refused = { ok: false } as const

describe('the permission to request a grant', () => {
  test('is given to every client by default', async () => {
    expect((await createWorld().client('anybody').request([incomingAccess])).status).toBe(200)
  })

  test('depends on the host, which receives the client, the access and the subject', async () => {
    const asked: Parameters<MayRequest>[0][] = []
    const { world, client } = setUp((asks) => ({ ok: asked.push(asks) > 0 }))
    await client.request([incomingAccess, outgoingAccess], withFinish)
    const keyed = world.client('directed', { byKey: true })
    await keyed.request([incomingAccess])
    const subject = { id: alice, format: 'uri' }
    const named = { subject: { sub_ids: [subject] }, interact: withFinish }
    await client.post(grantEndpoint, { client: client.client, ...named })
    const urn = 'urn:ietf:params:oauth:jwk-thumbprint:sha-256'
    expect(asked).toEqual([
      { client: 'https://shop.example', access: [incomingAccess, outgoingAccess] },
      { client: `${urn}:${keyed.key.thumbprint}`, access: [incomingAccess] },
      { client: 'https://shop.example', access: [], subject },
    ])
  })

  test.each<[string, MayRequest]>([
    ['synchronously', () => ({ ok: true })],
    ['asynchronously', async () => ({ ok: true })],
  ])('can be given %s', async (_, mayRequest) => {
    const { client } = setUp(mayRequest)
    expect((await client.request([incomingAccess])).status).toBe(200)
  })

  test.each<[string, MayRequest, string]>([
    ['when the host refuses it', () => refused, 'the host does not allow it'],
    ['when the host resolves to a refusal', async () => refused, 'the host does not allow it'],
    ['with a reason', () => ({ ...refused, reason: 'not on the list' }), 'not on the list'],
    [
      'without text as the reason',
      (() => ({ ...refused, reason: 1 })) as never,
      'the host does not allow it',
    ],
  ])('is refused %s, and the client does not learn why', async (_, mayRequest, reason) => {
    const { world, client } = setUp(mayRequest)
    const { status, body } = await client.request([incomingAccess])
    expect([status, body]).toEqual([
      403,
      { error: { code: 'request_denied', description: 'Request is not allowed' } },
    ])
    expect(world.refusals.at(-1)).toMatchObject({
      refusal: 'request_not_allowed',
      reason,
      client: 'https://shop.example',
      operation: 'requestGrant',
    })
  })

  test.each([
    ['true', true],
    ['false', false],
    ['undefined', undefined],
    ['null', null],
    ['a string', 'yes'],
    ['an empty object', {}],
    ['a reason alone', { reason: 'not on the list' }],
    ['an ok that is no boolean', { ok: 1 }],
  ])(
    'is not given when the host mistakenly returns %s, which onError learns',
    async (_, answer) => {
      const { world, client } = setUp((() => answer) as never)
      const { status, headers, body } = await client.request([incomingAccess])
      expect([status, headers['retry-after'], body.error.code]).toEqual([
        500,
        undefined,
        'request_denied',
      ])
      expect(world.errors).toEqual([
        new HostAnswerError('mayRequest', 'it must be { ok: true } or a refusal'),
      ])
    },
  )

  test('can depend on the client and the access', async () => {
    const { world, client } = setUp(({ client, access }) => ({
      ok:
        client === 'https://shop.example' &&
        access.every(({ type }) => type !== 'outgoing-payment'),
    }))
    expect((await client.request([incomingAccess])).status).toBe(200)
    expect((await client.request([outgoingAccess], withFinish)).status).toBe(403)
    expect((await world.client('other').request([incomingAccess])).status).toBe(403)
  })

  test('consumes the nonce and leaves no grant when it is refused', async () => {
    let allowed = false
    const { world, client } = setUp(() => ({ ok: allowed }))
    const request = client.sign({
      method: 'POST',
      url: grantEndpoint,
      body: JSON.stringify({ client: client.client, access_token: { access: [incomingAccess] } }),
    })
    expect((await world.handle(request)).status).toBe(403)
    allowed = true
    expect((await world.handle(request)).status).toBe(403)
    world.clock.advance(365 * 86_400_000)
    // The nonce is the only record to remove.
    expect(await world.auth.sweep()).toMatchObject({ removed: 1 })
  })
})
