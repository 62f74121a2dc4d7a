import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  type MayPay,
  memoryStore,
  type RequestedPayment,
  remoteGrants,
  type SpendingLimit,
} from '../../src/index.js'
import { introspection } from '../support/introspection.js'
import { runs } from '../support/runs.js'
import {
  createSpendingWorld,
  goneReceiver,
  grantToPay,
  outgoingItem,
  pay,
  shopReceiver,
  usd,
} from '../support/spending.js'
import { alice, bob, grantEndpoint, interactionId } from '../support/world.js'

const everyMinute = 'R/2026-11-21T12:00:00Z/PT1M'

/** A wallet with a grant, and limits of its owner for the account. */
async function setUp(caps: () => readonly SpendingLimit[] = () => [], mayPay?: MayPay) {
  const memory = memoryStore()
  const writes = { count: 0 }
  const commit: typeof memory.commit = (changes) => {
    writes.count += 1
    return memory.commit(changes)
  }
  const policy = { accountLimits: caps, ...(mayPay && { mayPay }) }
  const world = createSpendingWorld({
    store: { ...memory, commit },
    resources: { policy, onError: () => undefined },
  })
  const client = world.client()
  const items = [outgoingItem({ debitAmount: usd(100), interval: everyMinute })]
  const granted = await grantToPay(world, client, items)
  const { outgoingPayments } = world.resources
  const preview = (value: number, more: object = {}) =>
    outgoingPayments.preview({
      grantId: granted.grantId,
      walletAddress: alice,
      receiver: shopReceiver,
      debitAmount: usd(value),
      ...more,
    })
  return { world, client, ...granted, preview, writes, outgoingPayments }
}

