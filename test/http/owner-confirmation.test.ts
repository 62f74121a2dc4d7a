import fc from 'fast-check'
import { afterAll, describe, expect, test } from 'vitest'
import {
  createResourceServer,
  type HostResult,
  type MayPay,
  type MayPayAnswer,
  memoryStore,
  type PaymentToConfirm,
  type RequestedPayment,
  type Store,
} from '../../src/index.js'
import { type Authority, authorities, payerOf } from '../support/authorities.js'
import { manualClock } from '../support/clock.js'
import { freshStores, servers } from '../support/databases.js'
import { type Fate, fates, lyingStore } from '../support/proxy-store.js'
import { runs } from '../support/runs.js'
import {
  grantToPay,
  otherReceiver,
  outgoingItem,
  pay,
  payByQuote,
  priceList,
  shopReceiver,
  usd,
  withKey,
} from '../support/spending.js'
import {
  errorOf,
  idOfPayment,
  quoteUrl,
  spentUnder,
  withoutNonce,
} from '../support/spending-client.js'
import { walletInProcesses } from '../support/two-processes.js'
import { alice, resourceServer } from '../support/world.js'

const minute = 60_000
/** How long the owner has: less than a token lives, and more than a quote. */
const confirmMs = 8 * minute
const resourceOwner = 'alice'

const onPostgres = freshStores()
afterAll(onPostgres.drop)

interface Deployment {
  readonly name: string
  /** 2 if the resource server is in another process than the grants. */
  readonly processes: 1 | 2
  readonly store?: () => Promise<Store>
  /** Default: a client. */
  readonly authority?: Authority
}

const oneProcess: Deployment = { name: 'one process', processes: 1 }
const twoProcesses: Deployment = { name: 'two processes', processes: 2 }
const deployments: readonly Deployment[] = [
  oneProcess,
  twoProcesses,
  ...(servers.PostgreSQL === undefined
    ? []
    : [{ name: 'PostgreSQL', processes: 1, store: onPostgres.open } satisfies Deployment]),
]

type Asked = RequestedPayment & { readonly answered: MayPayAnswer }

/** A host whose owner confirms payments above 50, which holds funds, and releases them at their end. */
function confirmingHost(clock: { now(): number }, balance = Number.POSITIVE_INFINITY) {
  const asked: Asked[] = []
  const holds = new Map<string, bigint>()
  const failures: unknown[] = []
  const mayPay: MayPay = (payment) => {
    const answered = answer(payment)
    asked.push({ ...payment, answered })
    const failure = failures.shift()
    if (failure !== undefined) throw failure
    return answered
  }
  function answer({
    outgoingPaymentId: id,
    debitAmount: { value },
    isConfirmed,
    isPreview,
  }: RequestedPayment): MayPayAnswer {
    if (BigInt(value) > 50n && !isConfirmed) {
      const url = `https://wallet.example/payments/${id}/confirm`
      const until = clock.now() + confirmMs
      return { ok: false, refusal: 'confirmation_required', url, until }
    }
    if (isPreview) return { ok: true }
    const others = [...holds].filter(([held]) => held !== id).map(([, amount]) => Number(amount))
    const held = others.reduce((sum, amount) => sum + amount, Number(value))
    if (held > balance) return { ok: false, refusal: 'funds_insufficient' }
    holds.set(id, BigInt(value))
    return { ok: true }
  }
  return { asked, holds, failures, mayPay }
}

