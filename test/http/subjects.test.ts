import { describe, expect, test, vi } from 'vitest'
import { type Subjects, walletAddressSubjects } from '../../src/index.js'
import { hostCall } from '../support/host-call.js'
import {
  alice,
  bob,
  carol,
  createWorld,
  finishUri,
  grantEndpoint,
  interactionId,
  outgoingAccess,
  type TestClient,
  type World,
  withFinish,
  withoutFinish,
} from '../support/world.js'

const approval = { resourceOwner: 'alice', walletAddresses: [alice] }
const asAlice = { id: alice, format: 'uri' } as const

function setUp(subjects: Subjects | undefined = walletAddressSubjects, policy = {}) {
  const world = createWorld({ auth: { policy, ...(subjects && { subjects }) } })
  return { world, client: world.client() }
}

/** Requests the subject, and optionally access. */
function ask(client: TestClient, more: object = {}, id: string = alice) {
  const subject = { sub_ids: [{ id, format: 'uri' }] }
  return client.post(grantEndpoint, {
    client: client.client,
    subject,
    interact: withFinish,
    ...more,
  })
}

const access_token = { access: [outgoingAccess] }

type Approval = Parameters<World['auth']['interactions']['approve']>[1]

async function approved(world: World, client: TestClient, more: object = {}, as = {}) {
  const { body } = await ask(client, more)
  const id = interactionId(body.interact.redirect)
  const result = await world.auth.interactions.approve(id, { ...approval, ...as } as Approval)
  if (!result.ok) throw new Error(result.reason)
  const redirect = new URL(result.redirect ?? finishUri)
  return { id, body, interactRef: redirect.searchParams.get('interact_ref') ?? undefined }
}

describe('a subject request', () => {
  test('needs the consent of the owner, and returns no subject before it', async () => {
    const { client } = setUp()
    const { status, body } = await ask(client)
    expect(status).toBe(200)
    expect(Object.keys(body).sort()).toEqual(['continue', 'interact'])
    expect(body.continue).toMatchObject({ wait: 5 })
  })

  test('returns the subject without an access token after consent', async () => {
    const { world, client } = setUp()
    const { body, interactRef } = await approved(world, client)
    const answer = await client.continue(body.continue, interactRef)
    expect(answer.status).toBe(200)
    expect(answer.body).toEqual({
      subject: { sub_ids: [asAlice] },
      continue: { access_token: body.continue.access_token, uri: body.continue.uri },
    })
  })

  test('returns no subject to a poll before the decision of the owner', async () => {
    const { world, client } = setUp()
    const { body } = await ask(client, { interact: withoutFinish })
    world.clock.advance(5_000)
    const answer = await client.continue(body.continue)
    expect(answer.body).toEqual({ continue: body.continue })
  })

  test('with access returns both, and the same both again after a lost response', async () => {
    const { world, client } = setUp()
    const { body, interactRef } = await approved(world, client, { access_token })
    const first = await client.continue(body.continue, interactRef)
    expect(first.body.access_token.access).toEqual([outgoingAccess])
    expect(first.body.subject).toEqual({ sub_ids: [asAlice] })
    expect((await client.continue(body.continue, interactRef)).body).toEqual(first.body)
  })

  test('returns no credential that a resource server accepts', async () => {
    const { world, client } = setUp()
    const { body, interactRef } = await approved(world, client)
    await client.continue(body.continue, interactRef)
    for (const accessToken of [body.continue.access_token.value, interactRef ?? '']) {
      expect(await world.auth.introspect({ accessToken })).toEqual({ active: false })
    }
  })

  test.each([
    [
      'the server does not support subjects',
      undefined,
      {},
      400,
      'invalid_request',
      'subject_unsupported',
    ],
    [
      'there is no interaction',
      walletAddressSubjects,
      { interact: undefined },
      400,
      'invalid_request',
      'interaction_required',
    ],
    [
      'the finish method that the host requires is missing',
      walletAddressSubjects,
      { interact: withoutFinish },
      400,
      'invalid_request',
      'finish_required',
    ],
  ] as const)('is refused if %s', async (_, subjects, more, status, code, refusal) => {
    const world = createWorld({
      auth: { policy: { subjectRequiresFinish: true }, ...(subjects && { subjects }) },
    })
    const client = world.client()
    for (const beside of [{}, { access_token }]) {
      const answer = await ask(client, { ...beside, ...more })
      expect([answer.status, answer.body.error.code]).toEqual([status, code])
      expect(world.refusals.at(-1)?.refusal).toBe(refusal)
    }
  })

  test('needs consent even if the host requires none for any access', async () => {
    const { client } = setUp(walletAddressSubjects, { requiresConsent: () => false })
    const { body } = await ask(client, { access_token })
    expect(body).toHaveProperty('interact')
    expect(body).not.toHaveProperty('access_token')
  })

  test('does not change the finish requirement of requests without a subject', async () => {
    const { client } = setUp(walletAddressSubjects, { subjectRequiresFinish: true })
    expect((await client.request([outgoingAccess], withoutFinish)).status).toBe(200)
  })

  test('without a finish method is refused only if the host requires one for the subject or the access', async () => {
    const requiresFinish = () => true
    const polling = { interact: withoutFinish }
    const { client } = setUp()
    expect((await ask(client, polling)).status).toBe(200)
    const strict = setUp(walletAddressSubjects, { requiresFinish }).client
    expect((await ask(strict, polling)).status).toBe(200)
    expect((await ask(strict, { ...polling, access_token })).status).toBe(400)
  })
})

