import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  InvalidInputError,
  memoryStore,
  type Store,
  walletAddressSubjects,
} from '../../src/index.js'
import { ownerListName } from '../../src/service/grant/lists.js'
import { invalidInput } from '../support/invalid-input.js'
import { testKey } from '../support/keys.js'
import { runs } from '../support/runs.js'
import { createSpendingWorld, outgoingItem, pay, usd } from '../support/spending.js'
import { unicodeText } from '../support/unicode-text.js'
import {
  alice,
  approvedGrant,
  bob,
  createWorld,
  grantEndpoint,
  incomingAccess,
  interactionId,
  issuedGrant,
  origin,
  outgoingAccess,
  type TestClient,
  type World,
  withFinish,
  withoutFinish,
} from '../support/world.js'

const day = 86_400_000

function grantIdOf({ id }: { readonly id: string }): string {
  return id.split('.')[0] ?? ''
}

/** Requests a grant, approves it as this owner and returns its id. */
async function connect(world: World, client: TestClient, resourceOwner: string): Promise<string> {
  const { body } = await client.request([outgoingAccess], withFinish)
  const id = interactionId(body.interact.redirect)
  const approval = { resourceOwner, walletAddresses: [alice] }
  const result = await world.auth.interactions.approve(id, approval)
  if (!result.ok) throw new Error(result.reason)
  return grantIdOf({ id })
}

async function listed(world: World, resourceOwner: string): Promise<readonly string[]> {
  const { result } = await world.auth.grants.list({ resourceOwner, first: 100 })
  return result.map(({ grantId }) => grantId)
}

