import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Pool } from 'pg'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { postgresStore } from '../../adapters/postgres.js'
import {
  type Bank,
  eur,
  name,
  openBank,
  type Resources,
  totals,
  unknownToTheLedger,
  usd,
  withReceive,
  withReportSent,
} from '../support/bank.js'
import { createHostDatabase, type Example, examples } from '../support/host-databases.js'
import { loadOne } from '../support/one-record.js'
import { alice, bob, type World } from '../support/world.js'

describe.each(examples)('a transaction of %s', (_, installed) => {
  if (installed === undefined) return test.skip('skipped: run .ci/transactions', () => {})

  const { server, open } = installed
  let database: Awaited<ReturnType<typeof createHostDatabase>>
  let url: URL
  let pool: Pool
  let bank: Bank
  let world: World
  let example: Example
  beforeAll(async () => {
    database = await createHostDatabase(server)
    pool = database.pool
    bank = await openBank(pool, postgresStore(pool))
    world = bank.world
    url = new URL(database.url)
    // The transactions of the examples find a deadlock soon, so they are the ones that end.
    url.searchParams.set('options', '-c deadlock_timeout=50ms')
    example = await open({ connectionString: url.href })
  })
  afterAll(async () => {
    await example?.close()
    await database?.drop()
  })

  const transfer = (value: string) => ({ transferId: name('transfer'), amount: usd(value) })
  const whole = { ...totals('1000', '500'), arrived: true }

  test('credits the account together with the payment, once', async () => {
    const paymentId = await bank.open('2500')
    const [one, two] = [transfer('1500'), transfer('1000')]
    for (const funds of [one, two, two]) {
      const result = await example.creditIncoming(world.resources, paymentId, funds)
      expect(result).toMatchObject({ ok: true })
    }
    const ids = [one.transferId, two.transferId]
    expect(await bank.sums(paymentId, ids)).toEqual({ received: '2500', credited: '2500' })
  })

  test('debits the account together with the payment, once', async () => {
    const paymentId = await bank.begun()
    for (let i = 0; i < 2; i++) {
      const result = await example.settleOutgoing(world.resources, paymentId, whole)
      expect(result).toMatchObject({ ok: true, changed: i === 0 })
    }
    const status = { sent: '1000', state: 'completed', debited: '1000' }
    expect(await bank.status(paymentId)).toEqual(status)
  })

  test('counts nothing if the host cannot write its entries', async () => {
    const paymentId = await bank.open()
    const funds = transfer('100')
    const moved = withReceive(world, async (receive) => unknownToTheLedger(await receive()))
    await expect(example.creditIncoming(moved, paymentId, funds)).rejects.toThrow()
    const none = { received: '0', credited: '0' }
    expect(await bank.sums(paymentId, [funds.transferId])).toEqual(none)
    const again = await example.creditIncoming(world.resources, paymentId, funds)
    expect(again).toMatchObject({ ok: true, changed: true })
  })

  test('settles nothing if the host cannot write its entries', async () => {
    const paymentId = await bank.begun()
    const moved = withReportSent(world, async (report) => unknownToTheLedger(await report()))
    await expect(example.settleOutgoing(moved, paymentId, whole)).rejects.toThrow()
    const status = { sent: '0', state: 'begun', debited: '0' }
    expect(await bank.status(paymentId)).toEqual(status)
  })

  test('rejects if the host catches an error after which PostgreSQL rolls everything back', async () => {
    const paymentId = await bank.open()
    const funds = transfer('100')
    const failing: Resources = {
      within(store) {
        const services = world.resources.within(store)
        const receive: typeof services.incomingPayments.receive = async (...given) => {
          const result = await services.incomingPayments.receive(...given)
          // PostgreSQL refuses U+0000 in text.
          await expect(loadOne(store, 'quote', 'quote-\0')).rejects.toThrow()
          return result.ok ? { ...result, changed: false } : result
        }
        return { ...services, incomingPayments: { ...services.incomingPayments, receive } }
      },
    }
    const failed = { code: 'ERR_TRANSACTION_FAILED' }
    await expect(example.creditIncoming(failing, paymentId, funds)).rejects.toMatchObject(failed)
    const none = { received: '0', credited: '0' }
    expect(await bank.sums(paymentId, [funds.transferId])).toEqual(none)
    const again = await example.creditIncoming(world.resources, paymentId, funds)
    expect(again).toMatchObject({ ok: true, changed: true })
  })

  test.each([
    ['arrives after completion', {}, undefined, 'payment_completed'],
    ['is in another asset', { amount: eur('1') }, undefined, 'amount_invalid'],
    ['exceeds 64 bits', { amount: usd('18446744073709551616') }, undefined, 'amount_invalid'],
    ['is for an unknown payment', {}, 'unknown', 'payment_unknown'],
  ])('writes no entry if a transfer %s', async (_, change, id, refusal) => {
    const paymentId = await bank.open('100')
    const funds = { ...transfer('100'), ...change }
    await example.creditIncoming(world.resources, paymentId, transfer('100'))
    const refused = await example.creditIncoming(world.resources, id ?? paymentId, funds)
    expect(refused).toMatchObject({ ok: false, refusal })
    const sums = { received: '100', credited: '0' }
    expect(await bank.sums(paymentId, [funds.transferId])).toEqual(sums)
  })

  test.each([
    [
      'exceeds the amount to send',
      { ...whole, ...totals('1001', '500') },
      undefined,
      'totals_exceeded',
    ],
    ['is in another asset', { ...whole, deliveredAmount: usd('500') }, undefined, 'amount_invalid'],
    ['is for an unknown payment', whole, 'unknown', 'payment_unknown'],
  ])('writes no entry if a report %s', async (_, said, id, refusal) => {
    const paymentId = await bank.begun()
    const refused = await example.settleOutgoing(world.resources, id ?? paymentId, said)
    expect(refused).toMatchObject({ ok: false, refusal })
    const status = { sent: '0', state: 'begun', debited: '0' }
    expect(await bank.status(paymentId)).toEqual(status)
  })

  test('keeps the entries of a transfer if its id is used for something else', async () => {
    const [paymentId, other] = [await bank.open(), await bank.open()]
    const funds = transfer('100')
    await example.creditIncoming(world.resources, paymentId, funds)
    const mismatch = { ok: false, refusal: 'transfer_mismatch' }
    const more = { ...funds, amount: usd('101') }
    const changed = await example.creditIncoming(world.resources, paymentId, more)
    const moved = await example.creditIncoming(world.resources, other, funds)
    expect([changed, moved]).toMatchObject([mismatch, mismatch])
    const both = { received: '100', credited: '100' }
    expect(await bank.sums(paymentId, [funds.transferId])).toEqual(both)
    expect((await bank.sums(other, [])).received).toBe('0')
  })

  test.each([
    ['700', '300'],
    ['0', '0'],
  ])('debits what was sent if that is less: %s, and keeps it', async (sent, delivered) => {
    const paymentId = await bank.begun()
    await world.resources.outgoingPayments.reportSent(paymentId, totals('0', '0'))
    await example.settleOutgoing(world.resources, paymentId, {
      ...totals(sent, delivered),
      arrived: true,
    })
    const later = await example.settleOutgoing(world.resources, paymentId, whole)
    expect(later).toMatchObject({ ok: false, refusal: 'payment_over' })
    expect(await bank.status(paymentId)).toEqual({ sent, state: 'completed', debited: sent })
  })

  test.each(['ERR_CONTENTION', 'ERR_RESTART_TRANSACTION', '40P01', '40001'])(
    'restarts after %s, and eventually gives up and leaves nothing behind',
    async (code) => {
      const paymentId = await bank.open()
      const funds = transfer('100')
      let failures = 0
      const failing = (times: number) =>
        withReceive(world, async (receive) => {
          const result = await receive()
          if (++failures <= times) throw Object.assign(new Error('again'), { code })
          return result
        })
      await expect(example.creditIncoming(failing(99), paymentId, funds)).rejects.toThrow('again')
      expect(failures).toBe(5)
      const none = { received: '0', credited: '0' }
      expect(await bank.sums(paymentId, [funds.transferId])).toEqual(none)
      failures = 0
      const result = await example.creditIncoming(failing(4), paymentId, funds)
      expect(result).toMatchObject({ ok: true })
      const both = { received: '100', credited: '100' }
      expect(await bank.sums(paymentId, [funds.transferId])).toEqual(both)
    },
  )

  test('loses a race for the payment, and decides again', async () => {
    const paymentId = await bank.open()
    const [ours, theirs] = [transfer('100'), transfer('30')]
    let commits = 0
    const raced: Resources = {
      within: (store) =>
        world.resources.within({
          ...store,
          async commit(requested) {
            if (commits++ === 0) await world.resources.incomingPayments.receive(paymentId, theirs)
            return store.commit(requested)
          },
        }),
    }
    const result = await example.creditIncoming(raced, paymentId, ours)
    expect(result).toMatchObject({ ok: true, payment: { receivedAmount: { value: '130' } } })
    expect(commits).toBe(2)
    const sums = { received: '130', credited: '100' }
    expect(await bank.sums(paymentId, [ours.transferId])).toEqual(sums)
  })

  test('restarts after a deadlock with another transaction', async () => {
    const paymentId = await bank.open()
    const funds = transfer('100')
    // The other waits first, and never checks for a deadlock.
    const other = await pool.connect()
    await other.query(`SET deadlock_timeout = '1h'`)
    const { rows } = await other.query('SELECT pg_backend_pid() AS pid')
    let circle: Promise<unknown> = Promise.resolve()
    let attempts = 0
    const crossed = withReceive(world, async (receive) => {
      const result = await receive()
      if (attempts++ > 0) return result
      await other.query('BEGIN')
      await other.query('SELECT 1 FROM ledger_accounts WHERE id = $1 FOR UPDATE', [bob])
      // The key of the store begins with the namespace of the server.
      const record = `SELECT 1 FROM open_payments_records WHERE id LIKE '%' || $1 FOR UPDATE`
      circle = other.query(record, [paymentId]).finally(() => other.query('ROLLBACK'))
      await expect.poll(() => isBlocked(pool, rows[0]?.pid)).toBe(true)
      return result
    })
    try {
      const result = await example.creditIncoming(crossed, paymentId, funds)
      expect(result).toMatchObject({ ok: true, changed: true })
      await circle
    } finally {
      await other.query('RESET deadlock_timeout')
      other.release()
    }
    // It restarts again if it locks the record before the other, whose lock it waits for.
    expect(attempts).toBeGreaterThanOrEqual(2)
    const both = { received: '100', credited: '100' }
    expect(await bank.sums(paymentId, [funds.transferId])).toEqual(both)
  })

  test.each([
    ['the response to COMMIT is lost', /COMMIT(?:;|)\0/i, 'after', '100'],
    ['its connection dies before COMMIT', /COMMIT(?:;|)\0/i, 'before', '0'],
    ['its connection dies before the library writes', /SAVEPOINT/i, 'before', '0'],
    ['its connection dies after the library has written', /RELEASE SAVEPOINT/i, 'before', '0'],
  ] as const)('credits once if %s and the host calls again', async (_, statement, when, sum) => {
    const paymentId = await bank.open()
    const funds = transfer('100')
    const proxy = await losing(url, statement, when)
    const behind = await open({ connectionString: proxy.url })
    const both = { received: '100', credited: '100' }
    try {
      await expect(behind.creditIncoming(world.resources, paymentId, funds)).rejects.toThrow()
      expect(proxy.lost()).toBe(1)
      const sums = async () => bank.sums(paymentId, [funds.transferId])
      expect(await sums()).toEqual({ received: sum, credited: sum })
      const again = await behind.creditIncoming(world.resources, paymentId, funds)
      expect(again).toMatchObject({ ok: true, changed: sum === '0' })
    } finally {
      await behind.close()
      proxy.close()
    }
    expect(await bank.sums(paymentId, [funds.transferId])).toEqual(both)
  })

  test('rejects with the error of the host if its connection dies before ROLLBACK', async () => {
    const paymentId = await bank.open()
    const funds = transfer('100')
    const ended = withReceive(world, async (receive) => {
      await receive()
      const sessions = `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
        WHERE datname = current_database() AND state = 'idle in transaction'`
      expect((await pool.query(sessions)).rows).toHaveLength(1)
      throw new Error('the first error')
    })
    const credited = example.creditIncoming(ended, paymentId, funds)
    await expect(credited).rejects.toThrow(/^the first error$/)
    const none = { received: '0', credited: '0' }
    expect(await bank.sums(paymentId, [funds.transferId])).toEqual(none)
    // Until then, the pool may hand out the connection whose end it has not seen.
    await sleep(1_000)
    const again = await example.creditIncoming(world.resources, paymentId, funds)
    expect(again).toMatchObject({ ok: true, changed: true })
  })

  test('refuses a transaction in the place of the database, and a store whose transaction has ended', async () => {
    const { holdNested } = example
    const payment = {
      outgoingPaymentId: name('payment'),
      walletAddress: alice,
      debitAmount: usd('1'),
    } as never
    if (holdNested !== undefined) {
      const { signal } = new AbortController()
      await expect(holdNested(payment, { signal })).rejects.toThrow('db must be the database')
    }
    const paymentId = await bank.open()
    let kept: Parameters<Resources['within']>[0] | undefined
    const keeping: Resources = {
      within(store) {
        kept = store
        return world.resources.within(store)
      },
    }
    await example.creditIncoming(keeping, paymentId, transfer('100'))
    const failed = { code: 'ERR_TRANSACTION_FAILED' }
    await expect(kept && loadOne(kept, 'quote', 'any')).rejects.toMatchObject(failed)
  })

  test('holds for concurrent reports of the same transfer and of others', async () => {
    const paymentId = await bank.open()
    const [same, ...others] = Array.from({ length: 10 }, (_, i) => transfer(`${i + 1}`))
    if (same === undefined) throw new Error('there is a first transfer')
    const credits = [...Array.from({ length: 10 }, () => same), ...others].map((funds) =>
      example.creditIncoming(world.resources, paymentId, funds),
    )
    for (const result of await Promise.all(credits)) expect(result).toMatchObject({ ok: true })
    const ids = [same, ...others].map(({ transferId }) => transferId)
    expect(await bank.sums(paymentId, ids)).toEqual({ received: '55', credited: '55' })
  })

  test('debits once for concurrent reports', async () => {
    const paymentId = await bank.begun()
    const reports = Array.from({ length: 10 }, () =>
      example.settleOutgoing(world.resources, paymentId, whole),
    )
    const changed = (await Promise.all(reports)).filter((result) => result.ok && result.changed)
    expect(changed).toHaveLength(1)
    const status = { sent: '1000', state: 'completed', debited: '1000' }
    expect(await bank.status(paymentId)).toEqual(status)
    expect(alice).toBe(changed[0]?.ok && changed[0].payment.walletAddress)
  })
})

