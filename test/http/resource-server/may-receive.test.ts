import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { postgresStore } from '../../../adapters/postgres.js'
import type { HttpRequest, RecordChange } from '../../../src/entry-adapter.js'
import {
  type MayReceive,
  type MayReceiveAnswer,
  type MayReceiveQuery,
  memoryStore,
  type Store,
} from '../../../src/index.js'
import { anyPostgres } from '../../support/databases.js'
import { hosts, listening, stopped } from '../../support/hosts.js'
import { usd } from '../../support/spending.js'
import { errorOf, idOfPayment, withoutNonce } from '../../support/spending-client.js'
import { type Answer, answerOf, bob, carol, createWorld } from '../../support/world.js'

const allowed: MayReceiveAnswer = { ok: true }
const frozen: MayReceiveAnswer = {
  ok: false,
  refusal: 'payment_not_allowed',
  reason: 'on the list',
}
const excessive: MayReceiveAnswer = { ok: false, refusal: 'amount_too_large', reason: 'tier 1' }

/** A client that may create payments for bob, at a host with this policy. `kept` has the changes of each commit. */
async function receivingClient(mayReceive: MayReceive, store: Store = memoryStore()) {
  const kept: RecordChange[][] = []
  const watched: Store = {
    ...store,
    async commit(commit) {
      const landed = await store.commit(commit)
      if (landed) kept.push([...commit.changes])
      return landed
    },
  }
  const world = createWorld({ store: watched, resources: { policy: { mayReceive } } })
  const client = world.client()
  const { body } = await client.request([{ type: 'incoming-payment', actions: ['create'] }])
  const token: string = body.access_token.value
  kept.length = 0
  const { incomingPayments } = world.resources
  const invoice = { walletAddress: bob, incomingAmount: usd(500), idempotencyKey: 'invoice 1' }
  async function created(idempotencyKey = invoice.idempotencyKey): Promise<string> {
    const result = await incomingPayments.create({ ...invoice, idempotencyKey })
    if (!result.ok) throw new Error(result.reason)
    return result.payment.paymentId
  }
  return { world, client, token, kept, incomingPayments, invoice, created }
}

/** A host that gives the answers in turn, and then allows everything. */
async function setUp(...answers: readonly MayReceiveAnswer[]) {
  const rest = [...answers]
  const asked: MayReceiveQuery[] = []
  const mayReceive: MayReceive = async (query) => {
    asked.push(query)
    return rest.shift() ?? allowed
  }
  return { asked, ...(await receivingClient(mayReceive)) }
}

const requested = { walletAddress: bob, incomingAmount: usd(500), metadata: { note: 'shoes' } }

describe('the permission of the host to receive', () => {
  test('is asked with the payment as it would be created, and with what arrives', async () => {
    const { asked, client, token, incomingPayments, invoice, world } = await setUp()
    const created = idOfPayment(await client.createPayment(token, requested))
    const own = await incomingPayments.create(invoice)
    await incomingPayments.receive(created, { transferId: 'one', amount: usd(7) })
    const expiresAt = world.clock.now() + 30 * 86_400_000
    const common = { walletAddress: bob, incomingAmount: usd(500), expiresAt }
    const theirs = {
      ...common,
      incomingPaymentId: created,
      client: 'https://shop.example',
      metadata: { note: 'shoes' },
    }
    expect(asked).toStrictEqual([
      { type: 'creation', ...theirs },
      { type: 'creation', ...common, incomingPaymentId: own.ok && own.payment.paymentId },
      { type: 'arrival', ...theirs, transferId: 'one', amount: usd(7) },
    ])
  })

  test.each([
    [frozen, [403, 'payment_denied'], 'Payment is not allowed'],
    [excessive, [400, 'invalid_amount'], 'Amount is too large'],
  ] as const)('can be refused with %o, and then nothing is written', async (no, error, text) => {
    const { world, client, token, kept, incomingPayments, invoice, created } = await setUp(
      ...[no, no, no, allowed, no],
    )
    if (no.ok) throw new Error('a refusal is needed')
    const refused = await client.createPayment(token, requested, withoutNonce(world, client))
    expect(errorOf(refused)).toEqual(error)
    expect(refused.body).toEqual({ error: { code: error[1], description: text } })
    const { refusal, reason } = no
    expect(world.refusals.at(-1)).toMatchObject({
      refusal,
      reason,
      operation: 'createIncomingPayment',
    })
    expect(kept).toEqual([])
    // With a nonce, the refusal uses it, as every other refusal does.
    expect(errorOf(await client.createPayment(token, requested))).toEqual(error)
    expect(kept.splice(0).flat()).toMatchObject([{ kind: 'server' }, { kind: 'replay' }])
    expect(await incomingPayments.create(invoice)).toEqual(no)
    expect(kept).toEqual([])
    const id = await created()
    kept.length = 0
    const funds = { transferId: 'one', amount: usd(7) }
    expect(await incomingPayments.receive(id, funds)).toEqual(no)
    expect(kept).toEqual([])
    expect(await incomingPayments.receive(id, funds)).toMatchObject({
      changed: true,
      payment: { receivedAmount: usd(7) },
    })
  })

  test('is not asked about what is refused anyway', async () => {
    const { asked, client, token, incomingPayments, invoice, created, world } = await setUp()
    const refused = [
      { ...requested, walletAddress: carol },
      { ...requested, walletAddress: `${bob}by` },
      { ...requested, expiresAt: '2020-01-01T00:00:00Z' },
    ]
    for (const body of refused)
      expect((await client.createPayment(token, body)).status).not.toBe(201)
    expect(await incomingPayments.create({ ...invoice, incomingAmount: usd(0) })).toMatchObject({
      ok: false,
    })
    expect(asked).toEqual([])
    const [full, unpaid] = [await created(), await created('invoice 2')]
    const arrive = (id: string, transferId: string, value = 500) =>
      incomingPayments.receive(id, { transferId, amount: usd(value) })
    await arrive(full, 'one')
    asked.length = 0
    world.clock.advance(31 * 86_400_000)
    expect([
      await arrive(full, 'one', 499),
      await arrive(full, 'two'),
      await arrive(unpaid, 'three'),
      await arrive(`${full.slice(0, -1)}-`, 'four'),
    ]).toMatchObject(
      ['transfer_mismatch', 'payment_completed', 'payment_expired', 'payment_unknown'].map(
        (refusal) => ({ ok: false, refusal }),
      ),
    )
    expect(asked).toEqual([])
  })

  test('is not asked again about what exists: a used nonce, key or transfer', async () => {
    const { asked, client, token, incomingPayments, invoice, created } = await setUp()
    const same = { nonce: 'once' }
    expect((await client.createPayment(token, requested, same)).status).toBe(201)
    expect(errorOf(await client.createPayment(token, requested, same))).toEqual([
      409,
      'signature_used',
    ])
    const id = await created()
    expect(await incomingPayments.create(invoice)).toMatchObject({ changed: false })
    const funds = { transferId: 'one', amount: usd(500) }
    expect(await incomingPayments.receive(id, funds)).toMatchObject({
      changed: true,
    })
    expect(await incomingPayments.receive(id, funds)).toMatchObject({
      changed: false,
    })
    expect(asked.map(({ type }) => type)).toEqual(['creation', 'creation', 'arrival'])
  })

  test('cannot change the payment or the arrival', async () => {
    const { client, token, incomingPayments } = await receivingClient((query) => {
      for (const amount of [query.incomingAmount, query.type === 'arrival' && query.amount]) {
        if (amount) Object.assign(amount, usd(499))
      }
      Object.assign(query.metadata ?? {}, { note: 'changed' })
      return allowed
    })
    const { body } = await client.createPayment(token, requested)
    expect(body).toMatchObject(requested)
    const id = incomingPayments.idOf(body.id) ?? ''
    const arrived = await incomingPayments.receive(id, { transferId: 'one', amount: usd(7) })
    expect(arrived).toMatchObject({ payment: { receivedAmount: usd(7) } })
  })

  test('is asked inside a transaction of the host, too', async () => {
    const { asked, kept, world, invoice } = await setUp(frozen)
    const { incomingPayments } = world.resources.within(world.store)
    expect(await incomingPayments.create(invoice)).toEqual(frozen)
    expect([asked.length, kept.length]).toEqual([1, 0])
  })
})