describe('the interaction of a subject request', () => {
  test('shows the requested subject to the consent page', async () => {
    const { world, client } = setUp()
    const { body } = await ask(client)
    const id = interactionId(body.interact.redirect)
    expect(await world.auth.interactions.get(id)).toMatchObject({
      status: 'pending',
      client: 'https://shop.example',
      access: [],
      subject: asAlice,
    })
  })

  test('shows the subject that the client receives after approval', async () => {
    const named = { id: 'https://wallet.example/pairwise/1', format: 'uri' as const }
    const { world, client } = setUp({ resolve: async () => named })
    const { id } = await approved(world, client)
    expect(await world.auth.interactions.get(id)).toMatchObject({ subject: named })
    const withheld = await approved(world, client, { access_token }, { sharesSubject: false })
    expect(await world.auth.interactions.get(withheld.id)).not.toHaveProperty('subject')
  })

  test('cannot be approved by an owner who is not the requested subject, and stays open', async () => {
    const { world, client } = setUp()
    const { body } = await ask(client)
    const id = interactionId(body.interact.redirect)
    const asBob = { resourceOwner: 'bob', walletAddresses: [bob] }
    expect(await world.auth.interactions.approve(id, asBob)).toMatchObject({
      ok: false,
      refusal: 'not_the_owner',
    })
    expect(await world.auth.interactions.get(id)).toMatchObject({ status: 'pending' })
    expect(await world.auth.interactions.approve(id, approval)).toMatchObject({ ok: true })
  })

  test('passes the request to the host, and keeps only the public members of the result', async () => {
    const row = { id: alice, format: 'uri' as const, internal: 'row 17' }
    const resolve = vi.fn(async () => row)
    const { world, client } = setUp({ resolve })
    const walletAddresses = [`${alice}/`, bob, alice]
    const { id } = await approved(world, client, {}, { walletAddresses })
    expect(resolve.mock.calls).toEqual([
      [
        {
          resourceOwner: 'alice',
          walletAddresses: [alice, bob],
          requested: asAlice,
          client: 'https://shop.example',
        },
        { signal: expect.any(AbortSignal) },
      ],
    ])
    expect((await world.auth.interactions.get(id))?.subject).toEqual(asAlice)
  })

  test('stays undecided while the host fails to resolve the subject', async () => {
    const { world, client } = setUp({ resolve: () => Promise.reject(new Error('no database')) })
    const { body } = await ask(client)
    const id = interactionId(body.interact.redirect)
    await expect(world.auth.interactions.approve(id, approval)).rejects.toThrow('no database')
    expect(await world.auth.interactions.get(id)).toMatchObject({ status: 'pending' })
  })
})

describe('walletAddressSubjects', () => {
  const query = { resourceOwner: 'alice', walletAddresses: [alice, carol], client: 'x' }

  test.each([alice, carol, `${alice}/`, 'https://WALLET.example:443/alice'])(
    'confirms a wallet address of the owner in the spelling of the client: %s',
    async (id) => {
      const requested = { id, format: 'uri' } as const
      expect(await walletAddressSubjects.resolve({ ...query, requested }, hostCall)).toEqual(
        requested,
      )
    },
  )

  test.each([bob, `${alice}/x`, `${alice}?`, 'urn:alice', 'https://wallet.example', 'alice'])(
    'does not confirm %s',
    async (id) => {
      const requested = { id, format: 'uri' } as const
      expect(await walletAddressSubjects.resolve({ ...query, requested }, hostCall)).toBeUndefined()
    },
  )
})
