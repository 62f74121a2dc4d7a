import { describe, expect, test, vi } from 'vitest'
import {
  InvalidInputError,
  type MayPay,
  type MayPayAnswer,
  memoryStore,
  type PriceRequest,
  type RequestedPayment,
} from '../../../src/index.js'
import { namespaceOf } from '../../../src/protocol/credential.js'
import type { EventRecord, EventType } from '../../../src/service/event-record.js'
import { type Authority, authorities, payerOf } from '../../support/authorities.js'
import { turns } from '../../support/clock.js'
import { hostCall } from '../../support/host-call.js'
import { eventsIn } from '../../support/outbox.js'
import { type Fate, fates, lyingStore } from '../../support/proxy-store.js'
import {
  createSpendingWorld,
  eur,
  euroReceiver,
  grantToPay,
  outgoingItem,
  pay,
  payByQuote,
  priceList,
  shopReceiver,
  usd,
  withKey,
} from '../../support/spending.js'
import {
  errorOf,
  idOfPayment,
  payingClient,
  spentUnder,
  withoutNonce,
} from '../../support/spending-client.js'
import { alice, resourceServer, type World, type WorldOptions } from '../../support/world.js'

const allowed: MayPayAnswer = { ok: true }
const broke: MayPayAnswer = { ok: false, refusal: 'funds_insufficient', reason: 'balance 12' }
const barred: MayPayAnswer = { ok: false, refusal: 'payment_not_allowed', reason: 'on the list' }

/** A payer who may pay 2,500, and a host that gives the answers in turn, and then allows every payment. */
async function setUpPayer(authority: Authority, ...answers: readonly MayPayAnswer[]) {
  const rest = [...answers]
  const asked: RequestedPayment[] = []
  const mayPay: MayPay = async (payment) => {
    asked.push(payment)
    return rest.shift() ?? allowed
  }
  return { asked, ...(await payerWith(authority, mayPay)) }
}

async function payerWith(authority: Authority, mayPay: MayPay, options: WorldOptions = {}) {
  const resources = { ...options.resources, policy: { mayPay, ...options.resources?.policy } }
  const world = createSpendingWorld({ ...options, resources })
  return { world, ...(await payerOf(world, authority)) }
}

/** A client that may pay 2,500, and a host that gives the answers in turn, and then allows every payment. */
async function setUp(...answers: readonly MayPayAnswer[]) {
  const rest = [...answers]
  const asked: RequestedPayment[] = []
  const mayPay: MayPay = async (payment) => {
    asked.push(payment)
    return rest.shift() ?? allowed
  }
  return { asked, ...(await payingClient({ resources: { policy: { mayPay } } })) }
}

/** A store whose next commits have the fates in `next`. */
async function onLyingStore(authority: Authority, mayPay: MayPay) {
  const next: Fate[] = []
  const { store } = lyingStore(memoryStore(), (method) =>
    method === 'commit' ? (next.shift() ?? 'works') : 'works',
  )
  return { next, ...(await payerWith(authority, mayPay, { store })) }
}

/** A payment by a key about which the host is being asked, until `answer` is called. */
async function reserved(authority: Authority) {
  const asked: RequestedPayment[] = []
  let answer: (answer: MayPayAnswer) => void = () => undefined
  const answered = new Promise<MayPayAnswer>((resolve) => {
    answer = resolve
  })
  const mayPay: MayPay = (payment) => {
    asked.push(payment)
    return answered
  }
  const { world, ...payer } = await payerWith(authority, mayPay)
  const request = () => payer.pay(10, {}, 'k')
  const first = request()
  await expect.poll(() => asked).toHaveLength(1)
  const id = asked[0]?.outgoingPaymentId ?? ''
  /** Expects what the grant of the payment has spent, if it has one. */
  async function expectSpent(value: number) {
    if (payer.granted === undefined) return
    const spent = await spentUnder(payer.granted.client, payer.granted.token)
    expect(spent).toMatchObject({ spentDebitAmount: usd(value) })
  }
  return { ...payer, world, asked, answer, request, first, id, expectSpent }
}

/** The types of the end events of a payment that are delivered now. */
async function endsOf(world: World, paymentId: string) {
  const types: string[] = []
  await world.resources.events.drain((event) => {
    if (!('outgoingPaymentId' in event) || event.outgoingPaymentId !== paymentId) return
    if (event.type !== 'outgoing-payment.created') types.push(event.type)
  })
  return types
}

const paymentsOf = async (world: World) => {
  const { result } = await world.resources.outgoingPayments.list({ walletAddress: alice, first: 9 })
  return result
}