describe('the grants of an owner in some states', () => {
  /** Seven grants of alice, of which every third is alive. */
  async function mixed() {
    const world = createWorld()
    const client = world.client()
    const alive: string[] = []
    for (let number = 0; number < 7; number++) {
      const id = await connect(world, client, 'alice')
      world.clock.advance(1)
      if (number % 3 === 0) alive.push(id)
      else await world.auth.grants.revoke(id)
    }
    return { grants: world.auth.grants, alive }
  }
  const live = { resourceOwner: 'alice', statuses: ['approved'] } as const

  test('fill their pages, in both directions, and know whether more follow', async () => {
    const { grants, alive } = await mixed()
    for (const forward of [true, false]) {
      const seen: string[] = []
      let cursor: string | undefined
      for (let page = 0; page < alive.length; page++) {
        const size = forward ? { first: 1 } : { last: 1 }
        const query = { ...live, ...size, ...(cursor === undefined ? {} : { cursor }) }
        const { result, pagination } = await grants.list(query)
        seen.push(...result.map(({ grantId }) => grantId))
        const [before, after] = [page > 0, page < alive.length - 1]
        expect(pagination).toMatchObject({
          hasNextPage: forward ? after : before,
          hasPreviousPage: forward ? before : after,
        })
        cursor = forward ? pagination.endCursor : pagination.startCursor
      }
      expect(seen).toEqual(forward ? alive : alive.toReversed())
    }
  })

  test('are those that iterate returns', async () => {
    const { grants, alive } = await mixed()
    const ids: string[] = []
    for await (const { grantId } of grants.iterate(live)) ids.push(grantId)
    expect(ids).toEqual(alive)
    const none = { resourceOwner: 'alice', statuses: [] }
    expect((await grants.list(none)).result).toEqual([])
    expect((await grants.list({ resourceOwner: 'alice' })).result).toHaveLength(7)
  })

  test('can be those with access to one wallet address, on pages that neither skip nor repeat', async () => {
    const world = createWorld()
    const client = world.client()
    const { grants, interactions } = world.auth
    const accountsOf = [[alice], [bob], [alice, bob], [bob], [alice]] as const
    const ids: string[] = []
    for (const accounts of accountsOf) {
      const access = accounts.map((identifier) => ({ ...outgoingAccess, identifier }))
      const { body } = await client.request(access, withFinish)
      const id = interactionId(body.interact.redirect)
      await interactions.approve(id, { resourceOwner: 'alice', walletAddresses: [alice, bob] })
      ids.push(grantIdOf({ id }))
      world.clock.advance(1)
    }
    await grants.revoke(ids[2] ?? '')
    for (const [walletAddress, statuses, expected] of [
      [alice, undefined, [0, 2, 4]],
      [bob, undefined, [1, 2, 3]],
      [`${bob}/`, undefined, [1, 2, 3]],
      [bob, ['approved'], [1, 3]],
      ['https://wallet.example/nobody', undefined, []],
    ] as const) {
      const query = { resourceOwner: 'alice', walletAddress, ...(statuses && { statuses }) }
      const paged: string[] = []
      let cursor: string | undefined
      for (let more = true; more; ) {
        const { result, pagination } = await grants.list({ ...query, first: 1, cursor })
        paged.push(...result.map(({ grantId }) => grantId))
        more = pagination.hasNextPage
        cursor = pagination.endCursor
      }
      const all: string[] = []
      for await (const { grantId } of grants.iterate(query)) all.push(grantId)
      expect([paged, all]).toEqual([expected.map((n) => ids[n]), expected.map((n) => ids[n])])
    }
  })

  test('of an owner with thousands of ended ones take a few queries of the store each', async () => {
    const ended = 2_000
    const memory = memoryStore()
    let queries = 0
    const store: Store = {
      ...memory,
      list(query) {
        queries += 1
        return memory.list(query)
      },
    }
    const world = createWorld({ store })
    const id = await connect(world, world.client(), 'alice')
    const grant = await world.auth.grants.getRecord(id)
    if (grant === undefined) throw new Error('the grant does not exist')
    for (let number = 0; number < ended; number++) {
      const finalized = { reason: 'revoked', at: 0 } as const
      const lists = grant.lists?.map((entry) => ({ ...entry, at: entry.at - 1 })) ?? []
      const next = { ...grant, id: `${id.slice(0, 12)}${number}`, version: 1, lists, finalized }
      await memory.commit({ changes: [{ kind: 'grant', next, expectedVersion: 0 }], guards: [] })
    }

    const { grants } = world.auth
    const found: string[] = []
    let cursor: string | undefined
    let calls = 0
    for (let more = true; more; calls += 1) {
      queries = 0
      const { result, pagination } = await grants.list({ ...live, first: 1, cursor })
      expect(queries).toBeLessThanOrEqual(3)
      found.push(...result.map(({ grantId }) => grantId))
      more = pagination.hasNextPage
      cursor = pagination.endCursor
    }
    expect(found).toEqual([id])
    expect(calls).toBeLessThanOrEqual(Math.ceil(ended / 200) + 1)

    queries = 0
    for (const selected of [{ statuses: ['expired'] as const }, { walletAddress: bob }]) {
      queries = 0
      const none = await grants.list({ resourceOwner: 'alice', ...selected })
      expect([queries, none.result, none.pagination.hasNextPage]).toEqual([2, [], true])
    }
    queries = 0
    let lines = 0
    for await (const _ of grants.exportHistory({ resourceOwner: 'alice' })) lines += 1
    expect(lines).toBe(ended)
    expect(queries).toBeLessThanOrEqual((2 * ended) / 100 + 2)
  })
})

const unknownGrant = {
  ok: false,
  refusal: 'grant_unknown',
  reason: 'the grant does not exist',
}

describe('revoking a grant', () => {
  test('tells whether this call ended it', async () => {
    const world = createWorld()
    const client = world.client()
    const { grants, interactions } = world.auth
    const id = await connect(world, client, 'alice')
    expect(await grants.revoke(id)).toEqual({ ok: true, changed: true })
    expect(await grants.revoke(id)).toEqual({ ok: true, changed: false })
    const { body } = await client.request([outgoingAccess], withFinish)
    const denied = interactionId(body.interact.redirect)
    await interactions.deny(denied)
    expect(await grants.revoke(grantIdOf({ id: denied }))).toEqual({ ok: true, changed: false })
    expect(await grants.revoke('unknown-grant')).toEqual(unknownGrant)
  })

  test('tells one of two concurrent calls that it ended it', async () => {
    const world = createWorld()
    const id = await connect(world, world.client(), 'alice')
    const answers = await Promise.all([1, 2].map(() => world.auth.grants.revoke(id)))
    expect(answers.filter((each) => each.ok && each.changed)).toHaveLength(1)
  })
})

