import { randomUUID } from 'node:crypto'
import { mkdtemp, readdir, rm } from 'node:fs/promises'
import { createServer, request as httpRequest } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { AuthenticatedClient, Grant } from '@interledger/open-payments'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { openShop, type Shop } from '../../examples/demo/shop.js'
import { type ReceivedWebhook, webhookReceiver } from '../../examples/webhooks/receiver.js'
import { type FreshPostgres, freshPostgres, servers } from '../support/databases.js'
import { expiringSoon } from '../support/expiring.js'
import { listening, stopped } from '../support/hosts.js'
import { type Access, approvedToken, clientOf, usd } from '../support/official-client.js'
import { exited, killPrograms, type Program, runWallet, startedWallet } from './program.js'

let shop: Shop
let client: AuthenticatedClient
let directory: string

beforeAll(async () => {
  shop = await openShop()
  client = await clientOf(shop)
})
afterAll(() => shop.stop())
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'wallet-storage-test-'))
})
afterEach(async () => {
  killPrograms()
  await rm(directory, { recursive: true, force: true })
})

/** A proxy at the published URL that forwards requests to the wallet's processes in turn. */
async function openFront() {
  let ports: readonly number[] = []
  let turn = 0
  const server = createServer((request, response) => {
    const { method, url: path, headers } = request
    const port = ports[turn++ % ports.length]
    const onward = httpRequest({ host: 'localhost', port, method, path, headers, agent: false })
    onward.on('response', (answer) => {
      response.writeHead(answer.statusCode ?? 502, answer.headers)
      answer.pipe(response)
    })
    onward.on('error', () => response.destroy())
    request.pipe(onward)
  })
  const url = `http://localhost:${await listening(server)}`
  const leadTo = (...wallets: readonly { readonly port: number }[]) => {
    ports = wallets.map(({ port }) => port)
  }
  return { url, leadTo, close: () => stopped(server) }
}

let front: Awaited<ReturnType<typeof openFront>>
beforeEach(async () => {
  front = await openFront()
})
afterEach(() => front.close())

/** Gets a token for Alice's account, with her consent. */
async function consentedToken() {
  const access: Access = [
    {
      type: 'outgoing-payment',
      actions: ['create', 'read'],
      identifier: `${front.url}/alice`,
      limits: { debitAmount: usd('2500') },
    },
  ]
  return approvedToken(client, `${front.url}/auth`, access, shop)
}

async function rotated({ manage, value }: { manage: string; value: string }) {
  return (await client.token.rotate({ url: manage, accessToken: value })).access_token
}

/** Creates a payment to Bob; returns how the shop reads it. */
async function openedPayment({ expires = false } = {}) {
  const walletAddress = `${front.url}/bob`
  const access = { type: 'incoming-payment', actions: ['create', 'read'] } as const
  const grant = (await client.grant.request(
    { url: `${front.url}/auth` },
    { access_token: { access: [{ ...access, actions: [...access.actions] }] } },
  )) as Grant
  const accessToken = grant.access_token?.value ?? ''
  const asked = { walletAddress, incomingAmount: usd('2500') }
  const create = (more: { readonly expiresAt?: string } = {}) =>
    client.incomingPayment.create({ url: `${front.url}`, accessToken }, { ...asked, ...more })
  const { id, methods } = expires
    ? (await expiringSoon((expiresAt) => create({ expiresAt }))).created
    : await create()
  return { id, methods, read: () => client.incomingPayment.get({ url: id, accessToken }) }
}

async function arrive(incomingPayment: string, transferId: string, value: string) {
  const body = JSON.stringify({ transferId, incomingPayment, amount: usd(value) })
  const headers = { 'content-type': 'application/json' }
  const response = await fetch(`${front.url}/ledger/transfers`, { method: 'POST', headers, body })
  return response.status
}

async function keysOf(baseUrl: string): Promise<unknown[]> {
  const names = ['alice', 'bob', 'carol']
  const keySets = names.map(async (name) => (await fetch(`${baseUrl}/${name}/jwks.json`)).json())
  return Promise.all(keySets)
}

/** Returns the types of the events that a wallet has printed, in order. */
function eventsOf({ printed }: Program): string[] {
  const lines = printed.out.split('\n').filter((line) => /^\d{4}-\d\d-\d\dT/.test(line))
  return lines.map((line) => line.split('  ')[1] ?? '')
}