async function setUp(
  { processes, store, authority = 'a client under a grant' }: Deployment = oneProcess,
  { balance, limit = 100 }: { readonly balance?: number; readonly limit?: number } = {},
) {
  const clock = manualClock()
  const host = confirmingHost(clock, balance)
  const world = walletInProcesses(processes, {
    clock,
    store: (await store?.()) ?? memoryStore(),
    auth: {
      policy: {
        requiresConsent: ({ type, limits }) => type === 'outgoing-payment' && limits !== undefined,
      },
    },
    resources: { policy: { mayPay: host.mayPay } },
  })
  const payer = await payerOf(world, authority, { limit, order: { resourceOwner } })
  const { outgoingPayments, events } = world.resources
  const ends: string[] = []
  /** Delivers the events that are due: the host releases what it holds. */
  async function deliver(): Promise<readonly string[]> {
    ends.length = 0
    await events.drain((event) => {
      if (!('outgoingPaymentId' in event)) return
      ends.push(event.type)
      if (/completed|failed|declined/.test(event.type)) host.holds.delete(event.outgoingPaymentId)
    })
    return [...ends]
  }
  /** Requests a payment of 60 that its owner must confirm. */
  async function waiting(key = 'k') {
    const request = () => payer.pay(60, {}, key)
    expect(errorOf(await request())).toEqual([403, 'confirmation_required'])
    const id = host.asked.at(-1)?.outgoingPaymentId ?? ''
    const shown = shownOf(await outgoingPayments.toConfirm(id))
    const confirm = (more: object = {}) =>
      outgoingPayments.confirm(id, { ...shown, resourceOwner, ...more })
    const decline = (more: object = {}) => outgoingPayments.decline(id, { resourceOwner, ...more })
    return { id, request, shown, confirm, decline }
  }
  /** Expects what the grant of the payments has spent, if they have one. */
  async function expectSpent(value: number) {
    if (payer.granted === undefined) return
    const { client, token } = payer.granted
    expect(await spentUnder(client, token)).toMatchObject({ spentDebitAmount: usd(value) })
  }
  return { ...host, payer, world, outgoingPayments, deliver, waiting, expectSpent }
}

/** A wallet with a client, which pays under a grant. */
async function setUpClient(...given: Parameters<typeof setUp>) {
  const setting = await setUp(...given)
  const { granted, named } = setting.payer
  if (granted === undefined) throw new Error('no client pays')
  const { client, token } = granted
  return { ...setting, client, token, grantId: named.grantId ?? '' }
}

function shownOf(payment: PaymentToConfirm | undefined) {
  if (payment === undefined) throw new Error('nothing waits for its owner')
  const { receiver, debitAmount, receiveAmount } = payment
  return { receiver, debitAmount, receiveAmount }
}

const refusalOf = (result: HostResult) => (result.ok ? 'ok' : result.refusal)

const byAuthority = deployments.flatMap((deployment) =>
  authorities.map((authority) => ({ ...deployment, authority })),
)

