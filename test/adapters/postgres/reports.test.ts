import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type PostgresRow, postgresStore } from '../../../adapters/postgres.js'
import { budgetId } from '../../../src/core/budget/paying-items.js'
import type { Budget } from '../../../src/core/budget/record.js'
import type { EndedGrant } from '../../../src/core/grant/ended.js'
import { clientId, type Grant } from '../../../src/core/grant/record.js'
import { acceptsFunds, type IncomingPayment } from '../../../src/core/incoming-payment.js'
import {
  heldBy,
  isCreated,
  type OutgoingPayment,
  type PaymentRecord,
} from '../../../src/core/outgoing-payment/record.js'
import { type Quote, usableQuote } from '../../../src/core/quote.js'
import type { RecordKind, Stored } from '../../../src/entry-adapter.js'
import { allowanceAt, parseInterval } from '../../../src/entry-core.js'
import { incomingPaymentView } from '../../../src/host/incoming-payment.js'
import { outgoingPaymentView } from '../../../src/host/outgoing-payment-view.js'
import type { Amount } from '../../../src/index.js'
import { anyPostgres } from '../../support/databases.js'
import { anyLife, granting, type LifeStep, playLife } from '../../support/reported-life.js'
import { isLong, runs } from '../../support/runs.js'

let database: Awaited<ReturnType<typeof anyPostgres>>
beforeAll(async () => {
  database = await anyPostgres({ reports: true })
})
afterAll(() => database.close())

type Life = Awaited<ReturnType<typeof playLife>>

const query = async (text: string, values: unknown[] = []) =>
  (await database.client.query({ text, values })).rows

/** Writes the records of a life, in the place of those of the life before. */
async function written({ records }: Life): Promise<void> {
  const { client, prefix, options } = database
  await query(`TRUNCATE ${prefix}open_payments_records`)
  const store = postgresStore(client, options)
  const changes = [...records.values()].map(({ kind, record: next }) => {
    return { kind, next, expectedVersion: 0 }
  })
  expect(await store.commit({ changes, guards: [] })).toBe(true)
}

const views = ['incoming_payments', 'outgoing_payments', 'quotes', 'grants', 'spending'] as const

/** Returns the rows of a view at a time, without empty columns, with instants in milliseconds and numbers as text. */
async function rowsOf(view: (typeof views)[number], now: number): Promise<PostgresRow[]> {
  const from = `${database.prefix}open_payments_${view}_at(to_timestamp($1::bigint / 1000.0))`
  return (await query(`SELECT * FROM ${from}`, [now])).map(plain)
}

function plain(row: PostgresRow): PostgresRow {
  const cells = Object.entries(row).filter(([, cell]) => cell !== null)
  return Object.fromEntries(
    cells.map(([name, cell]) => [
      name,
      cell instanceof Date ? cell.getTime() : name.endsWith('_value') ? String(cell) : cell,
    ]),
  )
}

function of<Type extends Stored>({ records }: Life, kind: RecordKind): Type[] {
  const found = [...records.values()].filter((each) => each.kind === kind)
  return found.map(({ record }) => record as Type)
}

/** Compares rows without regard to their order. */
function expectRows(rows: readonly PostgresRow[], expected: readonly object[]): void {
  const sorted = (all: readonly object[]) =>
    all.map((each) => JSON.stringify(Object.entries(each).filter(given).sort())).sort()
  expect(sorted(rows)).toEqual(sorted(expected))
}

const given = ([, value]: [string, unknown]) => value !== undefined

const named = (name: string, amount: Amount | null | undefined) =>
  amount && {
    [`${name}_value`]: amount.value,
    [`${name}_asset_code`]: amount.assetCode,
    [`${name}_asset_scale`]: amount.assetScale,
  }

const server = ({ id }: Stored) => id.slice(0, 8)
/** `jsonb` has these characters in the place of those that it refuses. */
const inJsonb = { note: 'a\ue0000000b', 'k\ue000d800': [1.5, null] }
const metadataOf = ({ metadata }: IncomingPayment | OutgoingPayment) => metadata && inJsonb

async function matchesIncoming(life: Life, now: number): Promise<void> {
  const { toResource } = life.resources.incomingPayments
  const expected = of<IncomingPayment>(life, 'incoming-payment').map((payment) => {
    const { incomingAmount, receivedAmount, completed, createdAt, expiresAt } = toResource(
      incomingPaymentView(payment, now),
    )
    return {
      server: server(payment),
      payment_id: payment.id.slice(8),
      account: payment.walletAddress,
      client: payment.client,
      status: completed ? 'completed' : acceptsFunds(payment, now) ? 'open' : 'expired',
      incoming_value: incomingAmount?.value,
      received_value: receivedAmount.value,
      asset_code: receivedAmount.assetCode,
      asset_scale: receivedAmount.assetScale,
      created_at: Date.parse(createdAt),
      updated_at: payment.updatedAt,
      expires_at: Date.parse(expiresAt ?? ''),
      metadata: metadataOf(payment),
      state: completed ? 'completed' : payment.expiryRecorded ? 'expired' : 'open',
      cancelled: payment.cancellation !== undefined,
      cancellation_reason: payment.cancellation?.reason,
    }
  })
  expectRows(await rowsOf('incoming_payments', now), expected)
}

