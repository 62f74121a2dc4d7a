import { once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Pool } from 'pg'
import { bob, origin, resourceServer } from '../fixtures.js'
import { type Client, call, consented, requestGrant } from './honest.js'
import { shopCount, shopKeys, walletAddressOf } from './key-hosts.js'
import { sampleOf, startServer } from './processes.js'
import { createSender, type Send } from './sender.js'

interface Tables {
  readonly connectionString: string
  readonly schema: string
  readonly pool: Pool
}

const clientsPerProcess = 8
const progressSeconds = 10
const alice = `${origin}/alice`
const amount = { value: '100', assetCode: 'USD', assetScale: 2 }

/** Makes whole payments in a row, each of three requests and of the calls of a rail, until it is stopped. */
async function pay(client: Client, isStopped: () => boolean, onPaid: () => void): Promise<void> {
  const [received, quoted] = await Promise.all(
    [
      { type: 'incoming-payment', actions: ['create'], identifier: bob },
      { type: 'quote', actions: ['create'] },
    ].map((access) => requestGrant(client, [access])),
  )
  const paying = await consented(client, {
    type: 'outgoing-payment',
    actions: ['create'],
    identifier: alice,
    limits: { debitAmount: { ...amount, value: '1000000000' } },
  })
  const post = (path: string, token: string, body: object) =>
    call(client, 'POST', `${resourceServer}/${path}`, { token, body })
  while (!isStopped()) {
    const invoice = { walletAddress: bob, incomingAmount: amount }
    const incoming = await post('incoming-payments', received.access_token.value, invoice)
    const asked = { walletAddress: alice, receiver: incoming.id, method: 'ilp' }
    const quote = await post('quotes', quoted.access_token.value, { ...asked, debitAmount: amount })
    const outgoing = await post('outgoing-payments', paying, {
      walletAddress: alice,
      quoteId: quote.id,
    })
    const [out, into] = [outgoing.id, incoming.id].map((url: string) => url.split('/').at(-1))
    const url = `/settle/${out}/${into}`
    const settled = await client.send({ method: 'POST', url, headers: [], body: Buffer.alloc(0) })
    if (settled.status !== 200) throw new Error('a payment was not settled')
    onPaid()
  }
}

/** The log of the whole database server: run nothing else on it. */
async function walBytes(pool: Pool): Promise<number> {
  const { rows } = await pool.query(
    `SELECT pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0') AS n`,
  )
  return Number(rows[0].n)
}

/**
 * Measures payments a second and what one costs, with several processes on one database. Requests have a nonce, of
 * which each commits a record. Resolves to whether no request failed.
 */
export async function measurePayments(
  { connectionString, schema, pool }: Tables,
  processes: number,
  minutes: number,
): Promise<boolean> {
  const started: Awaited<ReturnType<typeof startServer>>[] = []
  // The first one creates the tables.
  for (let i = 0; i < processes; i++) started.push(await startServer(connectionString, schema))
  const failures: unknown[] = []
  const senders: (() => void)[] = []
  let [paid, requests, isStopped] = [0, 0, false]
  const lives = started.flatMap(({ port }, process) => {
    const { send, close } = createSender(port)
    senders.push(close)
    return Array.from({ length: clientsPerProcess }, async (_, index) => {
      const shop = (process * clientsPerProcess + index) % shopCount
      const key = shopKeys[shop]
      if (key === undefined) throw new Error('no key')
      const counted: Send = (request) => {
        requests += 1
        return send(request)
      }
      const walletAddress = walletAddressOf(shop)
      const client = { walletAddress, key, send: counted, onServed: () => undefined }
      const onPaid = () => {
        paid += 1
      }
      await pay(client, () => isStopped, onPaid).catch((error) => void failures.push(error))
    })
  })
  const sum = async () => {
    const samples = await Promise.all(started.map(({ server }) => sampleOf(server)))
    const total = (of: 'cpuMs' | 'statements' | 'errors') =>
      samples.reduce((all, each) => all + each[of], 0)
    return {
      at: performance.now(),
      paid,
      requests,
      cpuMs: total('cpuMs'),
      statements: total('statements'),
      errors: total('errors'),
      wal: await walBytes(pool),
    }
  }
  // Code is compiled, and caches are filled, before it counts.
  await sleep(progressSeconds * 1_000)
  const before = await sum()
  for (let i = progressSeconds; i <= minutes * 60; i += progressSeconds) {
    const from = paid
    await sleep(progressSeconds * 1_000)
    console.error(`${i} s: ${((paid - from) / progressSeconds).toFixed(0)} payments/s`)
  }
  const after = await sum()
  isStopped = true
  await Promise.all(lives)
  for (const close of senders) close()
  for (const { server } of started) {
    server.send('stop')
    await once(server, 'exit')
  }
  const count = after.paid - before.paid
  const each = (of: 'cpuMs' | 'statements' | 'wal') => (after[of] - before[of]) / count
  const perSecond = (count / (after.at - before.at)) * 1_000
  const cpuOfRequest = (after.cpuMs - before.cpuMs) / (after.requests - before.requests)
  console.log(`${processes} processes, ${count} payments, ${after.errors} errors`)
  console.log(`${perSecond.toFixed(0).padStart(8)}  payments/s`)
  console.log(`${each('statements').toFixed(1).padStart(8)}  statements a payment`)
  console.log(
    `${(each('wal') / 1_000).toFixed(1).padStart(8)}  kB of WAL a payment, of all sessions`,
  )
  console.log(`${each('cpuMs').toFixed(1).padStart(8)}  ms of CPU of Node a payment`)
  console.log(`${cpuOfRequest.toFixed(2).padStart(8)}  ms of CPU of Node a request`)
  for (const failure of failures.slice(0, 10)) console.log(String(failure))
  return failures.length === 0 && after.errors === 0
}
