import fc from 'fast-check'
import { afterAll, describe, expect, test } from 'vitest'
import { postgresStore } from '../../adapters/postgres.js'
import type { HostReasons } from '../../src/core/decision.js'
import {
  type DeliveredEvent,
  InvalidInputError,
  type MayPayAnswer,
  memoryStore,
  type OutgoingPaymentCreation,
  type RequestedPayment,
  type SpendingLimit,
  type Store,
} from '../../src/index.js'
import { ContentionError } from '../../src/service/store-errors.js'
import { clockDifferenceMaxMs } from '../../src/service/time.js'
import { manualClock } from '../support/clock.js'
import { freshPostgres, freshStores, servers } from '../support/databases.js'
import { runs } from '../support/runs.js'
import {
  createSpendingWorld,
  grantToPay,
  newQuote,
  otherReceiver,
  outgoingItem,
  pay,
  payByQuote,
  quoteToken,
  shopReceiver,
  usd,
  withKey,
} from '../support/spending.js'
import { walletInProcesses } from '../support/two-processes.js'
import { alice, bob, resourceServer } from '../support/world.js'

const day = 86_400_000
const databases = freshStores()
afterAll(() => databases.drop())

const stores: readonly (readonly [string, () => Promise<Store>])[] = [
  ['memory', async () => memoryStore()],
  ...(servers.PostgreSQL === undefined
    ? []
    : [['PostgreSQL', () => databases.open()] as [string, () => Promise<Store>]]),
]

interface Setting {
  /** What `mayPay` answers in turn, and yes afterwards. */
  readonly answers?: readonly (MayPayAnswer | Error)[]
  readonly limits?: readonly SpendingLimit[]
  readonly retentionMs?: number
  readonly clock?: ReturnType<typeof manualClock>
  /** Whether the host decides about payments. Default true. */
  readonly decides?: boolean
}

/** A wallet whose host is told of everything. */
function walletOn(store: Store, setting: Setting = {}) {
  const { answers = [], limits = [], retentionMs, decides = true } = setting
  const { clock = manualClock() } = setting
  const rest = [...answers]
  const asked: RequestedPayment[] = []
  const mayPay = (payment: RequestedPayment): MayPayAnswer => {
    asked.push(payment)
    const answer = rest.shift()
    if (answer instanceof Error) throw answer
    return answer ?? { ok: true }
  }
  const policy = {
    ...(decides && { mayPay }),
    accountLimits: () => limits,
    ...(retentionMs !== undefined && { outgoingPayments: { retentionMs } }),
  }
  // A process after a restart does not draw the same numbers again.
  const world = createSpendingWorld({ clock, store, resources: { policy, random: crypto } })
  const { outgoingPayments, quotes, events } = world.resources
  async function drained(): Promise<DeliveredEvent[]> {
    const seen: DeliveredEvent[] = []
    await events.drain(async (event) => void seen.push(event))
    return seen
  }
  async function create(payment: OutgoingPaymentCreation) {
    const result = await outgoingPayments.create(payment)
    if (!result.ok) throw new Error(`${result.refusal}: ${result.reason}`)
    return result
  }
  return { world, clock, asked, outgoingPayments, quotes, drained, create }
}

const order = { walletAddress: alice, receiver: shopReceiver, debitAmount: usd(500) }
const keyed = { ...order, idempotencyKey: 'rent 2026-11' }

const typesOf = (events: readonly DeliveredEvent[]) => events.map(({ type }) => type)

