import type { PGlite } from '@electric-sql/pglite'
import type { Pool, PoolClient } from 'pg'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { fromPglite, migrate, postgresStore } from '../../adapters/postgres.js'
import { creditIncoming } from '../../examples/host-transaction/credit-incoming.js'
import { settleOutgoing } from '../../examples/host-transaction/settle-outgoing.js'
import { ledgerTables } from '../../examples/host-transaction/tables.js'
import {
  type Bank,
  name,
  openBank,
  totals,
  unknownToTheLedger,
  usd,
  withReceive,
  withReportSent,
} from '../support/bank.js'
import { emptyPglite, type FreshPostgres, freshPostgres, servers } from '../support/databases.js'
import { isLong } from '../support/runs.js'
import { bob } from '../support/world.js'

/** PGlite as a pool of one connection. */
function poolOfOne(lite: PGlite): Pool {
  let last: Promise<void> = Promise.resolve()
  const query = async (
    statement: string | { text: string; values: unknown[] },
    more?: unknown[],
  ) => {
    const { text, values = more } =
      typeof statement === 'string' ? { text: statement, values: more } : statement
    return lite.query(text, values)
  }
  async function connect() {
    const before = last
    let release = () => {}
    last = new Promise((resolve) => {
      release = resolve
    })
    await before
    return { query, release, on: () => undefined, off: () => undefined }
  }
  return { query, connect } as unknown as Pool
}

