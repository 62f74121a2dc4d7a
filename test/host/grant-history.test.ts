import fc from 'fast-check'
import { afterAll, describe, expect, test } from 'vitest'
import { type GrantView, memoryStore, type Store } from '../../src/index.js'
import { freshStores, servers } from '../support/databases.js'
import { invalidInput } from '../support/invalid-input.js'
import { runs } from '../support/runs.js'
import { outgoingItem, usd } from '../support/spending.js'
import {
  alice,
  createWorld,
  interactionId,
  issuedGrant,
  type TestClient,
  type World,
  withFinish,
} from '../support/world.js'

const day = 86_400_000
const retentionMs = 30 * day
const historyMs = 90 * day
const resourceOwner = 'alice'

/** A store that loses calls: at its turn, a commit or removal fails before it takes effect, or after. */
function losing(store: Store, faults: Iterator<'before' | 'after' | undefined>): Store {
  const around =
    <Args extends unknown[], Result>(call: (...args: Args) => Promise<Result>) =>
    async (...args: Args) => {
      const fault = faults.next().value
      if (fault === 'before') throw new Error('the connection is gone')
      const result = await call(...args)
      if (fault === 'after') throw new Error('the response is lost')
      return result
    }
  return { ...store, commit: around(store.commit), remove: around(store.remove) }
}

/** Connects a client to pay for as long as the interval lasts, and returns the grant. */
async function connect(world: World, client: TestClient, interval: string): Promise<string> {
  // Grants of one instant are in the order of their random ids.
  world.clock.advance(1)
  const { body } = await client.request(
    [outgoingItem({ debitAmount: usd(2_500), interval })],
    withFinish,
  )
  const id = interactionId(body.interact.redirect)
  const approved = await world.auth.interactions.approve(id, {
    resourceOwner,
    walletAddresses: [alice],
  })
  if (!approved.ok) throw new Error(approved.reason)
  return id.split('.')[0] ?? ''
}

async function paged(
  { auth }: World,
  direction: 'first' | 'last',
  size: number,
): Promise<GrantView[]> {
  const seen: GrantView[] = []
  let cursor: string | undefined
  for (let more = true; more; ) {
    const query = { resourceOwner, [direction]: size, ...(cursor && { cursor }) }
    const { result, pagination } = await auth.grants.history(query)
    const isForward = direction === 'first'
    if (isForward) seen.push(...result)
    else seen.unshift(...result)
    more = isForward ? pagination.hasNextPage : pagination.hasPreviousPage
    cursor = isForward ? pagination.endCursor : pagination.startCursor
  }
  return seen
}

async function exported({ auth }: World): Promise<GrantView[]> {
  const lines: string[] = []
  for await (const line of auth.grants.exportHistory({ resourceOwner })) lines.push(line)
  return lines.map((line) => JSON.parse(line.replace(/\n$/, '')))
}

const step = fc.oneof(
  { weight: 3, arbitrary: fc.constantFrom('connect', 'connect for a month') },
  { weight: 2, arbitrary: fc.constantFrom('revoke', 'amend', 'deny') },
  { weight: 3, arbitrary: fc.constantFrom('a day', '29 days', '61 days') },
  { weight: 4, arbitrary: fc.constantFrom('sweep', 'sweep one') },
)
const faults = fc.array(fc.constantFrom('before', 'after', undefined, undefined), { maxLength: 30 })

const onPostgres = freshStores()
afterAll(onPostgres.drop)

const databases = {
  memory: { open: async () => memoryStore(), numRuns: runs(600, 25) },
  PostgreSQL: {
    open: onPostgres.open,
    numRuns: runs(20, 2),
  },
}

describe.each(['memory', 'PostgreSQL'] as const)('the history of an owner in %s', (name) => {
  const { open, numRuns } = databases[name]
  const missing = name === 'PostgreSQL' && servers.PostgreSQL === undefined

  test.skipIf(missing)(
    'has each ended grant once, as it was at its end, until its time is over, whatever a sweep loses',
    async () => {
      const size = fc.integer({ min: 1, max: 4 })
      const steps = fc.array(step, { minLength: 5, maxLength: 25, size: 'max' })
      await fc.assert(
        fc.asyncProperty(steps, faults, size, async (steps, faults, size) => {
          const store = await open()
          const world = createWorld({ store })
          const { clock, auth } = world
          const client = world.client()
          const failing = createWorld({
            store: losing(store, faults.values()),
            clock,
            auth: { policy: { grants: { retentionMs, historyMs } } },
          })
          const all: string[] = []
          const atEnd = new Map<string, GrantView>()
          for (const step of steps) {
            const open = all.filter((id) => !atEnd.has(id))
            switch (step) {
              case 'connect':
                all.push(await connect(world, client, 'R/2026-01-01T00:00:00Z/P1D'))
                break
              case 'connect for a month': {
                const from = new Date(clock.now()).toISOString()
                all.push(await connect(world, client, `R30/${from}/P1D`))
                break
              }
              case 'revoke':
                await auth.grants.revoke(open[0] ?? 'none')
                break
              case 'amend':
                await auth.grants.amend(open[0] ?? 'none', {
                  conditions: { pausedUntil: clock.now() },
                })
                break
              case 'deny': {
                const { body } = await client.request([outgoingItem()], withFinish)
                await auth.interactions.deny(interactionId(body.interact.redirect))
                break
              }
              case 'sweep':
                await failing.auth.sweep().catch(() => undefined)
                break
              case 'sweep one':
                await failing.auth.sweep({ limit: 1 }).catch(() => undefined)
                break
              default:
                clock.advance(Number.parseInt(step.replace('a', '1'), 10) * day)
            }
            for (const id of open) {
              const grant = await auth.grants.get(id)
              expect(grant).toBeDefined()
              if (grant?.endedAt !== undefined) atEnd.set(id, grant)
            }
            const history = await paged(world, 'first', size)
            expect(await paged(world, 'last', size)).toEqual(history)
            expect(await exported(world)).toEqual(history)
            const ids = history.map(({ grantId }) => grantId)
            expect(ids).toEqual(all.filter((id) => ids.includes(id)))
            for (const [id, view] of atEnd) {
              const found = history.filter(({ grantId }) => grantId === id)
              const isDue = clock.now() >= (view.endedAt ?? 0) + historyMs
              if (found.length > 0 || !isDue) expect(found).toEqual([view])
              expect(await auth.grants.get(id)).toEqual(found[0])
            }
            expect(history.every(({ grantId }) => atEnd.has(grantId))).toBe(true)
          }
        }),
        { numRuns },
      )
    },
  )
})