const adapters = ['express', 'fastify', 'hono']
const deployments = hosts
  .filter(({ name }) => adapters.includes(name))
  .flatMap((host) =>
    (['memory', 'PostgreSQL'] as const).map((kind) => ({
      host,
      name: `${host.name} on ${kind}`,
      kind,
    })),
  )

const wrong: readonly [string, () => unknown, error?: readonly [number, string]][] = [
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
  ['returns an unknown refusal', () => ({ ok: false, refusal: 'funds_insufficient' })],
  ['returns a refusal without a name', () => ({ ok: false })],
  ['returns the name of a method of all objects', () => ({ ok: false, refusal: 'toString' })],
  ['returns a text', () => ({ ok: 'true' })],
]

describe.each(deployments)('over HTTP, with $name', ({ host, kind }) => {
  const mayReceive = vi.fn<MayReceive>(() => allowed)
  let setup: Awaited<ReturnType<typeof receivingClient>>
  let stop: () => Promise<unknown>
  let send: (request: HttpRequest) => Promise<Answer>

  beforeAll(async () => {
    const postgres = kind === 'memory' ? undefined : await anyPostgres()
    const store = postgres && postgresStore(postgres.client, postgres.options)
    setup = await receivingClient(mayReceive, store)
    const server = await host.create(setup.world.handle)
    const base = `http://localhost:${await listening(server)}`
    stop = () => Promise.all([stopped(server), postgres?.close()])
    send = async ({ method, url, headers, body }) => {
      const init = { method, headers: headers as [string, string][], body: new Uint8Array(body) }
      const response = await fetch(`${base}${url}`, init)
      return answerOf({ status: response.status, headers: {}, body: await response.text() })
    }
  })
  afterAll(() => stop())

  test.each(wrong)(
    'the permission is not given if the host %s, and the same call succeeds later',
    async (_, fail, error = [500, 'internal_error']) => {
      const { world, client, token, kept, incomingPayments } = setup
      world.clock.advance(1_000) // another signature
      const url = `${world.resources.baseUrl}/incoming-payments`
      const body = JSON.stringify(requested)
      const unnumbered = withoutNonce(world, client)
      const request = client.sign({ method: 'POST', url, token, body, ...unnumbered })
      for (const entries of [world.errors, kept, mayReceive.mock.calls]) entries.length = 0
      mayReceive.mockImplementationOnce(fail as MayReceive)
      expect(errorOf(await send(request))).toEqual(error)
      expect([world.errors.length, mayReceive.mock.calls.length, kept]).toEqual([1, 1, []])
      const created = await send(request)
      expect(created.status).toBe(201)

      const id = idOfPayment(created)
      const receive = () => incomingPayments.receive(id, { transferId: id, amount: usd(7) })
      kept.length = 0
      mayReceive.mockImplementationOnce(fail as MayReceive)
      await expect(receive()).rejects.toThrow(error[0] === 503 ? 'no ledger' : 'mayReceive')
      expect(kept).toEqual([])
      expect(await receive()).toMatchObject({ changed: true, payment: { receivedAmount: usd(7) } })
    },
  )
})