describe.each(byAuthority)(
  'a payment by $authority that its owner must confirm, in $name',
  (deployment) => {
    const isOrder = deployment.authority === 'the owner of the account'
    const isRemote = deployment.processes === 2

    test('waits: its client learns where and until when, and its budget counts it', async () => {
      const { world, payer, outgoingPayments, expectSpent, waiting } = await setUp(deployment)
      const { id, request } = await waiting()
      const details = {
        url: `https://wallet.example/payments/${id}/confirm`,
        until: new Date(world.clock.now() + confirmMs).toISOString(),
      }
      expect((await request()).body.error).toEqual({
        code: 'confirmation_required',
        description: 'The account owner must confirm the payment',
        details,
      })
      await expectSpent(60)
      if (!isOrder) expect(errorOf(await payer.pay(41))).toEqual([403, 'insufficient_grant'])
      expect(await outgoingPayments.get(id)).toBeUndefined()
      expect(await outgoingPayments.cancel(id)).toMatchObject({ refusal: 'payment_unknown' })
      expect((await outgoingPayments.list({ walletAddress: alice })).result).toEqual([])
    })

    test('is shown to its owner as it will be created', async () => {
      const { world, payer, outgoingPayments, waiting } = await setUp(deployment)
      const { id } = await waiting()
      const now = world.clock.now()
      const { kid, thumbprint } = payer.granted?.client.key ?? {}
      expect(await outgoingPayments.toConfirm(id)).toStrictEqual({
        paymentId: id,
        walletAddress: alice,
        ...payer.named,
        ...((isOrder || !isRemote) && { resourceOwner }),
        ...(!isOrder && !isRemote && { clientKey: { kid, thumbprint } }),
        receiver: shopReceiver,
        debitAmount: usd(60),
        receiveAmount: usd(60),
        ...(!isOrder && { itemId: '1' }),
        createdAt: now,
        url: `https://wallet.example/payments/${id}/confirm`,
        until: now + confirmMs,
      })
      expect(await outgoingPayments.toConfirm('another')).toBeUndefined()
    })

    test('is created by its confirmation, which the host holds, also if its payer never returns', async () => {
      const { world, payer, asked, holds, deliver, outgoingPayments, waiting } =
        await setUp(deployment)
      const { grantId } = payer.named
      const conditions = { data: { tier: 'small' } }
      if (grantId !== undefined) await world.auth.grants.amend(grantId, { conditions })
      const { id, confirm, request } = await waiting()
      expect(holds.size).toBe(0)
      world.clock.advance(confirmMs - 1)
      expect(await confirm()).toMatchObject({
        ok: true,
        changed: true,
        payment: { paymentId: id, status: 'created', debitAmount: usd(60) },
      })
      expect(asked.map(({ isConfirmed }) => isConfirmed)).toEqual([undefined, true])
      const [first, second] = asked.map(({ answered: _, isConfirmed: _is, ...same }) => same)
      expect(second).toEqual(first)
      expect(first).toMatchObject(isOrder ? {} : { conditions })
      expect([...holds]).toEqual([[id, 60n]])
      expect(await deliver()).toEqual(['outgoing-payment.created'])
      expect(idOfPayment(await request())).toBe(id)
      expect(await outgoingPayments.cancel(id)).toMatchObject({ ok: true })
      expect(await deliver()).toEqual(['outgoing-payment.failed'])
      expect(holds.size).toBe(0)
    })

    test('is created once, however often and at once it is confirmed and requested', async () => {
      const { asked, outgoingPayments, waiting } = await setUp(deployment)
      const { id, confirm, request } = await waiting()
      const results = await Promise.all([confirm(), confirm(), confirm()])
      expect(results.filter((each) => each.ok && each.changed)).toHaveLength(1)
      expect(results.every(({ ok }) => ok)).toBe(true)
      expect(await confirm()).toMatchObject({
        ok: true,
        changed: false,
        payment: { paymentId: id },
      })
      expect(idOfPayment(await request())).toBe(id)
      expect(asked).toHaveLength(2)
      expect((await outgoingPayments.list({ walletAddress: alice })).result).toHaveLength(1)
    })

    test('is refused for good once its owner declines it, and frees its budget', async () => {
      const { asked, deliver, expectSpent, waiting } = await setUp(deployment)
      const { confirm, decline, request } = await waiting()
      expect(await decline()).toEqual({ ok: true, changed: true })
      expect(await decline()).toEqual({ ok: true, changed: false })
      expect(refusalOf(await confirm())).toBe('confirmation_declined')
      for (let repeat = 1; repeat <= 2; repeat++) {
        expect(errorOf(await request())).toEqual([403, 'confirmation_declined'])
      }
      expect(await deliver()).toEqual(['outgoing-payment.declined'])
      await expectSpent(0)
      expect(asked).toHaveLength(1)
    })

    test.each(['sweep', 'repeat'])('is over after its time: a %s declines it', async (by) => {
      const { world, asked, deliver, outgoingPayments, expectSpent, waiting } =
        await setUp(deployment)
      const { id, confirm, decline, request } = await waiting()
      world.clock.advance(confirmMs)
      expect(await outgoingPayments.toConfirm(id)).toBeUndefined()
      expect(refusalOf(await confirm())).toBe('confirmation_expired')
      expect(refusalOf(await decline())).toBe('confirmation_expired')
      expect(await deliver()).toEqual([])
      if (by === 'sweep') expect(await world.resources.sweep()).toMatchObject({ lapsed: 1 })
      expect(errorOf(await request())).toEqual([403, 'confirmation_expired'])
      expect(refusalOf(await confirm())).toBe('confirmation_expired')
      expect(await deliver()).toEqual(['outgoing-payment.declined'])
      expect(asked).toHaveLength(1)
      await expectSpent(0)
    })

    test('is not confirmed as another one than was shown', async () => {
      const { asked, waiting } = await setUp(deployment)
      const { confirm, request } = await waiting()
      const others = [
        { receiver: otherReceiver },
        { debitAmount: usd(59) },
        { receiveAmount: { ...usd(60), assetCode: 'EUR' } },
      ]
      for (const other of others) expect(refusalOf(await confirm(other))).toBe('payment_differs')
      expect(errorOf(await request())).toEqual([403, 'confirmation_required'])
      expect(asked).toHaveLength(1)
    })

    test('is declined if the host cannot hold its funds when it is confirmed', async () => {
      const { deliver, waiting } = await setUp(deployment, { balance: 59 })
      const { confirm, request } = await waiting()
      expect(refusalOf(await confirm())).toBe('funds_insufficient')
      expect(refusalOf(await confirm())).toBe('funds_insufficient')
      expect(errorOf(await request())).toEqual([403, 'insufficient_funds'])
      expect(await deliver()).toEqual(['outgoing-payment.declined'])
    })

    test('stays confirmed if the host fails, and is then created by a repeat of either', async () => {
      for (const by of ['confirmation', 'request'] as const) {
        const { world, asked, failures, holds, waiting, outgoingPayments } = await setUp(deployment)
        const { id, confirm, decline, request } = await waiting()
        failures.push(new Error('no ledger'))
        await expect(confirm()).rejects.toThrow('no ledger')
        expect(await outgoingPayments.toConfirm(id)).toMatchObject({
          paymentId: id,
          until: world.clock.now() + 30_000 + 180_001,
        })
        expect(refusalOf(await decline())).toBe('payment_confirmed')
        if (by === 'confirmation')
          expect(await confirm()).toMatchObject({ ok: true, changed: true })
        else expect(idOfPayment(await request())).toBe(id)
        expect(asked.map(({ isConfirmed }) => isConfirmed)).toEqual([undefined, true, true])
        expect(holds.size).toBe(1)
      }
    })

    test('is declined if nobody asks again after the host failed, and its hold is released', async () => {
      const { world, deliver, failures, holds, waiting } = await setUp(deployment)
      const { request, confirm } = await waiting()
      failures.push(new Error('the answer was lost'))
      await expect(confirm()).rejects.toThrow('the answer was lost')
      expect(holds.size).toBe(1)
      world.clock.advance(4 * minute)
      expect(await world.resources.sweep()).toMatchObject({ lapsed: 1 })
      expect(await deliver()).toEqual(['outgoing-payment.declined'])
      expect(holds.size).toBe(0)
      expect(errorOf(await request())).toEqual([403, 'payment_denied'])
      expect(refusalOf(await confirm())).toBe('payment_not_allowed')
    })

    test('may be by a quote, also after the quote has expired', async () => {
      const { world, asked, payer, outgoingPayments } = await setUp(deployment)
      const quoteId: string = (await payer.quote({ debitAmount: usd(60) })).body.id
      const request = () => payer.payByQuote(quoteId)
      expect(errorOf(await request())).toEqual([403, 'confirmation_required'])
      const id = asked[0]?.outgoingPaymentId ?? ''
      expect(quoteId.endsWith(id)).toBe(true)
      world.clock.advance(6 * minute)
      const shown = shownOf(await outgoingPayments.toConfirm(id))
      expect(await outgoingPayments.confirm(id, { ...shown, resourceOwner })).toMatchObject({
        ok: true,
      })
      expect((await request()).status).toBe(201)
    })
  },
)