describe('a preview of a payment', () => {
  test('says what it would debit, and what is left of each limit', async () => {
    const caps = () => [{ payments: 2 }]
    const { world, client, token, grantId, preview, writes, outgoingPayments } = await setUp(caps)
    const limits = [{ debitAmount: usd(70), payments: 9, interval: everyMinute }]
    await world.auth.grants.amend(grantId, { conditions: { limits } })
    await pay(client, token, 30)
    const before = writes.count
    const now = world.clock.now()
    const start = now - (now % 60_000)
    const window = { start, end: start + 60_000 }
    const ofOwner = {
      source: 'owner',
      isOpen: true,
      window,
      left: { debitAmount: usd(40), payments: 8 },
    }
    const ofAccount = { source: 'account', isOpen: true, left: { payments: 1 } }
    expect(await preview(40)).toEqual({
      ok: true,
      debitAmount: usd(40),
      receiveAmount: usd(40),
      limits: [
        { source: 'client', itemId: '1', isOpen: true, window, left: { debitAmount: usd(70) } },
        ofOwner,
        ofAccount,
      ],
    })
    expect(await outgoingPayments.limitsOf({ grantId })).toEqual([ofOwner])
    expect(await outgoingPayments.limitsOf({ walletAddress: alice })).toEqual([ofAccount])
    expect(writes.count).toBe(before)
  })

  test.each<[string, number, object, string]>([
    ['an unknown grant', 1, { grantId: 'another' }, 'grant_unknown'],
    ['a receiver that is gone', 1, { receiver: goneReceiver }, 'receiver_invalid'],
    ['another account', 1, { walletAddress: bob }, 'limits_exceeded'],
    ['too much', 101, {}, 'limits_exceeded'],
    ['nothing', 0, {}, 'amount_invalid'],
  ])('says why %s is refused', async (_, value, more, refusal) => {
    const { preview } = await setUp()
    expect(await preview(value, more)).toMatchObject({ ok: false, refusal })
  })

  test('says so after the grant has ended', async () => {
    const { world, grantId, preview } = await setUp()
    await world.auth.grants.revoke(grantId)
    expect(await preview(1)).toMatchObject({ ok: false, refusal: 'token_unknown', limits: [] })
  })

  test('asks mayPay only if it is told to, and says that it is a preview', async () => {
    const asked: RequestedPayment[] = []
    const mayPay: MayPay = (payment) => {
      asked.push(payment)
      return { ok: false, refusal: 'funds_insufficient' }
    }
    const { preview, writes } = await setUp(undefined, mayPay)
    const before = writes.count
    expect(await preview(1)).toMatchObject({ ok: true })
    expect(asked).toEqual([])
    expect(await preview(1, { asksMayPay: true })).toMatchObject({ refusal: 'funds_insufficient' })
    expect(asked).toMatchObject([{ isPreview: true, debitAmount: usd(1) }])
    expect(writes.count).toBe(before)
  })

  test('gives mayPay its whole time, however long the limits of the account took', async () => {
    const asked: RequestedPayment[] = []
    const mayPay: MayPay = async (payment) => {
      asked.push(payment)
      await new Promise((resolve) => setTimeout(resolve, 5))
      return { ok: true }
    }
    const caps = () => {
      world.clock.advance(30_000)
      return []
    }
    const { world, preview } = await setUp(caps, mayPay)
    expect(await preview(1, { asksMayPay: true })).toMatchObject({ ok: true })
    expect(asked).toHaveLength(1)
  })

  test('says that the client cannot pay under a grant about which its owner has not decided', async () => {
    const { client, preview } = await setUp()
    const { body } = await client.request([outgoingItem()], { start: ['redirect'] })
    const [grantId] = interactionId(body.interact.redirect).split('.')
    expect(await preview(1, { grantId })).toMatchObject({ refusal: 'token_unknown', limits: [] })
  })

  test.each<[string, object]>([
    ['both amounts', { receiveAmount: usd(1) }],
    ['a receiver that is none', { receiver: 'https://shop.example/' }],
    ['a member that is unknown', { quoteId: 'x' }],
  ])('is invalid input with %s', async (_, more) => {
    const { preview } = await setUp()
    await expect(preview(1, more)).rejects.toMatchObject({ code: 'ERR_INVALID_INPUT' })
  })

  test('needs the grants in its store', async () => {
    const grants = remoteGrants({
      grantEndpoint,
      ...introspection,
    })
    const { resources } = createSpendingWorld({ resources: { grants } })
    const { outgoingPayments } = resources
    const asked = { grantId: 'g', walletAddress: alice, receiver: shopReceiver }
    await expect(outgoingPayments.preview(asked)).rejects.toThrow('grants, which are remote')
    await expect(outgoingPayments.limitsOf({ grantId: 'g' })).rejects.toThrow('remote')
    for (const scope of [{}, { grantId: 'g', walletAddress: alice }]) {
      await expect(outgoingPayments.limitsOf(scope as never)).rejects.toThrow('either')
    }
    expect(await outgoingPayments.limitsOf({ walletAddress: alice })).toEqual([])
  })

  test('says yes exactly when a payment in the same state is created, and the same refusal', async () => {
    const limit = fc
      .record(
        {
          debitAmount: fc.integer({ min: 1, max: 90 }).map(usd),
          payments: fc.integer({ min: 1, max: 3 }),
        },
        { requiredKeys: [] },
      )
      .filter((each) => Object.keys(each).length > 0)
    const step = fc.oneof(
      {
        weight: 6,
        arbitrary: fc.record({
          do: fc.constant('pay' as const),
          value: fc.integer({ min: 1, max: 60 }),
        }),
      },
      { weight: 1, arbitrary: fc.record({ do: fc.constant('cap' as const), limit }) },
      { weight: 2, arbitrary: fc.record({ do: fc.constant('limit' as const), limit }) },
      {
        weight: 1,
        arbitrary: fc.record({
          do: fc.constant('pass' as const),
          ms: fc.constantFrom(1, 30_000, 60_000),
        }),
      },
      {
        weight: 1,
        arbitrary: fc.record({ do: fc.constantFrom('pause' as const, 'revoke' as const) }),
      },
    )
    const met = new Set<string>()
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 12, size: '+1' }), async (steps) => {
        let cap: SpendingLimit | undefined
        const { world, client, token, grantId, preview } = await setUp(() => (cap ? [cap] : []))
        const { grants } = world.auth
        for (const each of steps) {
          if (each.do === 'cap') cap = each.limit
          if (each.do === 'limit')
            await grants.amend(grantId, { conditions: { limits: [each.limit] } })
          if (each.do === 'pass') world.clock.advance(each.ms)
          if (each.do === 'revoke') await grants.revoke(grantId)
          if (each.do === 'pause') {
            const pausedUntil = world.clock.now() + 20_000
            await grants.amend(grantId, { conditions: { pausedUntil } })
          }
          if (each.do !== 'pay') continue
          const previewed = await preview(each.value)
          const paid = await pay(client, token, each.value)
          met.add(previewed.ok ? 'ok' : previewed.refusal)
          expect(paid.status === 201).toBe(previewed.ok)
          if (!previewed.ok) expect(paid.body.error.details).toEqual(previewed.details)
        }
      }),
      { numRuns: runs(200, 40) },
    )
    const refusals = ['account_limit_exceeded', 'conditions_exceeded', 'limits_exceeded']
    for (const each of ['ok', ...refusals]) expect(met).toContain(each)
  })
})