function creditsAndCounts(bank: () => Bank): void {
  test('credits the account and counts the funds', async () => {
    const { pool, world, open, sums } = bank()
    const paymentId = await open('2500')
    const [one, two] = [name('transfer'), name('transfer')]
    const credit = (transferId: string, value: string) =>
      creditIncoming(pool, world.resources, paymentId, { transferId, amount: usd(value) })
    expect(await credit(one, '1500')).toMatchObject({ ok: true, payment: { received: '1500' } })
    expect(await credit(two, '1000')).toMatchObject({ ok: true, payment: { completed: true } })
    expect(await sums(paymentId, [one, two])).toEqual({ received: '2500', credited: '2500' })
  })

  test('credits a transfer once, also when it is repeated after completion', async () => {
    const { pool, world, open, sums } = bank()
    const paymentId = await open('100')
    const funds = { transferId: name('transfer'), amount: usd('100') }
    for (let i = 0; i < 3; i++) {
      const result = await creditIncoming(pool, world.resources, paymentId, funds)
      expect(result).toMatchObject({ ok: true, payment: { received: '100' } })
    }
    expect(await sums(paymentId, [funds.transferId])).toEqual({ received: '100', credited: '100' })
  })

  test.each([
    ['arrives after completion', {}, undefined, 'payment_completed'],
    [
      'is in another asset',
      { amount: { ...usd('1'), assetCode: 'EUR' } },
      undefined,
      'amount_invalid',
    ],
    ['exceeds 64 bits', { amount: usd('18446744073709551616') }, undefined, 'amount_invalid'],
    ['is for an unknown payment', {}, 'unknown', 'payment_unknown'],
  ])('writes no ledger entry if a transfer %s', async (_, change, id, refusal) => {
    const { pool, world, open, sums } = bank()
    const paymentId = await open('100')
    const first = { transferId: name('transfer'), amount: usd('100') }
    await creditIncoming(pool, world.resources, paymentId, first)
    const transferId = name('transfer')
    const second = { ...first, transferId, ...change }
    const result = await creditIncoming(pool, world.resources, id ?? paymentId, second)
    expect(result).toMatchObject({ ok: false, refusal })
    expect(await sums(paymentId, [transferId])).toEqual({ received: '100', credited: '0' })
  })

  test('keeps the entries of a transfer if its id is reused for something else', async () => {
    const { pool, world, open, sums } = bank()
    const [paymentId, other] = [await open(), await open()]
    const funds = { transferId: name('transfer'), amount: usd('100') }
    await creditIncoming(pool, world.resources, paymentId, funds)
    const more = { ...funds, amount: usd('101') }
    for (const [id, again] of [
      [paymentId, more],
      [other, funds],
    ] as const) {
      const result = await creditIncoming(pool, world.resources, id, again)
      expect(result).toMatchObject({ ok: false, refusal: 'transfer_mismatch' })
    }
    expect(await sums(paymentId, [funds.transferId])).toEqual({ received: '100', credited: '100' })
    expect((await sums(other, [])).received).toBe('0')
  })

  test('counts nothing if the host cannot write its entries', async () => {
    const { pool, world, open, sums } = bank()
    const paymentId = await open()
    const funds = { transferId: name('transfer'), amount: usd('100') }
    const moved = withReceive(world, async (receive) => unknownToTheLedger(await receive()))
    const credited = creditIncoming(pool, moved, paymentId, funds)
    await expect(credited).rejects.toMatchObject({ code: '23503' })
    expect(await sums(paymentId, [funds.transferId])).toEqual({ received: '0', credited: '0' })
    expect(await creditIncoming(pool, world.resources, paymentId, funds)).toMatchObject({
      ok: true,
    })
  })

  test('leaves neither behind if the host rolls back', async () => {
    const { pool, world, open, sums } = bank()
    const paymentId = await open()
    const funds = { transferId: name('transfer'), amount: usd('100') }
    const changesItsMind = withReceive(world, async (receive) => {
      expect(await receive()).toMatchObject({ ok: true, payment: { received: '100' } })
      throw new Error('the host changed its mind')
    })
    await expect(creditIncoming(pool, changesItsMind, paymentId, funds)).rejects.toThrow(
      'changed its mind',
    )
    expect(await sums(paymentId, [funds.transferId])).toEqual({ received: '0', credited: '0' })
  })

  test.each(['ERR_CONTENTION', 'ERR_RESTART_TRANSACTION', '40P01', '40001'])(
    'restarts after %s, and eventually gives up',
    async (code) => {
      const { pool, world, open, sums } = bank()
      const paymentId = await open()
      const funds = { transferId: name('transfer'), amount: usd('100') }
      let failures = 0
      const failing = (times: number) =>
        withReceive(world, async (receive) => {
          const result = await receive()
          if (++failures <= times) throw Object.assign(new Error('again'), { code })
          return result
        })
      await expect(creditIncoming(pool, failing(99), paymentId, funds)).rejects.toMatchObject({
        code,
      })
      expect(failures).toBe(5)
      expect(await sums(paymentId, [funds.transferId])).toEqual({ received: '0', credited: '0' })

      failures = 0
      expect(await creditIncoming(pool, failing(4), paymentId, funds)).toMatchObject({ ok: true })
      const both = { received: '100', credited: '100' }
      expect(await sums(paymentId, [funds.transferId])).toEqual(both)
    },
  )

  test.each(['REPEATABLE READ', 'SERIALIZABLE'])('is rejected under %s', async (isolation) => {
    const { pool, world, open } = bank()
    const paymentId = await open()
    const client = await pool.connect()
    try {
      await client.query(`BEGIN ISOLATION LEVEL ${isolation}`)
      const { incomingPayments } = world.resources.within(postgresStore.inTransaction(client))
      const funds = { transferId: name('transfer'), amount: usd('100') }
      const received = incomingPayments.receive(paymentId, funds)
      await expect(received).rejects.toMatchObject({ code: 'ERR_TRANSACTION_FAILED' })
      await expect(received).rejects.toThrow(
        `must be READ COMMITTED, but is ${isolation.toLowerCase()}`,
      )
    } finally {
      await client.query('ROLLBACK')
      client.release()
    }
    expect((await bank().sums(paymentId, [])).received).toBe('0')
  })

  test('is rejected on a client without a transaction in progress', async () => {
    const { pool, world, open, sums } = bank()
    const paymentId = await open()
    const client = await pool.connect()
    try {
      const { incomingPayments } = world.resources.within(postgresStore.inTransaction(client))
      const funds = { transferId: name('transfer'), amount: usd('100') }
      const received = incomingPayments.receive(paymentId, funds)
      await expect(received).rejects.toMatchObject({ code: 'ERR_TRANSACTION_FAILED' })
      await expect(received).rejects.toThrow('needs a client with a transaction in progress')
    } finally {
      client.release()
    }
    expect((await sums(paymentId, [])).received).toBe('0')
  })
}

