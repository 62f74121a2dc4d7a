import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import type { AuthenticatedClient } from '@interledger/open-payments'
import { freePort } from 'open-payments-programs'
import { type HoldSubject, holdConformance } from 'open-payments-server-testing'
import { Pool } from 'pg'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { demoPassword } from '../../examples/demo/browser.js'
import { openShop, type Shop } from '../../examples/demo/shop.js'
import type { EventHandler, MayPay } from '../../src/index.js'
import { approvedToken, clientOf, tokenWithoutConsent, usd } from '../support/official-client.js'
import { exited, killPrograms, type Program, runNode } from './program.js'

/** Where `.ci/stack` has installed the example, and a PostgreSQL server. */
const folder = process.env['TEST_STACK']
const server = process.env['TEST_DATABASE_URL']

/** The modules of the example that the rules of holds are checked on. */
interface Modules {
  openDatabase(url: string): { readonly pool: Pool; readonly db: unknown }
  holdFunds(db: unknown): MayPay
  paymentsOn(db: unknown, resources: never): EventHandler
}

// #region account
/** The library as `pay` calls it: it counts what arrives at the account `outside`. */
const payment = { walletAddress: 'outside' }
const done = async () => ({ ok: true, changed: true, payment })
const services = {
  incomingPayments: { idOf: () => 'incoming', receive: done },
  outgoingPayments: { begin: done, reportSent: done },
}
const recording = { ...services, within: () => services }

/** An account, with the functions of the program. */
function accountOf(
  walletAddress: string,
  { openDatabase, holdFunds, paymentsOn }: Modules,
  url: string,
): HoldSubject {
  const { pool, db } = openDatabase(url)
  const onEvent = paymentsOn(db, recording as never)
  const sumOf = async (table: string) => {
    const sum = `SELECT coalesce(sum(amount), 0) AS sum FROM ${table}`
    const { rows } = await pool.query(`${sum} WHERE account = $1`, [walletAddress])
    return BigInt(rows[0].sum)
  }
  return {
    walletAddress,
    asset: { assetCode: 'USD', assetScale: 2 },
    mayPay: holdFunds(db),
    onEvent,
    async settle({ type, ...payment }) {
      if (type === 'outgoing-payment.failed') return // nothing was sent
      const delivery = { attempt: 1, signal: new AbortController().signal }
      await onEvent({ ...payment, type: 'outgoing-payment.created' }, delivery)
    },
    balance: () => sumOf('entries'),
    held: () => sumOf('holds'),
    close: () => pool.end(),
  }
}
// #endregion account

/** A way to PostgreSQL on which a test can end the program after one of its commits has taken effect. */
async function watched(target: URL) {
  let afterHold: (() => void) | undefined
  const sockets = new Set<Socket>()
  const proxy = createServer((client) => {
    const upstream = connect(Number(target.port), target.hostname)
    for (const socket of [client, upstream]) {
      sockets.add(socket.on('error', () => socket.destroy()))
      socket.on('close', () => sockets.delete(socket))
    }
    let holds = false
    let commits = false
    client.on('data', (data) => {
      const text = data.toString('latin1')
      if (/\bbegin\b/i.test(text)) [holds, commits] = [false, false]
      holds ||= text.includes('insert into "holds"')
      commits ||= holds && /commit/i.test(text)
      upstream.write(data)
    })
    upstream.on('data', (data) => {
      const isCommitted = commits
      // What follows on this connection is about something else, until the next hold.
      if (commits) [holds, commits] = [false, false]
      if (!isCommitted || afterHold === undefined) return void client.write(data)
      afterHold()
      client.destroy()
    })
    client.on('close', () => upstream.destroy())
    upstream.on('close', () => client.destroy())
  })
  await once(proxy.listen(0, '127.0.0.1'), 'listening')
  const url = new URL(target)
  url.hostname = '127.0.0.1'
  url.port = String((proxy.address() as AddressInfo).port)
  return {
    url: url.href,
    /** Calls `work` once PostgreSQL has committed the next hold, before the program knows. */
    onHold(work: () => void) {
      afterHold = () => {
        afterHold = undefined
        work()
      }
    },
    /** The number of open connections. */
    open: () => sockets.size,
    close() {
      proxy.close()
      for (const socket of sockets) socket.destroy()
    },
  }
}