describe.each(deployments)('a payment under a grant, in $name', (deployment) => {
  test('is decided by whom the host vouches for, under a grant that needed no consent', async () => {
    const { client, asked, outgoingPayments } = await setUpClient(deployment)
    const { body } = await client.request([outgoingItem()])
    const token: string = body.access_token.value
    const request = (key: string) => pay(client, token, 60, {}, withKey(key))
    const waits = async (key: string) => {
      expect(errorOf(await request(key))).toEqual([403, 'confirmation_required'])
      const payment = await outgoingPayments.toConfirm(asked.at(-1)?.outgoingPaymentId ?? '')
      expect(payment).not.toHaveProperty('resourceOwner')
      return { id: payment?.paymentId ?? '', shown: shownOf(payment) }
    }
    const { id, shown } = await waits('confirmed')
    expect(await outgoingPayments.confirm(id, { ...shown, resourceOwner })).toMatchObject({
      ok: true,
      changed: true,
    })
    expect(idOfPayment(await request('confirmed'))).toBe(id)
    const other = await waits('declined')
    expect(await outgoingPayments.decline(other.id, { resourceOwner })).toMatchObject({ ok: true })
    expect(errorOf(await request('declined'))).toEqual([403, 'confirmation_declined'])
  })
})

describe('the owner of the grant', () => {
  test.each(authorities)(
    'is the only one who confirms and declines a payment by %s',
    async (authority) => {
      const { waiting } = await setUp({ ...oneProcess, authority })
      const { confirm, decline, request } = await waiting()
      expect(refusalOf(await confirm({ resourceOwner: 'bob' }))).toBe('not_the_owner')
      expect(refusalOf(await decline({ resourceOwner: 'bob' }))).toBe('not_the_owner')
      expect(errorOf(await request())).toEqual([403, 'confirmation_required'])
      expect(refusalOf(await confirm())).toBe('ok')
      expect(refusalOf(await confirm({ resourceOwner: 'bob' }))).toBe('not_the_owner')
    },
  )

  test.each([
    ['revokes it', 'grant_ended'],
    ['lowers its limit below the payment', 'limits_exceeded'],
    ['pauses it', 'grant_paused'],
    ['sets a limit', 'conditions_exceeded'],
    ['lowers its limit to the payment', 'ok'],
  ])('who %s meanwhile decides about the payment', async (change, expected) => {
    const { world, grantId, deliver, holds, outgoingPayments, waiting } = await setUpClient()
    const { id, confirm } = await waiting()
    const { grants } = world.auth
    const to = (value: number) => ({
      access: [{ itemId: '1', ...outgoingItem({ debitAmount: usd(value) }) }],
    })
    const pausedUntil = world.clock.now() + minute
    const limits = [{ payments: 9 }]
    if (change === 'revokes it') await grants.revoke(grantId)
    if (change.startsWith('lowers its limit below')) await grants.amend(grantId, to(59))
    if (change.startsWith('lowers its limit to')) await grants.amend(grantId, to(60))
    if (change === 'pauses it') await grants.amend(grantId, { conditions: { pausedUntil } })
    if (change === 'sets a limit') await grants.amend(grantId, { conditions: { limits } })
    if (change === 'revokes it') expect(await outgoingPayments.toConfirm(id)).toBeUndefined()
    expect(refusalOf(await confirm())).toBe(expected)
    expect(refusalOf(await confirm())).toBe(expected)
    const isCreated = expected === 'ok'
    expect(await deliver()).toEqual([`outgoing-payment.${isCreated ? 'created' : 'declined'}`])
    expect(holds.size).toBe(isCreated ? 1 : 0)
  })
})

