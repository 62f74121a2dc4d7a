import { describe, expect, test } from 'vitest'
import type { RecordKind, Stored } from '../../src/entry-adapter.js'
import { memoryStore, type Store } from '../../src/index.js'
import {
  createSpendingWorld,
  grantToPay,
  newQuote,
  outgoingItem,
  payByQuote,
  quoteToken,
  usd,
} from '../support/spending.js'
import { idOfPayment } from '../support/spending-client.js'
import { bob, incomingAccess } from '../support/world.js'

/** A member that a later version of the library adds to a record. */
const later = { addedLater: { by: 'a later version' } }

/** A store whose records all have a member that this version does not know, as a later version left them. */
function storeOfLaterVersion() {
  const store = memoryStore()
  const lost = new Set<RecordKind>()
  const kept = new Set<RecordKind>()
  const withLater = <Found extends Stored | undefined>(found: Found): Found =>
    found === undefined ? found : { ...found, ...later }
  const loading: Store = {
    ...store,
    load: async (keys) => (await store.load(keys)).map(withLater),
    async list(query) {
      const page = await store.list(query)
      return { ...page, records: page.records.map(withLater) }
    },
    due: async (...query) => (await store.due(...query)).map(withLater),
    async commit(commit) {
      for (const { kind, next, expectedVersion } of commit.changes) {
        // The holder of a slice knows its own claim.
        if (expectedVersion === 0 || next.id.endsWith('.claim')) continue
        const found = 'addedLater' in next ? kept : lost
        found.add(kind)
      }
      return store.commit(commit)
    },
  }
  return { store: loading, kept, lost }
}

describe('a record with a member that a later version added', () => {
  test('is read, and the member is kept by each kind of record that is replaced', async () => {
    const { store, kept, lost } = storeOfLaterVersion()
    const world = createSpendingWorld({ store })
    const client = world.client()
    const { token, accessToken } = await grantToPay(world, client, [
      outgoingItem({ debitAmount: usd(2500) }),
    ])
    const quote = await newQuote(client, await quoteToken(client))
    const paid = await payByQuote(client, token, quote.body.id)
    expect(paid.status).toBe(201)
    const paymentId = idOfPayment(paid)
    const { outgoingPayments, incomingPayments } = world.resources
    expect(await outgoingPayments.begin(paymentId)).toMatchObject({ ok: true })
    const totals = { sentAmount: usd(300) }
    expect(await outgoingPayments.fail(paymentId, totals)).toMatchObject({ ok: true })
    expect((await client.rotate(accessToken)).status).toBe(200)

    const granted = await client.request([incomingAccess])
    const body = { walletAddress: bob, incomingAmount: usd('5') }
    const created = await client.createPayment(granted.body.access_token.value, body)
    const id = idOfPayment(created)
    const funds = { transferId: 't', amount: usd('5') }
    expect(await incomingPayments.receive(id, funds)).toMatchObject({ ok: true })
    for (const server of [world.auth, world.resources]) {
      await server.events.drain(() => {
        throw new Error('not now')
      })
      world.clock.advance(3_600_000)
      await server.events.drain(() => {})
      await server.sweep()
    }
    expect([...lost]).toEqual([])
    const replaced = ['budget', 'event', 'grant', 'incoming-payment', 'outgoing-payment']
    expect([...kept].toSorted()).toEqual(replaced)
  })
})