describe.each(authorities)('the permission of the host to a payment by %s', (authority) => {
  test('is asked with the payment as it would be created', async () => {
    const { asked, named, pay, quote, payByQuote } = await setUpPayer(authority)
    const more = { incomingPayment: euroReceiver, metadata: { note: 'shoes' } }
    const direct = await pay(1000, more)
    const byQuote = await payByQuote((await quote()).body.id)
    const common = { walletAddress: alice, ...named }
    expect(asked).toStrictEqual([
      {
        ...common,
        outgoingPaymentId: idOfPayment(direct),
        receiver: euroReceiver,
        debitAmount: usd(1000),
        receiveAmount: eur(500),
        metadata: { note: 'shoes' },
      },
      {
        ...common,
        outgoingPaymentId: idOfPayment(byQuote),
        receiver: shopReceiver,
        debitAmount: usd(1000),
        receiveAmount: usd(1000),
      },
    ])
  })

  test.each([
    ['insufficient funds', broke, 'insufficient_funds', 'Insufficient funds'],
    ['any other reason', barred, 'payment_denied', 'Payment is not allowed'],
  ] as const)(
    'can be refused for %s, and then no payment exists',
    async (_, answer, code, text) => {
      const { world, granted, pay, quote, payByQuote } = await setUpPayer(authority, answer, answer)
      const spent = async () => granted && spentUnder(granted.client, granted.token)
      const before = await spent()
      const { id: quoteId } = (await quote()).body
      for (const request of [() => pay(10), () => payByQuote(quoteId)]) {
        const response = await request()
        expect(response.status).toBe(403)
        expect(response.body).toEqual({ error: { code, description: text } })
        if (granted === undefined) continue
        expect(world.refusals.at(-1)).toMatchObject({
          refusal: answer.ok || answer.refusal,
          reason: answer.ok || answer.reason,
          client: 'https://shop.example',
          operation: 'createOutgoingPayment',
        })
      }
      expect(await paymentsOf(world)).toEqual([])
      expect(await spent()).toEqual(before && { ...before, spentReceiveAmount: usd(0) })
      await pay(10)
      const namespace = await namespaceOf(resourceServer)
      const events = await eventsIn(world.store, namespace)
      const types = (events as readonly EventRecord[]).map(({ event }) => event.type)
      expect(types.filter((type) => type.startsWith('outgoing')).sort()).toEqual([
        'outgoing-payment.created',
        'outgoing-payment.declined',
        'outgoing-payment.declined',
      ])
    },
  )

  test('keeps two payments within one balance, if the host holds funds by the id of the payment', async () => {
    const holds = new Map<string, bigint>()
    const mayPay: MayPay = async ({ outgoingPaymentId: id, debitAmount: { value } }) => {
      const others = [...holds].filter(([held]) => held !== id).map(([, amount]) => amount)
      const held = others.reduce((sum, amount) => sum + amount, 0n)
      if (held + BigInt(value) > 1500n) return { ok: false, refusal: 'funds_insufficient' }
      holds.set(id, BigInt(value))
      return allowed
    }
    const { world, pay } = await payerWith(authority, mayPay)
    const { pay: alsoPay } = await payerOf(world, authority, { client: world.client('other') })
    const answers = await Promise.all([pay(1000), pay(1000), alsoPay(1000, {}, 'other')])
    const codes = answers.map(({ status, body }) => body.error?.code ?? status)
    expect(codes.sort()).toEqual([201, 'insufficient_funds', 'insufficient_funds'])
    expect(await paymentsOf(world)).toHaveLength(1)
  })

  test('is not asked again about a payment that exists', async () => {
    const { asked, pay, quote, payByQuote } = await setUpPayer(
      authority,
      ...[allowed, allowed, broke, barred],
    )
    const { id: quoteId } = (await quote()).body
    const byQuote = await payByQuote(quoteId)
    const byKey = await pay(10, {}, 'k')
    expect(await payByQuote(quoteId)).toMatchObject({ body: { id: byQuote.body.id } })
    expect(await pay(10, {}, 'k')).toMatchObject({
      status: 201,
      body: { id: byKey.body.id },
    })
    expect(asked).toHaveLength(2)
  })

  test('is final if it is refused: a repeat with the same quote or key gets the same refusal', async () => {
    const { asked, world, granted, pay, quote, payByQuote } = await setUpPayer(
      authority,
      broke,
      barred,
    )
    const { id: quoteId } = (await quote()).body
    const byQuote = () => payByQuote(quoteId)
    const byKey = (value: number) => pay(value, {}, 'k')
    for (let repeat = 1; repeat <= 3; repeat++) {
      expect(errorOf(await byQuote())).toEqual([403, 'insufficient_funds'])
      if (granted) expect(world.refusals.at(-1)).toMatchObject({ reason: 'balance 12' })
      expect(errorOf(await byKey(10))).toEqual([403, 'payment_denied'])
    }
    expect(errorOf(await byKey(11))).toEqual([422, 'request_differs'])
    expect(asked).toHaveLength(2)
  })

  test('is asked once about a payment whose commit loses a race', async () => {
    const asked: string[] = []
    const mayPay: MayPay = async ({ debitAmount }) => {
      asked.push(debitAmount.value)
      if (asked.length === 1) await pay(10)
      return allowed
    }
    const { pay } = await payerWith(authority, mayPay)
    expect((await pay(20)).status).toBe(201)
    expect(asked).toEqual(['20', '10'])
  })

  describe('is asked about a payment that is reserved', () => {
    test('which no client and no call of the host finds, and which its budget counts', async () => {
      const { world, granted, answer, first, id, expectSpent } = await reserved(authority)
      const { outgoingPayments } = world.resources
      expect(await outgoingPayments.get(id)).toBeUndefined()
      expect(await paymentsOf(world)).toEqual([])
      expect(await outgoingPayments.begin(id)).toMatchObject({ refusal: 'payment_unknown' })
      expect(await outgoingPayments.cancel(id)).toMatchObject({ refusal: 'payment_unknown' })
      const url = `${resourceServer}/outgoing-payments/${id}`
      const read = async () => (await granted?.client.getPayment(granted.token, url))?.status
      expect(await read()).toBe(granted && 404)
      await expectSpent(10)
      answer(allowed)
      expect(idOfPayment(await first)).toBe(id)
      expect(await read()).toBe(granted && 200)
    })

    test('once: a concurrent request with the same key gets its decision', async () => {
      const { asked, answer, request, first } = await reserved(authority)
      const others = [request(), request()]
      answer(allowed)
      const answers = await Promise.all([first, ...others])
      expect(new Set(answers.map(({ body }) => body.id)).size).toBe(1)
      expect(asked).toHaveLength(1)
    })

    test('and a sweep declines it if its process has ended', async () => {
      const { world, request, id, expectSpent } = await reserved(authority)
      // The first request is never answered.
      world.clock.advance(29_000)
      const waiting = request()
      expect(errorOf(await waiting)).toEqual([503, 'busy'])
      world.clock.advance(3 * 60_000 + 2_000)
      expect(await world.resources.sweep()).toMatchObject({ lapsed: 1 })
      expect(await endsOf(world, id)).toEqual(['outgoing-payment.declined'])
      expect(errorOf(await request())).toEqual([403, 'payment_denied'])
      await expectSpent(0)
    })

    test('and again by a repeat after that, of which the end is told once no hold can follow', async () => {
      const { world, asked, request, id, answer } = await reserved(authority)
      world.clock.advance(31_000)
      const repeated = request()
      await expect.poll(() => asked).toHaveLength(2)
      expect(asked[1]).toEqual(asked[0])
      answer(broke)
      expect(errorOf(await repeated)).toEqual([403, 'insufficient_funds'])
      expect(await endsOf(world, id)).toEqual([])
      world.clock.advance(3 * 60_000)
      expect(await endsOf(world, id)).toEqual(['outgoing-payment.declined'])
    })

    test('and the end of a payment that a repeat has created is told as late, after its other events', async () => {
      const { world, asked, request, id, answer } = await reserved(authority)
      world.clock.advance(31_000)
      const repeated = request()
      await expect.poll(() => asked).toHaveLength(2)
      answer(allowed)
      expect((await repeated).status).toBe(201)
      await world.resources.outgoingPayments.cancel(id)
      expect(await endsOf(world, id)).toEqual([])
      world.clock.advance(3 * 60_000)
      expect(await endsOf(world, id)).toEqual(['outgoing-payment.failed'])
    })

    test('and a repeat declines it when it is too late to ask', async () => {
      const { world, asked, request, id } = await reserved(authority)
      world.clock.advance(30_000 + 3 * 60_000 + 1_000)
      expect(errorOf(await request())).toEqual([403, 'payment_denied'])
      expect(asked).toHaveLength(1)
      expect(await endsOf(world, id)).toEqual(['outgoing-payment.declined'])
    })
  })

  test.each([
    ['the price', 200_000],
    ['the limits of the account', 30_000],
  ])('is asked for its whole time, however long %s took', async (slow, ms) => {
    const asked: RequestedPayment[] = []
    let answer: (answer: MayPayAnswer) => void = () => undefined
    const answered = new Promise<MayPayAnswer>((resolve) => {
      answer = resolve
    })
    const mayPay: MayPay = (payment) => {
      asked.push(payment)
      return answered
    }
    const takesLong = slow === 'the price' ? 'price' : 'accountLimits'
    let isSlow = true
    function passTime(by: typeof takesLong) {
      if (isSlow && by === takesLong) world.clock.advance(ms)
    }
    const price = async (request: PriceRequest) => {
      passTime('price')
      return priceList.price(request, hostCall)
    }
    const accountLimits = async () => {
      passTime('accountLimits')
      return []
    }
    const resources = { pricing: { price }, policy: { accountLimits } }
    const { world, pay } = await payerWith(authority, mayPay, { resources })
    const createdAt = world.clock.now()
    const request = () => pay(10, {}, 'k')
    const first = request()
    await expect.poll(() => asked).toHaveLength(1)
    isSlow = false
    const repeated = request()
    await turns(100)
    expect(asked).toHaveLength(1)
    expect(await world.resources.sweep()).toMatchObject({ lapsed: 0 })
    answer(allowed)
    const id = idOfPayment(await first)
    expect(idOfPayment(await repeated)).toBe(id)
    expect(asked).toHaveLength(1)
    expect(await world.resources.outgoingPayments.get(id)).toMatchObject({ createdAt })
  })

  test.each(fates)('is asked once about a payment whose commit %s', async (fate) => {
    const mayPay = vi.fn<MayPay>(() => allowed)
    const { world, pay, next } = await onLyingStore(authority, mayPay)
    next.push(fate)
    expect((await pay(10)).status).toBe(201)
    expect(mayPay).toHaveBeenCalledOnce()
    expect(await paymentsOf(world)).toHaveLength(1)
  })

  test.each<
    readonly [string, (payment: RequestedPayment) => unknown, error?: readonly [number, string]]
  >([
    ['rejects', () => Promise.reject(new Error('no ledger')), [503, 'busy']],
    [
      'throws',
      () => {
        throw new Error('no ledger')
      },
      [503, 'busy'],
    ],
    ['returns nothing', () => undefined],
    ['returns true', () => true],
    ['returns null', () => null],
    ['returns an unknown refusal', () => ({ ok: false, refusal: 'limits_exceeded' })],
    ['returns a refusal without a name', () => ({ ok: false })],
    ['returns the name of a method of all objects', () => ({ ok: false, refusal: 'toString' })],
    ['returns a text', () => ({ ok: 'true' })],
  ])(
    'is not given if the host %s, and the same request succeeds later',
    async (_, fail, error = [500, 'internal_error']) => {
      const mayPay = vi.fn<MayPay>(() => allowed).mockImplementationOnce(fail as MayPay)
      const { world, pay } = await payerWith(authority, mayPay)
      expect(errorOf(await pay(10, {}, 'k'))).toEqual(error)
      expect(world.errors).toHaveLength(1)
      expect(mayPay).toHaveBeenCalledOnce()
      expect((await pay(10, {}, 'k')).status).toBe(201)
    },
  )

  test('cannot change the payment', async () => {
    const mayPay = ((payment: { debitAmount: { value: string }; metadata: { note: string } }) => {
      payment.debitAmount.value = '1'
      payment.metadata.note = 'changed'
      return allowed
    }) as unknown as MayPay
    const { pay } = await payerWith(authority, mayPay)
    const { body } = await pay(10, { metadata: { note: 'shoes' } })
    expect(body).toMatchObject({ debitAmount: usd(10), metadata: { note: 'shoes' } })
  })
})