function expectNoSecrets({ printed }: Program, ...secrets: readonly string[]): void {
  for (const secret of secrets) expect(printed.out + printed.err).not.toContain(secret)
}

async function untilToldOf(expected: readonly string[], ...wallets: readonly Program[]) {
  const told = () => wallets.flatMap(eventsOf).toSorted()
  await expect.poll(told).toEqual(expected.toSorted())
}

const eventsOfFlow = [
  'grant.requested',
  'grant.approved',
  'grant.issued',
  'grant.rotated',
  'grant.requested',
  'grant.issued',
  'incoming-payment.created',
  'incoming-payment.received',
]

async function ofOneGrantAndPayment() {
  const first = await consentedToken()
  const token = await rotated(first)
  const payment = await openedPayment()
  const transferId = randomUUID()
  expect(await arrive(payment.id, transferId, '1000')).toBe(200)
  expect(await arrive(payment.id, transferId, '1000')).toBe(200)
  return { first, token, payment, transferId }
}

describe('the wallet with DATA_DIR', () => {
  async function openReceiver() {
    const received: ReceivedWebhook[] = []
    const secret = `whsec_${Buffer.alloc(32, 9).toString('base64')}`
    const server = webhookReceiver(secret, (webhook) => void received.push(webhook))
    const url = `http://localhost:${await listening(server)}`
    const environment = { WEBHOOK_URL: url, WEBHOOK_SECRET: secret }
    return { received, environment, close: () => stopped(server) }
  }

  async function losesNothing(): Promise<void> {
    const receiver = await openReceiver()
    const environment = {
      BASE_URL: front.url,
      DATA_DIR: join(directory, 'data'),
      ...receiver.environment,
    }
    const first = await startedWallet(environment)
    front.leadTo(first)
    const keys = await keysOf(front.url)
    const { token, payment, transferId, ...rest } = await ofOneGrantAndPayment()
    const refused = runWallet({ ...environment, PORT: '0' })
    expect(await refused.ended).toEqual({ code: 1, signal: null })
    expect(refused.printed.err).toContain(`is in use by process ${first.child.pid}`)
    await untilToldOf(eventsOfFlow, first)
    await receiver.close()
    expect(await arrive(payment.id, randomUUID(), '500')).toBe(200)
    await openedPayment({ expires: true })
    first.child.kill('SIGTERM')
    expect(await first.ended).toEqual(exited)
    expectNoSecrets(first, token.value, rest.first.value, `${payment.methods[0]?.sharedSecret}`)
    expect(receiver.received.map(({ type }) => type).toSorted()).toEqual(eventsOfFlow.toSorted())

    const { WEBHOOK_URL: _, WEBHOOK_SECRET: __, ...printing } = environment
    const second = await startedWallet(printing)
    front.leadTo(second)
    expect(await keysOf(front.url)).toEqual(keys)
    const { methods } = payment
    expect(await payment.read()).toMatchObject({ receivedAmount: usd('1500'), methods })
    const next = await rotated(token)
    await expect(rotated(rest.first)).rejects.toThrow()
    expect(await arrive(payment.id, transferId, '1000')).toBe(200)
    // Events that the webhook receiver missed are delivered now, and no others are repeated.
    const untold = [
      'incoming-payment.received',
      'grant.requested',
      'grant.issued',
      'incoming-payment.created',
      'incoming-payment.expired',
      'grant.rotated',
    ]
    await untilToldOf(untold, second)
    // The response follows the acknowledgement of the last event, which would otherwise stay leased for a
    // minute.
    await payment.read()
    second.child.kill('SIGKILL')
    await second.ended

    const { winner, loser } = await oneOfTwo(printing)
    expect(loser).toContain(`is in use by process ${winner.child.pid}`)
    front.leadTo(winner)
    expect(await keysOf(front.url)).toEqual(keys)
    expect(await payment.read()).toMatchObject({ receivedAmount: usd('1500'), methods })
    await rotated(next)
    await expect.poll(() => eventsOf(winner)).toContain('grant.rotated')
    winner.child.kill('SIGTERM')
    expect(await winner.ended).toEqual(exited)
    expect(winner.printed.err).toBe('')
  }

  test('loses nothing by a restart or a crash, and locks its directory', losesNothing)

  /** Starts two processes concurrently, one of which gets the directory. */
  async function oneOfTwo(environment: Record<string, string>) {
    const starts = [1, 2].map(async () => {
      try {
        return await startedWallet(environment)
      } catch (error) {
        return `${error}`
      }
    })
    const outcomes = await Promise.all(starts)
    const winners = outcomes.filter((outcome) => typeof outcome !== 'string')
    const losers = outcomes.filter((outcome) => typeof outcome === 'string')
    expect([winners.length, losers.length]).toEqual([1, 1])
    const [winner] = winners
    if (winner === undefined) throw new Error('no process has it')
    return { winner, loser: losers[0] ?? '' }
  }
})