describe('revoking all grants', () => {
  async function statusesOf(world: World, ids: readonly string[]) {
    return Promise.all(ids.map(async (id) => (await world.auth.grants.get(id))?.status))
  }

  /** Grants of two owners for two clients, one without consent, and an open request. */
  async function connected() {
    const world = createWorld()
    const [shop, other] = [world.client('shop'), world.client('other')]
    const ids = {
      aliceShop: await connect(world, shop, 'alice'),
      aliceOther: await connect(world, other, 'alice'),
      bobShop: await connect(world, shop, 'bob'),
      shopAlone: grantIdOf({
        id: (await shop.request([incomingAccess])).body.continue.uri.split('/').at(-1),
      }),
      shopOpen: grantIdOf({
        id: interactionId(
          (await shop.request([outgoingAccess], withFinish)).body.interact.redirect,
        ),
      }),
    }
    const { aliceShop, aliceOther, bobShop, shopAlone, shopOpen } = ids
    const all = [aliceShop, aliceOther, bobShop, shopAlone, shopOpen]
    return { world, statuses: () => statusesOf(world, all) }
  }
  const shopUrl = 'https://shop.example'

  test.each([
    [
      'of an owner',
      { resourceOwner: 'alice' },
      ['revoked', 'revoked', 'approved', 'approved', 'pending'],
    ],
    [
      'of a client, with its open requests, in any spelling of its URL',
      { client: 'https://SHOP.example/' },
      ['revoked', 'approved', 'revoked', 'revoked', 'revoked'],
    ],
    [
      'of an owner for one client',
      { resourceOwner: 'alice', client: shopUrl },
      ['revoked', 'approved', 'approved', 'approved', 'pending'],
    ],
    [
      'of nobody',
      { resourceOwner: 'carol', client: shopUrl },
      ['approved', 'approved', 'approved', 'approved', 'pending'],
    ],
  ] as const)('%s ends exactly those, and a repeat ends none', async (_, query, expected) => {
    const { world, statuses } = await connected()
    const ended = expected.filter((status) => status === 'revoked').length
    expect(await world.auth.grants.revokeAll(query)).toBe(ended)
    expect(await statuses()).toEqual(expected)
    expect(await world.auth.grants.revokeAll(query)).toBe(0)
  })

  test('records the event of each grant', async () => {
    const { world } = await connected()
    const types: string[] = []
    await world.auth.events.drain(() => {})
    await world.auth.grants.revokeAll({ client: shopUrl })
    await world.auth.events.drain(({ type }) => void types.push(type))
    expect(types).toEqual(Array(4).fill('grant.revoked'))
  })

  test('finds a client that has no wallet address by its URN', async () => {
    const world = createWorld()
    const client = world.client('shop', { byKey: true })
    const { body } = await client.request([incomingAccess])
    const id = grantIdOf({ id: body.continue.uri.split('/').at(-1) })
    const view = await world.auth.grants.get(id)
    expect(await world.auth.grants.revokeAll({ client: view?.client ?? '' })).toBe(1)
    expect(await world.auth.grants.get(id)).toMatchObject({ status: 'revoked' })
  })

  test('needs an owner or a client', async () => {
    const { grants } = createWorld().auth
    await expect(grants.revokeAll({})).rejects.toEqual(invalidInput('query'))
  })
})