async function matchesOutgoing(life: Life, now: number): Promise<void> {
  const { toResource } = life.resources.outgoingPayments
  // Nobody sees what the host has not allowed.
  const payments = of<PaymentRecord>(life, 'outgoing-payment').filter(isCreated)
  const expected = payments.map((payment) => {
    const { failed, sentAmount, debitAmount, receiveAmount, receiver } = toResource(
      outgoingPaymentView(payment, now),
    )
    return {
      server: server(payment),
      payment_id: payment.id.slice(8),
      account: payment.walletAddress,
      client: payment.client,
      grant_id: payment.grantId,
      item_id: payment.itemId,
      quote_id: payment.quoteId,
      receiver,
      status: failed ? 'failed' : payment.state,
      ...named('debit', debitAmount),
      ...named('receive', receiveAmount),
      sent_value: sentAmount.value,
      delivered_value: payment.delivered,
      created_at: payment.createdAt,
      updated_at: payment.updatedAt,
      hold_until: payment.holdUntil,
      ended_at: payment.endedAt,
      failure: payment.failure?.replaceAll('\u0000', '\ue0000000'),
      metadata: metadataOf(payment),
      state: payment.state,
    }
  })
  expectRows(await rowsOf('outgoing_payments', now), expected)
}

async function matchesQuotes(life: Life, now: number): Promise<void> {
  const expected = of<Quote>(life, 'quote').map((quote) => ({
    server: server(quote),
    quote_id: quote.id.slice(8),
    account: quote.walletAddress,
    client: quote.client,
    receiver: quote.receiver,
    status: usableQuote(quote, quote, now).ok ? 'valid' : 'expired',
    ...named('debit', quote.debitAmount),
    ...named('receive', quote.receiveAmount),
    created_at: quote.createdAt,
    expires_at: quote.expiresAt,
  }))
  expectRows(await rowsOf('quotes', now), expected)
}

async function matchesGrants(life: Life, now: number): Promise<void> {
  const rows = await rowsOf('grants', now)
  const grants = of<Grant>(life, 'grant')
  const ended = of<EndedGrant>(life, 'ended-grant').filter(
    ({ id }) => !grants.some((grant) => grant.id === id),
  )
  const expected = await Promise.all(
    [...grants, ...ended].map(async (grant) => {
      const view = await life.auth.grants.get(grant.id)
      const identifiers = view?.access.flatMap(({ identifier }) => identifier ?? []) ?? []
      return {
        server: server(grant),
        grant_id: grant.id,
        client: view?.client,
        status: view?.status,
        resource_owner: view?.resourceOwner,
        accounts: [...new Set(identifiers)].sort(),
        access: undefined,
        created_at: view?.createdAt,
        approved_at: view?.approvedAt,
        issued_at: view?.issuedAt,
        expires_at: view?.expiresAt,
      }
    }),
  )
  expectRows(
    rows.map(({ access: _, updated_at: __, ...row }) => row),
    expected,
  )
  for (const { access, updated_at, created_at, grant_id } of rows) {
    const grant = grants.find(({ id }) => id === grant_id)
    const { granted } = grant ?? ended.find(({ id }) => id === grant_id) ?? {}
    expect(access).toEqual(granted ?? grant?.requested)
    expect(updated_at).toBeGreaterThanOrEqual(created_at)
    expect(updated_at).toBeLessThanOrEqual(now)
  }
}