describe('the history of an owner', () => {
  const policyOf = (grants: object) => ({ auth: { policy: { grants } } })

  test('says who ended a grant, when and why', async () => {
    const world = createWorld()
    const client = world.client()
    const { auth, clock } = world
    const cancelled = await issuedGrant(world, client)
    clock.advance(1)
    const lastToken = await issuedGrant(world, client)
    clock.advance(1)
    const revoked = await issuedGrant(world, client)
    clock.advance(day)
    await client.cancel(cancelled.continue)
    await client.revoke(lastToken.token)
    await auth.grants.revoke(revoked.id.split('.')[0] ?? '')
    const { result } = await auth.grants.history({ resourceOwner })
    const endedAt = clock.now()
    expect(result).toMatchObject([
      { status: 'cancelled', endedBy: 'client', endedAt },
      { status: 'revoked', endedBy: 'client', endedAt },
      { status: 'revoked', endedBy: 'host', endedAt },
    ])
    expect((await auth.grants.history({ resourceOwner: 'bob' })).result).toEqual([])
  })

  test('is removed when its time is over, and costs one more record for each grant until then', async () => {
    const world = createWorld(policyOf({ historyMs }))
    const { grantId } = await ended(world)
    const swept = async (afterMs: number) => {
      world.clock.advance(afterMs)
      return (await world.auth.sweep()).removed
    }
    // The grant, and the records of the signatures that made it.
    expect(await swept(retentionMs)).toBeGreaterThan(0)
    expect(await world.auth.grants.getRecord(grantId)).toBeUndefined()
    expect(await swept(historyMs - retentionMs - 1)).toBe(0)
    expect(await world.auth.grants.get(grantId)).toMatchObject({ status: 'revoked' })
    expect(await swept(1)).toBe(1)
    expect(await world.auth.grants.get(grantId)).toBeUndefined()
  })

  test.each([0, retentionMs])(
    'ends with the record of the grant if it lasts %i ms',
    async (historyMs) => {
      const world = createWorld(policyOf({ historyMs }))
      await ended(world)
      const length = async () => (await world.auth.grants.history({ resourceOwner })).result.length
      expect(await length()).toBe(1)
      world.clock.advance(retentionMs)
      await world.auth.sweep()
      expect(await length()).toBe(0)
    },
  )

  test('does not make an ended grant known to its client again', async () => {
    const world = createWorld()
    const client = world.client()
    const { token, continue: continuation } = await issuedGrant(world, client)
    await client.cancel(continuation)
    world.clock.advance(retentionMs)
    await world.auth.sweep()
    expect((await client.rotate(token)).status).toBe(404)
    expect((await client.cancel(continuation)).status).toBe(401)
    expect((await world.auth.grants.list({ resourceOwner })).result).toEqual([])
    expect(await world.auth.grants.revokeAll({ resourceOwner })).toBe(0)
  })

  test('refuses invalid queries before it reads', async () => {
    const { grants } = createWorld().auth
    await expect(grants.history({} as never)).rejects.toThrow(invalidInput('query.resourceOwner'))
    const query = { resourceOwner, statuses: [] } as never
    await expect(grants.history(query)).rejects.toThrow(invalidInput('query.statuses'))
    await expect(grants.history({ resourceOwner, first: 101 })).rejects.toThrow(
      invalidInput('query.first'),
    )
    expect(() => grants.exportHistory({} as never)).toThrow(invalidInput('query.resourceOwner'))
    expect(() => createWorld(policyOf({ historyMs: -1 }))).toThrow(
      invalidInput('policy.grants.historyMs'),
    )
  })

  async function ended(world: World) {
    const grantId = (await issuedGrant(world, world.client())).id.split('.')[0] ?? ''
    await world.auth.grants.revoke(grantId)
    return { grantId }
  }
})