describe('a payment whose grant ended while it waited for its owner', () => {
  test.each(['quote', 'key'])(
    'is declined by a repeat of the client under another grant, with a %s',
    async (by) => {
      const { world, client, token, grantId, deliver, outgoingPayments } = await setUpClient()
      const quoteId = await quoteUrl(client, { debitAmount: usd(60) })
      const requestWith = (live: string) =>
        by === 'quote' ? payByQuote(client, live, quoteId) : pay(client, live, 60, {}, withKey('k'))
      expect(errorOf(await requestWith(token))).toEqual([403, 'confirmation_required'])
      const another = await grantToPay(world, client, [outgoingItem({ debitAmount: usd(100) })])
      expect(errorOf(await requestWith(another.token))).toEqual([403, 'confirmation_required'])
      await world.auth.grants.revoke(grantId)
      expect(errorOf(await requestWith(token))).toEqual([401, 'invalid_token'])
      for (let repeat = 1; repeat <= 2; repeat++) {
        expect(errorOf(await requestWith(another.token))).toEqual([403, 'grant_ended'])
      }
      expect(await deliver()).toEqual(['outgoing-payment.declined'])
      expect((await outgoingPayments.list({ walletAddress: alice })).result).toEqual([])
      expect(errorOf(await pay(client, another.token, 60))).toEqual([403, 'confirmation_required'])
    },
  )
})

