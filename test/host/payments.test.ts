import { describe, expect, test } from 'vitest'
import type { Stored } from '../../src/entry-adapter.js'
import { byWalletAddress, paymentReader } from '../../src/host/payments.js'
import { memoryStore, type Store } from '../../src/index.js'
import { createPaymentLists, listsOf } from '../../src/service/lists.js'
import { invalidInput } from '../support/invalid-input.js'
import { loadOne } from '../support/one-record.js'

const bob = 'https://wallet.example/bob'
const carol = 'https://wallet.example/carol'
const kind = 'incoming-payment'

/** Lists on a memory store that counts its queries, and the function that adds payments. */
function setUp() {
  const store = memoryStore()
  let queries = 0
  const counted: Store = {
    ...store,
    list(query) {
      queries += 1
      return store.list(query)
    },
  }
  const namespace = async () => 'namespac'
  const payments = {
    ...createPaymentLists<Stored>({ store: counted, namespace }, kind),
    load: (id: string) => loadOne(store, kind, id),
  }
  const lists = paymentReader(
    payments,
    (payment) => payment,
    'https://wallet.example/op',
    'incoming-payments',
    byWalletAddress,
  )

  async function add(number: number, walletAddress = bob): Promise<string> {
    const id = `namespac-${walletAddress.length}-${String(number).padStart(4, '0')}`
    const entries = listsOf('namespac', walletAddress, 'https://shop.example', number)
    const next = { id, version: 1, commandId: id, lists: entries }
    await store.commit({ changes: [{ kind, next, expectedVersion: 0 }], guards: [] })
    return id
  }

  async function addMany(count: number, walletAddress?: string): Promise<string[]> {
    const ids: string[] = []
    for (let number = 0; number < count; number++) ids.push(await add(number, walletAddress))
    return ids
  }

  return { lists, add, addMany, queries: () => queries, remove: store.remove }
}

async function idsOf(payments: AsyncIterable<Stored>): Promise<string[]> {
  const ids: string[] = []
  for await (const { id } of payments) ids.push(id)
  return ids
}

describe('iterating over the payments of a wallet address', () => {
  test.each([
    [0, 1],
    [1, 1],
    [99, 1],
    [100, 1],
    [101, 2],
    [250, 3],
  ])('returns all %i payments in order, with %i queries', async (count, expected) => {
    const { lists, addMany, queries } = setUp()
    const ids = await addMany(count)
    await addMany(3, carol)
    expect(await idsOf(lists.iterate({ walletAddress: bob }))).toEqual(ids)
    expect(queries()).toBe(expected)
  })

  test('accepts any spelling of the wallet address', async () => {
    const { lists, addMany } = setUp()
    const ids = await addMany(2)
    expect(await idsOf(lists.iterate({ walletAddress: 'https://WALLET.example/bob/' }))).toEqual(
      ids,
    )
  })

  test('reads a page only when the loop needs it, and none after the loop ends', async () => {
    const { lists, addMany, queries } = setUp()
    await addMany(250)
    const payments = lists.iterate({ walletAddress: bob })
    expect(queries()).toBe(0)
    let seen = 0
    for await (const _ of payments) {
      seen += 1
      expect(queries()).toBe(Math.ceil(seen / 100))
      if (seen === 150) break
    }
    expect(queries()).toBe(2)
  })

  test('begins anew with every loop', async () => {
    const { lists, addMany, add } = setUp()
    const ids = await addMany(2)
    const payments = lists.iterate({ walletAddress: bob })
    expect(await idsOf(payments)).toEqual(ids)
    const later = await add(2)
    expect(await idsOf(payments)).toEqual([...ids, later])
  })

  test('returns each earlier payment once while others are created and removed', async () => {
    const { lists, add, addMany, remove } = setUp()
    const ids = await addMany(150)
    const seen: string[] = []
    for await (const { id } of lists.iterate({ walletAddress: bob })) {
      seen.push(id)
      if (seen.length === 50) {
        await remove([{ kind, id: ids[10] ?? '', version: 1 }])
        await add(9_000)
      }
    }
    expect(seen.slice(0, 150)).toEqual(ids)
    expect(new Set(seen).size).toBe(seen.length)
  })

  test('rejects an invalid query at once, without a query of the store', () => {
    const { lists, queries } = setUp()
    for (const [query, argument] of [
      [undefined, 'query'],
      [{}, 'query.walletAddress'],
      [{ walletAddress: 'bob' }, 'query.walletAddress'],
      [{ walletAddress: bob, first: 1 }, 'query.first'],
    ] as const) {
      expect(() => lists.iterate(query as never)).toThrow(invalidInput(argument))
    }
    expect(queries()).toBe(0)
  })
})

describe('a page of the payments of a wallet address', () => {
  test('can be queried with any spelling of the wallet address', async () => {
    const { lists, addMany } = setUp()
    const ids = await addMany(8)
    const { result } = await lists.list({ walletAddress: 'https://WALLET.example/bob/', last: 5 })
    expect(result.map(({ id }) => id)).toEqual(ids.slice(3))
  })

  test.each([
    ['query', undefined],
    ['query.walletAddress', { walletAddress: 'bob' }],
    ['query.walletAddress', { walletAddress: `${bob}?all` }],
    ['query.first', { walletAddress: bob, first: 0 }],
    ['query.last', { walletAddress: bob, last: 101 }],
    ['query.last', { walletAddress: bob, first: 1, last: 1 }],
    ['query.cursor', { walletAddress: bob, cursor: 'none' }],
  ])('cannot be queried with an invalid %s: %j', async (argument, query) => {
    const { lists, queries } = setUp()
    const error = await lists.list(query as never).catch((thrown) => thrown)
    expect(error).toEqual(invalidInput(argument))
    expect(queries()).toBe(0)
  })
})