describe('the grants of a resource owner', () => {
  test('are listed with their client, access, status and times', async () => {
    const world = createWorld()
    const createdAt = world.clock.now()
    const { body } = await world.client().request([outgoingAccess], withFinish)
    world.clock.advance(1_000)
    const id = interactionId(body.interact.redirect)
    await world.auth.interactions.approve(id, { resourceOwner: 'alice', walletAddresses: [alice] })
    const expected = {
      grantId: grantIdOf({ id }),
      client: 'https://shop.example',
      clientKey: { kid: 'shop-key', thumbprint: testKey('shop').thumbprint },
      status: 'approved',
      access: [{ ...outgoingAccess, itemId: '1' }],
      createdAt,
      resourceOwner: 'alice',
      approvedAt: createdAt + 1_000,
    }
    expect(await world.auth.grants.list({ resourceOwner: 'alice' })).toEqual({
      pagination: {
        startCursor: expect.any(String),
        endCursor: expect.any(String),
        hasNextPage: false,
        hasPreviousPage: false,
      },
      result: [expected],
    })
    expect(await world.auth.grants.get(expected.grantId)).toEqual(expected)
  })

  test('are listed in every state, each with its status', async () => {
    const world = createWorld()
    const client = world.client()
    const { grants } = world.auth
    const approved = await approvedGrant(world, client)
    const issued = await issuedGrant(world, client)
    const revoked = await issuedGrant(world, client)
    await grants.revoke(grantIdOf(revoked))
    const cancelled = await approvedGrant(world, client)
    await client.cancel(cancelled.body.continue)
    const givenUp = await issuedGrant(world, client)
    await client.revoke(givenUp.token)
    const bounded = {
      ...outgoingAccess,
      limits: { interval: 'R1/2020-01-01T00:00:00Z/P1D' },
    }
    const { body } = await client.request([bounded], withFinish)
    const over = interactionId(body.interact.redirect)
    const approval = { resourceOwner: 'alice', walletAddresses: [alice] }
    await world.auth.interactions.approve(over, approval)

    const { result } = await grants.list({ resourceOwner: 'alice' })
    const standings = result.map(({ grantId, status }) => [grantId, status])
    expect(new Map(standings as [string, string][])).toEqual(
      new Map([
        [grantIdOf(approved), 'approved'],
        [grantIdOf(issued), 'approved'],
        [grantIdOf(revoked), 'revoked'],
        [grantIdOf(cancelled), 'cancelled'],
        [grantIdOf(givenUp), 'revoked'],
        [grantIdOf({ id: over }), 'expired'],
      ]),
    )
    const expired = result.find(({ status }) => status === 'expired')
    expect(expired?.expiresAt).toBe(Date.parse('2020-01-02T00:00:00Z'))
    expect(result.filter(({ expiresAt }) => expiresAt !== undefined)).toHaveLength(1)
  })

  test('include only approved requests, not open or denied ones or grants without consent', async () => {
    const world = createWorld()
    const client = world.client()
    await client.request([incomingAccess])
    await client.request([outgoingAccess], withFinish)
    const { body } = await client.request([outgoingAccess], withFinish)
    const id = interactionId(body.interact.redirect)
    const foreign = { resourceOwner: 'bob', walletAddresses: [bob] }
    expect((await world.auth.interactions.approve(id, foreign)).ok).toBe(false)
    await world.auth.interactions.deny(id)
    expect(await listed(world, 'alice')).toEqual([])
    expect(await listed(world, 'bob')).toEqual([])
  })

  test('leave the list when their records are removed', async () => {
    const world = createWorld()
    const id = await connect(world, world.client(), 'alice')
    await world.auth.grants.revoke(id)
    world.clock.advance(30 * day - 1)
    await world.auth.sweep()
    expect(await listed(world, 'alice')).toEqual([id])
    world.clock.advance(1)
    await world.auth.sweep()
    expect(await listed(world, 'alice')).toEqual([])
  })

  test('are listed once despite repeated approvals, for the owner who approved first', async () => {
    const world = createWorld()
    const { id } = await approvedGrant(world, world.client())
    for (const resourceOwner of ['alice', 'bob', 'alice']) {
      await world.auth.interactions.approve(id, { resourceOwner, walletAddresses: [alice] })
    }
    expect(await listed(world, 'alice')).toEqual([grantIdOf({ id })])
    expect(await listed(world, 'bob')).toEqual([])
  })

  test('reveal nothing from which a token or reference could be derived or recognized', async () => {
    const world = createWorld()
    const issued = await issuedGrant(world, world.client())
    const record = await world.auth.grants.getRecord(grantIdOf(issued))
    const { pagination: _, result } = await world.auth.grants.list({ resourceOwner: 'alice' })
    const shown = JSON.stringify(result)
    const { continuation, interaction, tokens, derivation, client } = record ?? {}
    const [token] = tokens ?? []
    const kept = [
      ...[continuation?.tokenHash, continuation?.path, interaction?.refHash, interaction?.refSalt],
      ...[interaction?.nonce],
      ...[interaction?.pathHash, token?.hash, token?.manage, derivation?.salt, client?.x],
    ]
    for (const value of kept) {
      expect(value).toMatch(/^[\w-]{20,}$/)
      expect(shown).not.toContain(value)
    }
  })

  test('include the subject identifier that the client receives', async () => {
    const world = createWorld({ auth: { subjects: walletAddressSubjects } })
    const client = world.client()
    const subject = { id: alice, format: 'uri' } as const
    const { body } = await client.post(grantEndpoint, {
      client: client.client,
      subject: { sub_ids: [subject] },
      interact: withFinish,
    })
    const id = interactionId(body.interact.redirect)
    const pending = await world.auth.grants.get(grantIdOf({ id }))
    expect(pending).toMatchObject({ status: 'pending', subject })
    expect(pending).not.toHaveProperty('approvedAt')
    await world.auth.interactions.approve(id, { resourceOwner: 'alice', walletAddresses: [alice] })
    const { result } = await world.auth.grants.list({ resourceOwner: 'alice' })
    expect(result).toMatchObject([{ status: 'approved', access: [], subject }])
  })

  test('identify a client without a wallet address by the thumbprint of its key', async () => {
    const world = createWorld()
    const client = world.client('shop', { byKey: true })
    const { body } = await client.request([incomingAccess])
    const id = body.continue.uri.split('/').at(-1)
    expect(await world.auth.grants.get(grantIdOf({ id }))).toEqual({
      grantId: grantIdOf({ id }),
      client: `urn:ietf:params:oauth:jwk-thumbprint:sha-256:${client.key.thumbprint}`,
      clientKey: { kid: 'shop-key', thumbprint: client.key.thumbprint },
      status: 'approved',
      access: [{ ...incomingAccess, itemId: '1' }],
      createdAt: world.clock.now(),
      issuedAt: world.clock.now(),
      expiresAt: world.clock.now() + 600_000 + 30 * day,
    })
    await world.auth.grants.revoke(grantIdOf({ id }))
    expect(await world.auth.grants.get(grantIdOf({ id }))).not.toHaveProperty('expiresAt')
  })

  test('can be listed, inspected and revoked on another store, such as a transaction of the host', async () => {
    const store = memoryStore()
    const world = createWorld({ store })
    const id = await connect(world, world.client(), 'alice')
    const inside = createWorld().auth.within(store)
    const [seen] = (await inside.grants.list({ resourceOwner: 'alice' })).result
    expect(seen).toEqual(await inside.grants.get(id))
    expect(await inside.grants.revoke(id)).toEqual({ ok: true, changed: true })
    expect(await world.auth.grants.get(id)).toMatchObject({ status: 'revoked' })
  })

  test('that do not exist are undefined, cannot be revoked and are not listed', async () => {
    const { grants } = createWorld().auth
    for (const id of ['x', 'a.b', 'AAAAAAAAAAAAAAAAAAAAAAAAAAAAAA']) {
      expect(await grants.get(id)).toBeUndefined()
      expect(await grants.revoke(id)).toEqual(unknownGrant)
    }
    expect(await grants.list({ resourceOwner: 'nobody' })).toEqual({
      pagination: { hasNextPage: false, hasPreviousPage: false },
      result: [],
    })
  })

  test.each([{}, { resourceOwner: '' }, { resourceOwner: 'alice', cursor: 'x' }, undefined])(
    'cannot be iterated over with an invalid query: %j',
    (query) => {
      const { grants } = createWorld().auth
      expect(() => grants.iterate(query as never)).toThrow(InvalidInputError)
    },
  )
})

