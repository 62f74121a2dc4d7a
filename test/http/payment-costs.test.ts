import { readFileSync } from 'node:fs'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { postgresStore } from '../../adapters/postgres.js'
import { type FreshPostgres, freshPostgres, servers } from '../support/databases.js'
import {
  createSpendingWorld,
  grantToPay,
  outgoingItem,
  pay,
  payByQuote,
  quoteToken,
  shopReceiver,
  usd,
  withKey,
} from '../support/spending.js'
import { idOfPayment, withoutNonce } from '../support/spending-client.js'
import { type Written, walMeter } from '../support/wal.js'
import { alice, bob, incomingAccess, resourceServer } from '../support/world.js'

const warmUps = 10
/** Payments of which each step is measured. */
const measuredPayments = 20
/** Payments whose events are delivered together. */
const payments = 200

/** The rows of the table in docs/sizing.md: the step, its statements and its bytes. */
const documented = [
  ...readFileSync('docs/sizing.md', 'utf8').matchAll(
    /^\| (.+?) \| (\d|0\.\d) \| ([\d.]+) \| .+ \|$/gm,
  ),
].map(([, step = '', statements, kilobytes]) => ({
  step,
  statements: Number(statements),
  bytes: 1_000 * Number(kilobytes),
}))

/** The step that takes the place of two others. */
const byKey = 'instead of quote and payment, it pays by `Idempotency-Key`, with a nonce'

/** The same payments, ordered by the owner of the account. */
const owners = {
  quote: 'an owner creates the quote',
  byQuote: 'an owner pays by the quote',
  byKey: 'an owner pays by a key',
}

interface Cost {
  readonly statements: number
  readonly bytes: number
}