describe('the answer that the owner must confirm', () => {
  test.each<[string, object]>([
    ['no URL', { url: undefined }],
    ['a relative URL', { url: '/confirm' }],
    ['http', { url: 'http://wallet.example/confirm' }],
    ['a script', { url: 'javascript:alert(1)' }],
    ['userinfo', { url: 'https://alice@wallet.example/confirm' }],
    ['a URL of 2,049 characters', { url: `https://wallet.example/${'a'.repeat(2026)}` }],
    ['no time', { until: undefined }],
    ['a time that has come', { until: 0 }],
    ['a time in more than 24 hours', { until: 86_400_001 }],
    ['a fraction', { until: 0.5 }],
    ['no number', { until: Number.NaN }],
  ])(
    'is a mistake of the host with %s, and the payment can be requested again',
    async (_, wrong) => {
      for (const authority of authorities) await expectMistake(authority, wrong)
    },
  )

  async function expectMistake(authority: Authority, wrong: object) {
    const clock = manualClock()
    let isWrong = true
    const { until, ...more } = { until: minute, ...wrong } as { until?: number }
    const mayPay = (() => ({
      ok: false,
      refusal: 'confirmation_required',
      url: 'http://localhost:3000/confirm',
      ...(isWrong ? more : {}),
      until: isWrong ? until && clock.now() + until : clock.now() + 86_400_000,
    })) as MayPay
    const world = walletInProcesses(1, { clock, resources: { policy: { mayPay } } })
    const payer = await payerOf(world, authority)
    const request = () => payer.pay(60, {}, 'k')
    const isTimeless = 'until' in wrong && wrong.until === 0
    if (isTimeless) clock.advance(1)
    expect(errorOf(await request())).toEqual([500, 'internal_error'])
    isWrong = false
    expect(errorOf(await request())).toEqual([403, 'confirmation_required'])
  }

  test.each(authorities)(
    'is a mistake of the host once the owner has confirmed a payment by %s, and creates nothing',
    async (authority) => {
      const clock = manualClock()
      const asked: RequestedPayment[] = []
      const mayPay: MayPay = (payment) => {
        asked.push(payment)
        const url = 'https://wallet.example/confirm'
        return { ok: false, refusal: 'confirmation_required', url, until: clock.now() + minute }
      }
      const world = walletInProcesses(1, { clock, resources: { policy: { mayPay } } })
      const payer = await payerOf(world, authority)
      const { outgoingPayments } = world.resources
      const request = () => payer.pay(60, {}, 'k')
      await request()
      const id = asked[0]?.outgoingPaymentId ?? ''
      const shown = shownOf(await outgoingPayments.toConfirm(id))
      const confirmed = outgoingPayments.confirm(id, { ...shown, resourceOwner })
      await expect(confirmed).rejects.toThrow('the owner has already confirmed the payment')
      expect(errorOf(await request())).toEqual([500, 'internal_error'])
      expect((await outgoingPayments.list({ walletAddress: alice })).result).toEqual([])
    },
  )

  test.each(authorities)('is what a preview says to %s if it asks the host', async (authority) => {
    const { asked, payer, outgoingPayments } = await setUp({ ...oneProcess, authority })
    const preview = (value: number, asksMayPay: boolean) =>
      outgoingPayments.preview({
        ...(payer.named.grantId && { grantId: payer.named.grantId }),
        walletAddress: alice,
        receiver: shopReceiver,
        debitAmount: usd(value),
        asksMayPay,
      })
    expect(await preview(60, false)).toMatchObject({ ok: true })
    expect(await preview(50, true)).toMatchObject({ ok: true })
    const previewed = await preview(60, true)
    expect(previewed).toMatchObject({
      ok: false,
      refusal: 'confirmation_required',
      details: { url: expect.stringContaining('/confirm'), until: expect.any(String) },
    })
    expect(previewed).not.toHaveProperty('url')
    expect(await outgoingPayments.toConfirm(asked[1]?.outgoingPaymentId ?? '')).toBeUndefined()
  })
})

test('a byte-identical repeat without a quote or key gets what its payment has become', async () => {
  const { world, client, token, asked, outgoingPayments } = await setUpClient()
  const same = withoutNonce(world, client)
  const request = () => pay(client, token, 60, {}, same)
  expect(errorOf(await request())).toEqual([403, 'confirmation_required'])
  expect(errorOf(await request())).toEqual([403, 'confirmation_required'])
  const id = asked[0]?.outgoingPaymentId ?? ''
  await outgoingPayments.decline(id, { resourceOwner })
  expect(errorOf(await request())).toEqual([403, 'confirmation_declined'])
  expect(asked).toHaveLength(1)
})