describe('paging through the grants of a resource owner', () => {
  const names = ['alice', 'bob', ' ', 'alice ', 'a'.repeat(5_000)]

  test('shows each grant of the owner once, in order of consent, in both directions, and no grant of others', () =>
    fc.assert(
      fc.asyncProperty(
        fc.array(fc.record({ owner: fc.constantFrom(...names), ms: fc.constantFrom(0, 0, 1) }), {
          maxLength: 9,
        }),
        fc.integer({ min: 1, max: 4 }),
        async (consents, size) => {
          const world = createWorld()
          const client = world.client()
          const approvals: { owner: string; id: string; at: number }[] = []
          for (const { owner, ms } of consents) {
            world.clock.advance(ms)
            approvals.push({
              owner,
              id: await connect(world, client, owner),
              at: world.clock.now(),
            })
          }
          for (const owner of names) {
            const theirs = approvals
              .filter((approval) => approval.owner === owner)
              .sort((a, b) => a.at - b.at || (a.id < b.id ? -1 : 1))
              .map(({ id }) => id)
            expect(await paged(world, owner, size, true)).toEqual(theirs)
            expect(await paged(world, owner, size, false)).toEqual(theirs)
          }
        },
      ),
      { numRuns: 25 },
    ))

  async function paged(world: World, resourceOwner: string, size: number, forward: boolean) {
    const ids: string[] = []
    let cursor: string | undefined
    for (let more = true; more; ) {
      const at = cursor === undefined ? {} : { cursor }
      const query = { resourceOwner, ...at, ...(forward ? { first: size } : { last: size }) }
      const { pagination, result } = await world.auth.grants.list(query)
      expect(result.length).toBeLessThanOrEqual(size)
      const page = result.map(({ grantId }) => grantId)
      if (forward) ids.push(...page)
      else ids.unshift(...page)
      more = forward ? pagination.hasNextPage : pagination.hasPreviousPage
      cursor = forward ? pagination.endCursor : pagination.startCursor
    }
    return ids
  }
})