describe('the permission of the host to a payment under a grant', () => {
  const byClient: Authority = 'a client under a grant'

  test('is asked about no more than the grant allows, however many requests are concurrent', async () => {
    const { asked, client, token } = await setUp()
    const answers = await Promise.all(
      Array.from({ length: 20 }, (_, index) => pay(client, token, 2_500, {}, withKey(`${index}`))),
    )
    const codes = answers.map(({ status, body }) => body.error?.code ?? status)
    expect(codes.filter((code) => code === 201)).toHaveLength(1)
    expect(codes.filter((code) => code === 'insufficient_grant')).toHaveLength(19)
    expect(asked).toHaveLength(1)
  })

  test('is not asked about a payment that the grant does not permit, or that has no price', async () => {
    const { asked, client, token } = await setUp()
    expect(errorOf(await pay(client, token, 2501))).toEqual([403, 'insufficient_grant'])
    const gone = { incomingPayment: 'https://bank.example/incoming-payments/gone' }
    expect(errorOf(await pay(client, token, 1, gone))).toEqual([400, 'invalid_receiver'])
    const unknown = `${resourceServer}/quotes/BuBTyeHHYfO0dJlrXwsia36Pdr2kaw`
    expect(errorOf(await payByQuote(client, token, unknown))).toEqual([404, 'invalid_quote'])
    expect(asked).toEqual([])
  })

  test.each([
    [broke, [403, 'insufficient_funds']],
    [barred, [403, 'payment_denied']],
  ] as const)('consumes the signature of a direct payment with %j', async (no, error) => {
    const { asked, world, client, token } = await setUp(no)
    const same = withoutNonce(world, client)
    expect(errorOf(await pay(client, token, 10, {}, same))).toEqual(error)
    expect(errorOf(await pay(client, token, 10, {}, same))).toEqual(error)
    expect(asked).toHaveLength(1)
  })

  test('is refused at start if the events by which holds are released are not recorded', () => {
    const start = (recordsEvents: boolean | readonly EventType[]) => () =>
      createSpendingWorld({ resources: { recordsEvents, policy: { mayPay: () => allowed } } })
    const ends = [
      'outgoing-payment.completed',
      'outgoing-payment.failed',
      'outgoing-payment.declined',
    ] as const
    expect(start(false)).toThrow(/recordsEvents.*outgoing-payment\.declined/)
    expect(start(ends.slice(0, 2))).toThrow(InvalidInputError)
    expect(start(ends)).not.toThrow()
    expect(() =>
      createSpendingWorld({ resources: { policy: { mayPay: () => allowed } } }),
    ).not.toThrow()
  })

  test('lets a byte-identical repeat without a quote or key wait for the decision, and then get the payment', async () => {
    const asked: RequestedPayment[] = []
    const mayPay: MayPay = async (payment) => {
      asked.push(payment)
      if (asked.length > 1) return allowed
      expect(errorOf(await pay(client, token, 10, {}, same))).toEqual([503, 'busy'])
      throw new Error('no ledger')
    }
    const { world, client, token } = await payingClient({
      resources: { policy: { mayPay }, storeTimeoutMs: 500 },
    })
    const same = withoutNonce(world, client)
    expect((await pay(client, token, 10, {}, same)).status).toBe(503)
    const made = await pay(client, token, 10, {}, same)
    expect(made.status).toBe(201)
    expect((await pay(client, token, 10, {}, same)).body).toEqual(made.body)
    expect(asked[1]).toEqual(asked[0])
    expect(asked).toHaveLength(2)
  })

  test.each([
    ['a rotation of the token harms nothing', 'rotate', [201, undefined]],
    ['an amendment that allows less refuses it', 'amend', [403, 'insufficient_grant']],
    ['an amendment that still allows it does not', 'narrow', [201, undefined]],
    ['a revocation of the grant refuses it', 'revoke', [403, 'grant_ended']],
  ] as const)('is asked about a payment that is reserved, and %s', async (_, change, expected) => {
    const { world, granted, answer, first, id } = await reserved(byClient)
    if (granted === undefined) throw new Error('no client pays')
    const { client, grantId, accessToken } = granted
    const amended = (limit: number) =>
      world.auth.grants.amend(grantId, {
        access: [{ itemId: '1', ...outgoingItem({ debitAmount: usd(limit) }) }],
      })
    if (change === 'rotate') await client.rotate(accessToken)
    if (change === 'amend') expect(await amended(9)).toMatchObject({ ok: true })
    if (change === 'narrow') expect(await amended(10)).toMatchObject({ ok: true })
    if (change === 'revoke') await world.auth.grants.revoke(grantId)
    answer(allowed)
    expect(errorOf(await first)).toEqual(expected)
    const declined = await endsOf(world, id)
    expect(declined).toEqual(expected[0] === 201 ? [] : ['outgoing-payment.declined'])
    expect(await paymentsOf(world)).toHaveLength(expected[0] === 201 ? 1 : 0)
  })
})

test('the price of a payment without a quote is asked with its client', async () => {
  const asked: PriceRequest[] = []
  const price = async (request: PriceRequest) => {
    asked.push(request)
    return priceList.price(request, hostCall)
  }
  const { world, client } = await payingClient({ resources: { pricing: { price } } })
  const { token } = await grantToPay(world, client, [outgoingItem()])
  expect((await pay(client, token, 10)).status).toBe(201)
  expect(asked).toMatchObject([{ client: 'https://shop.example', receiver: shopReceiver }])
})