describe('a commit', () => {
  const cases = fates.flatMap((fate) => authorities.map((authority) => [fate, authority] as const))

  test.each(cases)(
    'that %s asks the owner and creates the payment by %s once',
    async (fate, authority) => {
      const clock = manualClock()
      const host = confirmingHost(clock)
      const next: Fate[] = []
      const { store } = lyingStore(memoryStore(), (method) =>
        method === 'commit' ? (next.shift() ?? 'works') : 'works',
      )
      const policy = { mayPay: host.mayPay }
      const world = walletInProcesses(1, { clock, store, resources: { policy } })
      const payer = await payerOf(world, authority)
      const { outgoingPayments } = world.resources
      // Reserve, then wait for the owner.
      next.push('works', fate)
      const request = () => payer.pay(60, {}, 'k')
      expect(errorOf(await request())).toEqual([403, 'confirmation_required'])
      const id = host.asked[0]?.outgoingPaymentId ?? ''
      const shown = shownOf(await outgoingPayments.toConfirm(id))
      // Confirm, then create.
      next.push(fate, fate)
      expect(await outgoingPayments.confirm(id, { ...shown, resourceOwner })).toMatchObject({
        ok: true,
        changed: true,
      })
      expect(host.asked).toHaveLength(2)
      expect(idOfPayment(await request())).toBe(id)
      expect((await outgoingPayments.list({ walletAddress: alice })).result).toHaveLength(1)
    },
  )
})

test.each(['the owner declines', 'its time ends'])(
  'a payment ends once if %s while other commits of its grant are in progress',
  async (end) => {
    const memory = memoryStore()
    let open: () => void = () => undefined
    let opened: Promise<void> | undefined
    const calls = { load: 0, commit: 0 }
    const store: Store = {
      ...memory,
      load(keys) {
        calls.load += 1
        return memory.load(keys)
      },
      async commit(commit) {
        calls.commit += 1
        await opened
        return memory.commit(commit)
      },
    }
    const deployment: Deployment = { ...oneProcess, store: async () => store }
    const { client, token, world, expectSpent, deliver, outgoingPayments, waiting } =
      await setUpClient(deployment)
    const { id, decline, request } = await waiting()
    if (end === 'its time ends') world.clock.advance(confirmMs)
    opened = new Promise((resolve) => {
      open = resolve
    })
    const before = calls.commit
    const other = pay(client, token, 40, {}, withKey('other'))
    await expect.poll(() => calls.commit).toBe(before + 1)
    calls.load = 0
    // These share one commit, because they wait for that of the other payment.
    const ending = [1, 2, 3].map(() => (end === 'its time ends' ? request() : decline()))
    await expect.poll(() => calls.load).toBeGreaterThanOrEqual(6)
    for (let turn = 0; turn < 100; turn++) await new Promise(setImmediate)
    open()
    expect((await other).status).toBe(201)
    await Promise.all(ending)
    const types = await deliver()
    expect(types.toSorted()).toEqual(['outgoing-payment.created', 'outgoing-payment.declined'])
    await expectSpent(40)
    expect(await outgoingPayments.toConfirm(id)).toBeUndefined()
  },
)

/** What the client, the owner, the host and time do, some of it at once, at two servers on one store. */
const which = fc.nat(2)
const at = fc.nat(1)
const step = fc.oneof(
  {
    weight: 3,
    arbitrary: fc.record({ does: fc.constant('request' as const), which, at, anew: fc.boolean() }),
  },
  { weight: 3, arbitrary: fc.record({ does: fc.constant('confirm' as const), which, at }) },
  fc.record({ does: fc.constant('decline' as const), which, at }),
  fc.record({ does: fc.constant('pass' as const), ms: fc.integer({ min: 1, max: 8 * minute }) }),
  fc.record({ does: fc.constantFrom('sweep' as const, 'fail' as const) }),
  fc.record({ does: fc.constantFrom('lower' as const, 'revoke' as const) }),
)

