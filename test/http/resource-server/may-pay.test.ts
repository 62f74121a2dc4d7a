import { describe, expect, test, vi } from 'vitest'
import {
  type MayPay,
  type MayPayAnswer,
  memoryStore,
  type PriceRequest,
  type RequestedPayment,
  type Store,
} from '../../../src/index.js'
import { loadOne } from '../../support/one-record.js'
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
  quoteUrl,
  spentUnder,
  withoutNonce,
} from '../../support/spending-client.js'
import { alice, bob, resourceServer, type World } from '../../support/world.js'

const allowed: MayPayAnswer = { ok: true, held: 'nothing' }
const broke: MayPayAnswer = { ok: false, refusal: 'funds_insufficient', reason: 'balance 12' }
const barred: MayPayAnswer = { ok: false, refusal: 'payment_not_allowed', reason: 'on the list' }

/** A client that may pay 2,500, and a host that gives the answers in turn, and then allows every payment. */
async function setUp(...answers: readonly MayPayAnswer[]) {
  const rest = [...answers]
  const asked: RequestedPayment[] = []
  const mayPay: MayPay = async (payment) => {
    asked.push(payment)
    return rest.shift() ?? { ok: true, held: payment.holdId }
  }
  return { asked, ...(await payingClient({ resources: { policy: { mayPay } } })) }
}

/** A store whose next commits have the fates in `next`. */
async function onLyingStore(mayPay: MayPay) {
  const next: Fate[] = []
  const { store } = lyingStore(memoryStore(), (method) =>
    method === 'commit' ? (next.shift() ?? 'works') : 'works',
  )
  return { next, ...(await payingClient({ store, resources: { policy: { mayPay } } })) }
}

const paymentsOf = async (world: World) => {
  const { result } = await world.resources.outgoingPayments.list({ walletAddress: alice, first: 9 })
  return result
}