describe.each(stores)('an owner who pays from the own app, on %s', (_name, open) => {
  test('gets a quote, pays with it once, and the host is told as of any payment', async () => {
    const { asked, outgoingPayments, quotes, drained, create } = walletOn(await open())
    const quoted = await quotes.create(order)
    if (!quoted.ok) throw new Error(quoted.reason)
    const { quoteId } = quoted.quote
    expect(quoted.quote).not.toHaveProperty('client')
    expect(await quotes.get(quoteId)).toEqual(quoted.quote)
    const data = { card: { expiry: '12/30' } }
    const byQuote = { walletAddress: alice, quoteId, data }
    const paid = await create(byQuote)
    expect(paid).toMatchObject({ changed: true, payment: { quoteId, data, status: 'created' } })
    expect(paid.url).toBe(`${resourceServer}/outgoing-payments/${paid.payment.paymentId}`)
    expect(asked).toMatchObject([{ walletAddress: alice, receiver: shopReceiver, data }])
    expect(await outgoingPayments.create(byQuote)).toEqual({ ...paid, changed: false })
    const other = { ...byQuote, data: { card: 'another' } }
    expect(await outgoingPayments.create(other)).toMatchObject({ refusal: 'request_differs' })
    const { paymentId } = paid.payment
    await outgoingPayments.begin(paymentId)
    const sent = { sentAmount: usd(500), deliveredAmount: usd(500) }
    expect(await outgoingPayments.reportSent(paymentId, sent)).toMatchObject({ ok: true })
    const events = await drained()
    // The events of one record come in order; those of the quote and of the payment in any.
    expect(typesOf(events)).toContain('quote.created')
    expect(typesOf(events).filter((type) => type !== 'quote.created')).toEqual([
      'outgoing-payment.created',
      'outgoing-payment.begun',
      'outgoing-payment.completed',
    ])
    for (const each of [...events, ...asked, paid.payment]) {
      for (const name of ['client', 'grantId', 'itemId']) expect(each).not.toHaveProperty(name)
    }
    expect(JSON.stringify(events)).not.toContain('expiry')
    const listed = await outgoingPayments.list({ walletAddress: alice })
    expect(listed.result.map((each) => each.paymentId)).toEqual([paymentId])
    expect(asked).toHaveLength(1)
  })

  test('pays a receiver with either amount, or with none of them', async () => {
    const { create } = walletOn(await open())
    const { debitAmount: _debitAmount, ...plain } = keyed
    const amounts = [{}, { receiveAmount: usd(7) }, { debitAmount: usd(9) }]
    const paid = []
    for (const [index, each] of amounts.entries()) {
      paid.push(await create({ ...plain, ...each, idempotencyKey: `${index}` }))
    }
    expect(paid.map(({ payment }) => payment.receiveAmount.value).slice(1)).toEqual(['7', '9'])
    expect(Number(paid[0]?.payment.receiveAmount.value)).toBeGreaterThan(0)
  })

  test('makes one payment of concurrent repeats by key, about which the host is asked once', async () => {
    const { asked, outgoingPayments, drained } = walletOn(await open())
    /** A slow machine may take longer than a repeat waits: then it is made again. */
    async function ordered(): ReturnType<typeof outgoingPayments.create> {
      return outgoingPayments.create(keyed).catch((error: unknown) => {
        if (error instanceof ContentionError) return ordered()
        throw error
      })
    }
    const all = await Promise.all(Array.from({ length: 8 }, ordered))
    expect(new Set(all.map((each) => each.ok && each.payment.paymentId)).size).toBe(1)
    expect(all.filter((each) => each.ok && each.changed)).toHaveLength(1)
    expect(asked).toHaveLength(1)
    expect(typesOf(await drained())).toEqual(['outgoing-payment.created'])
    const refused = await outgoingPayments.create({ ...keyed, debitAmount: usd(501) })
    expect(refused).toMatchObject({ ok: false, refusal: 'request_differs' })
  })

  test('has keys of the account: another account, a client and incoming payments have others', async () => {
    const { world, create } = walletOn(await open())
    const client = world.client()
    const { token } = await grantToPay(world, client)
    const mine = await create({ ...keyed, idempotencyKey: 'k' })
    const bobs = await create({ ...keyed, walletAddress: bob, idempotencyKey: 'k' })
    expect(bobs.payment.paymentId).not.toBe(mine.payment.paymentId)
    const paid = await pay(client, token, 5, { incomingPayment: otherReceiver }, withKey('k'))
    expect(paid.status).toBe(201)
    // An account can be a client, too, and then pays with its own keys.
    const asClient = world.client('alice', { walletAddress: alice })
    const { token: own } = await grantToPay(world, asClient)
    const more = { incomingPayment: otherReceiver }
    expect(await pay(asClient, own, 5, more, withKey('k'))).toMatchObject({ status: 201 })
    expect((await pay(asClient, own, 5, more, withKey('first'))).status).toBe(201)
    expect(await create({ ...keyed, idempotencyKey: 'first' })).toMatchObject({
      changed: true,
    })
    const invoice = { walletAddress: alice, idempotencyKey: 'k' }
    expect(await world.resources.incomingPayments.create(invoice)).toMatchObject({ changed: true })
  })

  test('has data that mayPay and the view have, and no resource and no event', async () => {
    const { asked, outgoingPayments, create, drained } = walletOn(await open())
    const data = { card: { last4: '4711' } }
    const { payment } = await create({ ...keyed, metadata: { note: 'rent' }, data })
    expect([payment.data, asked[0]?.data]).toEqual([data, data])
    const resource = outgoingPayments.toResource(payment)
    expect(resource).toMatchObject({ metadata: { note: 'rent' } })
    for (const shown of [resource, await drained()]) {
      expect(JSON.stringify(shown)).not.toContain('4711')
    }
  })

  test('is refused with the key or quote of an order that has any other member', async () => {
    const { outgoingPayments, create, quotes } = walletOn(await open())
    const all = {
      ...{ metadata: { a: 1 }, data: { b: 1 }, resourceOwner: 'alice' },
      countsInAccountLimits: true,
    }
    const others = [
      ...Object.keys(all).map((name) => ({ ...all, [name]: undefined })),
      { ...all, metadata: { a: 2 } },
      { ...all, data: { b: 2 } },
      { ...all, resourceOwner: 'bob' },
    ]
    const quoted = await quotes.create(order)
    if (!quoted.ok) throw new Error(quoted.reason)
    const { quoteId } = quoted.quote
    for (const by of [keyed, { walletAddress: alice, quoteId }]) {
      await create({ ...by, ...all })
      for (const more of others) {
        const given = Object.entries({ ...by, ...more }).filter(([, value]) => value !== undefined)
        const asked = Object.fromEntries(given) as unknown as OutgoingPaymentCreation
        expect(await outgoingPayments.create(asked)).toMatchObject({ refusal: 'request_differs' })
      }
      expect(await create({ ...by, ...all })).toMatchObject({ changed: false })
    }
  })

  test('gets the refusal of the host again, and the host one event of the end', async () => {
    const answers = [{ ok: false, refusal: 'funds_insufficient' }] as const
    const { asked, outgoingPayments, drained } = walletOn(await open(), { answers })
    const refusal = { ok: false, refusal: 'funds_insufficient' }
    expect(await outgoingPayments.create(keyed)).toMatchObject(refusal)
    expect(await outgoingPayments.create(keyed)).toMatchObject(refusal)
    expect(asked).toHaveLength(1)
    expect(typesOf(await drained())).toEqual(['outgoing-payment.declined'])
    expect((await outgoingPayments.list({ walletAddress: alice })).result).toEqual([])
  })

  test('is asked about again, as the same payment, after the host has failed', async () => {
    const { asked, outgoingPayments, create } = walletOn(await open(), {
      answers: [new Error('the ledger is down')],
    })
    await expect(outgoingPayments.create(keyed)).rejects.toThrow()
    expect(await create(keyed)).toMatchObject({ changed: true })
    expect(new Set(asked.map(({ outgoingPaymentId }) => outgoingPaymentId)).size).toBe(1)
  })

  test('confirms a payment, if the host demands it, and nobody else can', async () => {
    const until = manualClock().now() + 60_000
    const url = 'https://wallet.example/confirm'
    const answers = [{ ok: false, refusal: 'confirmation_required', url, until }] as const
    const { asked, outgoingPayments, create, drained } = walletOn(await open(), { answers })
    const ordered = { ...keyed, resourceOwner: 'alice' }
    const first = await outgoingPayments.create(ordered)
    expect(first).toMatchObject({ refusal: 'confirmation_required', details: { url } })
    expect(await outgoingPayments.create(ordered)).toEqual(first)
    const { result } = await outgoingPayments.listToConfirm({ walletAddress: alice })
    const [shown] = result
    expect(shown).toMatchObject({ resourceOwner: 'alice', paymentId: asked[0]?.outgoingPaymentId })
    expect(shown).not.toHaveProperty('client')
    const { paymentId, receiver, debitAmount, receiveAmount } = shown ?? (undefined as never)
    const seen = { receiver, debitAmount, receiveAmount }
    expect(
      await outgoingPayments.confirm(paymentId, { ...seen, resourceOwner: 'mallory' }),
    ).toMatchObject({ refusal: 'not_the_owner' })
    expect(
      await outgoingPayments.confirm(paymentId, { ...seen, resourceOwner: 'alice' }),
    ).toMatchObject({ ok: true, changed: true })
    expect(asked[1]).toMatchObject({ outgoingPaymentId: paymentId, isConfirmed: true })
    expect(await create(ordered)).toMatchObject({ changed: false })
    expect(typesOf(await drained())).toEqual(['outgoing-payment.created'])
  })

  test('has the cap for apps count a payment, and refuse one, only where it is asked to', async () => {
    const limits = [{ debitAmount: usd(600) }]
    const { outgoingPayments, create } = walletOn(await open(), { limits })
    const left = async () => {
      const [limit] = await outgoingPayments.limitsOf({ walletAddress: alice })
      return limit?.left?.debitAmount?.value
    }
    await create(keyed)
    await create({ ...keyed, idempotencyKey: 'again' })
    expect(await left()).toBe('600')
    const counted = { ...keyed, idempotencyKey: '1', countsInAccountLimits: true }
    const { payment } = await create(counted)
    expect(await left()).toBe('100')
    const more = await outgoingPayments.create({ ...counted, idempotencyKey: '2' })
    expect(more).toMatchObject({ ok: false, refusal: 'account_limit_exceeded' })
    const previewed = await outgoingPayments.preview({ ...order, countsInAccountLimits: true })
    expect(previewed).toMatchObject({ ok: false, refusal: 'account_limit_exceeded' })
    expect(await outgoingPayments.preview(order)).toMatchObject({ ok: true, limits: [] })
    await outgoingPayments.cancel(payment.paymentId, { reason: 'changed my mind' } as HostReasons)
    expect(await left()).toBe('600')
  })

  test('fails what the host does not begin in time', async () => {
    const { world, clock, create, drained } = walletOn(await open())
    await create(keyed)
    clock.advance(2 * day)
    await world.resources.sweep()
    expect(typesOf(await drained())).toEqual([
      'outgoing-payment.created',
      'outgoing-payment.failed',
    ])
  })

  test('is seen by no client, whatever it may list and read', async () => {
    const { world, outgoingPayments, quotes, create } = walletOn(await open())
    const paid = await create({ ...keyed, metadata: { note: 'rent' }, data: { card: 'secret' } })
    const client = world.client()
    const { token, grantId } = await grantToPay(world, client, [
      outgoingItem(),
      { type: 'outgoing-payment', actions: ['list-all', 'read-all'], identifier: alice },
      { type: 'quote', actions: ['create', 'read', 'read-all'] },
    ])
    const at = `${resourceServer}/outgoing-payments?wallet-address=${encodeURIComponent(alice)}`
    const before = await client.getPayment(token, at)
    expect(before.body).toEqual({
      pagination: { hasNextPage: false, hasPreviousPage: false },
      result: [],
    })
    expect((await client.getPayment(token, paid.url)).status).toBe(404)
    const quoted = await quotes.create(order)
    if (!quoted.ok) throw new Error(quoted.reason)
    const { quoteId } = quoted.quote
    const quoteUrl = `${resourceServer}/quotes/${quoteId}`
    expect((await client.getPayment(token, quoteUrl)).status).toBe(404)
    const stolen = await payByQuote(client, token, quoteUrl)
    expect(stolen.status).toBe(404)
    // Nor does the owner pay with the quote of a client.
    const own = await newQuote(client, await quoteToken(client), { debitAmount: usd(5) })
    const ofClient = String(own.body.id).split('/').at(-1) ?? ''
    expect(
      await outgoingPayments.create({ walletAddress: alice, quoteId: ofClient }),
    ).toMatchObject({ ok: false, refusal: 'quote_unknown' })
    const made = await payByQuote(client, token, own.body.id)
    expect(made.status).toBe(201)
    const after = await client.getPayment(token, at)
    expect(after.body.result).toMatchObject([{ id: made.body.id }])
    expect(JSON.stringify([after.body, made.body])).not.toMatch(/rent|secret/)
    // The host sees both, in their order, page by page.
    const first = await outgoingPayments.list({ walletAddress: alice, first: 1 })
    const { endCursor = '' } = first.pagination
    const rest = await outgoingPayments.list({ walletAddress: alice, first: 1, cursor: endCursor })
    const ids = [...first.result, ...rest.result].map(({ paymentId }) => paymentId)
    expect(ids).toEqual([paid.payment.paymentId, String(made.body.id).split('/').at(-1)])
    expect(first.pagination.hasNextPage).toBe(true)
    expect(rest.pagination.hasNextPage).toBe(false)
    const iterated = []
    for await (const each of outgoingPayments.iterate({ walletAddress: alice })) {
      iterated.push(each.paymentId)
    }
    expect(iterated).toEqual(ids)
    // No grant's budget counts it.
    const [budget] = await outgoingPayments.budgetsOf(grantId)
    expect(budget?.spent.debitAmount?.value).toBe('5')
  })
})