test('no order of requests, decisions and failures exceeds a limit, or leaves a hold', async () => {
  const seen = { created: 0, declined: 0, refused: 0 }
  const property = fc.asyncProperty(
    fc.array(fc.array(step, { minLength: 1, maxLength: 3 }), { minLength: 2, maxLength: 8 }),
    async (rounds) => {
      const { world, client, token, grantId, asked, holds, failures, mayPay } = await setUpClient(
        oneProcess,
        { limit: 130 },
      )
      const { auth, clock, store, resources } = world
      const another = await grantToPay(world, client, [outgoingItem({ debitAmount: usd(130) })])
      const other = createResourceServer({
        store,
        clock,
        baseUrl: resourceServer,
        grants: auth,
        walletAddresses: { find: async (url) => ({ url, assetCode: 'USD', assetScale: 2 }) },
        paymentMethods: { detailsOf: async () => [], paymentIdOf: () => '' },
        pricing: priceList,
        policy: { mayPay },
      })
      const shown = { receiver: shopReceiver, debitAmount: usd(60), receiveAmount: usd(60) }
      const ids = () => [...new Set(asked.map(({ outgoingPaymentId }) => outgoingPaymentId))]
      let [limit, isRevoked] = [130n, false]
      const confirmed = new Set<string>()
      const events: string[] = []
      async function deliver() {
        await resources.events.drain((event) => {
          if (!('outgoingPaymentId' in event)) return
          events.push(`${event.type.slice('outgoing-payment.'.length)} ${event.outgoingPaymentId}`)
          if (event.type === 'outgoing-payment.declined') holds.delete(event.outgoingPaymentId)
        })
      }
      const created = async () =>
        (await resources.outgoingPayments.list({ walletAddress: alice })).result

      const ofFirst = async () => (await created()).filter((each) => each.grantId === grantId)

      async function take(each: typeof step extends fc.Arbitrary<infer Step> ? Step : never) {
        const { outgoingPayments } = 'at' in each && each.at === 1 ? other : resources
        const id = 'which' in each ? (ids()[each.which] ?? 'none') : 'none'
        if (each.does === 'pass') clock.advance(each.ms)
        if (each.does === 'sweep') await other.sweep()
        if (each.does === 'fail') failures.push(new Error('the answer was lost'))
        if (each.does === 'request') {
          const before = isRevoked
          const live = each.anew ? another.token : token
          const answer = await pay(client, live, 60, {}, withKey(`${each.which}`))
          if (answer.status === 403) seen.refused++
          if (errorOf(answer)[1] === 'confirmation_required') {
            const waiting = await resources.outgoingPayments.toConfirm(
              answer.body.error.details.url.split('/').at(-2),
            )
            if (before) expect(waiting?.grantId).not.toBe(grantId)
          }
        }
        if (each.does === 'decline') await outgoingPayments.decline(id, { resourceOwner })
        if (each.does === 'confirm') {
          confirmed.add(id)
          const before = isRevoked
          const result = await outgoingPayments
            .confirm(id, { ...shown, resourceOwner })
            .catch(() => undefined)
          if (before && result?.ok && result.changed) {
            expect(result.payment.grantId).not.toBe(grantId)
          }
        }
        if (each.does === 'lower') {
          limit = 60n
          const access = [{ itemId: '1', ...outgoingItem({ debitAmount: usd(60) }) }]
          await auth.grants.amend(grantId, { access })
        }
        if (each.does === 'revoke') {
          await auth.grants.revoke(grantId)
          isRevoked = true
        }
      }

      for (const round of rounds) {
        const before = (await ofFirst()).length
        await Promise.all(round.map(take))
        const after = await ofFirst()
        expect(after.length * 60).toBeLessThanOrEqual(130)
        if (after.length > before && !round.some(({ does }) => does === 'lower')) {
          expect(BigInt(after.length * 60)).toBeLessThanOrEqual(limit)
        }
        await deliver()
      }
      clock.advance(60 * minute)
      await resources.sweep()
      await deliver()
      const made = (await created()).map(({ paymentId }) => paymentId)
      expect([...holds.keys()].sort()).toEqual([...made].sort())
      expect(made.every((id) => confirmed.has(id))).toBe(true)
      const ends = ids().map((id) => `${made.includes(id) ? 'created' : 'declined'} ${id}`)
      expect(events.toSorted()).toEqual(ends.toSorted())
      seen.created += made.length
      seen.declined += ids().length - made.length
    },
  )
  await fc.assert(property, { numRuns: runs(600, 70) })
  for (const count of Object.values(seen)) expect(count).toBeGreaterThan(10)
})
