import { describe, expect, test } from 'vitest'
import {
  type AccessItem,
  type AuthorizationPolicy,
  type CompatibilityOptions,
  memoryStore,
} from '../../src/index.js'
import { manualClock, startOfTests } from '../support/clock.js'
import { createSpendingWorld, grantToPay, outgoingItem, pay, usd } from '../support/spending.js'
import {
  alice,
  createWorld,
  grantEndpoint,
  incomingAccess,
  interactionId,
  outgoingAccess,
  withoutFinish,
} from '../support/world.js'

const minute = 60_000
const day = 86_400_000

/** Two windows of ten minutes, from the start of the tests. */
const twice = withInterval('R2/2026-11-21T12:00:00Z/PT10M')
const monthly = withInterval('R/2026-11-21T12:00:00Z/P1M')

function withInterval(interval: string): AccessItem {
  return { ...outgoingAccess, limits: { ...outgoingAccess.limits, interval } }
}

/** Issues a grant with consent, and returns the token of its client. */
async function granted(
  access: AccessItem,
  policy: AuthorizationPolicy = {},
  compatibility: CompatibilityOptions = {},
) {
  const [store, clock] = [memoryStore(), manualClock()]
  const world = createWorld({ store, clock, auth: { policy, compatibility } })
  const client = world.client()
  const asked = await client.request([access], withoutFinish)
  const id = interactionId(asked.body.interact.redirect)
  const approval = { resourceOwner: 'alice', walletAddresses: [alice] }
  expect(await world.auth.interactions.approve(id, approval)).toMatchObject({ ok: true })
  clock.advance(5_000)
  const { body } = await client.continue(asked.body.continue)
  const grantId = (await world.auth.interactions.get(id))?.grantId ?? ''
  return { world, store, clock, client, grantId, token: body.access_token }
}

describe('the interval counting of a grant', () => {
  test.each([
    ['occurrences', {}, 20],
    ['occurrences', { intervalCounting: 'occurrences' }, 20],
    ['repetitions', { intervalCounting: 'repetitions' }, 30],
  ] as const)('is stored with it: %s with %j', async (intervalCounting, given, minutes) => {
    const { world, grantId, token } = await granted(twice, {}, given)
    expect(await world.auth.grants.getRecord(grantId)).toMatchObject({
      expiresAt: startOfTests + minutes * minute,
      granted: [{ limits: twice.limits, intervalCounting }],
    })
    const told = await world.auth.introspect({ accessToken: token.value })
    expect(told).toMatchObject({ active: true, access: [{ intervalCounting }] })
  })

  test('is not visible to the client', async () => {
    const { token } = await granted(twice, {}, { intervalCounting: 'repetitions' })
    expect(token.access).toEqual([twice])
  })

  test('does not change with the options of a later server', async () => {
    const { store, clock, grantId } = await granted(twice)
    const compatibility = { intervalCounting: 'repetitions' } as const
    const later = createWorld({ store, clock, auth: { compatibility } })
    const before = await later.auth.grants.getRecord(grantId)
    expect(before).toMatchObject({
      expiresAt: startOfTests + 20 * minute,
      granted: [{ intervalCounting: 'occurrences' }],
    })
  })
})

describe('the last window of a grant', () => {
  test('that never comes keeps the record for as long as the grant can be used', async () => {
    const { world, clock, client, grantId, token } = await granted(monthly, {
      grants: { retentionMs: day },
    })
    clock.advance(20 * 366 * day)
    await world.auth.sweep()
    expect(await world.auth.grants.getRecord(grantId)).toBeDefined()
    expect((await client.rotate(token)).status).toBe(200)
  })
})

describe('a request for windows of a millisecond', () => {
  const start = '2026-11-21T12:00:00.000Z'
  const shortWindows = [
    'R/2026-11-21T12:00:00.000Z/2026-11-21T12:00:00.001Z',
    'R/2026-11-21T12:00:00Z/2026-11-21T12:00:59.999Z',
    `R/${start}/PT59S`,
    `R/PT1S/${start}`,
    `R1/${start}/PT59S`,
  ]

  /** Requests to pay 5.00 in each window, and pays 5.00 in each of 30 milliseconds. Returns the paid amounts. */
  async function spent(interval: string, policy: AuthorizationPolicy) {
    const world = createSpendingWorld({ auth: { policy } })
    const client = world.client()
    const item = outgoingItem({ debitAmount: usd(500), interval })
    const { status, body } = await client.request([item], withoutFinish)
    if (status !== 200) return { status, error: body.error, payments: 0 }
    const { token } = await grantToPay(world, client, [item])
    let payments = 0
    for (let count = 0; count < 30; count += 1) {
      world.clock.advance(1)
      if ((await pay(client, token, 500)).status === 201) payments += 1
    }
    return { status, payments }
  }

  test.each(shortWindows)('is refused, so that it pays nothing: %s', async (interval) => {
    expect(await spent(interval, {})).toEqual({
      status: 400,
      payments: 0,
      error: {
        code: 'invalid_request',
        description: 'Invalid request body',
        details: {
          path: 'access_token.access.0.limits.interval',
          problem: 'must have windows of at least 60000 ms',
        },
      },
    })
  })

  test('pays its amount in every millisecond if the policy allows that', async () => {
    const policy = { intervals: { windowMinMs: 1 } }
    expect(await spent(shortWindows[0] ?? '', policy)).toEqual({ status: 200, payments: 30 })
  })

  test.each([
    [`R/${start}/PT1M`, {}],
    ['R/2026-11-21T12:00:00Z/2026-11-21T12:01:00Z', {}],
    [`R/${start}/P1M`, { intervals: { windowMinMs: 28 * day } }],
  ])('%s is accepted with policy %j', async (interval, policy) => {
    const client = createWorld({ auth: { policy } }).client()
    expect((await client.request([withInterval(interval)], withoutFinish)).status).toBe(200)
  })

  test('is refused if the shortest month is too short', async () => {
    const policy = { intervals: { windowMinMs: 28 * day + 1 } }
    const client = createWorld({ auth: { policy } }).client()
    expect((await client.request([monthly], withoutFinish)).status).toBe(400)
    expect((await client.request([twice], withoutFinish)).status).toBe(400)
  })

  test('is refused in any of several tokens', async () => {
    const client = createWorld().client()
    const tokens = [
      { label: 'a', access: [monthly] },
      { label: 'b', access: [incomingAccess, withInterval(`R/${start}/PT1S`)] },
    ]
    const { status, body } = await client.post(grantEndpoint, {
      client: client.client,
      access_token: tokens,
      interact: withoutFinish,
    })
    expect(status).toBe(400)
    expect(body.error.details.path).toBe('access_token.1.access.1.limits.interval')
  })
})
