import { randomUUID } from 'node:crypto'
import { databaseOn, openDatabase } from 'create-open-payments-server/databases/postgres'
import { type Ledger, ledgerOn, openAccount } from 'create-open-payments-server/wallet/ledger'
import type { Database } from 'create-open-payments-server/wallet/sql'
import { migrate } from 'create-open-payments-server/wallet/tables'
import { usd } from 'open-payments-test-support/spending'
import { Pool } from 'pg'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'

const server = process.env['TEST_DATABASE_URL']

function signal() {
  let resolve = () => {}
  const promise = new Promise<void>((done) => {
    resolve = done
  })
  return { promise, resolve }
}

/** A process that stops in its hold before a statement, with its transaction open, until it goes on. */
function stopping(database: Database, before: RegExp) {
  const [reached, on] = [signal(), signal()]
  const ledger = ledgerOn({
    ...database,
    transaction: (work) =>
      database.transaction((sql, store) =>
        work(async (statement, ...values) => {
          if (before.test(statement)) {
            reached.resolve()
            await on.promise
          }
          return sql(statement, ...values)
        }, store),
      ),
  })
  return { ledger, stopped: reached.promise, goOn: on.resolve }
}

describe.skipIf(server === undefined)('a process that is stopped inside its hold', () => {
  const name = `stopped_${randomUUID().slice(0, 8)}`
  const url = new URL(server ?? 'postgres://localhost')
  url.pathname = `/${name}`
  let admin: Pool
  let database: Database
  let ledger: Ledger
  /** Without time-outs of the server: what a wallet must not depend on for its money. */
  let patient: Database
  beforeAll(async () => {
    admin = new Pool({ connectionString: server })
    await admin.query(`CREATE DATABASE ${name}`)
    database = openDatabase(url.href)
    await migrate(database)
    const pool = new Pool({ connectionString: url.href })
    pool.on('error', () => undefined)
    patient = databaseOn(pool)
    ledger = ledgerOn(patient)
  })
  afterAll(async () => {
    await Promise.all([database?.close(), patient?.close()])
    await admin?.query(`DROP DATABASE ${name} WITH (FORCE)`)
    await admin?.end()
  })

  async function newPayment() {
    const walletAddress = `https://wallet.example/${randomUUID()}`
    await openAccount(database, { url: walletAddress, ...usd(0), owner: 'alice', balance: 1234n })
    return { outgoingPaymentId: randomUUID(), walletAddress, debitAmount: usd(1234) }
  }

  /** Whether an account can spend all that it has. */
  const isFree = (payment: Awaited<ReturnType<typeof newPayment>>) =>
    ledger.covers({ ...payment, outgoingPaymentId: 'another' })

  test.each([
    ['before it locks the account', /^UPDATE accounts SET locks/],
    ['before it inserts the hold', /^INSERT INTO holds/],
  ])('%s, and goes on when its payment has ended, holds nothing for ever', async (_, before) => {
    const payment = await newPayment()
    const process = stopping(patient, before)
    const held = process.ledger.hold(payment)
    await process.stopped
    // Waits for the process if that has locked the account.
    const released = ledger.release(payment)
    if (before.source.includes('locks')) await released
    process.goOn()
    await Promise.all([held, released])
    expect(await isFree(payment)).toBe(true)
    await ledger.release(payment)
    expect(await ledger.hold(payment)).toBe(false)
    expect(await isFree(payment)).toBe(true)
  })

  test('loses its transaction, so that other payments of the account go on', async () => {
    const payment = await newPayment()
    const process = stopping(database, /^INSERT INTO holds/)
    const held = process.ledger.hold(payment).catch((error: Error) => error)
    await process.stopped
    const other = { ...payment, outgoingPaymentId: randomUUID() }
    const isHeld = () =>
      ledgerOn(database)
        .hold(other)
        .catch((error: Error) => error.message)
    await expect.poll(isHeld).toBe(true)
    process.goOn()
    expect(await held).toBeInstanceOf(Error)
    expect(await isFree(payment)).toBe(false) // by the other payment alone
    await ledger.release(other)
    expect(await isFree(payment)).toBe(true)
  })
})