describe('the key of an owner’s payment', () => {
  test('answers in words after the payment was removed, and never pays again', async () => {
    const store = memoryStore()
    const { world, clock, outgoingPayments, create } = walletOn(store, { retentionMs: 7 * day })
    const { payment } = await create(keyed)
    await outgoingPayments.cancel(payment.paymentId)
    clock.advance(30 * day)
    while ((await world.resources.sweep()).more);
    expect(await outgoingPayments.get(payment.paymentId)).toBeUndefined()
    const again = await outgoingPayments.create(keyed)
    expect(again).toMatchObject({ ok: false, refusal: 'payment_unknown' })
    const other = await outgoingPayments.create({ ...keyed, debitAmount: usd(1) })
    expect(other).toMatchObject({ ok: false, refusal: 'request_differs' })
  })

  test('pays once in 400 days, whatever the sweeps, restarts and ends', async () => {
    const met = new Set<string>()
    const step = fc.oneof(
      { weight: 3, arbitrary: fc.constant({ does: 'orders' } as const) },
      fc.constant({ does: 'cancels' } as const),
      fc.constant({ does: 'sweeps' } as const),
      fc.constant({ does: 'restarts' } as const),
      fc.integer({ min: 1, max: 120 }).map((days) => ({ does: 'waits', days }) as const),
    )
    await fc.assert(
      fc.asyncProperty(
        fc.array(step, { minLength: 4, maxLength: 14 }),
        fc.boolean(),
        fc.constantFrom(1, 40, 500),
        async (steps, decides, days) => {
          const [store, clock] = [memoryStore(), manualClock()]
          const setting = { clock, decides, retentionMs: days * day }
          let wallet = walletOn(store, setting)
          const created: string[] = []
          let firstAt = Number.POSITIVE_INFINITY
          for (const each of steps) {
            if (each.does === 'waits') clock.advance(each.days * day)
            if (each.does === 'restarts') wallet = walletOn(store, setting)
            if (each.does === 'sweeps') while ((await wallet.world.resources.sweep()).more);
            const [latest] = created
            if (each.does === 'cancels' && latest) await wallet.outgoingPayments.cancel(latest)
            if (each.does !== 'orders') continue
            const age = clock.now() - firstAt
            if (age >= 400 * day) break
            const result = await wallet.outgoingPayments.create(keyed)
            met.add(result.ok ? `changed ${result.changed}` : result.refusal)
            if (result.ok && result.changed) created.push(result.payment.paymentId)
            if (result.ok) expect(result.payment.paymentId).toBe(created[0])
            firstAt = Math.min(firstAt, clock.now())
            expect(created).toHaveLength(1)
          }
        },
      ),
      { numRuns: runs(1_000, 60) },
    )
    expect([...met].sort()).toEqual(['changed false', 'changed true', 'payment_unknown'])
  })

  test('is kept for 400 days also if the clock of the process that created it is behind', async () => {
    const [store, clock] = [memoryStore(), manualClock()]
    const behind = manualClock(clock.now() - clockDifferenceMaxMs)
    const setting = { retentionMs: 7 * day }
    const { payment } = await walletOn(store, { ...setting, clock: behind }).create(keyed)
    const { world, outgoingPayments } = walletOn(store, { ...setting, clock })
    await outgoingPayments.cancel(payment.paymentId)
    for (const days of [100, 300]) {
      clock.advance(days * day - 1)
      while ((await world.resources.sweep()).more);
    }
    expect(await outgoingPayments.create(keyed)).toMatchObject({ refusal: 'payment_unknown' })
  })

  test('is kept as long as its payment, if that is longer', async () => {
    const store = memoryStore()
    const { world, clock, outgoingPayments, create } = walletOn(store)
    const { payment } = await create(keyed)
    await outgoingPayments.begin(payment.paymentId)
    for (let year = 0; year < 4; year += 1) {
      clock.advance(365 * day)
      while ((await world.resources.sweep()).more);
      expect(await create(keyed)).toMatchObject({
        changed: false,
        payment: { paymentId: payment.paymentId, status: 'begun' },
      })
    }
  })
})

