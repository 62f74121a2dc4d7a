import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import {
  memoryPeerBalances,
  type PeerBalances,
  postgresPeerBalances,
} from '../../examples/ilp/peer-balances.js'
import { freshPglite, freshPostgres, servers } from '../support/databases.js'

let inDatabase: PeerBalances
let close: () => Promise<void>
beforeAll(async () => {
  // PGlite runs one statement at a time.
  if (servers.PostgreSQL === undefined) {
    const database = await freshPglite()
    inDatabase = await postgresPeerBalances(database, 'https://wallet.example')
    close = database.close
  } else {
    const { connect, schema, drop } = await freshPostgres()
    const pool = connect({ options: `-c search_path=${schema}` })
    inDatabase = await postgresPeerBalances(pool, 'https://wallet.example')
    close = drop
  }
})
afterAll(() => close())

describe.each<[string, () => PeerBalances]>([
  ['in memory', memoryPeerBalances],
  ['in a database', () => inDatabase],
])('the balances with peers, %s', (_, open) => {
  test('are zero at first, and the sum of all entries of the peer', async () => {
    const balances = open()
    const [one, other] = [balances.of('test.one'), balances.of('test.other')]
    expect(await one.value()).toBe(0n)
    expect(await one.add('packet 1', 2n ** 63n)).toEqual({ amount: 2n ** 63n, isNew: true })
    await one.add('packet 2', -5n)
    await other.add('packet 1', 7n)
    expect(await balances.of('test.one').value()).toBe(2n ** 63n - 5n)
    expect(await other.value()).toBe(7n)
  })

  test('count an entry once, also if it is added concurrently, and only with its first amount', async () => {
    const balance = open().of('test.once')
    const all = await Promise.all([1, 2, 3, 4].map(() => balance.add('packet', 100n)))
    expect(all.filter((entry) => entry?.isNew)).toHaveLength(1)
    expect(all.every((entry) => entry?.amount === 100n)).toBe(true)
    expect(await balance.add('packet', 101n)).toEqual({ amount: 100n, isNew: false })
    expect(await balance.value()).toBe(100n)
  })

  test('lose no concurrent entry', async () => {
    const balance = open().of('test.busy')
    await Promise.all([...Array(50).keys()].map((n) => balance.add(`packet ${n}`, 10n)))
    expect(await balance.value()).toBe(500n)
  })

  test('never exceed their maximum, also if entries are added concurrently', async () => {
    const balance = open().of('test.limited')
    const packets = [...Array(20).keys()].map((n) => `packet ${n}`)
    const all = await Promise.all(packets.map((id) => balance.add(id, 10n, 105n)))
    expect(all.filter((entry) => entry === undefined)).toHaveLength(10)
    expect(await balance.value()).toBe(100n)
    expect(await balance.add('small', 5n, 105n)).toEqual({ amount: 5n, isNew: true })
    expect(await balance.add('small', 5n, 0n)).toEqual({ amount: 5n, isNew: false })
  })

  test('release an entry once, unless it was added again', async () => {
    const balance = open().of('test.released')
    await balance.add('packet 1', 10n)
    await balance.add('packet 2', 5n)
    for (const _ of [1, 2]) await balance.release('packet 1')
    await balance.release('packet 3')
    expect(await balance.value()).toBe(5n)
    expect(await balance.add('packet 1', 7n)).toEqual({ amount: 7n, isNew: true })
    await balance.add('packet 1', 7n)
    await balance.release('packet 1')
    expect(await balance.value()).toBe(12n)
  })

  test('lose nothing if entries are added and released concurrently', async () => {
    const balance = open().of('test.flood')
    const ids = [...Array(60).keys()].map((n) => `packet ${n % 6}`)
    const outcomes = await Promise.allSettled(
      ids.map((id, index) => (index % 4 === 3 ? balance.release(id) : balance.add(id, 10n))),
    )
    const rejected = outcomes.filter(({ status }) => status === 'rejected')
    expect(rejected).toEqual([])
    let sum = 0n
    for (const id of new Set(ids)) sum += (await balance.add(id, 0n))?.amount ?? 0n
    expect(await balance.value()).toBe(sum)
  })

  test('keep their value when old entries are removed', async () => {
    const balances = open()
    await balances.of('test.old').add('settlement 1', -30n)
    await balances.prune()
    expect(await balances.of('test.old').value()).toBe(-30n)
    const again = await balances.of('test.old').add('settlement 1', -30n)
    expect(again).toEqual({ amount: -30n, isNew: false })
    expect(await balances.of('test.old').value()).toBe(-30n)
  })
})