async function isBlocked(pool: Pool, pid: number): Promise<boolean> {
  const text = 'SELECT cardinality(pg_blocking_pids($1)) > 0 AS blocked'
  return (await pool.query(text, [pid])).rows[0]?.blocked
}

/** A proxy that closes the connection before it passes on the first such statement, or in place of its response. */
async function losing(url: URL, statement: RegExp, when: 'before' | 'after') {
  let lost = 0
  const sockets = new Set<Socket>()
  const keep = (socket: Socket) => sockets.add(socket.on('error', () => socket.destroy()))
  const server = createServer((client) => {
    const upstream = connect(Number(url.port), url.hostname)
    keep(client)
    keep(upstream)
    let isLosing = false
    client.on('data', (data) => {
      isLosing ||= lost === 0 && statement.test(data.toString('latin1'))
      if (!isLosing || when === 'after') return void upstream.write(data)
      lost++
      client.destroy()
    })
    upstream.on('data', (data) => {
      if (!isLosing) return void client.write(data)
      lost++
      client.destroy()
    })
    client.on('close', () => upstream.destroy())
    upstream.on('close', () => client.destroy())
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const own = new URL(url)
  own.port = String((server.address() as AddressInfo).port)
  return {
    url: own.href,
    lost: () => lost,
    close() {
      server.close()
      for (const socket of sockets) socket.destroy()
    },
  }
}
