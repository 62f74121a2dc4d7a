import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import fc from 'fast-check'
import { deserializeIlpPrepare, serializeIlpPrepare } from 'ilp-packet'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { PostgresClient } from '../../adapters/postgres.js'
import { createConnector, type PeerBalance } from '../../examples/ilp/connector.js'
import { type IlpHandler, rejectsOf } from '../../examples/ilp/packet.js'
import {
  memoryPeerBalances,
  type PeerBalances,
  postgresPeerBalances,
} from '../../examples/ilp/peer-balances.js'
import { freshPglite, freshPostgres, servers } from '../support/databases.js'
import {
  createReceivingWallet,
  type Details,
  ilpAddress,
  outcomeOf,
  streamPacket,
} from '../support/ilp.js'
import { runs } from '../support/runs.js'

const usd = { assetCode: 'USD', assetScale: 2 }
const par = () => ({ numerator: 1n, denominator: 1n })
const hostile = ['test.mallory', 'test.eve'] as const

let client: PostgresClient
let close: () => Promise<void>
beforeAll(async () => {
  if (servers.PostgreSQL === undefined) {
    const database = await freshPglite()
    client = database
    close = database.close
  } else {
    const { connect, schema, drop } = await freshPostgres()
    client = connect({ options: `-c search_path=${schema}` })
    close = drop
  }
})
afterAll(() => close())

/** How a call of a store ends. */
type Fate = 'works' | 'fails before' | 'fails after' | 'is slow' | 'is held'

const slowMs = 700

/** Calls a store. A call that is slow ends after a packet that lives 1.6 s has expired. */
async function subject<T>(
  fate: Fate | undefined,
  call: () => Promise<T>,
  held?: Promise<void>,
): Promise<T> {
  if (fate === 'fails before') throw new Error('the connection was lost')
  if (fate === 'is slow') await sleep(slowMs)
  if (fate === 'is held') await held
  const result = await call()
  if (fate === 'fails after') throw new Error('the connection was lost')
  return result
}

/** A balance whose writes have the listed fates. */
function unreliable(balance: PeerBalance, next: () => Fate | undefined): PeerBalance {
  return new Proxy(balance, {
    get: (target, name: keyof PeerBalance) =>
      name === 'value'
        ? target.value
        : (...of: never[]) =>
            subject(next(), () => (target[name] as (...of: never[]) => Promise<never>)(...of)),
  })
}

/** A wallet that receives packets of hostile peers through a connector. */
async function attacked(balances: PeerBalances, { creditMax }: { readonly creditMax?: bigint }) {
  const wallet = createReceivingWallet()
  const details = await wallet.createPayment()
  const fates: { credits: Fate[]; entries: Fate[] } = { credits: [], entries: [] }
  const running = new Set<Promise<unknown>>()
  let letGo = () => {}
  const held = new Promise<void>((resolve) => {
    letGo = resolve
  })
  const { get, receive } = wallet.incomingPayments
  const receiver = wallet.receiver({
    incomingPayments: {
      get,
      async receive(...funds) {
        const call = subject(fates.credits.shift(), () => receive(...funds), held)
        running.add(call.catch(() => undefined))
        return call
      },
    },
  })
  const namespace = randomUUID()
  const of = (peer: string) => balances.of(`${peer}.${namespace}`)
  const unused: IlpHandler = () => Promise.reject(new Error('it receives no packets'))
  const connector = createConnector({
    ilpAddress: 'test.connector',
    peers: [
      ...hostile.map((peer) => ({
        ilpAddress: peer,
        asset: usd,
        send: unused,
        balance: unreliable(of(peer), () => fates.entries.shift()),
        ...(creditMax !== undefined && { creditMax }),
      })),
      { ilpAddress, asset: usd, send: receiver, countsRepeats: true },
    ],
    rateOf: par,
  })
  return {
    details,
    fates,
    send: (peer: (typeof hostile)[number], packet: Uint8Array) => connector.from(peer)(packet),
    owedBy: (peer: (typeof hostile)[number]) => of(peer).value(),
    async owed() {
      const values = await Promise.all(hostile.map((peer) => of(peer).value()))
      return values.reduce((sum, value) => sum + value, 0n)
    },
    credited: () => wallet.received(details),
    /** Resolves when everything that was begun has ended, also after its packet had expired. */
    async quiet() {
      letGo()
      await Promise.all(running)
      await sleep(50)
    },
  }
}

/** Packets whose amount and expiry a peer chooses anew each time it sends one: the condition stays. */
function packetsOf(details: Details, count: number) {
  const packets = Array.from({ length: count }, (_, sequence) =>
    deserializeIlpPrepare(streamPacket(details, { amount: 0n, sequence })),
  )
  return (index: number, amount: bigint, lifeMs: number) =>
    serializeIlpPrepare({
      ...(packets[index] as (typeof packets)[number]),
      amount: `${amount}`,
      expiresAt: new Date(Date.now() + lifeMs),
    })
}