async function matchesSpending(life: Life, now: number): Promise<void> {
  const payments = of<OutgoingPayment>(life, 'outgoing-payment')
  const budgets = of<Budget>(life, 'budget')
  // What a grant says is unknown once a sweep has removed it, even while its payments are kept.
  const expected = budgets.map((budget) => {
    const grant = life.records.get(`grant ${budget.grantId}`)?.record as Grant | undefined
    const item = grant?.granted?.find(({ itemId }) => itemId === budget.itemId)
    const { interval, debitAmount, receiveAmount } = item?.limits ?? {}
    const allowance = item && allowanceAt(item, now)
    const charge = { namespace: server(budget), grantId: budget.grantId ?? '' }
    const current = item && allowance?.ok ? budgetId(charge, item, allowance.value) : undefined
    const isParsed = interval === undefined || parseInterval(interval).ok
    const held = payments.filter((payment) => payment.budgetId === budget.id).map(heldBy)
    const sum = (name: 'debitAmount' | 'receiveAmount') =>
      usdOf(held.reduce((total, each) => total + each[name], 0n))
    return {
      server: server(budget),
      grant_id: budget.grantId,
      item_id: budget.itemId,
      client: grant && clientId(grant.client),
      account: item?.identifier,
      limit_interval: interval,
      window_start: budget.windowStart,
      window_end: budget.windowStart === undefined ? undefined : budget.windowStart + 7_200_000,
      is_open: grant === undefined ? hasWindow(budget, now) : isParsed && current === budget.id,
      limited: debitAmount ? 'debit' : receiveAmount ? 'receive' : undefined,
      ...named('limit', debitAmount ?? receiveAmount),
      ...named('spent_debit', sum('debitAmount')),
      ...named('spent_receive', sum('receiveAmount')),
    }
  })
  expectRows(await rowsOf('spending', now), expected)
}

/** Whether an instant is in the window of a budget. A budget without a window is for the life of its grant. */
function hasWindow({ windowStart, windowEnd }: Budget, now: number): boolean {
  return windowStart === undefined || (now >= windowStart && now < (windowEnd ?? Infinity))
}

const usdOf = (value: bigint): Amount => ({
  value: String(value),
  assetCode: 'USD',
  assetScale: 2,
})

/** A sweep removes the grants, one with windows and one without, before their payments. */
const removedGrants: readonly LifeStep[] = [
  ...granting,
  { does: 'pay', to: 0, value: 1 },
  { does: 'pay', to: 2, value: 1 },
  { does: 'revoke', to: 0, value: 41 },
  { does: 'revoke', to: 2, value: 41 },
  { does: 'wait', to: 0, value: 17 },
  { does: 'sweep', to: 0, value: 1 },
]

/** The owner orders a payment by key, and one by quote. */
const orders: readonly LifeStep[] = [
  { does: 'order', to: 0, value: 5 },
  { does: 'order', to: 0, value: 6 },
]

describe('the views', () => {
  test('show what the servers answer at the same time, after any history', async () => {
    const seen = new Set<string>()
    await fc.assert(
      fc.asyncProperty(anyLife, async (steps) => {
        const life = await playLife(steps)
        await written(life)
        const now = life.clock.now()
        await matchesIncoming(life, now)
        await matchesOutgoing(life, now)
        await matchesQuotes(life, now)
        await matchesGrants(life, now)
        await matchesSpending(life, now)
        for (const view of views) {
          for (const { status, is_open } of await rowsOf(view, now)) {
            seen.add(`${view} ${status ?? is_open}`)
          }
        }
      }),
      { numRuns: runs(240), examples: [[removedGrants], [orders]] },
    )
    if (isLong) expect([...seen].sort()).toEqual(expect.arrayContaining(everyStatus))
  })

  test('show the present, and can be read without a right to read the table', async () => {
    const life = await playLife(fc.sample(anyLife, { numRuns: 1, seed: 3 })[0] ?? [])
    await written(life)
    const { prefix } = database
    const role = `reports_${Math.random().toString(36).slice(2)}`
    const schema = prefix === '' ? 'public' : prefix.slice(0, -1)
    for (const view of views) {
      const [name, now] = [
        `${prefix}open_payments_${view}`,
        `${prefix}open_payments_${view}_at(now())`,
      ]
      const both = `SELECT to_jsonb(a) FROM ${name} a EXCEPT ALL SELECT to_jsonb(b) FROM ${now} b`
      expect(await query(both)).toEqual([])
    }
    await query(`CREATE ROLE ${role}`)
    await query(`GRANT USAGE ON SCHEMA ${schema} TO ${role}`)
    await query(`GRANT SELECT ON ${prefix}open_payments_grants TO ${role}`)
    const asRole = (text: string) =>
      query(`DO $$ BEGIN SET LOCAL ROLE ${role}; PERFORM ${text}; END $$`)
    await asRole(`* FROM ${prefix}open_payments_grants`)
    await expect(asRole(`* FROM ${prefix}open_payments_records`)).rejects.toThrow(
      'permission denied',
    )
    await query(`DROP OWNED BY ${role}`)
    await query(`DROP ROLE ${role}`)
  })

  const everyStatus = [
    ...['open', 'completed', 'expired'].map((status) => `incoming_payments ${status}`),
    ...['created', 'begun', 'completed', 'failed'].map((status) => `outgoing_payments ${status}`),
    ...['valid', 'expired'].map((status) => `quotes ${status}`),
    ...['pending', 'approved', 'denied', 'interaction-expired'].map((status) => `grants ${status}`),
    ...['true', 'false'].map((status) => `spending ${status}`),
  ]
})