describe('the stack of Fastify, Drizzle and PostgreSQL', () => {
  if (folder === undefined || server === undefined) {
    return test.skip('skipped: run .ci/stack', () => {})
  }

  const name = `stack_${crypto.randomUUID().replaceAll('-', '')}`
  const url = new URL(`/${name}`, server)
  const admin = new Pool({ connectionString: server, max: 1 })
  const pool = new Pool({ connectionString: url.href })
  pool.on('error', () => undefined)
  pool.on('connect', (client) => client.on('error', () => undefined))
  let proxy: Awaited<ReturnType<typeof watched>>
  let origin: string
  let wallet: Program
  let shop: Shop
  let client: AuthenticatedClient

  const run = (script: string) =>
    runNode(
      ['--import', 'tsx', script],
      {
        DATABASE_URL: proxy.url,
        BASE_URL: origin,
        PORT: new URL(origin).port,
        SECRET: 'a secret of the tests',
        PLACEHOLDER_PASSWORD: demoPassword,
        DRAIN_MS: '1000',
      },
      folder,
    )
  const outputOf = ({ printed }: Program) => printed.out + printed.err
  const readiness = async () => {
    const { status } = await fetch(`${origin}/ready`)
    return status
  }

  async function start(): Promise<Program> {
    const program = run('main.ts')
    const ready = async () => expect(await readiness(), outputOf(program)).toBe(200)
    await vi.waitFor(ready, { timeout: 120_000, interval: 100 })
    return program
  }

  async function openAccount(account: string, owner: string, balance: number) {
    const insert = "INSERT INTO accounts VALUES ($1, $2, $2, 'USD', 2) ON CONFLICT DO NOTHING"
    for (const each of [
      [account, owner],
      ['outside', 'nobody'],
    ])
      await pool.query(insert, each)
    const deposit = "INSERT INTO entries VALUES ($1, $2, $3), ($1, 'outside', -$3::numeric)"
    if (balance > 0) await pool.query(deposit, [`deposit ${account}`, account, balance])
  }

  const sumOf = async (table: string, account: string) => {
    const sum = `SELECT coalesce(sum(amount), 0) AS sum FROM ${table} WHERE account = $1`
    return BigInt((await pool.query(sum, [account])).rows[0].sum)
  }
  const balances = () =>
    Promise.all(['alice', 'bob'].map((owner) => sumOf('entries', `${origin}/${owner}`)))
  const holds = async () => (await pool.query('SELECT * FROM holds WHERE NOT released')).rows.length
  const imbalance = async () =>
    (await pool.query('SELECT coalesce(sum(amount), 0) AS sum FROM entries')).rows[0].sum

  const at = (accessToken: string) => ({ url: origin, accessToken })

  /** Asks an account for money, and for its price to Alice. Returns the id of the quote, and how to read the first. */
  async function priced(value: string, payee = 'bob') {
    const token = (...access: Parameters<typeof tokenWithoutConsent>[2]) =>
      tokenWithoutConsent(client, `${origin}/auth`, access)
    const receiving = await token({ type: 'incoming-payment', actions: ['create', 'read'] })
    const invoice = await client.incomingPayment.create(at(receiving), {
      walletAddress: `${origin}/${payee}`,
      incomingAmount: usd(value),
    })
    const quoting = await token({ type: 'quote', actions: ['create', 'read'] })
    const quote = await client.quote.create(at(quoting), {
      walletAddress: `${origin}/alice`,
      receiver: invoice.id,
      method: 'ilp',
    })
    const read = () => client.incomingPayment.get({ url: invoice.id, accessToken: receiving })
    return { quoteId: quote.id, read }
  }

  /** Alice consents on the page of the wallet, and the shop pays. */
  async function consented(debitAmount: ReturnType<typeof usd>) {
    const access = { type: 'outgoing-payment', actions: ['create', 'read'] } as const
    const identifier = `${origin}/alice`
    const limits = { debitAmount }
    const asked = [{ ...access, actions: [...access.actions], identifier, limits }]
    return (await approvedToken(client, `${origin}/auth`, asked, shop)).value
  }

  const pay = (token: string, quoteId: string) =>
    client.outgoingPayment.create(at(token), { walletAddress: `${origin}/alice`, quoteId })

  beforeAll(async () => {
    await admin.query(`CREATE DATABASE ${name}`)
    proxy = await watched(url)
    origin = `http://localhost:${await freePort()}`
    const unmigrated = run('main.ts')
    const unready = async () => expect(await readiness(), outputOf(unmigrated)).toBe(503)
    await vi.waitFor(unready, { timeout: 120_000, interval: 100 })
    unmigrated.child.kill('SIGKILL')
    await unmigrated.ended
    const migration = run('migrate.ts')
    expect(await migration.ended, outputOf(migration)).toEqual(exited)
    wallet = await start()
    await openAccount(`${origin}/alice`, 'alice', 1_000)
    await openAccount(`${origin}/bob`, 'bob', 0)
    shop = await openShop()
    client = await clientOf(shop)
  })

  afterAll(async () => {
    killPrograms()
    shop?.stop()
    proxy?.close()
    await pool.end()
    await admin.query(`DROP DATABASE IF EXISTS ${name} WITH (FORCE)`)
    await admin.end()
  })

  test('pays with consent, moves the money in its ledger, and releases the hold', async () => {
    const { quoteId, read } = await priced('250')
    const token = await consented(usd('400'))
    expect(await pay(token, quoteId)).toMatchObject({ failed: false, debitAmount: usd('250') })
    await expect.poll(read).toMatchObject({ completed: true, receivedAmount: usd('250') })
    await expect.poll(holds).toBe(0)
    expect(await balances()).toEqual([750n, 250n])
    expect(await imbalance()).toBe('0')
  })

  test('refuses what the account does not have, and holds nothing for it', async () => {
    const { quoteId } = await priced('9000')
    const token = await consented(usd('9000'))
    await expect(pay(token, quoteId)).rejects.toMatchObject({ status: 403 })
    await expect.poll(holds).toBe(0)
    expect(await balances()).toEqual([750n, 250n])
  })

  test('ends a payment of an account to itself, which changes no balance and leaves no hold', async () => {
    const { quoteId, read } = await priced('100', 'alice')
    const token = await consented(usd('100'))
    const { id } = await pay(token, quoteId)
    await expect.poll(read).toMatchObject({ completed: true, receivedAmount: usd('100') })
    await expect.poll(holds).toBe(0)
    const payment = await client.outgoingPayment.get({ url: id, accessToken: token })
    expect(payment.sentAmount).toEqual(usd('100'))
    expect(await balances()).toEqual([750n, 250n])
    expect(await imbalance()).toBe('0')
  })

  test('measures requests and waiting events on its own port', async () => {
    const metrics = await (await fetch(`${origin}/metrics`)).text()
    const created = metrics
      .split('\n')
      .find((line) => /^open_payments_request_duration_count.*createOutgoingPayment/.test(line))
    expect(created).toContain('http_response_status_code="201"')
    expect(metrics).toMatch(/^open_payments_events_waiting\{.*"resourceServer".*\} \d+$/m)
    expect(metrics).toMatch(/^open_payments_store_duration_count\{/m)
  })

  test('is killed between the hold and the answer: a repeat of the request makes one payment', async () => {
    const { quoteId, read } = await priced('100')
    const token = await consented(usd('100'))
    proxy.onHold(() => wallet.child.kill('SIGKILL'))
    await expect(pay(token, quoteId)).rejects.toThrow()
    expect(await wallet.ended).toMatchObject({ signal: 'SIGKILL' })
    expect(await holds()).toBe(1)
    expect(await balances()).toEqual([750n, 250n])

    wallet = await start()
    const repeated = async () => (await pay(token, quoteId)).failed
    await vi.waitFor(async () => expect(await repeated()).toBe(false), {
      timeout: 120_000,
      interval: 500,
    })
    await expect.poll(read).toMatchObject({ completed: true, receivedAmount: usd('100') })
    await expect.poll(holds).toBe(0)
    expect(await balances()).toEqual([650n, 350n])
    expect(await imbalance()).toBe('0')
  })

  test('stops on SIGTERM: it is unready first, then ends all work and its connections', async () => {
    const before = wallet.printed.out.length
    wallet.child.kill('SIGTERM')
    await expect.poll(readiness).toBe(503)
    expect(await wallet.ended).toEqual(exited)
    await expect.poll(() => proxy.open()).toBe(0)
    expect(wallet.printed.out.slice(before)).not.toContain('"level":50')
  })

  describe('keeps the rules of a hold:', () => {
    let modules: Modules
    let accounts = 0
    beforeAll(async () => {
      const files = ['database', 'ledger', 'payments'].map((file) => import(`${folder}/${file}.ts`))
      modules = Object.assign({}, ...(await Promise.all(files)))
    })

    const subjectOf = (walletAddress: string) => accountOf(walletAddress, modules, url.href)
    const cases = holdConformance(
      async (balance) => {
        const walletAddress = `${origin}/${++accounts}`
        await openAccount(walletAddress, 'somebody', Number(balance))
        return subjectOf(walletAddress)
      },
      { reopen: subjectOf, wholePayments: true },
    )
    for (const { name, run, timeoutMs } of cases) test(name, run, timeoutMs)
  })
})