describe('the permission of the host to pay', () => {
  test('is needed also if the budget has room again before the refusal is written', async () => {
    const inner = memoryStore()
    let cancel: (() => Promise<unknown>) | undefined
    const store: Store = {
      ...inner,
      async commit(requested) {
        const before = cancel
        cancel = undefined
        if (before === undefined) return inner.commit(requested)
        await before()
        return false
      },
    }
    const asked: RequestedPayment[] = []
    const mayPay: MayPay = async (payment) => {
      asked.push(payment)
      return { ok: true, held: payment.holdId }
    }
    const { world, client, token } = await payingClient({
      store,
      resources: { policy: { mayPay } },
    })
    const id = idOfPayment(await pay(client, token, 2_500))
    const { resources: other } = createSpendingWorld({ store: inner }) // another process
    cancel = () => other.outgoingPayments.cancel(id)
    expect((await pay(client, token, 1)).status).toBe(403)
    expect((await world.resources.outgoingPayments.get(id))?.state).toBe('failed')
    expect(await paymentsOf(world)).toHaveLength(1)
    expect((await pay(client, token, 1)).status).toBe(201)
    expect(asked.map(({ debitAmount }) => debitAmount.value)).toEqual(['2500', '1'])
  })

  test('is asked with the payment as it would be created', async () => {
    const { asked, client, token, grantId } = await setUp()
    const more = { incomingPayment: euroReceiver, metadata: { note: 'shoes' } }
    const direct = await pay(client, token, 1000, more)
    const quoteId = await quoteUrl(client)
    const byQuote = await payByQuote(client, token, quoteId)
    const common = { walletAddress: alice, client: 'https://shop.example', grantId }
    expect(asked).toStrictEqual([
      {
        ...common,
        holdId: expect.stringMatching(/^hold-[\w-]{43}$/),
        outgoingPaymentId: idOfPayment(direct),
        receiver: euroReceiver,
        debitAmount: usd(1000),
        receiveAmount: eur(500),
        metadata: { note: 'shoes' },
      },
      {
        ...common,
        holdId: expect.stringMatching(/^hold-[\w-]{43}$/),
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
      const { world, client, token } = await setUp(answer, answer)
      const before = await spentUnder(client, token)
      const quoteId = await quoteUrl(client)
      for (const response of [
        await pay(client, token, 10),
        await payByQuote(client, token, quoteId),
      ]) {
        expect(response.status).toBe(403)
        expect(response.body).toEqual({ error: { code, description: text } })
        expect(world.refusals.at(-1)).toMatchObject({
          refusal: answer.ok || answer.refusal,
          reason: answer.ok || answer.reason,
          client: 'https://shop.example',
          operation: 'createOutgoingPayment',
        })
      }
      expect(await paymentsOf(world)).toEqual([])
      expect(await spentUnder(client, token)).toEqual(before)
      const namespace = idOfPayment(await pay(client, token, 10)).slice(0, 8)
      const events = await world.store.due('event', namespace, Number.MAX_SAFE_INTEGER, 100)
      const created = events.filter(({ id }) => id.includes('.outgoing-payment.'))
      expect(created, 'of the payment that the host allows').toHaveLength(1)
    },
  )

  test('keeps two payments within one balance, if the host holds funds by the id of the hold', async () => {
    const holds = new Map<string, bigint>()
    const mayPay: MayPay = async ({ holdId: id, debitAmount: { value } }) => {
      const others = [...holds].filter(([held]) => held !== id).map(([, amount]) => amount)
      const held = others.reduce((sum, amount) => sum + amount, 0n)
      if (held + BigInt(value) > 1500n) return { ok: false, refusal: 'funds_insufficient' }
      holds.set(id, BigInt(value))
      return { ok: true, held: id }
    }
    const { world, client, token } = await payingClient({ resources: { policy: { mayPay } } })
    const { token: another } = await grantToPay(world, client)
    const answers = await Promise.all([
      pay(client, token, 1000),
      pay(client, token, 1000),
      pay(client, another, 1000),
    ])
    const codes = answers.map(({ status, body }) => body.error?.code ?? status)
    expect(codes.sort()).toEqual([201, 'insufficient_funds', 'insufficient_funds'])
    expect(await paymentsOf(world)).toHaveLength(1)
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

  test('is not asked again about a payment that exists', async () => {
    const { asked, client, token } = await setUp(allowed, allowed, broke, barred)
    const quoteId = await quoteUrl(client)
    const byQuote = await payByQuote(client, token, quoteId)
    const byKey = await pay(client, token, 10, {}, withKey('k'))
    expect(await payByQuote(client, token, quoteId)).toMatchObject({
      body: { id: byQuote.body.id },
    })
    expect(await pay(client, token, 10, {}, withKey('k'))).toMatchObject({
      status: 201,
      body: { id: byKey.body.id },
    })
    expect(asked).toHaveLength(2)
  })

  test('is asked again after a refusal, with the same id for the same quote or key', async () => {
    const { asked, client, token } = await setUp(broke, allowed, barred, allowed)
    const quoteId = await quoteUrl(client)
    expect((await payByQuote(client, token, quoteId)).status).toBe(403)
    expect((await payByQuote(client, token, quoteId)).status).toBe(201)
    expect((await pay(client, token, 10, {}, withKey('k'))).status).toBe(403)
    expect((await pay(client, token, 10, {}, withKey('k'))).status).toBe(201)
    const [first, second, third, fourth] = asked
    expect([second, fourth]).toEqual([first, third])
  })

  test('has another hold for a repeated key with another amount, account, receiver, note or grant', async () => {
    const refusing: RequestedPayment[] = []
    const mayPay: MayPay = async (payment) => {
      refusing.push(payment)
      return broke
    }
    const { world, client } = await payingClient({ resources: { policy: { mayPay } } })
    const access = [alice, bob].map((account) => outgoingItem({}, account))
    const { token } = await grantToPay(world, client, access)
    const { token: another } = await grantToPay(world, client, access)
    const changes = [
      {},
      { debitAmount: usd(11) },
      { walletAddress: bob },
      { incomingPayment: euroReceiver },
      { metadata: { note: 'shoes' } },
    ]
    for (const change of changes) await pay(client, token, 10, change, withKey('k'))
    await pay(client, another, 10, {}, withKey('k'))
    await pay(client, token, 10, {}, withKey('k'))
    expect(refusing).toHaveLength(7)
    expect(new Set(refusing.map(({ outgoingPaymentId }) => outgoingPaymentId)).size).toBe(1)
    const holds = refusing.map(({ holdId }) => holdId)
    expect(holds.at(-1)).toBe(holds[0])
    expect(new Set(holds).size).toBe(6)
  })

  test.each([broke, barred])(
    'consumes the signature of a direct payment with $refusal',
    async (no) => {
      const { asked, world, client, token } = await setUp(no)
      const same = withoutNonce(world, client)
      expect((await pay(client, token, 10, {}, same)).status).toBe(403)
      expect(errorOf(await pay(client, token, 10, {}, same))).toEqual([401, 'signature_used'])
      expect(asked).toHaveLength(1)
    },
  )

  test('is asked once about a payment whose commit loses a race', async () => {
    const asked: string[] = []
    const mayPay: MayPay = async ({ debitAmount }) => {
      asked.push(debitAmount.value)
      if (asked.length === 1) await pay(client, token, 10)
      return allowed
    }
    const { client, token } = await payingClient({ resources: { policy: { mayPay } } })
    expect((await pay(client, token, 20)).status).toBe(201)
    expect(asked).toEqual(['20', '10'])
  })

  test('is asked again if the grant changes before the commit, and the last answer counts', async () => {
    const asked: string[] = []
    const mayPay: MayPay = async ({ debitAmount }) => {
      asked.push(debitAmount.value)
      if (asked.length === 1) await changeGrant()
      return asked.length < 2 ? allowed : broke
    }
    const { world, client, token, grantId } = await payingClient({
      resources: { policy: { mayPay } },
    })
    async function changeGrant() {
      const grant = await loadOne(world.store, 'grant', grantId)
      if (grant === undefined) throw new Error('the grant is missing')
      const { version, lists } = grant
      const next = { ...grant, version: version + 1, commandId: 'another-command-id-123' }
      const previous = { ...(lists && { lists }) }
      const change = { kind: 'grant', next, expectedVersion: version, previous } as const
      expect(await world.store.commit({ changes: [change], guards: [] })).toBe(true)
    }
    expect(errorOf(await pay(client, token, 20))).toEqual([403, 'insufficient_funds'])
    expect(asked).toEqual(['20', '20'])
    expect(await paymentsOf(world)).toEqual([])
  })

  test.each(fates)('is asked once about a payment whose commit %s', async (fate) => {
    const mayPay = vi.fn<MayPay>(() => allowed)
    const { world, client, token, next } = await onLyingStore(mayPay)
    next.push(fate)
    expect((await pay(client, token, 10)).status).toBe(201)
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
    ['names no hold', () => ({ ok: true })],
    ['names another hold', () => ({ ok: true, held: 'hold-of-another-payment' })],
    [
      'names the payment in place of the hold',
      ({ outgoingPaymentId }) => ({ ok: true, held: outgoingPaymentId }),
    ],
  ])(
    'is not given if the host %s, and the same request succeeds later',
    async (_, fail, error = [500, 'internal_error']) => {
      const mayPay = vi.fn<MayPay>(() => allowed).mockImplementationOnce(fail as MayPay)
      const { world, client, token } = await payingClient({ resources: { policy: { mayPay } } })
      const same = withoutNonce(world, client)
      expect(errorOf(await pay(client, token, 10, {}, same))).toEqual(error)
      expect(world.errors).toHaveLength(1)
      expect(mayPay).toHaveBeenCalledOnce()
      expect((await pay(client, token, 10, {}, same)).status).toBe(201)
    },
  )

  test('cannot change the payment', async () => {
    const mayPay = ((payment: { debitAmount: { value: string }; metadata: { note: string } }) => {
      payment.debitAmount.value = '1'
      payment.metadata.note = 'changed'
      return allowed
    }) as unknown as MayPay
    const { client, token } = await payingClient({ resources: { policy: { mayPay } } })
    const { body } = await pay(client, token, 10, { metadata: { note: 'shoes' } })
    expect(body).toMatchObject({ debitAmount: usd(10), metadata: { note: 'shoes' } })
  })
})

test('the price of a payment without a quote is asked with its client', async () => {
  const asked: PriceRequest[] = []
  const price = async (request: PriceRequest) => {
    asked.push(request)
    return priceList.price(request)
  }
  const { world, client } = await payingClient({ resources: { pricing: { price } } })
  const { token } = await grantToPay(world, client, [outgoingItem()])
  expect((await pay(client, token, 10)).status).toBe(201)
  expect(asked).toMatchObject([{ client: 'https://shop.example', receiver: shopReceiver }])
})