test('an order that no type allows is refused before the store is read', async () => {
  const { outgoingPayments, quotes } = walletOn(memoryStore())
  for (const bad of [
    order,
    { ...keyed, receiveAmount: usd(1) },
    { ...keyed, quoteId: 'x' },
    { walletAddress: alice, quoteId: 'x', idempotencyKey: 'k' },
    { ...keyed, data: { at: new Date(0) } },
    { ...keyed, data: { much: 'x'.repeat(9_000) } },
    { ...keyed, client: 'https://shop.example' },
  ]) {
    await expect(outgoingPayments.create(bad as never)).rejects.toBeInstanceOf(InvalidInputError)
  }
  const both = { ...order, receiveAmount: usd(1) }
  await expect(quotes.create(both)).rejects.toBeInstanceOf(InvalidInputError)
  const stranger = { ...keyed, walletAddress: `${alice}x` }
  expect(await outgoingPayments.create(stranger)).toMatchObject({
    refusal: 'wallet_address_unknown',
  })
})

test('orders from two accounts are committed at the same time, because no budget counts both', async () => {
  const inner = memoryStore()
  const inProgress: (() => void)[] = []
  const gated = { is: false }
  const store: Store = {
    ...inner,
    async commit(commit) {
      if (gated.is) await new Promise<void>((resolve) => void inProgress.push(resolve))
      return inner.commit(commit)
    },
  }
  const { create } = walletOn(store, { decides: false })
  await create({ ...keyed, idempotencyKey: 'the first write marks the store' })
  gated.is = true
  const paid = [alice, bob].map((walletAddress) => create({ ...keyed, walletAddress }))
  await expect.poll(() => inProgress.length).toBe(2)
  for (const release of inProgress) release()
  expect(await Promise.all(paid)).toMatchObject([{ changed: true }, { changed: true }])
})