function debitsAndSettles(bank: () => Bank): void {
  const whole = totals('1000', '500')

  test('debits the account and settles the payment, once', async () => {
    const { pool, world, begun, status } = bank()
    const paymentId = await begun()
    for (let i = 0; i < 3; i++) {
      const result = await settleOutgoing(pool, world.resources, paymentId, whole)
      expect(result).toMatchObject({ ok: true, payment: { state: 'completed' } })
      expect(await status(paymentId)).toEqual({
        sent: '1000',
        state: 'completed',
        debited: '1000',
      })
    }
  })

  test.each([
    ['the sent amount', '700', '300'],
    ['nothing', '0', '0'],
  ])('debits %s if it is below the maximum', async (_, sent, delivered) => {
    const { pool, world, begun, status } = bank()
    const paymentId = await begun()
    await world.resources.outgoingPayments.reportSent(paymentId, totals('0', '0'))
    const settled = await settleOutgoing(pool, world.resources, paymentId, totals(sent, delivered))
    expect(settled).toMatchObject({ ok: true })
    expect(await status(paymentId)).toEqual({ sent, state: 'completed', debited: sent })
  })

  test('keeps the entries if another total is reported later', async () => {
    const { pool, world, begun, status } = bank()
    const paymentId = await begun()
    await settleOutgoing(pool, world.resources, paymentId, totals('700', '300'))
    const later = await settleOutgoing(pool, world.resources, paymentId, whole)
    expect(later).toMatchObject({ ok: false, refusal: 'payment_over' })
    expect(await status(paymentId)).toMatchObject({ sent: '700', debited: '700' })
  })

  test.each([
    ['exceeds the amount to send', totals('1001', '500'), undefined, 'totals_exceeded'],
    ['is in another asset', { ...whole, deliveredAmount: usd('500') }, undefined, 'amount_invalid'],
    ['is for an unknown payment', whole, 'unknown', 'payment_unknown'],
  ])('writes no ledger entry if a report %s', async (_, said, id, refusal) => {
    const { pool, world, begun, status } = bank()
    const paymentId = await begun()
    const result = await settleOutgoing(pool, world.resources, id ?? paymentId, said)
    expect(result).toMatchObject({ ok: false, refusal })
    expect(await status(paymentId)).toEqual({ sent: '0', state: 'begun', debited: '0' })
  })

  test('settles nothing if the host cannot write its entries', async () => {
    const { pool, world, begun, status } = bank()
    const paymentId = await begun()
    const moved = withReportSent(world, async (report) => unknownToTheLedger(await report()))
    const failing = settleOutgoing(pool, moved, paymentId, whole)
    await expect(failing).rejects.toMatchObject({ code: '23503' })
    expect(await status(paymentId)).toEqual({ sent: '0', state: 'begun', debited: '0' })
    const settled = await settleOutgoing(pool, world.resources, paymentId, whole)
    expect(settled).toMatchObject({ ok: true })
  })

  test('debits once for 20 concurrent reports', async () => {
    const { pool, world, begun, status } = bank()
    const paymentId = await begun()
    const reports = Array.from({ length: 20 }, () =>
      settleOutgoing(pool, world.resources, paymentId, whole),
    )
    for (const result of await Promise.all(reports)) expect(result).toMatchObject({ ok: true })
    expect(await status(paymentId)).toEqual({ sent: '1000', state: 'completed', debited: '1000' })
  })
}

describe.runIf(isLong || servers.PostgreSQL === undefined)('the host transaction on PGlite', () => {
  let lite: PGlite
  let bank: Bank
  beforeAll(async () => {
    lite = await emptyPglite()
    await migrate(fromPglite(lite))
    await lite.exec(ledgerTables)
    bank = await openBank(poolOfOne(lite), postgresStore(fromPglite(lite)))
  })
  afterAll(() => lite?.close())

  creditsAndCounts(() => bank)
  debitsAndSettles(() => bank)
})

