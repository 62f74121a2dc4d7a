import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  type MayPay,
  memoryStore,
  type Pricing,
  type RequestedPayment,
  remoteGrants,
  type SpendingLimit,
} from '../../src/index.js'
import { type Authority, authorities, payerOf } from '../support/authorities.js'
import { hostCall } from '../support/host-call.js'
import { introspection } from '../support/introspection.js'
import { runs } from '../support/runs.js'
import {
  createSpendingWorld,
  goneReceiver,
  grantToPay,
  otherReceiver,
  outgoingItem,
  pay,
  priceList,
  shopReceiver,
  usd,
} from '../support/spending.js'
import { errorOf } from '../support/spending-client.js'
import {
  alice,
  bob,
  carol,
  closed,
  grantEndpoint,
  interactionId,
  origin,
} from '../support/world.js'

const everyMinute = 'R/2026-11-21T12:00:00Z/PT1M'

/**
 * A wallet with a grant, and limits of its owner for the account.
 *
 * @param authority who would pay.
 */
async function setUp(
  caps: () => readonly SpendingLimit[] = () => [],
  mayPay?: MayPay,
  authority: Authority = 'a client under a grant',
) {
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
      ...(authority === 'the owner of the account'
        ? { countsInAccountLimits: true }
        : { grantId: granted.grantId }),
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

  test('by the owner says what is left of the limits of the account alone, if they count it', async () => {
    const caps = () => [{ payments: 2 }]
    const owner = await setUp(caps, undefined, 'the owner of the account')
    const { client, token, preview, writes } = owner
    await pay(client, token, 30)
    const before = writes.count
    const amounts = { debitAmount: usd(400), receiveAmount: usd(400) }
    const limits = [{ source: 'account', isOpen: true, left: { payments: 1 } }]
    expect(await preview(400)).toEqual({ ok: true, ...amounts, limits })
    const free = await preview(400, { countsInAccountLimits: false })
    expect(free).toEqual({ ok: true, ...amounts, limits: [] })
    await pay(client, token, 30)
    expect(await preview(400)).toMatchObject({ refusal: 'account_limit_exceeded' })
    expect(await preview(400, { countsInAccountLimits: false })).toMatchObject({ ok: true })
    expect(writes.count).toBe(before + 1)
  })

  test.each<[string, number, object, string]>([
    ['a receiver that is gone', 1, { receiver: goneReceiver }, 'receiver_invalid'],
    ['an unknown account', 1, { walletAddress: `${origin}/nobody` }, 'wallet_address_unknown'],
    ['an account that is closed', 1, { walletAddress: closed }, 'wallet_address_inactive'],
    ['nothing', 0, {}, 'amount_invalid'],
  ])('by the owner says why %s is refused', async (_, value, more, refusal) => {
    const { preview } = await setUp(undefined, undefined, 'the owner of the account')
    expect(await preview(value, more)).toMatchObject({ ok: false, refusal, limits: [] })
  })

  test.each<[string, number, object, string]>([
    ['an unknown grant', 1, { grantId: 'another' }, 'grant_unknown'],
    ['a receiver that is gone', 1, { receiver: goneReceiver }, 'receiver_invalid'],
    ['another account', 1, { walletAddress: bob }, 'identifier_foreign'],
    ['an account that is closed', 1, { walletAddress: closed }, 'identifier_foreign'],
    ['a token that does not exist', 1, { label: 'another' }, 'token_unknown'],
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

  test.each(authorities)(
    'by %s asks mayPay only if it is told to, and says that it is a preview',
    async (by) => {
      const asked: RequestedPayment[] = []
      const mayPay: MayPay = (payment) => {
        asked.push(payment)
        return { ok: false, refusal: 'funds_insufficient' }
      }
      const { preview, writes } = await setUp(undefined, mayPay, by)
      const before = writes.count
      expect(await preview(1)).toMatchObject({ ok: true })
      expect(asked).toEqual([])
      expect(await preview(1, { asksMayPay: true })).toMatchObject({
        refusal: 'funds_insufficient',
      })
      expect(asked).toMatchObject([{ isPreview: true, debitAmount: usd(1) }])
      expect(writes.count).toBe(before)
    },
  )

  test.each(authorities)(
    'by %s gives mayPay its whole time, however long the limits of the account took',
    async (by) => {
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
      const { world, preview } = await setUp(caps, mayPay, by)
      expect(await preview(1, { asksMayPay: true })).toMatchObject({ ok: true })
      expect(asked).toHaveLength(1)
    },
  )

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

  test('decides as creation does, refusals and details included', async () => {
    const limit = fc
      .record(
        {
          debitAmount: fc.integer({ min: 1, max: 90 }).map(usd),
          payments: fc.integer({ min: 1, max: 3 }),
        },
        { requiredKeys: [] },
      )
      .filter((each) => Object.keys(each).length > 0)
    const paid = fc.record({
      do: fc.constant('pay' as const),
      value: fc.oneof(fc.integer({ min: 1, max: 60 }), fc.constantFrom(0, 101)),
      from: fc.constantFrom(...Array(8).fill(alice), bob, carol, closed),
      to: fc.constantFrom(...Array(6).fill(shopReceiver), otherReceiver, goneReceiver),
      by: fc.constantFrom(...Array(6).fill('pay'), 'read', 'any'),
      assetCode: fc.constantFrom(...Array(8).fill('USD'), 'EUR'),
    })
    const order = fc
      .tuple(paid, fc.boolean())
      .map(([each, isCounted]) => ({ ...each, do: 'order' as const, isCounted }))
    const step = fc.oneof(
      { weight: 8, arbitrary: paid },
      { weight: 4, arbitrary: order },
      { weight: 1, arbitrary: fc.record({ do: fc.constant('cap' as const), limit }) },
      { weight: 2, arbitrary: fc.record({ do: fc.constant('limit' as const), limit }) },
      {
        weight: 2,
        arbitrary: fc.record({
          do: fc.constant('amend' as const),
          conditions: fc.record(
            {
              paymentMax: fc.integer({ min: 1, max: 60 }).map(usd),
              receivers: fc.constant([bob]),
              pausedUntil: fc.constantFrom(null, 2 ** 42),
            },
            { requiredKeys: [] },
          ),
        }),
      },
      {
        weight: 2,
        arbitrary: fc.record({
          do: fc.constant('pass' as const),
          ms: fc.constantFrom(1, 30_000, 60_000),
        }),
      },
      { weight: 1, arbitrary: fc.record({ do: fc.constant('price' as const), ms: fc.nat(2) }) },
      {
        weight: 2,
        arbitrary: fc.record({
          do: fc.constant('host' as const),
          answer: fc.constantFrom('funds_insufficient', 'payment_not_allowed', 'confirms', 'ok'),
        }),
      },
      {
        weight: 1,
        arbitrary: fc.record({ do: fc.constant('revoke' as const) }),
      },
    )
    const met = new Map<string, number>()
    const ofOwner = new Set<string>()
    const property = fc.asyncProperty(
      fc.array(step, { minLength: 6, maxLength: 26, size: '+2' }),
      async (steps) => {
        let cap: SpendingLimit | undefined
        let answer: string = 'ok'
        let expiresIn = 1
        const refused: string[] = []
        const mayPay: MayPay = () => {
          if (answer === 'ok') return { ok: true }
          if (answer === 'confirms') {
            const [url, until] = [`${origin}/confirm`, world.clock.now() + 60_000]
            return { ok: false, refusal: 'confirmation_required', url, until }
          }
          return { ok: false, refusal: answer as 'funds_insufficient' }
        }
        const pricing: Pricing = {
          async price(request) {
            const priced = await priceList.price(request, hostCall)
            return priced.ok ? { ...priced, expiresAt: world.clock.now() + expiresIn } : priced
          },
        }
        const world = createSpendingWorld({
          resources: {
            pricing,
            // Limits are in the asset of their account, and Carol has euros.
            policy: { mayPay, accountLimits: (url) => (cap && url !== carol ? [cap] : []) },
            onRefusal: ({ refusal }) => void refused.push(refusal),
          },
        })
        const client = world.client()
        const grants = {
          pay: [outgoingItem({ debitAmount: usd(100), interval: everyMinute })],
          read: [{ ...outgoingItem(), actions: ['read'] as const }],
          any: [outgoingItem(), outgoingItem({ debitAmount: usd(50) }, carol)],
        }
        const tokens = new Map<string, Awaited<ReturnType<typeof grantToPay>>>()
        for (const [name, items] of Object.entries(grants)) {
          tokens.set(name, await grantToPay(world, client, items))
        }
        const held = (name: string) => tokens.get(name) as Awaited<ReturnType<typeof grantToPay>>
        const { outgoingPayments } = world.resources
        for (const each of steps) {
          const { grantId } = held('pay')
          const { amend, revoke } = world.auth.grants
          if (each.do === 'cap') cap = each.limit
          if (each.do === 'limit') await amend(grantId, { conditions: { limits: [each.limit] } })
          if (each.do === 'amend') await amend(grantId, { conditions: each.conditions })
          if (each.do === 'pass') world.clock.advance(each.ms)
          if (each.do === 'price') expiresIn = each.ms
          if (each.do === 'host') answer = each.answer
          if (each.do === 'revoke') await revoke(grantId)
          if (each.do !== 'pay' && each.do !== 'order') continue
          const debitAmount = { ...usd(each.value), assetCode: each.assetCode }
          if (each.do === 'order') {
            const { from: walletAddress, to: receiver, isCounted: countsInAccountLimits } = each
            const order = { walletAddress, receiver, debitAmount, countsInAccountLimits }
            const { limits: _, ...previewed } = await outgoingPayments.preview({
              ...{ ...order, asksMayPay: true },
            })
            const idempotencyKey = crypto.randomUUID()
            const made = await outgoingPayments.create({ ...order, idempotencyKey })
            const decided = previewed.ok ? 'ok' : previewed.refusal
            ofOwner.add(decided)
            expect(made.ok ? 'ok' : made.refusal).toBe(decided)
            if (!made.ok) expect(made).toEqual(previewed)
            else expect(previewed).toMatchObject({ receiveAmount: made.payment.receiveAmount })
            continue
          }
          const previewed = await outgoingPayments.preview({
            ...{ grantId: held(each.by).grantId, walletAddress: each.from, receiver: each.to },
            ...{ debitAmount, asksMayPay: true },
          })
          const body = { walletAddress: each.from, incomingPayment: each.to, debitAmount }
          refused.length = 0
          const created = await pay(client, held(each.by).token, each.value, body)
          const found = created.status === 201 ? 'ok' : refused.at(-1)
          const expected = previewed.ok ? 'ok' : previewed.refusal
          met.set(expected, (met.get(expected) ?? 0) + 1)
          expect(found).toBe(expected)
          const { details } = created.body.error ?? {}
          const asDirect = ({ path, ...more }: Record<string, unknown>) =>
            path === 'receiver' ? { path: 'incomingPayment', ...more } : { path, ...more }
          if (!previewed.ok && previewed.details) {
            expect(details).toEqual({ ...previewed.details, ...asDirect(previewed.details) })
          } else expect(details).toBeUndefined()
        }
      },
    )
    await fc.assert(property, { numRuns: runs(300, 60) })
    for (const each of [
      ...['ok', 'token_unknown', 'access_insufficient', 'identifier_foreign', 'amount_invalid'],
      ...['receiver_invalid', 'quote_expired', 'limits_exceeded', 'grant_paused'],
      ...['conditions_exceeded', 'account_limit_exceeded', 'payment_not_allowed'],
      ...['funds_insufficient', 'confirmation_required'],
    ]) {
      expect(met.get(each), each).toBeGreaterThan(0)
    }
    for (const each of [
      ...['account_limit_exceeded', 'amount_invalid', 'confirmation_required'],
      ...['funds_insufficient', 'ok', 'payment_not_allowed', 'receiver_invalid'],
    ]) {
      expect(ofOwner).toContain(each)
    }
  })

  test.each(
    authorities.flatMap((by) =>
      (
        [
          [-1, 'quote_expired'],
          [0, 'quote_expired'],
          [1, 'ok'],
        ] as const
      ).map((each) => [...each, by] as const),
    ),
  )(
    'of a price that ends %s ms from now is decided (%s) as the payment of %s',
    async (ms, expected, by) => {
      const pricing: Pricing = {
        async price(request) {
          const priced = await priceList.price(request, hostCall)
          return priced.ok ? { ...priced, expiresAt: world.clock.now() + ms } : priced
        },
      }
      const world = createSpendingWorld({ resources: { pricing } })
      const payer = await payerOf(world, by)
      const { grantId } = payer.named
      const previewed = await world.resources.outgoingPayments.preview({
        ...(grantId !== undefined && { grantId }),
        ...{ walletAddress: alice, receiver: shopReceiver, debitAmount: usd(1) },
      })
      const created = await payer.pay(1)
      expect(previewed.ok ? 'ok' : previewed.refusal).toBe(expected)
      expect(errorOf(created)[1]).toBe(expected === 'ok' ? undefined : 'invalid_quote')
    },
  )

  test('says that no more payments of the grant may wait for their owner', async () => {
    const mayPay: MayPay = () => ({
      ...{ ok: false, refusal: 'confirmation_required' },
      ...{ url: `${origin}/confirm`, until: world.clock.now() + 60_000 },
    })
    const { world, client, token, preview } = await setUp(undefined, mayPay)
    for (let count = 1; count <= 10; count++) {
      expect(await preview(1, { asksMayPay: true })).toMatchObject({
        refusal: 'confirmation_required',
      })
      await pay(client, token, 1)
    }
    expect(await preview(1)).toMatchObject({ ok: true })
    expect(await preview(1, { asksMayPay: true })).toMatchObject({ refusal: 'conditions_exceeded' })
  })
})
