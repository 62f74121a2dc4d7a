import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { memoryPeerBalances, type PeerBalances } from '../../examples/wallet/peer-balances.js'
import { openStorage, type WalletStorage } from '../../examples/wallet/storage.js'

let storage: WalletStorage
beforeAll(async () => {
  storage = await openStorage({ baseUrl: 'https://wallet.example' })
})
afterAll(() => storage.close())

describe.each<[string, () => PeerBalances]>([
  ['in memory', memoryPeerBalances],
  ['in a database', () => storage.balances],
])('the balances with peers, %s', (_, open) => {
  test('are zero at first, and the sum of all entries of the peer', async () => {
    const balances = open()
    const [one, other] = [balances.of('test.one'), balances.of('test.other')]
    expect(await one.value()).toBe(0n)
    expect(await one.add('packet 1', 2n ** 63n)).toBe(true)
    expect(await one.add('packet 2', -5n)).toBe(true)
    expect(await other.add('packet 1', 7n)).toBe(true)
    expect(await balances.of('test.one').value()).toBe(2n ** 63n - 5n)
    expect(await other.value()).toBe(7n)
  })

  test('count an entry once, also if it is added concurrently, and only with its first amount', async () => {
    const balance = open().of('test.once')
    const all = await Promise.all([1, 2, 3, 4].map(() => balance.add('packet', 100n)))
    expect(all).toEqual([true, true, true, true])
    expect(await balance.add('packet', 101n)).toBe(false)
    expect(await balance.value()).toBe(100n)
  })

  test('lose no concurrent entry', async () => {
    const balance = open().of('test.busy')
    await Promise.all([...Array(50).keys()].map((n) => balance.add(`packet ${n}`, 10n)))
    expect(await balance.value()).toBe(500n)
  })

  test('keep their value when old entries are removed', async () => {
    const balances = open()
    await balances.of('test.old').add('settlement 1', -30n)
    await balances.prune()
    expect(await balances.of('test.old').value()).toBe(-30n)
    expect(await balances.of('test.old').add('settlement 1', -30n)).toBe(true)
    expect(await balances.of('test.old').value()).toBe(-30n)
  })
})