describe.skipIf(servers.PostgreSQL === undefined)('a payment on PostgreSQL', () => {
  let fresh: FreshPostgres
  const measured = new Map<string, Cost>()
  const measuredOfOwner = new Map<string, Cost>()

  beforeAll(async () => {
    fresh = await freshPostgres()
    const { pool, schema } = fresh
    // Vacuum would write to the log at a time of its own.
    await pool.query(`ALTER TABLE ${schema}.open_payments_records SET (autovacuum_enabled = false)`)
    let statements = 0
    const counting = {
      connect: () => pool.connect(),
      query(...args: Parameters<typeof pool.query>) {
        statements += 1
        return pool.query(...args)
      },
    }
    const store = postgresStore(counting as never, { schema })
    // The events that are recorded by default.
    const recordsEvents = undefined as never
    const world = createSpendingWorld({
      store,
      auth: { recordsEvents },
      resources: { recordsEvents },
    })
    const { incomingPayments, outgoingPayments, quotes } = world.resources
    const client = world.client()
    const { body: granted } = await client.request([incomingAccess])
    const quoting = await quoteToken(client)
    const { token } = await grantToPay(world, client, [outgoingItem({ debitAmount: usd(1e9) })])

    const measure = await walMeter(pool, schema)
    const samples = new Map<string, (Cost & Written)[]>()
    let isMeasured = true
    async function step<Result>(name: string, work: () => Promise<Result>): Promise<Result> {
      if (!isMeasured) return work()
      let result: Result | undefined
      statements = 0
      const written = await measure(async () => {
        result = await work()
      })
      samples.set(name, [...(samples.get(name) ?? []), { statements, ...written }])
      return result as Result
    }

    async function payOnce(): Promise<void> {
      // A new second, so that no request has the bytes of the one before.
      world.clock.advance(1_000)
      // As published clients sign.
      const signed = withoutNonce(world, client)
      const amounts = { incomingAmount: usd(1000), walletAddress: bob }
      const invoice = await step('a client creates the incoming payment', () =>
        client.createPayment(granted.access_token.value, amounts, signed),
      )
      const quoted = {
        walletAddress: alice,
        receiver: shopReceiver,
        method: 'ilp',
        debitAmount: usd(1000),
      }
      const quote = await step('a client creates the quote', () =>
        client.post(`${resourceServer}/quotes`, quoted, quoting, signed),
      )
      const made = await step('it creates the outgoing payment', () =>
        payByQuote(client, token, quote.body.id, {}, signed),
      )
      expect([invoice.status, quote.status, made.status]).toEqual([201, 201, 201])
      const id = idOfPayment(made)
      await step('`begin`', () => outgoingPayments.begin(id))
      const sent = { sentAmount: usd(990), deliveredAmount: usd(990), final: true }
      await step('`reportSent`', () => outgoingPayments.reportSent(id, sent))
      const transfer = { transferId: id, amount: usd(1000) }
      const received = await step('`receive`', () =>
        incomingPayments.receive(idOfPayment(invoice), transfer),
      )
      expect(received).toMatchObject({ ok: true, changed: true })
    }

    let delivered = 0
    const drain = async () => {
      const handler = async () => {
        delivered += 1
      }
      while ((await world.resources.events.drain(handler, { limit: 1_000 })).delivered > 0);
    }
    for (let i = 0; i < warmUps; i++) await payOnce()
    await drain()
    samples.clear()
    delivered = 0
    for (let i = 0; i < payments; i++) {
      isMeasured = i < measuredPayments
      await payOnce()
    }
    isMeasured = true
    const summarize = (name: string, all: readonly (Cost & Written)[], into = measured) => {
      const warm = all.filter(({ hasPages }) => !hasPages)
      const sorted = (warm.length > 0 ? warm : all).toSorted((a, b) => a.bytes - b.bytes)
      const { bytes = 0 } = sorted[Math.floor(sorted.length / 2)] ?? {}
      const most = Math.max(...all.map((each) => each.statements))
      into.set(name, { statements: most, bytes })
    }
    for (const [name, all] of samples) summarize(name, all)
    await step('its four events are delivered', drain)
    expect(delivered).toBe(4 * payments)
    const [drained] = samples.get('its four events are delivered') ?? []
    measured.set('its four events are delivered', {
      statements: (drained?.statements ?? 0) / payments,
      bytes: (drained?.bytes ?? 0) / payments,
    })

    for (let i = 0; i < warmUps + measuredPayments; i++) {
      isMeasured = i >= warmUps
      world.clock.advance(1_000)
      const made = await step(byKey, () => pay(client, token, 10, {}, withKey(`key-${i}`)))
      expect(made.status).toBe(201)
    }
    summarize(byKey, samples.get(byKey) ?? [])

    const order = { walletAddress: alice, receiver: shopReceiver, debitAmount: usd(1000) }
    for (let i = 0; i < warmUps + measuredPayments; i++) {
      isMeasured = i >= warmUps
      world.clock.advance(1_000)
      const quoted = await step(owners.quote, () => quotes.create(order))
      if (!quoted.ok) throw new Error(quoted.reason)
      const { quoteId } = quoted.quote
      const made = [
        await step(owners.byQuote, () =>
          outgoingPayments.create({ walletAddress: alice, quoteId }),
        ),
        await step(owners.byKey, () =>
          outgoingPayments.create({ ...order, idempotencyKey: `rent ${i}` }),
        ),
      ]
      expect(made).toMatchObject([{ changed: true }, { changed: true }])
    }
    for (const name of Object.values(owners)) {
      summarize(name, samples.get(name) ?? [], measuredOfOwner)
    }
  })

  afterAll(() => fresh?.drop())

  test('has the steps of docs/sizing.md', () => {
    expect(documented.map(({ step }) => step)).toEqual([...measured.keys()])
  })

  test.each(documented)(
    '$step: $statements statements and $bytes bytes',
    ({ step, ...figures }) => {
      const cost = measured.get(step)
      expect(cost).toBeDefined()
      if (Number.isInteger(figures.statements)) expect(cost?.statements).toBe(figures.statements)
      else expect(cost?.statements).toBeLessThanOrEqual(figures.statements)
      // A page that is full, or pruned, changes them.
      expect(cost?.bytes).toBeGreaterThan(0.8 * figures.bytes)
      expect(cost?.bytes).toBeLessThan(1.25 * figures.bytes)
    },
  )

  test('costs at most 13 statements and 16 kB of WAL', () => {
    const steps = [...measured].filter(([name]) => name !== byKey)
    const sum = (of: keyof Cost) => steps.reduce((all, [, each]) => all + each[of], 0)
    expect(sum('statements')).toBeLessThanOrEqual(13)
    expect(sum('bytes')).toBeLessThanOrEqual(16_000)
  })

  test.each([
    [owners.quote, 'a client creates the quote'],
    [owners.byQuote, 'it creates the outgoing payment'],
    [owners.byKey, byKey],
  ])('costs at most as much if %s as if %s', (own, client) => {
    const [cost, most] = [measuredOfOwner.get(own), measured.get(client)]
    if (cost === undefined || most === undefined) throw new Error('it was not measured')
    if (process.env['SHOW']) console.log('COST', own, cost, client, most)
    expect(cost.statements).toBeLessThanOrEqual(most.statements)
    expect(cost.bytes).toBeLessThanOrEqual(most.bytes)
  })

  // 4,581 bytes is what it wrote before a record named the payment of a key. That record alone is 543 bytes.
  test('by a key costs at most an eighth more than one without a record of the key', () => {
    expect(measured.get(byKey)?.bytes).toBeLessThan(4_581 * 1.125)
  })
})
