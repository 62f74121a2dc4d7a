import { webcrypto } from 'node:crypto'
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { postgresStore } from '../../adapters/postgres.js'
import type { AuthorizationServerOptions } from '../../src/index.js'
import { memoryStore, type Store } from '../../src/index.js'
import { manualClock } from '../support/clock.js'
import { type FreshPostgres, freshPostgres, servers } from '../support/databases.js'
import { hashOf } from '../support/grants.js'
import { runs } from '../support/runs.js'
import {
  alice,
  createWorld,
  interactionId,
  outgoingAccess,
  type World,
  withFinish,
} from '../support/world.js'

const approval = { resourceOwner: 'alice', walletAddresses: [alice] }
const rfc9635 = { denialRedirect: 'rfc9635' } as const

/** Two processes of one authorization server on a store. */
function twoProcesses(stores: readonly [Store, Store], more: Partial<AuthorizationServerOptions>) {
  const clock = manualClock()
  const process = (store: Store) =>
    createWorld({ store, clock, auth: { random: webcrypto as never, ...more } })
  const [first, second] = stores.map(process) as [World, World]
  return { first, second, clock }
}

/** A client asks the first process for access, with a redirect at the end. */
async function asked(world: World, client = world.client()) {
  const { body } = await client.request([outgoingAccess], withFinish)
  return { client, body, id: interactionId(body.interact.redirect) }
}

const referenceOf = (redirect = '') => new URL(redirect).searchParams.get('interact_ref') ?? ''

describe.each(['memory', 'PostgreSQL'])('an interaction reference on %s', (name) => {
  let database: FreshPostgres | undefined
  const stores = (): [Store, Store] => {
    if (database === undefined) {
      const store = memoryStore()
      return [store, store]
    }
    const { schema, pool, connect } = database
    return [postgresStore(pool, { schema }), postgresStore(connect(), { schema })]
  }
  const isSkipped = name === 'PostgreSQL' && servers.PostgreSQL === undefined
  beforeAll(async () => {
    if (name === 'PostgreSQL' && !isSkipped) database = await freshPostgres()
  })
  afterAll(() => database?.drop())

  test.skipIf(isSkipped)(
    'is one for all approvals at once in two processes, and gives the token once',
    async () => {
      const { first, second } = twoProcesses(stores(), {})
      const client = first.client()
      await fc.assert(
        fc.asyncProperty(
          fc.array(fc.boolean(), { minLength: 2, maxLength: 12 }),
          async (clicks) => {
            const { body, id } = await asked(first, client)
            const answers = await Promise.all(
              clicks.map((isFirst) =>
                (isFirst ? first : second).auth.interactions.approve(id, approval),
              ),
            )
            expect(answers.filter((answer) => answer.ok && answer.changed)).toHaveLength(1)
            const redirects = answers.map((answer) =>
              answer.ok ? answer.redirect : answer.refusal,
            )
            expect(new Set(redirects).size).toBe(1)
            const reference = referenceOf(redirects[0])
            expect(reference).toMatch(/^[\w-]{43}$/)
            expect((await client.continue(body.continue, reference)).status).toBe(200)
            expect(await second.auth.interactions.approve(id, approval)).toMatchObject({
              refusal: 'interaction_over',
            })
          },
        ),
        { numRuns: runs(name === 'memory' ? 20 : 5) },
      )
    },
  )

  test.skipIf(isSkipped)(
    'is one for all denials at once in two processes, as RFC 9635 redirects them',
    async () => {
      const { first, second } = twoProcesses(stores(), { compatibility: rfc9635 })
      const { client, body, id } = await asked(first, first.client('other'))
      const answers = await Promise.all(
        [first, second, second, first].map(({ auth }) => auth.interactions.deny(id)),
      )
      const redirects = answers.map((answer) => (answer.ok ? answer.redirect : answer.refusal))
      expect(new Set(redirects).size).toBe(1)
      const { status, body: refused } = await client.continue(
        body.continue,
        referenceOf(redirects[0]),
      )
      expect([status, refused.error.code]).toEqual([401, 'request_denied'])
    },
  )
})

describe('an interaction', () => {
  test('has a path that no record contains, so that a reader of the store can neither open it nor know the reference', async () => {
    const { first } = twoProcesses([memoryStore(), memoryStore()], {})
    const { body, id } = await asked(first)
    const [grantId, secret] = id.split('.')
    const answer = await first.auth.interactions.approve(id, approval)
    const reference = referenceOf((answer.ok && answer.redirect) || '')
    const record = JSON.stringify(await first.auth.grants.getRecord(grantId ?? ''))
    expect(record).toContain(hashOf(secret ?? ''))
    expect(record).toContain(hashOf(reference))
    expect(record).not.toContain(secret)
    expect(record).not.toContain(reference)
    expect(body.interact.redirect).toContain(secret)
  })

  test('has another reference for each approved request, which its path alone does not tell', async () => {
    const { first } = twoProcesses([memoryStore(), memoryStore()], {})
    const client = first.client()
    const references: string[] = []
    for (let i = 0; i < 2; i++) {
      const { id } = await asked(first, client)
      const answer = await first.auth.interactions.approve(id, approval)
      const reference = referenceOf((answer.ok && answer.redirect) || '')
      const [grantId = '', secret = ''] = id.split('.')
      for (const known of [grantId, secret, id]) expect(reference).not.toBe(hashOf(known))
      references.push(reference)
    }
    expect(new Set(references).size).toBe(2)
  })

  test('is not found by the hash of its path', async () => {
    const { first } = twoProcesses([memoryStore(), memoryStore()], {})
    const { id } = await asked(first)
    const [grantId, secret = ''] = id.split('.')
    for (const own of [hashOf(secret), hashOf(secret).slice(0, 22), secret.slice(1)]) {
      expect(await first.auth.interactions.get(`${grantId}.${own}`)).toBeUndefined()
    }
    expect(await first.auth.interactions.get(id)).toMatchObject({ id, status: 'pending' })
  })
})