async function usesTemporaryDirectory(): Promise<void> {
  const ours = async () =>
    (await readdir(directory)).filter((name) => name.startsWith('open-payments-wallet-'))
  const { child, printed, ended } = await startedWallet({ TMPDIR: directory })
  const [name = ''] = await ours()
  expect(printed.out).toContain(`PGlite in ${join(directory, name)}`)
  expect(await readdir(join(directory, name))).toEqual(['pglite'])
  child.kill('SIGTERM')
  expect(await ended).toEqual(exited)
  expect(await ours()).toEqual([])
}

test('the wallet without DATA_DIR makes a directory and removes it', usesTemporaryDirectory)

describe.skipIf(servers.PostgreSQL === undefined)('the wallet on PostgreSQL', () => {
  let fresh: FreshPostgres
  beforeAll(async () => {
    fresh = await freshPostgres({ migrated: false })
  })
  afterAll(() => fresh?.drop())

  test('is one wallet in two processes, and survives the crash of one', async () => {
    const url = new URL(servers.PostgreSQL ?? '')
    url.searchParams.set('options', `-c search_path=${fresh.schema}`)
    url.searchParams.set('application_name', fresh.schema)
    const environment = { BASE_URL: front.url, DATABASE_URL: url.href }
    // Both find an empty schema at the same time.
    const [one, two] = await Promise.all([startedWallet(environment), startedWallet(environment)])
    front.leadTo(one, two)
    const keys = await keysOf(one.baseUrl)
    expect(await keysOf(two.baseUrl)).toEqual(keys)
    const { token, payment } = await ofOneGrantAndPayment()
    const { methods } = payment
    const seen = { receivedAmount: usd('1000'), methods }
    expect(await payment.read()).toMatchObject(seen)
    expect(await payment.read()).toMatchObject(seen)
    await untilToldOf(eventsOfFlow, one, two)
    // An event without an acknowledgement would be redelivered after a minute.
    await expect.poll(eventsLeft).toBe(0)

    one.child.kill('SIGKILL')
    await one.ended
    front.leadTo(two)
    const next = await rotated(token)
    const second = () => Math.floor(Date.now() / 1_000)
    const rotatedIn = second()
    const three = await startedWallet(environment)
    expect(await keysOf(three.baseUrl)).toEqual(keys)
    front.leadTo(three, two)
    // In the same second, the repeat would have the same signature, and be refused as a replay.
    await expect.poll(second).toBeGreaterThan(rotatedIn)
    await expect(rotated(token)).resolves.toMatchObject({ value: next.value })
    expect(await arrive(payment.id, randomUUID(), '1500')).toBe(200)
    expect(await payment.read()).toMatchObject({ receivedAmount: usd('2500'), completed: true })

    const later = ['grant.rotated', 'incoming-payment.received', 'incoming-payment.completed']
    await untilToldOf([...eventsOfFlow, ...later], one, two, three)
    for (const { child } of [two, three]) child.kill('SIGTERM')
    expect(await Promise.all([two.ended, three.ended])).toEqual([exited, exited])
    await untilToldOf([...eventsOfFlow, ...later], one, two, three)
    expect(`${two.printed.err}${three.printed.err}`).toBe('')
    await expect.poll(connectionsLeft).toBe(0)
  })

  async function eventsLeft(): Promise<number> {
    const text = `SELECT id FROM ${fresh.schema}.open_payments_records WHERE kind = 'event'`
    return (await fresh.pool.query(text)).rows.length
  }

  async function connectionsLeft(): Promise<number> {
    const text = 'SELECT count(*) AS count FROM pg_stat_activity WHERE application_name = $1'
    return Number((await fresh.pool.query(text, [fresh.schema])).rows[0]?.count)
  }
})