test('an owner pays at a resource server whose grants are remote', async () => {
  const world = walletInProcesses(2, { resources: { policy: { mayPay: () => ({ ok: true }) } } })
  expect(await world.resources.outgoingPayments.create(keyed)).toMatchObject({ changed: true })
})

test('a payment by key costs one load and one commit, with mayPay one more commit', async () => {
  const costs: Record<string, unknown> = {}
  for (const decides of [false, true]) {
    const inner = memoryStore()
    const calls = { loads: 0, commits: 0, records: 0 }
    const store: Store = {
      ...inner,
      load: (keys) => {
        calls.loads += 1
        return inner.load(keys)
      },
      commit: (commit) => {
        calls.commits += 1
        calls.records += commit.changes.length
        return inner.commit(commit)
      },
    }
    const { create } = walletOn(store, { decides })
    // The first write of a process also marks the store.
    await create({ ...keyed, idempotencyKey: 'first' })
    Object.assign(calls, { loads: 0, commits: 0, records: 0 })
    await create(keyed)
    costs[decides ? 'with mayPay' : 'without'] = calls
  }
  expect(costs).toEqual({
    without: { loads: 1, commits: 1, records: 3 },
    'with mayPay': { loads: 1, commits: 2, records: 4 },
  })
})

test.skipIf(servers.PostgreSQL === undefined)(
  'a transaction of the host that rolls back leaves nothing, and the same key pays afterwards',
  async () => {
    const { pool, schema, drop } = await freshPostgres()
    const { world, asked, outgoingPayments, drained } = walletOn(postgresStore(pool, { schema }))
    const attempt = (fails: boolean) =>
      postgresStore.transaction(
        pool,
        async (_client, inside) => {
          const paid = await world.resources.within(inside).outgoingPayments.create(keyed)
          if (fails) throw new Error('the host rolls back')
          return paid
        },
        { schema },
      )
    await expect(attempt(true)).rejects.toThrow('rolls back')
    expect((await outgoingPayments.list({ walletAddress: alice })).result).toEqual([])
    // No event would release a hold of mayPay, so a mayPay that holds must be asked outside of the transaction.
    expect(await drained()).toEqual([])
    expect(await attempt(false)).toMatchObject({ ok: true, changed: true })
    expect(new Set(asked.map(({ outgoingPaymentId }) => outgoingPaymentId)).size).toBe(2)
    expect(await outgoingPayments.create(keyed)).toMatchObject({ ok: true, changed: false })
    expect(typesOf(await drained())).toEqual(['outgoing-payment.created'])
    await drop()
  },
)