const fate = fc.oneof(
  { weight: 6, arbitrary: fc.constant<Fate>('works') },
  { weight: 2, arbitrary: fc.constantFrom<Fate>('fails before', 'fails after') },
  { weight: 1, arbitrary: fc.constant<Fate>('is slow') },
)
/** A packet that lives 1.6 s is given up after 0.6 s, while a slow store still credits it. */
const sending = fc.record({
  peer: fc.constantFrom(...hostile),
  index: fc.nat(3),
  amount: fc.constantFrom(0n, 0n, 1n, 100n, 1_000n),
  lifeMs: fc.constantFrom(30_000, 30_000, 1_600),
})
/** Packets that are sent at once, one group after the other. */
const attack = fc.array(fc.array(sending, { minLength: 1, maxLength: 8 }), {
  minLength: 1,
  maxLength: 4,
})

describe.each<[string, () => Promise<PeerBalances>]>([
  ['in memory', async () => memoryPeerBalances()],
  ['in PostgreSQL', () => postgresPeerBalances(client, randomUUID())],
])('a connector with its balances %s', (_, open) => {
  test('is owed what it has credited, whatever its peers send and its stores do', async () => {
    const property = fc.asyncProperty(
      attack,
      fc.array(fate, { maxLength: 12 }),
      fc.array(fate, { maxLength: 12 }),
      fc.option(fc.constant(2_500n), { nil: undefined }),
      async (groups, credits, entries, creditMax) => {
        const world = await attacked(await open(), { ...(creditMax && { creditMax }) })
        const packet = packetsOf(world.details, 4)
        Object.assign(world.fates, { credits: [...credits], entries: [...entries] })
        for (const group of groups) {
          const sent = group.map(({ peer, index, amount, lifeMs }) =>
            world.send(peer, packet(index, amount, lifeMs)),
          )
          await Promise.all(sent)
        }
        await world.quiet()
        expect(await world.credited()).toBeLessThanOrEqual(await world.owed())
        if (creditMax === undefined) return
        for (const peer of hostile) {
          expect(await world.owedBy(peer)).toBeLessThanOrEqual(creditMax)
        }
      },
    )
    await fc.assert(property, { numRuns: runs(40) })
  })

  test('is owed exactly what it has credited while its stores work', async () => {
    const property = fc.asyncProperty(attack, async (groups) => {
      const world = await attacked(await open(), {})
      const packet = packetsOf(world.details, 4)
      // Each peer has conditions of its own, because a condition of both is credited once and owed by each.
      const index = ({ peer, index }: { peer: string; index: number }) =>
        (index % 2) + (peer === 'test.eve' ? 2 : 0)
      for (const group of groups) {
        await Promise.all(
          group.map((sent) => world.send(sent.peer, packet(index(sent), sent.amount, 30_000))),
        )
      }
      expect(await world.owed()).toBe(await world.credited())
    })
    await fc.assert(property, { numRuns: runs(40) })
  })

  test('is owed a packet whose condition was sent with the amount 0 before', async () => {
    const world = await attacked(await open(), {})
    const packet = packetsOf(world.details, 21)
    for (let index = 0; index < 21; index++) {
      await world.send('test.mallory', packet(index, 0n, 30_000))
      await world.send('test.mallory', packet(index, 1_000n, 30_000))
    }
    expect([await world.credited(), await world.owed()]).toEqual([21_000n, 21_000n])
  })

  test('is owed what is credited after a packet has expired', async () => {
    const world = await attacked(await open(), {})
    const packet = packetsOf(world.details, 20)
    world.fates.credits = Array(20).fill('is held')
    const replies = Array.from({ length: 20 }, (_, index) =>
      world.send('test.mallory', packet(index, 1_000n, 4_000)),
    )
    expect(new Set((await Promise.all(replies)).map(outcomeOf))).toEqual(new Set(['R00']))
    await world.quiet()
    expect([await world.credited(), await world.owed()]).toEqual([20_000n, 20_000n])
  })

  test('owes the next peer each packet that it has sent, and sends it once', async () => {
    let counted = 0n
    const balances = await open()
    const [from, to] = [balances.of('test.mallory'), balances.of('test.next')]
    const counting: IlpHandler = async (bytes) => {
      counted += BigInt(deserializeIlpPrepare(Buffer.from(bytes)).amount)
      return rejectsOf('test.next')('R00', 'its reply is lost')
    }
    const unused: IlpHandler = () => Promise.reject(new Error('it receives no packets'))
    const connector = createConnector({
      ilpAddress: 'test.connector',
      peers: [
        { ilpAddress: 'test.mallory', asset: usd, balance: from, send: unused },
        { ilpAddress, asset: usd, balance: to, send: counting },
      ],
      rateOf: par,
    })
    const details = { id: '', ilpAddress: `${ilpAddress}.x`, sharedSecret: 'c2VjcmV0' }
    const packet = packetsOf(details, 1)
    const codes: string[] = []
    for (const amount of [0n, 1n, 1n, 1_000n, 1n]) {
      codes.push(outcomeOf(await connector.from('test.mallory')(packet(0, amount, 30_000))))
    }
    expect(codes).toEqual(['R00', 'R00', 'R00', 'F05', 'R00'])
    expect(counted).toBe(1n)
    expect([await from.value(), await to.value()]).toEqual([1n, -1n])
  })
})