describe.skipIf(servers.PostgreSQL === undefined)('the host transaction on PostgreSQL', () => {
  let fresh: FreshPostgres
  let bank: Bank
  beforeAll(async () => {
    fresh = await freshPostgres({ migrated: false })
    const pool = poolIn()
    await migrate(pool)
    await pool.query(ledgerTables)
    bank = await openBank(pool, postgresStore(pool))
  })
  afterAll(() => fresh?.drop())

  const poolIn = (...settings: readonly string[]) => {
    const all = [`search_path=${fresh.schema}`, ...settings]
    return fresh.connect({ options: all.map((setting) => `-c ${setting}`).join(' ') })
  }

  creditsAndCounts(() => bank)
  debitsAndSettles(() => bank)

  /** A pool whose connections run a hook before each statement that matches. */
  function interceptedPool(
    pattern: RegExp,
    before: (client: PoolClient & { processID: number }) => Promise<unknown>,
    ...settings: readonly string[]
  ): Pool {
    const pool = poolIn(...settings)
    pool.on('connect', (connected) => {
      const client = connected as PoolClient & { processID: number }
      const query = client.query.bind(client) as (...args: unknown[]) => Promise<never>
      const intercepted = async (statement: string | { text: string }, ...rest: unknown[]) => {
        const text = typeof statement === 'string' ? statement : statement.text
        if (pattern.test(text)) await before(client)
        return query(statement, ...rest)
      }
      client.query = intercepted as unknown as typeof client.query
    })
    return pool
  }

  /** Ends a connection like a failing server, and waits until its process has exited. */
  async function terminate({ processID }: { readonly processID: number }): Promise<void> {
    await bank.pool.query('SELECT pg_terminate_backend($1)', [processID])
    const alive = 'SELECT 1 FROM pg_stat_activity WHERE pid = $1'
    await expect.poll(async () => (await bank.pool.query(alive, [processID])).rows).toHaveLength(0)
  }

  test.each([
    ['between the entries and receive', /^SAVEPOINT/],
    ['inside receive', /^RELEASE SAVEPOINT/],
    ['between receive and COMMIT', /^COMMIT/],
  ])('leaves neither behind if its connection dies %s', async (_, pattern) => {
    const { world, open, sums } = bank
    const paymentId = await open()
    const funds = { transferId: name('transfer'), amount: usd('100') }
    let deaths = 0
    const pool = interceptedPool(pattern, async (client) => {
      if (deaths++ === 0) await terminate(client)
    })
    await expect(creditIncoming(pool, world.resources, paymentId, funds)).rejects.toThrow()
    expect(deaths).toBe(1)
    expect(await sums(paymentId, [funds.transferId])).toEqual({ received: '0', credited: '0' })
    // The pool has recovered, and the transfer can be repeated.
    expect(await creditIncoming(pool, world.resources, paymentId, funds)).toMatchObject({
      ok: true,
    })
    expect(await sums(paymentId, [funds.transferId])).toEqual({ received: '100', credited: '100' })
  })

  test('counts both when another connection receives for the same payment concurrently', async () => {
    const { world, open, sums } = bank
    const paymentId = await open()
    const [ours, theirs] = [name('transfer'), name('transfer')]
    let savepoints = 0
    const pool = interceptedPool(/^SAVEPOINT/, async () => {
      if (savepoints++ > 0) return
      const funds = { transferId: theirs, amount: usd('30') }
      expect(await creditIncoming(bank.pool, world.resources, paymentId, funds)).toMatchObject({
        ok: true,
      })
    })
    const funds = { transferId: ours, amount: usd('100') }
    const result = await creditIncoming(pool, world.resources, paymentId, funds)
    expect(result).toMatchObject({ ok: true, payment: { received: '130' } })
    expect(savepoints).toBe(2)
    expect(await sums(paymentId, [ours])).toEqual({ received: '130', credited: '100' })
    expect(await sums(paymentId, [theirs])).toEqual({ received: '130', credited: '30' })
  })

  test('writes no entry if another connection completes the payment concurrently', async () => {
    const { world, open, sums } = bank
    const paymentId = await open('30')
    const [ours, theirs] = [name('transfer'), name('transfer')]
    let savepoints = 0
    const pool = interceptedPool(/^SAVEPOINT/, async () => {
      if (savepoints++ > 0) return
      const funds = { transferId: theirs, amount: usd('30') }
      await creditIncoming(bank.pool, world.resources, paymentId, funds)
    })
    const funds = { transferId: ours, amount: usd('100') }
    const result = await creditIncoming(pool, world.resources, paymentId, funds)
    expect(result).toMatchObject({ ok: false, refusal: 'payment_completed' })
    expect(await sums(paymentId, [ours])).toEqual({ received: '30', credited: '0' })
  })

  /** Waits until a server process is waiting for a lock. */
  async function untilBlocked(processID: number): Promise<void> {
    const text = 'SELECT cardinality(pg_blocking_pids($1)) AS blockers'
    await expect
      .poll(async () => (await bank.pool.query(text, [processID])).rows[0]?.blockers)
      .toBeGreaterThan(0)
  }

  test('restarts after a deadlock with another transaction', async () => {
    const { world, open, sums } = bank
    const paymentId = await open()
    const funds = { transferId: name('transfer'), amount: usd('100') }
    // The other waits first, and never checks for a deadlock. The credit does and is aborted.
    const other = await poolIn('deadlock_timeout=1h').connect()
    const { rows } = await other.query('SELECT pg_backend_pid() AS pid')
    const record = `SELECT 1 FROM open_payments_records
      WHERE kind = 'incoming-payment' AND id = $1 FOR UPDATE`
    const entry = 'INSERT INTO ledger_entries VALUES ($1, $2, 1)'
    let circle: Promise<unknown> = Promise.resolve()
    let attempts = 0
    // The record of the payment is locked by now.
    const pool = interceptedPool(
      /^INSERT INTO ledger_entries/,
      async () => {
        if (attempts++ > 0) return
        await other.query('BEGIN')
        await other.query(entry, [funds.transferId, bob])
        circle = other.query(record, [paymentId]).finally(() => other.query('ROLLBACK'))
        await untilBlocked(rows[0]?.pid)
      },
      'deadlock_timeout=50ms',
    )
    try {
      expect(await creditIncoming(pool, world.resources, paymentId, funds)).toMatchObject({
        ok: true,
      })
      await circle
    } finally {
      other.release()
    }
    expect(attempts).toBe(2)
    expect(await sums(paymentId, [funds.transferId])).toEqual({ received: '100', credited: '100' })
  })

  test('credits one transfer once for 50 concurrent reports', async () => {
    const { pool, world, open, sums } = bank
    const paymentId = await open()
    const funds = { transferId: name('transfer'), amount: usd('7') }
    const credits = Array.from({ length: 50 }, () =>
      creditIncoming(pool, world.resources, paymentId, funds),
    )
    for (const result of await Promise.all(credits)) {
      expect(result).toMatchObject({ ok: true, payment: { received: '7' } })
    }
    expect(await sums(paymentId, [funds.transferId])).toEqual({ received: '7', credited: '7' })
  })

  test('credits each of 50 concurrent transfers', async () => {
    const { pool, world, open, sums } = bank
    const paymentId = await open()
    const transfers = Array.from({ length: 50 }, (_, i) => ({
      transferId: name('transfer'),
      amount: usd(`${i + 1}`),
    }))
    const credits = transfers.map((transfer) =>
      creditIncoming(pool, world.resources, paymentId, transfer),
    )
    const results = await Promise.all(credits)
    expect(results.every(({ ok }) => ok)).toBe(true)
    const ids = transfers.map(({ transferId }) => transferId)
    expect(await sums(paymentId, ids)).toEqual({ received: '1275', credited: '1275' })
  })
})