describe('the list name of an owner', () => {
  const odd = ['', ' ', 'a', 'A', 'a b', 'a\u0000', '\ufffd', 'é', 'e\u0301']

  test('is different for every name, even for names that look alike', async () => {
    const lists = await Promise.all(odd.map((owner) => ownerListName('namespac', owner)))
    expect(new Set(lists).size).toBe(odd.length)
  })

  test('is the same for the same name, starts with the namespace and has one format', () =>
    fc.assert(
      fc.asyncProperty(unicodeText(), async (owner) => {
        const list = await ownerListName('namespac', owner)
        expect(list).toMatch(/^namespac owner [\w-]{43}$/)
        expect(await ownerListName('namespac', owner)).toBe(list)
      }),
      { numRuns: runs(200) },
    ))

  test('does not reveal the name of the owner', async () => {
    expect(await ownerListName('namespac', `${origin}/alice`)).not.toContain('alice')
  })
})

describe('the status of a grant', () => {
  const ends: Readonly<Record<string, (paying: Paying) => unknown>> = {
    approved: () => undefined,
    cancelled: ({ client, asked }) => client.cancel(asked.continue),
    revoked: ({ world, grantId }) => world.auth.grants.revoke(grantId),
    'revoked by its last token': ({ client, token }) => client.revoke(token),
    expired: ({ world }) => world.clock.advance(day),
  }

  type Paying = Awaited<ReturnType<typeof paying>>

  /** A client with a fresh token of a grant that expires a day after it began. */
  async function paying() {
    const world = createSpendingWorld({
      auth: { policy: { accessTokens: { lifetimeMs: 2 * day } } },
    })
    const client = world.client()
    const interval = `R1/${new Date(world.clock.now()).toISOString()}/P1D`
    const item = outgoingItem({ debitAmount: usd(100), interval })
    const asked = (await client.request([item], withoutFinish)).body
    const id = interactionId(asked.interact.redirect)
    const approval = { resourceOwner: 'alice', walletAddresses: [alice] }
    await world.auth.interactions.approve(id, approval)
    world.clock.advance(5_000)
    const { body } = await client.continue(asked.continue)
    return { world, client, asked, grantId: grantIdOf({ id }), token: body.access_token }
  }

  test.each(Object.entries(ends))(
    'agrees with what its token can do: %s',
    async (description, end) => {
      const [status = ''] = description.split(' ')
      const made = await paying()
      const { world, client, grantId, token } = made
      await end(made)
      const isApproved = status === 'approved'
      expect((await world.auth.grants.get(grantId))?.status).toBe(status)
      expect(await world.auth.introspect({ accessToken: token.value })).toMatchObject({
        active: isApproved,
      })
      expect((await pay(client, token.value, 10)).status).toBe(isApproved ? 201 : 401)
      expect((await client.rotate(token)).status === 200).toBe(isApproved)
    },
  )
})
